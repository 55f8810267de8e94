"""What is taken out of the supernet computes what the supernet computes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import OFA, SPACES, fresh, images, onnx_logits, scrambled  # noqa: E402
from torch import nn  # noqa: E402

from binas.base.errors import ArchitectureError  # noqa: E402
from binas.space import Architecture, load_space, sample_many  # noqa: E402
from binas.supernet import StaticNetwork, extract  # noqa: E402
from binas.supernet.plain import fold_norms  # noqa: E402

TOLERANCE = 1e-5


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE))


@pytest.mark.parametrize("name", SPACES)
def test_extracted_networks_give_the_same_logits(name: str) -> None:
    net, space = scrambled(name), SPACES[name]
    batch, seen = images(space, 3), []
    with torch.no_grad():
        chosen = [space.extreme(), space.extreme(heaviest=False), *sample_many(space, 12, seed=3)]
        for architecture in chosen:
            plain = extract(net, architecture)
            seen.append(plain(batch))
            assert close(net(batch, architecture), seen[-1]), architecture
    assert not close(seen[0], seen[1])  # so that agreeing means something


def test_extracted_networks_of_the_once_for_all_space() -> None:
    """Kernel 7, squeeze-excite fixed per stage."""
    net = scrambled("ofa-mbv3")
    batch = images(OFA, 2, size=32)
    with torch.no_grad():
        for architecture in sample_many(OFA, 2, seed=0):
            assert close(net(batch, architecture), extract(net, architecture)(batch))


@pytest.mark.parametrize("name", SPACES)
def test_static_twin_has_the_same_layers(name: str) -> None:
    """The plain block a family builds from a config fits the weights that extraction copies out."""
    net, space = scrambled(name), SPACES[name]
    batch = images(space, 2)
    for architecture in sample_many(space, 4, seed=5):
        taken, built = extract(net, architecture), StaticNetwork.from_architecture(space, architecture).eval()
        built.load_state_dict(taken.state_dict())
        with torch.no_grad():
            assert torch.equal(taken(batch), built(batch))


@pytest.mark.parametrize("name", SPACES)
def test_norms_folded_into_convolutions_give_the_same_logits(name: str) -> None:
    net = scrambled(name)
    network = extract(net, net.space.extreme())
    batch = images(net.space, 4)
    with torch.no_grad():
        wanted = network(batch)
        fold_norms(network)
        assert not [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
        assert torch.allclose(network(batch), wanted, rtol=1e-4, atol=1e-5)
        assert torch.allclose(extract(net, net.space.extreme())(batch), wanted)  # the supernet's are its own


def test_extraction_copies() -> None:
    net = fresh(SPACES["small"]).eval()
    batch, architecture = images(net.space, 2), net.space.extreme()
    plain = extract(net, architecture)
    with torch.no_grad():
        before = plain(batch)
        for parameter in net.parameters():
            parameter.add_(1.0)
        assert torch.equal(plain(batch), before)


def test_extracted_networks_hold_no_elastic_code() -> None:
    for name in SPACES:
        plain = extract(scrambled(name), SPACES[name].extreme())
        homes = {type(module).__module__ for module in plain.modules()}
        assert {home for home in homes if not home.startswith("torch.")} <= {
            "binas.supernet.plain",
            "binas.supernet.static",
        }


def test_mode_is_kept() -> None:
    net = fresh(SPACES["small"])
    assert extract(net.train(), net.space.extreme()).training
    assert not extract(net.eval(), net.space.extreme()).training


def test_architecture_of_another_space() -> None:
    with pytest.raises(ArchitectureError, match="stages"):
        extract(scrambled("small"), load_space("imagenet-mbconv").extreme())
    with pytest.raises(ArchitectureError, match="unknown config"):
        extract(scrambled("mixed"), Architecture.parse("0_e9k9"))


@pytest.mark.parametrize("name", ["small", "bottleneck"])
def test_onnx_gives_the_same_logits(name: str) -> None:
    net, space = scrambled(name), SPACES[name]
    batch = images(space, 2)
    for architecture in sample_many(space, 2, seed=8):
        logits = onnx_logits(extract(net, architecture), batch)
        with torch.no_grad():
            assert close(logits, net(batch, architecture))
