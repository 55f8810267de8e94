"""Layers and calls that a user's classifier may be made of: each gives the same logits, as a graph and as ONNX."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from own_models import SIDE, Basic, Bottleneck, NextBlock, ResNet
from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.costs.analytic import architecture_work
from binas.costs.onnx_graph import to_onnx
from binas.space.files import space_from_yaml, space_to_yaml
from binas.space.graph_space import space_of_graph
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.supernet.blueprint import fill
from binas.supernet.network import Supernet, extract
from binas.supernet.static import StaticNetwork
from binas.supernet.tracing import trace

IMAGE = (3, SIDE, SIDE)
EVERY = ["off", "w25", "w50", "w75", "w100"]


def images(count: int = 4) -> Tensor:
    return torch.randn(count, *IMAGE, generator=torch.Generator().manual_seed(1))


class Calls(nn.Module):
    """A function of a tensor as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Residual(nn.Module):
    """A block whose middle has something of its own."""

    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.up, self.down = nn.Conv2d(16, 32, 1), nn.Conv2d(32, 16, 1)
        self.norm, self.middle = nn.BatchNorm2d(32), middle

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.middle(self.norm(self.up(x))))


class ConcatPool(nn.Module):
    """The pooling of fastai."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([F.adaptive_max_pool2d(x, 1), F.adaptive_avg_pool2d(x, 1)], 1).flatten(1)


class GRN(nn.Module):
    """The norm of ConvNeXt V2, as published."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.randn(1, 1, 1, channels))
        self.beta = nn.Parameter(torch.randn(1, 1, 1, channels))

    def forward(self, x: Tensor) -> Tensor:
        size = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        return self.gamma * (x * (size / (size.mean(dim=-1, keepdim=True) + 1e-6))) + self.beta + x


class FusedGRN(GRN):
    """The same as timm writes it."""

    def forward(self, x: Tensor) -> Tensor:
        size = x.norm(p=2, dim=(1, 2), keepdim=True)
        share = size / (size.mean(dim=-1, keepdim=True) + 1e-6)
        return x + torch.addcmul(self.beta.view(1, 1, 1, -1), self.gamma.view(1, 1, 1, -1), x * share)


class NextV2(NextBlock):
    """The block of ConvNeXt V2."""

    def __init__(self, channels: int, norm: type[GRN]) -> None:
        super().__init__(channels)
        self.grn = norm(4 * channels)

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.down(self.grn(F.gelu(self.up(out)))).permute(0, 3, 1, 2)


class RMSNorm(nn.Module):
    """As written by hand, over channels that stand last."""

    def __init__(self, channels: int, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.scale, self.function = nn.Parameter(torch.rand(channels) + 0.5), function

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        return (x * self.function(x) * self.scale).permute(0, 3, 1, 2)


def classifier(*blocks: nn.Module, pool: nn.Module | None = None, features: int = 16) -> nn.Module:
    """A small classifier with these blocks, each channel of its norms and slopes with numbers of its own."""
    torch.manual_seed(0)
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten()] if pool is None else [pool]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), *blocks, *pooled, nn.Linear(features, 5))
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d | nn.SyncBatchNorm):
            for value in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                nn.init.uniform_(value, 0.5, 1.5)  # type: ignore[arg-type]
        if isinstance(layer, nn.PReLU):
            nn.init.uniform_(layer.weight, -0.5, 0.5)
    return model.eval()


def elastic(model: nn.Module) -> tuple[SearchSpace, Supernet]:
    """The space of a model, after it was written and read, and its supernet with the model's weights."""
    found = trace(model, IMAGE)
    space = space_from_yaml(space_to_yaml(space_of_graph(found.graph, "own")))
    supernet = Supernet(space).eval()
    fill(found.weights, supernet)
    return space, supernet


def choices(space: SearchSpace) -> list[list[str]]:
    return [[config.name for config in configs] for stage in space.stages for configs in stage.blocks]


@torch.no_grad()
def as_onnx(model: nn.Module, batch: Tensor) -> Tensor:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = onnxruntime.InferenceSession(to_onnx(model, [batch]), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x0": batch.numpy()})[0])


@torch.no_grad()
def check(model: nn.Module) -> SearchSpace:
    """The heaviest network gives the model's logits, others what they give as static networks and as ONNX."""
    expected, (space, supernet) = model(images()), elastic(model)
    supernet.start_from(space.extreme())  # channels sorted: the same network
    torch.testing.assert_close(supernet(images(), space.extreme()), expected, rtol=1e-4, atol=1e-5)
    for architecture in (space.extreme(), space.extreme(heaviest=False), *sample_many(space, 2, seed=2)):
        alone = extract(supernet, architecture).eval()
        logits = alone(images())
        torch.testing.assert_close(supernet(images(), architecture), logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(as_onnx(alone, images()), logits, rtol=1e-3, atol=1e-4)
        built = StaticNetwork.from_architecture(space, architecture)
        assert architecture_work(space, architecture).params == sum(p.numel() for p in built.parameters())
    return space


# What acts on each number or channel alone: widths go on through it.
NARROWED: dict[str, Callable[[], nn.Module]] = {
    "PReLU with a slope per channel": lambda: nn.PReLU(32),
    "PReLU with one slope": nn.PReLU,
    "SyncBatchNorm": lambda: nn.SyncBatchNorm(32),
    "Mish": nn.Mish,
    "Hardtanh": lambda: nn.Hardtanh(-0.3, 0.7),
    "SELU": nn.SELU,
    "CELU": lambda: nn.CELU(0.3),
    "Softplus": lambda: nn.Softplus(2.0, 5.0),
    "Upsample": lambda: nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")),
    "ConstantPad2d": lambda: nn.Sequential(nn.ConstantPad2d(1, 0.5), nn.AvgPool2d(3, 1)),
    "mish": lambda: Calls(F.mish),
    "hardtanh": lambda: Calls(lambda x: F.hardtanh(x, -0.2, 0.3)),
    "selu": lambda: Calls(F.selu),
    "celu": lambda: Calls(lambda x: F.celu(x, 0.4)),
    "softplus": lambda: Calls(F.softplus),
    "clamp": lambda: Calls(lambda x: x.clamp(-0.5, 0.5).clamp(min=-0.4)),
    "clamp in place": lambda: Calls(lambda x: (2 * x).clamp_(max=0.5)),
    "clamp on one side": lambda: Calls(lambda x: torch.clamp_min(x, -0.1).clamp_max(0.6)),
    "pow": lambda: Calls(lambda x: x**2 + 1.5**x + torch.pow(x, 3) + x.square()),
    "roots": lambda: Calls(lambda x: (x.abs() + 1).sqrt() + (x.square() + 1).rsqrt()),
    "neg and exp": lambda: Calls(lambda x: -torch.exp(-x.abs())),
    "division in place": lambda: Calls(lambda x: (2 * x).div_(3).sub_(x)),
    "interpolate": lambda: Calls(lambda x: F.interpolate(F.max_pool2d(x, 2), size=x.shape[-2:])),
    "a gate of the largest": lambda: Calls(lambda x: x * torch.sigmoid(F.adaptive_max_pool2d(x, (1, 1)))),
    "addcmul": lambda: Calls(lambda x: torch.addcmul(x, x, x)),
}
# What puts channels or places together in a way that is not followed: the block stays as wide as it is.
KEPT: dict[str, Callable[[], nn.Module]] = {
    "amax": lambda: Calls(lambda x: x * torch.sigmoid(x.amax((2, 3), keepdim=True))),
    "sum": lambda: Calls(lambda x: x / (1 + x.abs().sum(1, keepdim=True))),
    "norm": lambda: Calls(lambda x: x / (1 + x.norm(dim=1, keepdim=True))),
    "vector norm": lambda: Calls(lambda x: x / (1 + torch.linalg.vector_norm(x, 1, (2, 3), keepdim=True))),
    "norm of linalg": lambda: Calls(lambda x: x / (1 + torch.linalg.norm(x, dim=(2, 3), keepdim=True))),
}


@pytest.mark.parametrize("name", NARROWED)
def test_widths_go_on_through_what_acts_on_each_channel_alone(name: str) -> None:
    assert choices(check(classifier(Residual(NARROWED[name]())))) == [EVERY]


@pytest.mark.parametrize("name", KEPT)
def test_a_block_whose_channels_are_put_together_is_removed_or_kept(name: str) -> None:
    assert choices(check(classifier(Residual(KEPT[name]())))) == [["off", "on"]]


@pytest.mark.parametrize("norm", [GRN, FusedGRN])
def test_convnext_v2_is_followed(norm: type[GRN]) -> None:
    torch.manual_seed(0)
    assert choices(check(classifier(NextV2(16, norm), NextV2(16, norm)))) == [["off", "on"]] * 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: 1 / ((x * x).mean(dim=-1, keepdim=True) + 1e-6).sqrt(),
        lambda x: 4 / x.norm(2, -1, keepdim=True).clamp(min=1e-6),
        lambda x: 4 / torch.linalg.norm(x, 2, -1, keepdim=True),
    ],
)
def test_norms_written_by_hand_leave_widths_of_others_alone(function: Callable[[Tensor], Tensor]) -> None:
    class Normed(Residual):
        def __init__(self) -> None:
            super().__init__(nn.GELU())
            self.first = RMSNorm(16, function)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.down(self.middle(self.up(self.first(x))))

    assert choices(check(classifier(Normed()))) == [EVERY]


def test_the_pooling_of_fastai_is_followed() -> None:
    model = classifier(Residual(nn.ReLU()), pool=ConcatPool(), features=32)
    assert choices(check(model)) == [EVERY]
    layered = classifier(
        Residual(nn.ReLU()), pool=nn.Sequential(nn.AdaptiveMaxPool2d(2), nn.Flatten()), features=64
    )
    assert choices(check(layered)) == [EVERY]


def test_a_model_as_it_was_trained_on_several_machines() -> None:
    torch.manual_seed(0)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(ResNet([Basic(16, 16, 1), Bottleneck(16, 8)], 16)).eval()
    assert choices(check(model)) == [EVERY] * 2


def test_slopes_after_a_sum_stay_with_their_channels() -> None:
    class After(Residual):
        def __init__(self) -> None:
            super().__init__(nn.PReLU(32))
            self.last = nn.PReLU(16)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(super().forward(x))

    space = check(classifier(After(), After()))
    assert [block for block in choices(space) if block != ["on"]] == [EVERY] * 2


def test_slopes_go_with_the_channels_that_are_kept() -> None:
    model = classifier(Residual(nn.PReLU(32)))
    with torch.no_grad():
        model[1].down.weight[:, 7] *= 50  # type: ignore[index, union-attr, operator]
    space, supernet = elastic(model)
    supernet.start_from(space.extreme())
    slopes = supernet.block(0, 0).static(1).layers["_1_middle_slopes"].value  # type: ignore[union-attr, index]
    assert slopes.shape == (8, 1, 1)
    assert slopes[0] == model[1].middle.weight[7]  # type: ignore[index, union-attr]


def test_slopes_given_to_a_function_are_a_layer() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slopes = nn.Parameter(torch.rand(32))

        def forward(self, x: Tensor) -> Tensor:
            return F.prelu(x, self.slopes)

    assert choices(check(classifier(Residual(Bare())))) == [EVERY]


def test_one_tensor_may_be_query_key_and_value() -> None:
    class Mixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            tokens = x.flatten(2)
            return F.scaled_dot_product_attention(tokens, tokens, tokens).reshape(x.shape)

    assert choices(check(classifier(Residual(Mixed())))) == [["off", "on"]]


REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a factor": (lambda x: torch.addcmul(x, x, x, value=2), "'addcmul'"),
    "a norm of all numbers": (lambda x: x / x.norm(), "'norm'"),
    "a norm of matrices": (lambda x: x / torch.linalg.norm(x, 2, (2, 3), keepdim=True), "'linalg_norm'"),
    "a bound that is computed": (lambda x: torch.clamp(x, x - 1, x + 1), "'clamp'"),
    "a number that is not finite": (lambda x: F.pad(x, (1, 1), value=-torch.inf), "'pad'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_ways_to_call_them_are_refused(case: str) -> None:
    function, words = REFUSED[case]
    with pytest.raises(SpaceError, match=words):
        trace(classifier(Calls(function)), IMAGE)


def test_a_layer_that_gives_two_things_is_refused() -> None:
    class Indexed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.MaxPool2d(2, return_indices=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.pool(x)[0]

    with pytest.raises(SpaceError, match=r"what was written down cannot be run: .* return_indices"):
        trace(classifier(Indexed()), IMAGE)


def test_a_refusal_lists_what_is_known_as_it_is_declared() -> None:
    with pytest.raises(
        SpaceError, match=r"known are AdaptiveAvgPool2d, AdaptiveMaxPool2d, .* PReLU, .* SyncBatchNorm"
    ):
        trace(classifier(nn.Softshrink()), IMAGE)
    with pytest.raises(SpaceError, match=r"calls that are known: abs, .* clamp, .* interpolate, .* vi"):
        trace(classifier(Calls(lambda x: x.sort(1).values)), IMAGE)
