"""A space derived from a network: everything it can be made smaller to, with the network itself as heaviest member."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from binas.base.errors import SpaceError
from binas.space.blockstrings import format_network, to_blocks
from binas.space.codes import BlockCode
from binas.space.described import NetworkDescription
from binas.space.families.bottleneck import inner_width
from binas.space.families.mbconv import expanded_width
from binas.space.files import config_name
from binas.space.space import Config, OptionValue, SearchSpace, Stage, make_options

SHARES = (1 / 3, 2 / 3, 1.0)
LEAST_KERNEL = 3
ELASTIC = {"ir": "mbconv", "er": "mbconv", "bt": "bottleneck"}

Row = list[BlockCode]


def space_from_network(
    network: NetworkDescription,
    *,
    name: str | None = None,
    classes: int | None = None,
    resolution: int | None = None,
    shares: Sequence[float] = SHARES,
) -> SearchSpace:
    """All networks that ``network`` can be made smaller to; ``space.extreme()`` is the network itself.

    Stages have 1 to as many blocks as theirs; a block's inner width is one of ``shares`` of its own (1 is always among
    them; expansions stay at 1 or above), its kernel 3 up to its own, squeeze-excite on or off where it has it. What
    stands before the first ``ir``, ``er`` or ``bt`` block goes to the stem, what stands after the last to the head.
    ``classes`` and ``resolution`` are the network's own where they are not given.
    """
    if not shares or not all(0 < share <= 1 for share in shares):
        raise SpaceError(f"shares must be above 0 and at most 1, got {list(shares)}.")
    before, stages, after = _parts(network)
    width = [network.first, *before][-1].channels
    made = []
    for number, stage in enumerate(stages, 1):
        made.append(_stage(f"s{number}", stage, width, sorted({*shares, 1.0})))
        width = stage[-1].channels
    space = SearchSpace(
        name=name or re.sub("[^A-Za-z0-9._-]", "-", network.name)[:80],
        stages=tuple(made),
        description=f"{network.name} and what it can be made smaller to",
        channels=network.channels,
        resolution=resolution or network.resolution,
        stem=(network.stem, *map(str, before)),
        head=tuple(map(str, after)),
        features=network.features,
        classes=classes or network.classes,
        rules=network.rules,
    )
    _check(space, [*before, *itertools.chain(*stages), *after])
    return space


def _parts(network: NetworkDescription) -> tuple[Row, list[Row], Row]:
    """Blocks before the first that can be made smaller, rows of those that can, blocks after the last."""
    rows = list(_rows(network))
    can = [i for i, row in enumerate(rows) if row[0].kind in ELASTIC]
    if not can:
        known = " and ".join(ELASTIC)
        raise SpaceError(f"no block of {network.name} can be made smaller: of its kinds only {known} can.")
    first, last = can[0], can[-1] + 1
    fixed = [row[0] for row in rows[first:last] if row[0].kind not in ELASTIC]
    if fixed:
        raise SpaceError(
            f"{network.name} has '{fixed[0]}' between blocks that can be made smaller; of that kind no elastic block "
            "is known."
        )
    return (
        list(itertools.chain(*rows[:first])),
        rows[first:last],
        list(itertools.chain(*rows[last:])),
    )


def _rows(network: NetworkDescription) -> Iterator[Row]:
    """The network's stages, divided where channels, stride, kind or activation change inside one."""
    width = network.first.channels
    for stage in network.stages:
        row: Row = []
        for code in stage:
            known = replace(code, skip=code.skip or code.stride > 1 or code.channels != width)
            if row and not _belongs(known, row[0]):
                yield row
                row = []
            row.append(known)
            width = code.channels
        if row:
            yield row


def _belongs(code: BlockCode, first: BlockCode) -> bool:
    same = ("kind", "channels", "activation")
    return code.stride == 1 and all(getattr(code, key) == getattr(first, key) for key in same)


def _stage(name: str, row: Row, width: int, shares: Sequence[float]) -> Stage:
    inputs = [width, *(code.channels for code in row[:-1])]
    blocks = tuple(tuple(_configs(code, own, shares)) for code, own in zip(row, inputs, strict=True))
    first = row[0]
    attributes: dict[str, OptionValue] = {
        "family": ELASTIC[first.kind],
        "channels": first.channels,
        "stride": first.stride,
        "activation": first.activation,
        **({"fused": True} if first.kind == "er" else {}),
    }
    return Stage(name, tuple(range(1, len(row) + 1)), blocks, make_options(attributes))


def _configs(code: BlockCode, inputs: int, shares: Sequence[float]) -> Iterator[Config]:
    """From the lightest to the block itself."""
    key = "ratio" if code.kind == "bt" else "expansion"
    squeezes: list[OptionValue] = [False, code.se == 0.25 or code.se] if code.se else [False]
    for ratio, kernel, se in itertools.product(
        _ratios(code, inputs, shares), _kernels(code.kernel), squeezes
    ):
        options: dict[str, OptionValue] = {key: ratio, "kernel": kernel}
        if code.se:
            options["se"] = se
        yield Config(config_name(options), make_options(options))


def _ratios(code: BlockCode, inputs: int, shares: Sequence[float]) -> list[float]:
    """Expansions (or ratios of a bottleneck) of different widths, the block's own last."""
    least = min(1.0, code.expansion) if code.kind in ("ir", "er") else 0.0
    chosen: dict[int, float] = {}
    for share in shares:
        ratio = code.expansion if share == 1 else round(code.expansion * share, 3)
        if ratio >= least and ratio > 0:
            smaller = replace(code, expansion=ratio)
            width = inner_width(smaller) if code.kind == "bt" else expanded_width(smaller, inputs)
            chosen[width] = int(ratio) if ratio == int(ratio) else ratio
    return list(chosen.values())


def _kernels(own: int) -> list[int]:
    return [*range(LEAST_KERNEL, own, 2), own]


def _check(space: SearchSpace, wanted: Row) -> None:
    """The heaviest member must be the network, block by block."""
    found = [code for stage in to_blocks(space, space.extreme()) for code in stage]
    for code, want in zip(found, wanted, strict=True):
        if code != want:
            raise SpaceError(
                f"no space can be derived from the network: its block '{want}' would become '{code}' "
                f"({format_network((tuple(found),))[:200]})."
            )
