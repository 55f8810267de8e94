"""Classifiers of users as graphs: equal to the module, elastic block by block, extracted and counted exactly."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from own_models import CLASSES, MODELS, SIDE, ResNet, own_model
from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.costs.analytic import architecture_work
from binas.space.files import space_from_yaml, space_to_yaml
from binas.space.graph_blocks import common_path
from binas.space.graph_space import network_of, space_of_graph
from binas.space.graphs import Graph, Node, graph_from_text
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.supernet.blueprint import fill
from binas.supernet.network import Supernet, extract
from binas.supernet.paths import paths_of
from binas.supernet.static import StaticNetwork
from binas.supernet.tracing import trace

IMAGE = (3, SIDE, SIDE)
BLOCKS = {
    "resnet": ["off w25 w50 w75 w100", "w25 w50 w75 w100", "off w25 w50 w75 w100"],
    "bottleneck": ["off w25 w50 w75 w100"] * 2,
    "mobilenet": ["w25 w50 w75 w100", "off w25 w50 w75 w100"] * 2,
    "efficientnet": ["w25 w50 w75 w100", "off w25 w50 w75 w100"] * 2,
    "convnext": ["off w25 w50 w75 w100"] * 2 + ["on"] + ["off w25 w50 w75 w100"] * 2,
    "vit": ["off w25 w50 w75 w100"] * 4,
    "vit of torch": ["off w25 w50 w75 w100"] * 4,
    "published convnext": ["off w25 w50 w75 w100"] * 2 + ["on"] + ["off w25 w50 w75 w100"] * 2,
    "published vit": ["off w25 w50 w75 w100"] * 4,
    "vit with fused attention": ["off w25 w50 w75 w100"] * 4,
    "vit with split attention": ["off on", "off w25 w50 w75 w100"] * 2,
    "paddings by size": ["off w25 w50 w75 w100"] * 2,
}


def images(count: int = 6) -> Tensor:
    return torch.randn(count, *IMAGE, generator=torch.Generator().manual_seed(1))


def elastic(model: nn.Module) -> tuple[SearchSpace, Supernet]:
    """The space of a model and its supernet, with the model's weights."""
    found = trace(model, IMAGE)
    space = space_of_graph(found.graph, "own")
    supernet = Supernet(space).eval()
    fill(found.weights, supernet)
    return space, supernet


@pytest.mark.parametrize("name", MODELS)
def test_blocks_and_their_choices_are_found(name: str) -> None:
    space, _ = elastic(own_model(name))
    found = [" ".join(config.name for config in block) for stage in space.stages for block in stage.blocks]
    assert found == BLOCKS[name]


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_heaviest_network_is_the_model(name: str) -> None:
    model = own_model(name)
    space, supernet = elastic(model)
    expected = model(images())
    assert torch.allclose(supernet(images(), space.extreme()), expected, atol=1e-5)
    supernet.start_from(space.extreme())  # channels sorted: the same network
    assert torch.allclose(supernet(images(), space.extreme()), expected, atol=1e-5)
    other = Supernet(space).eval()
    other.absorb(extract(supernet, space.extreme()))
    assert torch.allclose(other(images(), space.extreme()), expected, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_each_image_takes_its_own_path_as_the_extracted_network_does(name: str) -> None:
    space, supernet = elastic(own_model(name))
    supernet.start_from(space.extreme())
    chosen = sample_many(space, 6, seed=2)
    together = supernet(images(), paths_of(space, chosen))
    for k, architecture in enumerate(chosen):
        alone = extract(supernet, architecture).eval()(images()[k : k + 1])
        assert torch.allclose(together[k : k + 1], alone, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_counted_exactly(name: str) -> None:
    space, _ = elastic(own_model(name))
    for architecture in [space.extreme(), space.extreme(heaviest=False), *sample_many(space, 3, seed=3)]:
        network = StaticNetwork.from_architecture(space, architecture)
        assert architecture_work(space, architecture).params == sum(p.numel() for p in network.parameters())


def test_macs_are_those_of_the_formula() -> None:
    space, _ = elastic(own_model("resnet"))
    area, half = SIDE**2, (SIDE // 2) ** 2
    convolutions = area * 9 * (3 * 16 + 2 * 16 * 16) + half * (9 * (16 * 32 + 3 * 32 * 32) + 16 * 32)
    assert architecture_work(space, space.extreme()).macs == convolutions + 32 * 5


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_what_a_path_uses(name: str) -> None:
    space, supernet = elastic(own_model(name))
    supernet.train()
    supernet(images(), paths_of(space, [space.extreme()] * 6)).sum().backward()
    block = supernet.block(0, 0)
    assert all(p.grad is not None for p in block.full.parameters())  # type: ignore[attr-defined]
    assert all(p.grad is None for p in block.norms.parameters())  # type: ignore[attr-defined]


def test_less_important_channels_go_first() -> None:
    model = own_model("resnet")
    with torch.no_grad():
        model.layers[0].conv2.weight[:, 3] *= 50  # type: ignore[index, union-attr, operator]
    _, supernet = elastic(model)
    kept = model.layers[0].conv1.weight[3].clone()  # type: ignore[index, union-attr]
    supernet.start_from(supernet.space.extreme())
    assert torch.equal(supernet.block(0, 0).full.layers["layers_0_conv1"].weight[0], kept)  # type: ignore[attr-defined]


def test_channels_that_a_norm_switches_off_go_first_whatever_reads_them() -> None:
    model = own_model("resnet")
    with torch.no_grad():
        model.layers[0].bn1.bias[3] = -100.0  # type: ignore[index, union-attr, operator]
        model.layers[0].conv2.weight[:, 3] *= 3  # type: ignore[index, union-attr, operator]
    _, supernet = elastic(model)
    dead = model.layers[0].conv1.weight[3].clone()  # type: ignore[index, union-attr]
    supernet.start_from(supernet.space.extreme())
    assert torch.equal(supernet.block(0, 0).full.layers["layers_0_conv1"].weight[-1], dead)  # type: ignore[attr-defined]


def test_a_removed_block_keeps_what_follows_its_sum() -> None:
    _, supernet = elastic(own_model("resnet"))
    off = supernet.block(0, 0).static(0)
    x = torch.randn(2, 16, SIDE, SIDE)
    assert torch.equal(off(x), torch.relu(x))


def test_a_space_of_a_graph_is_written_and_read() -> None:
    space, _ = elastic(own_model("vit"))
    again = space_from_yaml(space_to_yaml(space))
    assert again == space
    assert again.fingerprint == space.fingerprint
    assert network_of(str(again.network)).graph == network_of(str(space.network)).graph


def test_the_model_is_left_as_it_was() -> None:
    model = own_model("resnet").train()
    before = copy.deepcopy(model.state_dict())
    trace(model, IMAGE)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Deciding(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.mean() > 0 else -x


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 3, 3, 1, 1), nn.Linear(3, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.conv(self.conv(x)).mean((2, 3)))


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.fc(x.mean((2, 3))), x


class Tied(nn.Module):
    """Two layers with one tensor of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.fc = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Linear(3, 5)
        self.two.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.two(self.one(x)).mean((2, 3)))


class Everywhere(nn.Module):
    """One parameter in two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.fc = nn.Parameter(torch.ones(3, 1, 1)), nn.Linear(3, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.scale * torch.relu(x)
        return self.fc((x + self.scale * torch.sigmoid(x)).mean((2, 3)))


class Counting(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) if x.shape[0] > 2 else -x.flatten(1)


class Reading(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) * x.max().item()


class Standardised(nn.Conv2d):
    """A convolution whose weights are computed."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)


class Windows(nn.Module):
    """Attention over parts of an image, which looks like attention over all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj, self.num_heads = nn.Linear(3, 9), nn.Linear(3, 3), 1

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.roll(self.qkv(x.permute(0, 2, 3, 1)), (1, 1), (1, 2))[..., :3]).flatten(1)


class Cross(nn.Module):
    """Attention whose keys are not its queries."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(2)[..., :16]
        return self.inner(tokens, 2 * tokens, tokens)[0].flatten(1)


class NotTorch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.from_numpy(np.tanh(x.flatten(1).numpy()))


class OneByOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([image.flatten() for image in x])


class Listed(nn.Module):
    """Keeps a layer where torch does not see it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Conv2d(3, 3, 1)]

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[0](x).flatten(1)


class Two(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + y).flatten(1)


class Sorting(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sort(1).values.flatten(1)


WRONG = {
    "decides by the images": (
        lambda: nn.Sequential(Deciding(), nn.Flatten()),
        r"'0' \(Deciding\) decides by the images",
    ),
    "calls a layer twice": (Twice, "'conv' is called twice"),
    "gives two things": (Pair, "a tuple"),
    "does what cannot be written down": (Sorting, r"the model itself \(Sorting\) calls 'sort'"),
    "the same further down": (lambda: nn.Sequential(nn.ReLU(), Sorting()), r"'1' \(Sorting\) calls 'sort'"),
    "decides by how many images": (Counting, "decides by the number of images"),
    "goes through images": (OneByOne, "goes through the images one by one"),
    "makes an image a number": (Reading, "takes numbers out of the images"),
    "is TorchScript": (
        lambda: nn.Sequential(torch.jit.script(nn.Conv2d(3, 3, 1)), nn.Flatten()),
        "'0' is of the kind ScriptModule: TorchScript",
    ),
    "is not of torch": (NotTorch, r"\(NotTorch\) takes numbers out of the images \('numpy'\)"),
    "cannot be followed for another reason": (
        lambda: nn.Sequential(Listed()),
        r"in '0' \(Listed\): .*not installed as a submodule.* calls must be those of torch",
    ),
    "takes something else": (Two, r"missing 1 required positional argument.* must take images alone"),
    "ties weights": (Tied, r"'one' and 'two' share one tensor of weights \(weight\)"),
    "has one parameter in two blocks": (Everywhere, "'scale' are used in 2 places"),
    "computes its weights": (
        lambda: nn.Sequential(Standardised(3, 3, 1), nn.Flatten()),
        r"'0' \(Standardised\) calls 'conv2d' .* Its weight is computed",
    ),
    "attention over windows": (lambda: nn.Sequential(Windows()), r"'0' \(Windows\) calls 'roll'"),
    "attention between two": (Cross, r"'inner' \(MultiheadAttention\) .* only self-attention"),
    "pads with what is there": (
        lambda: nn.Sequential(nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), nn.Flatten()),
        r"'0' \(Conv2d\) .* padding_mode='reflect'",
    ),
    "norm without statistics": (
        lambda: nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), nn.Flatten()),
        "no running statistics",
    ),
    "weights that are computed by torch": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1)), nn.Flatten()),
        "'0' is of the kind Parametrized: its weights are computed",
    ),
    "half precision": (lambda: ResNet([], 16).half(), "float16"),
    "a layer that is not known": (
        lambda: nn.Sequential(nn.Flatten(), nn.Softmin(1)),
        "Softmin",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_traced_is_named(case: str) -> None:
    make, words = WRONG[case]
    with pytest.raises(SpaceError, match=words):
        trace(make(), IMAGE)


def spoiled(name: str, value: float) -> nn.Module:
    """A model with a number in one of its tensors that no training gives."""
    model = own_model("resnet")
    with torch.no_grad():
        model.state_dict()[name].flatten()[0] = value
    return model


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["stem.1.running_mean", "layers.0.bn1.running_var", "layers.0.bn1.weight"])
def test_numbers_that_are_not_finite_are_named(name: str, value: float) -> None:
    with pytest.raises(SpaceError, match=f"{re.escape(name)} holds values that are not finite"):
        trace(spoiled(name, value), IMAGE)


def test_logits_that_are_not_finite_are_told_from_other_logits() -> None:
    class Endless(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) / 0

    with pytest.raises(SpaceError, match="gives logits that are not finite for random images"):
        trace(Endless(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 5)), IMAGE)


def test_a_mask_may_be_infinite() -> None:
    model = own_model("resnet")
    model.register_buffer("mask", torch.full((2, 2), -math.inf))
    assert trace(model, IMAGE).graph.classes == CLASSES


def test_other_channels_are_told_apart_from_another_size() -> None:
    with pytest.raises(SpaceError, match=r"^the model takes 3 channels, the images have 1: "):
        trace(own_model("resnet"), (1, SIDE, SIDE))
    with pytest.raises(SpaceError, match=r"^the model takes 1 channel, the images have 3: "):
        trace(nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten()), IMAGE)
    with pytest.raises(SpaceError, match=r"images of 3 x 9 x 9: .* --size for images of a folder"):
        trace(own_model("published vit"), (3, 9, 9))


@pytest.mark.parametrize(
    "layer",
    [nn.LazyConv2d(4, 3), nn.Sequential(nn.Conv2d(3, 4, 3), nn.LazyBatchNorm2d(affine=False))],
)
def test_lazy_layers_that_were_never_run_are_refused(layer: nn.Module) -> None:
    with pytest.raises(SpaceError, match="a lazy layer that was never run has no weights"):
        trace(nn.Sequential(layer, nn.Flatten()), IMAGE)


def test_a_lazy_model_that_was_run_is_as_any_other() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5)).eval()
    model(images())
    with torch.no_grad():
        assert torch.allclose(trace(model, IMAGE).build()(images()), model(images()), atol=1e-5)


@pytest.mark.parametrize("name", ["weight", "buffer"])
def test_a_model_without_numbers_is_refused(name: str) -> None:
    model = nn.Conv2d(3, 4, 3) if name == "buffer" else nn.Conv2d(3, 4, 3, device="meta")
    model.register_buffer("buffer", torch.ones(1, device="meta"))
    with pytest.raises(
        SpaceError, match=f"{name} is on the device 'meta', which keeps shapes and no numbers"
    ):
        trace(nn.Sequential(model, nn.Flatten()), IMAGE)


def test_of_a_model_on_another_device_a_copy_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no other device here, so one of its tensors only says so."""

    class Elsewhere(Tensor):
        @property
        def device(self) -> torch.device:
            return torch.device("cuda")

        def __deepcopy__(self, memo: object) -> Tensor:
            return self.as_subclass(Tensor).clone()

    model, moved = own_model("resnet"), []
    model.register_buffer("far", torch.ones(1).as_subclass(Elsewhere))
    monkeypatch.setattr(nn.Module, "cpu", lambda module: moved.append(module) or module)
    found = trace(model, IMAGE)
    assert len(moved) == 1
    assert moved[0] is not model
    with torch.no_grad():
        assert torch.allclose(found.build()(images()), model(images()), atol=1e-5)


def test_the_package_of_efficientnet_lite_is_followed() -> None:
    package = pytest.importorskip(
        "efficientnet_lite_pytorch", reason="efficientnet_lite_pytorch is not installed"
    )
    torch.manual_seed(0)
    given = {"image_size": 32, "num_classes": 5, "depth_coefficient": 0.6, "drop_connect_rate": 0.2}
    model = package.EfficientNet.from_name("efficientnet-lite0", **given).eval()
    found = trace(model, (3, 32, 32))
    names = [
        [config.name for config in configs]
        for stage in space_of_graph(found.graph, "lite").stages
        for configs in stage.blocks
    ]
    assert (
        len(names) == len(model._blocks) + 1
    )  # and the last convolution, whose channels only the classifier reads
    assert sum(configs[0] == "off" for configs in names) == sum(
        block._block_args.stride == 1 and block._block_args.input_filters == block._block_args.output_filters
        for block in model._blocks
    )
    assert all(configs[-1] == "w100" for configs in names[1:])


def test_modules_that_torch_puts_together_are_looked_into() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 8, 8), nn.Flatten(2), Axes(), layer, nn.Flatten(), nn.Linear(64, 5)
    )
    space, _ = elastic(model)
    assert [[config.name for config in configs] for stage in space.stages for configs in stage.blocks] == [
        ["off", "w25", "w50", "w75", "w100"]
    ] * 2


class Axes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Bare(nn.Module):
    """Functions alone: all weights belong to the model itself, tensors change in place, a connection goes around."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.up = nn.Parameter(torch.randn(8, 3, 3, 3)), nn.Parameter(torch.randn(16, 8, 1, 1))
        self.down, self.last = nn.Parameter(torch.randn(8, 16, 1, 1)), nn.Parameter(torch.randn(5, 8))
        self.bias = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        x = F.conv2d(x, self.stem, padding="same")
        inner = F.conv2d(x, self.up)
        inner.relu_()
        x = F.group_norm(F.leaky_relu(x + F.conv2d(inner, self.down), 0.1), 2)
        x = F.linear(x.mean([2, 3]), self.last, bias=self.bias)
        return F.log_softmax(x, dim=1)


def test_functions_are_layers() -> None:
    model = Bare()
    space, supernet = elastic(model)
    assert [len(configs) for stage in space.stages for configs in stage.blocks] == [5]
    supernet.start_from(space.extreme())
    with torch.no_grad():
        assert torch.allclose(supernet(images(), space.extreme()), model(images()), atol=1e-4)


def test_rows_that_are_not_images_are_no_place_to_cut() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.fc = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(48, 5)

        def forward(self, x: Tensor) -> Tensor:
            x = x.mean(2).permute(1, 0, 2)  # channels first, images second
            x = x + self.two(F.relu(self.one(x)))
            return self.fc(x.permute(1, 0, 2).flatten(1))

    with pytest.raises(SpaceError, match="no block"):
        space_of_graph(trace(Turned(), IMAGE).graph, "turned")


def test_following_leaves_nothing_behind() -> None:
    class Shifted(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + torch.full((3, 1, 1), 0.5))

    model = Shifted(
        nn.Conv2d(3, 16, 3, padding="same"), nn.Conv2d(16, 5, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    model[0].eval()
    before = set(vars(model))
    trace(model, IMAGE)
    assert set(vars(model)) == before
    assert (model.training, model[0].training) == (True, False)


def test_a_connection_of_nn_identity_is_one() -> None:
    model = own_model("resnet")
    model.layers[0].downsample = nn.Identity()  # type: ignore[index, union-attr]
    space, supernet = elastic(model)
    assert [config.name for config in space.stages[0].blocks[0]] == ["off", "w25", "w50", "w75", "w100"]
    with torch.no_grad():
        assert torch.allclose(extract(supernet, space.extreme())(images()), model(images()), atol=1e-4)


def test_blocks_may_be_named() -> None:
    graph = trace(own_model("resnet"), IMAGE).graph
    named = space_of_graph(graph.with_blocks(["layers.2", "layers.0"]), "own")
    changing = [path for path in _paths(named) if path]
    assert changing == ["layers.0", "layers.1", "layers.2"]  # the one between is there as it is
    assert [len(configs) for stage in named.stages for configs in stage.blocks] == [5, 1, 5]
    every = space_of_graph(graph.with_blocks(["layers.*"]), "own")
    assert [stage.blocks for stage in every.stages] == [
        stage.blocks for stage in space_of_graph(graph, "own").stages
    ]
    again = space_from_yaml(space_to_yaml(named))
    assert again.stages == named.stages
    assert network_of(str(again.network)).graph.named_blocks == ("layers.2", "layers.0")


def _paths(space: SearchSpace) -> list[str]:
    network = network_of(str(space.network))
    return [
        common_path(node.path for node in map(network.graph.by_name.get, block.nodes) if node and node.path)
        for block in network.blocks
    ]


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (["blocks.*"], r"no module .* is called 'blocks.\*'; at the top there are stem, layers"),
        (["layers.0", "layers.0.conv2"], "cannot be two blocks"),
    ],
)
def test_names_that_are_no_blocks_are_refused(patterns: list[str], words: str) -> None:
    graph = trace(own_model("resnet"), IMAGE).graph
    with pytest.raises(SpaceError, match=words):
        space_of_graph(graph.with_blocks(patterns), "own")


def test_a_model_without_blocks_is_refused() -> None:
    flat = trace(nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 5)), IMAGE)
    with pytest.raises(SpaceError, match="no block"):
        space_of_graph(flat.graph, "flat")


def test_graphs_of_others_are_checked() -> None:
    first = Node("x", "input", shape=(3, 4, 4))
    with pytest.raises(SpaceError, match="unknown operation 'system'"):
        Graph((first, Node("y", "system", ("x",))))
    with pytest.raises(SpaceError, match="reads what comes after"):
        Graph((first, Node("y", "relu", ("z",))))
    with pytest.raises(SpaceError, match="is no graph"):
        graph_from_text('[["x", 3]]')
