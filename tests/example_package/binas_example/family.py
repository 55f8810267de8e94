"""A block family: one k x k convolution, ``pc_k3_c16`` in block strings. Its torch half is :mod:`binas_example.blocks`."""

from binas.space import BlockCode, Config, Stage
from binas.space.families import BlockShape, ConvShape, Family, Layer, NetworkRules


def code(stage: Stage, block: int, config: Config) -> BlockCode:
    options = stage.block_options(block, config)
    return BlockCode(
        "pc", int(options["kernel"]), int(options.get("stride", 1)), int(options["channels"]), activation="re"
    )


def describe(code: BlockCode, inputs: int, rules: NetworkRules) -> Layer:
    return BlockShape(
        (ConvShape(inputs, code.channels, code.kernel, code.stride, activation=code.activation),), None
    )


PLAIN_CONV = Family("plain-conv", ("pc",), code, describe, "binas_example.blocks:ElasticConv")
