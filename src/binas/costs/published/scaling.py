"""Published networks made smaller or larger by hand: a width multiplier, and fewer strides for small images."""

from __future__ import annotations

from dataclasses import replace

from binas.space.blockstrings import format_network, parse_network, parse_repeated
from binas.space.codes import BlockCode
from binas.space.published import PublishedNetwork

DIVISOR = 8  # channels are multiples of it, as in the authors' code


def scaled(network: PublishedNetwork, width: float = 1.0, unstrided: int = 0) -> PublishedNetwork:
    """The network with all its channels times ``width``, its first ``unstrided`` strides of 2 set to 1.

    Every layer is scaled: stem, blocks, the convolution before the pooling and the layer after it. For 32 x 32 images it is
    usual to leave out the strides of the stem and of the first stage that has one (``unstrided=2``), so that of the
    five halvings of a MobileNet three remain and features of 4 x 4 are pooled.
    """
    stages = [parse_repeated(network.stem), *parse_network(network.blocks)]
    left, changed = unstrided, []
    for stage in stages:
        codes: list[BlockCode] = []
        for code in stage:
            removed = left > 0 and code.stride > 1
            left -= removed
            stride = 1 if removed else code.stride
            codes.append(replace(code, channels=rounded(code.channels * width), stride=stride))
        changed.append(tuple(codes))
    (stem,), *blocks = changed
    features = None if network.features is None else rounded(network.features * width)
    values = {
        "stem": str(stem),
        "blocks": format_network(tuple(blocks)),
        "features": features,
        "counts": None,
    }
    return network.model_copy(update=values)


def rounded(channels: float) -> int:
    """The nearest multiple of 8, at least 8, and not more than a tenth below (the rule of the MobileNets)."""
    nearest = max(DIVISOR, int(channels + DIVISOR / 2) // DIVISOR * DIVISOR)
    return nearest + DIVISOR if nearest < 0.9 * channels else nearest
