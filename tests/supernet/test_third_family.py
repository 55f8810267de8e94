"""A family written outside binas: registered once, it has strings, costs, a supernet, extraction and export.

x + shuffle(act(grouped k x k convolution)): groups are a field of its own in block strings, the shuffle a layer
binas does not know.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import images, make, onnx_logits, scramble, stage  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch_counts import counted, folded, measured_peak  # noqa: E402

from binas.base.errors import SpaceError  # noqa: E402
from binas.costs import analytic_costs, architecture_work, peak_activation  # noqa: E402
from binas.space import (  # noqa: E402
    BlockCode,
    Config,
    SearchSpace,
    Stage,
    from_block_string,
    sample_many,
    to_block_string,
)
from binas.space.families import (  # noqa: E402
    BlockShape,
    ConvShape,
    Layer,
    NetworkRules,
    Trace,
    _base,
)
from binas.supernet import (  # noqa: E402
    ElasticBlock,
    Family,
    StaticNetwork,
    Supernet,
    extract,
    register,
    sample_paths,
)
from binas.supernet.plain import ConvNorm, PlainBlock, module_of  # noqa: E402


@dataclass(frozen=True)
class ShuffleShape(Layer):
    """Channels in another order: no weights, but memory of its own."""

    def record(self, trace: Trace, tensor: int) -> int:
        return trace.add([tensor], trace.shape(tensor))


def code(stage: Stage, block: int, config: Config) -> BlockCode:
    options = stage.block_options(block, config)
    groups = float(options["groups"])
    return BlockCode("sh", 3, int(options.get("stride", 1)), int(options["channels"]), extra=(("g", groups),))


def convolution(code: BlockCode, inputs: int) -> ConvShape:
    return ConvShape(inputs, code.channels, code.kernel, code.stride, int(code.get("g", 1)), code.activation)


def describe(code: BlockCode, inputs: int, rules: NetworkRules) -> Layer:
    same = code.stride == 1 and inputs == code.channels
    return BlockShape((convolution(code, inputs), ShuffleShape()), () if same else None)


def plain(code: BlockCode, inputs: int, rules: NetworkRules) -> nn.Module:
    body = nn.Sequential(ConvNorm(convolution(code, inputs), rules), nn.ChannelShuffle(int(code.get("g", 1))))
    same = code.stride == 1 and inputs == code.channels
    return PlainBlock(body, nn.Identity() if same else None)


class ElasticShuffle(ElasticBlock):
    """Nothing is shared: every config has its own weights."""

    def __init__(self, codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> None:
        super().__init__()
        self.configs = len(codes)
        self.options = nn.ModuleList(plain(code, inputs, rules) for code in codes)

    def forward(self, x: Tensor, config: int) -> Tensor:
        return self.options[config](x)

    def static(self, config: int) -> nn.Module:
        return copy.deepcopy(self.options[config])


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> SearchSpace:
    monkeypatch.setattr(_base, "_FAMILIES", dict(_base._FAMILIES))
    register(Family("shuffle", ("sh",), code, describe, ElasticShuffle, plain, fields=("g",)))
    return make(
        "third",
        [
            stage("s1", [1, 2], 8, {"groups": [4, 2, 1]}, family="shuffle"),
            stage("s2", [1, 2], 16, {"groups": [4, 2]}, family="shuffle", stride=2),
        ],
        head=["sh_k3_c16_g2"],
    )


def test_strings(space: SearchSpace) -> None:
    text = to_block_string(space, space.extreme())
    assert "sh_r1_k3_s2_e1_c16_g2" in text
    for architecture in sample_many(space, 8, seed=0):
        assert from_block_string(space, to_block_string(space, architecture)) == architecture


def test_costs_are_those_of_the_networks(space: SearchSpace) -> None:
    net, batch = Supernet(space), images(space, 1)
    fixed, peaks = peak_activation(space, "int8")
    assert analytic_costs(space)["macs"].fixed > 0
    for architecture in [space.extreme(), *sample_many(space, 4, seed=1)]:
        network = extract(net, architecture).eval()
        assert counted(network, batch) == architecture_work(space, architecture)
        used = [
            peaks[s][b][space.config_index(s, b, name)]
            for s, names in enumerate(architecture.stages)
            for b, name in enumerate(names)
        ]
        assert measured_peak(folded(network), batch) == max(fixed, *used)


def test_supernet_sampling_extraction_and_strings_agree(space: SearchSpace) -> None:
    net = Supernet(space).eval()
    scramble(net)
    batch, paths = images(space, 12), sample_paths(space, 12, torch.Generator().manual_seed(0))
    with torch.no_grad():
        together = net(batch, paths)
        for i in range(12):
            architecture = space.from_indices(paths[0][i].tolist(), paths[1][i].tolist())
            alone = extract(net, architecture)
            torch.testing.assert_close(together[i : i + 1], alone(batch[i : i + 1]), rtol=1e-5, atol=1e-5)
            built = StaticNetwork.from_architecture(space, architecture).eval()
            built.load_state_dict(alone.state_dict())
            assert torch.equal(built(batch), alone(batch))
            text = to_block_string(space, architecture)
            named = StaticNetwork.from_string(text, stem=space.stem[0], classes=space.classes)
            assert sum(p.numel() for p in named.parameters()) == architecture_work(space, architecture).params


def test_onnx(space: SearchSpace) -> None:
    net = Supernet(space).eval()
    scramble(net)
    batch, architecture = images(space, 2), space.extreme()
    logits = onnx_logits(extract(net, architecture), batch)
    with torch.no_grad():
        torch.testing.assert_close(logits, net(batch, architecture), rtol=1e-5, atol=1e-5)


def test_it_trains(space: SearchSpace) -> None:
    torch.manual_seed(0)
    net, labels = Supernet(space).train(), torch.arange(20) % 5
    batch, one = images(space, 5, seed=9)[labels], torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(net(batch, sample_paths(space, 20, one, 2)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])


def test_a_layer_without_a_module_needs_a_builder() -> None:
    with pytest.raises(SpaceError, match="no module is known for the layer ShuffleShape"):
        module_of(ShuffleShape())
