"""The residual bottleneck family (ResNet-like): reduce 1x1, convolve k x k, expand 1x1, add, activate.

Options: ``ratio``, the inner width as a part of the stage's channels (rounded to multiples of 8), ``kernel`` and
``activation`` (ReLU unless given). The shortcut is a 1x1 convolution where the shape changes. Its block strings
are an extension of timm's grammar: ``bt_r1_k3_s2_e0.25_c64_nre``, where ``e`` is the ratio.
"""

from __future__ import annotations

from binas.base.errors import SpaceError
from binas.space.codes import BlockCode, activation, round_channels, whole
from binas.space.families._base import Family
from binas.space.families.layers import BlockShape, ConvShape, Layer
from binas.space.rules import NetworkRules
from binas.space.space import Config, Stage

MAX_RATIO = 16


def bottleneck_code(stage: Stage, block: int, config: Config) -> BlockCode:
    """The ``bt`` block of a config."""
    options = stage.block_options(block, config)
    where = f"config {config.name!r} of stage {stage.name!r}"
    ratio = options.get("ratio", 0.25)
    if type(ratio) not in (int, float) or not 0 < float(ratio) <= MAX_RATIO:
        raise SpaceError(f"{where} needs a ratio above 0 and at most {MAX_RATIO}, got {ratio!r}.")
    return BlockCode(
        kind="bt",
        kernel=whole(options.get("kernel", 3), "kernel", where),
        stride=whole(options.get("stride", 1), "stride", where),
        channels=whole(options.get("channels"), "channels", where),
        expansion=float(ratio),
        activation=activation(options.get("activation", "re"), where),
    )


def inner_width(code: BlockCode) -> int:
    """Channels of the k x k convolution: round(channels * ratio)."""
    return round_channels(code.channels * code.expansion)


def describe_bottleneck(code: BlockCode, inputs: int, rules: NetworkRules) -> Layer:
    """The layers of a bottleneck."""
    if code.se or not code.skip:
        raise SpaceError(
            f"a bottleneck has a shortcut and no squeeze-excite, so {str(code)!r} cannot be built."
        )
    width, outputs, act = inner_width(code), code.channels, code.activation
    body = (
        ConvShape(inputs, width, activation=act),
        ConvShape(width, width, code.kernel, code.stride, activation=act),
        ConvShape(width, outputs),
    )
    changes = code.stride != 1 or inputs != outputs
    shortcut = (ConvShape(inputs, outputs, stride=code.stride),) if changes else ()
    return BlockShape(body, shortcut, act)


BOTTLENECK = Family(
    "bottleneck",
    ("bt",),
    bottleneck_code,
    describe_bottleneck,
    "binas.supernet.bottleneck:elastic_bottleneck",
)
