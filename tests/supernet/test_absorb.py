"""The inverse of extraction: what a supernet takes over is what is taken out of it again."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import SPACES, fresh, images, scramble  # noqa: E402
from torch import nn  # noqa: E402

from binas.base.errors import ModelError, SpaceError  # noqa: E402
from binas.space import NetworkDescription, sample_many, space_from_network  # noqa: E402
from binas.supernet import ElasticBlock, StaticNetwork, Supernet, extract  # noqa: E402


def trained(space: object, architecture: object, seed: int = 7) -> StaticNetwork:
    torch.manual_seed(seed)
    network = StaticNetwork.from_architecture(space, architecture)
    scramble(network, seed)
    return network.eval()


@pytest.mark.parametrize("name", SPACES)
def test_extraction_gives_back_what_was_absorbed(name: str) -> None:
    space = SPACES[name]
    for architecture in [space.extreme(), *sample_many(space, 4, seed=2)]:
        network, net = trained(space, architecture), fresh(space).eval()
        net.absorb(network, architecture)
        taken = extract(net, architecture)
        assert taken.state_dict().keys() == network.state_dict().keys()
        for key, value in network.state_dict().items():
            assert torch.equal(taken.state_dict()[key], value), key


@pytest.mark.parametrize("name", SPACES)
def test_all_paths_can_start_from_what_was_absorbed(name: str) -> None:
    space = SPACES[name]
    network, net = trained(space, space.extreme()), fresh(space).eval()
    net.absorb(network)
    net.start_from(space.extreme())
    batch = images(space, 3, size=space.resolution)
    with torch.no_grad():
        torch.testing.assert_close(net(batch, space.extreme()), network(batch), rtol=1e-4, atol=1e-5)


def test_the_network_is_not_shared() -> None:
    space = SPACES["small"]
    network, net = trained(space, space.extreme()), fresh(space)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    net.absorb(network)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(network.state_dict()[key], value) for key, value in before.items())


def test_a_described_network_and_its_space() -> None:
    """Stem, blocks and head are divided differently there; only their order counts."""
    blocks = "[['ds_k3_c16_nre'], ['ir_r2_k5_s2_e4_c24_se0.25'], ['bt_r2_k3_s2_e0.5_c32_nre'], ['cn_k1_c48']]"
    network = NetworkDescription(name="mine", blocks=blocks, resolution=32, classes=6, features=20)
    torch.manual_seed(0)
    plain = StaticNetwork.from_description(network).eval()
    scramble(plain)
    space = space_from_network(network)
    net = Supernet(space).eval()
    net.absorb(plain)
    batch = images(space, 2, size=32)
    with torch.no_grad():
        assert torch.equal(extract(net, space.extreme())(batch), plain(batch))
        torch.testing.assert_close(net(batch, space.extreme()), plain(batch), rtol=1e-4, atol=1e-5)


class TestClasses:
    def test_another_number_needs_a_new_classifier(self) -> None:
        space = SPACES["small"]
        net = fresh(replace(space, classes=9))
        classifier = net.head.classifier.weight.detach().clone()
        with pytest.raises(ModelError, match="5 classes apart, the space 'small' 9"):
            net.absorb(trained(space, space.extreme()))
        net.absorb(trained(space, space.extreme()), new_classifier=True)
        assert torch.equal(net.head.classifier.weight, classifier)

    def test_the_rest_is_taken_over(self) -> None:
        space = SPACES["small"]
        network, net = trained(space, space.extreme()), fresh(replace(space, classes=9)).eval()
        net.absorb(network, new_classifier=True)
        taken = extract(net, space.extreme()).state_dict()
        for key, value in network.state_dict().items():
            assert key.startswith("head.classifier") or torch.equal(taken[key], value), key


class TestNetworksThatDoNotFit:
    def test_another_depth(self) -> None:
        space = SPACES["small"]
        with pytest.raises(ModelError, match="blocks"):
            fresh(space).absorb(trained(space, space.extreme(heaviest=False)))

    def test_another_block(self) -> None:
        space = SPACES["small"]
        last, *_ = sample_many(space, 1, seed=0)
        heaviest = space.extreme()
        other = replace(heaviest, stages=((*heaviest.stages[0][:2], "e1k3"), heaviest.stages[1]))
        assert other != heaviest
        assert last in space
        with pytest.raises(ModelError, match="block 3 of stage 's1': the block does not fit"):
            fresh(space).absorb(trained(space, other))

    def test_another_stem(self) -> None:
        space = SPACES["small"]
        wider = replace(space, stem=("cn_r1_k5_s2_c8_nre",))
        with pytest.raises(ModelError, match="the stem of the network"):
            fresh(space).absorb(trained(wider, wider.extreme()))

    def test_another_padding(self) -> None:
        space = SPACES["tensorflow"]
        other = replace(space, rules=space.rules.model_copy(update={"padding": "torch"}))
        with pytest.raises(ModelError, match="does not fit"):
            fresh(space).absorb(trained(other, other.extreme()))

    def test_a_family_that_cannot(self) -> None:
        class Fixed(ElasticBlock):
            configs = 1

            def forward(self, x, config):  # type: ignore[no-untyped-def]
                return x

            def static(self, config: int) -> nn.Module:
                return nn.Identity()

        with pytest.raises(SpaceError, match="Fixed cannot take over"):
            Fixed().absorb(nn.Identity(), 0)
