"""The MBConv family and the other block strings of timm: ``ir``, ``ds``, ``dsa``, ``cn``, ``er``, and ``mp``.

``ir`` expand 1x1, depth-wise k x k, squeeze-excite, project 1x1 (paper appendix A, B); ``ds`` and ``dsa`` have
no expansion, and ``dsa`` ends with an activation; ``er`` expands by a k x k convolution instead of a depth-wise
one; ``cn`` is one convolution; ``mp`` (not timm's) is the largest of k x k values, as after ResNet's first
convolution. Stages are made of ``ir``, or of ``er`` where the option ``fused`` is on. A residual connection needs
stride 1, equal channels and no ``noskip``; ``cn`` has none.
"""

from __future__ import annotations

from binas.base.errors import SpaceError
from binas.space.codes import (
    DEFAULT_ACTIVATION,
    BlockCode,
    activation,
    positive,
    round_channels,
    switched,
    whole,
)
from binas.space.families._base import Family
from binas.space.families.layers import BlockShape, ConvShape, Layer, MaxPoolShape, SqueezeShape
from binas.space.rules import NetworkRules
from binas.space.space import Config, OptionValue, Stage


def mbconv_code(stage: Stage, block: int, config: Config) -> BlockCode:
    """The ``ir`` block of a config, or the ``er`` block where it is fused."""
    options = stage.block_options(block, config)
    where = f"config {config.name!r} of stage {stage.name!r}"
    if options.get("channels") is None or options.get("op"):
        raise SpaceError(
            f"{where} has no block string: it needs the keys channels, stride, kernel and expansion."
        )
    return BlockCode(
        kind="er" if switched(options.get("fused", False), "fused", where) else "ir",
        kernel=whole(options.get("kernel", 3), "kernel", where),
        stride=whole(options.get("stride", 1), "stride", where),
        channels=whole(options["channels"], "channels", where),
        expansion=positive(options.get("expansion", 1), "expansion", where),
        se=_se_ratio(options, where),
        activation=activation(options.get("activation", DEFAULT_ACTIVATION), where),
    )


def _se_ratio(options: dict[str, OptionValue], where: str) -> float:
    """``se: on`` takes ``se_ratio`` (a quarter where it is not given); ``se: 0.5`` is a ratio itself."""
    se = options.get("se")
    if not se:
        return 0.0
    return positive(options.get("se_ratio", 0.25) if se is True else se, "se", where)


def describe_mbconv(code: BlockCode, inputs: int, rules: NetworkRules) -> Layer:
    """The layers of a block of any of the six kinds."""
    if code.kind == "cn":
        return ConvShape(inputs, code.channels, code.kernel, code.stride, activation=code.activation)
    if code.kind == "mp":
        if code.channels != inputs:
            raise SpaceError(f"{str(code)!r} keeps its channels, but {inputs} arrive: write c{inputs}.")
        return MaxPoolShape(code.kernel, code.stride)
    width = expanded_width(code, inputs)
    body = _middle(code, inputs, width)
    if code.se:
        body.append(SqueezeShape(width, rules.squeeze.reduced(code.se, width, inputs), rules.squeeze))
    body.append(ConvShape(width, code.channels, activation=code.activation if code.kind == "dsa" else ""))
    skip = code.skip and code.stride == 1 and inputs == code.channels
    return BlockShape(tuple(body), () if skip else None)


def expanded_width(code: BlockCode, inputs: int) -> int:
    """Channels inside the block: round(inputs * expansion), or the inputs where nothing is expanded."""
    return inputs if code.kind in ("ds", "dsa") else round_channels(inputs * code.expansion)


def _middle(code: BlockCode, inputs: int, width: int) -> list[Layer]:
    """The layers up to squeeze-excite."""
    if code.kind == "er":
        return [ConvShape(inputs, width, code.kernel, code.stride, activation=code.activation)]
    depthwise = ConvShape(width, width, code.kernel, code.stride, width, code.activation)
    return (
        [ConvShape(inputs, width, activation=code.activation), depthwise]
        if code.kind == "ir"
        else [depthwise]
    )


MBCONV = Family(
    "mbconv",
    ("ir", "ds", "dsa", "cn", "er", "mp"),
    mbconv_code,
    describe_mbconv,
    "binas.supernet.mbconv:elastic_mbconv",
)
