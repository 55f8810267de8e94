"""Readers of public tables measured by others, as realistic cases for tests and benchmarks.

The files are not part of binas; docs and tests find them through the environment variable ``BINAS_TABLES``.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from binas.base.errors import BinasError, TableError
from binas.base.files import read_json, read_text
from binas.costs.foreign.tf_nas import CONFIG
from binas.space.architecture import Architecture
from binas.space.files import load_builtin
from binas.space.space import Config, OptionValue, SearchSpace, Stage, make_options
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Column, Provenance
from binas.tables.units import parse_unit

MACRO_STAGES = (2, 3, 3)
MACRO_CONFIGS = {"0": "id", "1": "e3k3", "2": "e6k5"}
TFNAS_BLOCKS = (2, 3, 4, 4, 4, 1)
TFNAS_ACTIVATIONS = {"relu": "re", "swish": "sw"}
ACCEL_DEPTHS = (3, 3, 3, 3, 3, 4, 3)
ACCEL_CONFIGS = tuple(f"e{e}k{k}{se}" for e in (1, 4, 6) for k in (3, 5) for se in ("", "se"))
_MACRO_KEY = re.compile("[012]{8}")


@dataclass(frozen=True, slots=True)
class MacroRecord:
    """One network of NAS-Bench-Macro: accuracies in percent, and every string that describes it."""

    strings: tuple[str, ...]
    runs: tuple[float, ...]
    accuracy: float
    std: float
    params: int
    flops: int


def read_nas_bench_macro(path: Path) -> dict[Architecture, MacroRecord]:
    """NAS-Bench-Macro (xiusu/NAS-Bench-Macro, Apache-2.0) by architecture of the space ``nas-bench-macro``.

    The 6,561 strings describe 3,969 networks; strings of one network must agree in every number.
    """
    grouped: dict[Architecture, list[str]] = defaultdict(list)
    data = read_json(Path(path))
    if not isinstance(data, dict):
        raise TableError(f"{path} is not the NAS-Bench-Macro table: it must map strings to records.")
    for text in data:
        grouped[macro_architecture(text)].append(text)
    return {architecture: _macro_record(data, texts) for architecture, texts in grouped.items()}


def macro_architecture(text: str) -> Architecture:
    """The architecture of a string such as ``02012100``: stages of 2, 3 and 3 layers, 0 is identity.

    The first layer of a stage changes the shape even as identity; a later identity does nothing and is
    dropped.
    """
    if not _MACRO_KEY.fullmatch(text):
        raise TableError(f"{text[:40]!r} is not a NAS-Bench-Macro string: eight digits from 0 to 2.")
    ends = itertools.pairwise(itertools.accumulate((0, *MACRO_STAGES)))
    stages = [text[start:end] for start, end in ends]
    kept = [layers[0] + layers[1:].replace("0", "") for layers in stages]
    architecture = Architecture.of([MACRO_CONFIGS[digit] for digit in layers] for layers in kept)
    load_builtin("nas-bench-macro").check(architecture)
    return architecture


def _macro_record(data: Mapping[str, Any], texts: Sequence[str]) -> MacroRecord:
    first = data[texts[0]]
    unlike = [text for text in texts if data[text] != first]
    if unlike:
        raise TableError(f"the strings {texts[0]} and {unlike[0]} are one network, but their records differ.")
    try:
        return MacroRecord(
            tuple(sorted(texts)),
            tuple(float(accuracy) for accuracy in first["test_acc"]),
            float(first["mean_acc"]),
            float(first["std"]),
            int(first["params"]),
            int(first["flops"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(f"the record of {texts[0]} is damaged: {error}.") from error


@dataclass(frozen=True, slots=True)
class AccelRecord:
    """One network of Accel-NASBench: ImageNet top-1 in percent, and its costs by column of the file, NaN where missing."""

    accuracy: float
    costs: Mapping[str, float]


def accel_space() -> SearchSpace:
    """Seven stages whose blocks share one config: a stage is one decision, ``e4k5x2`` is e4k5 in two blocks.

    6 stages of 36 options and one of 48: 1.0e11 architectures.
    """
    stages = []
    for number, most in enumerate(ACCEL_DEPTHS, 1):
        names = itertools.product(ACCEL_CONFIGS, range(1, most + 1))
        configs = tuple(Config(f"{name}x{depth}", _accel_options(name, depth)) for name, depth in names)
        stages.append(Stage(f"s{number}", (1,), (configs,)))
    return SearchSpace("accel-nasbench", tuple(stages), "Accel-NASBench: config x depth of every stage")


def _accel_options(name: str, depth: int) -> tuple[tuple[str, OptionValue], ...]:
    options = {"expansion": int(name[1]), "kernel": int(name[3]), "se": name.endswith("se"), "blocks": depth}
    return make_options(options)


def accel_architecture(text: str) -> Architecture:
    """The architecture of a string such as ``e6k3_e4k5-e4k5_...``: stages joined by ``_``, equal blocks by ``-``."""
    stages = [stage.split("-") for stage in text.split("_")]
    if any(len(set(blocks)) > 1 for blocks in stages):
        raise TableError(f"{text[:80]!r} has a stage with different blocks; Accel-NASBench has none.")
    return Architecture.of([f"{blocks[0]}x{len(blocks)}"] for blocks in stages)


def read_accel_nasbench(path: Path) -> dict[Architecture, AccelRecord]:
    """Accel-NASBench (afzalxo/Accel-NASBench, Apache-2.0) by architecture of :func:`accel_space`; of two rows the first."""
    space, found = accel_space(), dict[Architecture, AccelRecord]()
    for row in csv.DictReader(read_text(Path(path)).splitlines()):
        try:
            architecture = accel_architecture(row.pop("architecture"))
            space.check(architecture)
            accuracy = float(row.pop("imagenet_top1_percent"))
            costs = {name: float(text) if text else math.nan for name, text in row.items()}
        except (KeyError, ValueError, BinasError) as error:
            raise TableError(f"{path} is not the Accel-NASBench table: {error}.") from error
        found.setdefault(architecture, AccelRecord(accuracy, costs))
    return found


def read_tfnas(path: Path, device: str) -> tuple[SearchSpace, CostTable]:
    """The TF-NAS block latencies (AberHu/TF-NAS, MIT) of ``device``: ``cpu`` or ``gpu``.

    Six stages of 2, 3, 4, 4, 4 and 1 blocks. A stage may use two of its blocks up to all (the first stage
    from one, the last has only one). Configs are called ``k3e2``, ``k3e2se``; the one cost is ``latency`` in
    ms.
    """
    data = read_json(Path(path))
    if not isinstance(data, dict) or device not in data:
        known = ", ".join(data) if isinstance(data, dict) else "nothing"
        raise TableError(f"{path} has no device {device[:40]!r}; it has {known}.")
    table = data[device]
    try:
        return _tfnas(table, device)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TableError(f"{path}: the table of {device} is damaged: {error!r}.") from error


def _tfnas(table: Mapping[str, Any], device: str) -> tuple[SearchSpace, CostTable]:
    stages = list(_tfnas_stages(table["blocks"]))
    space = SearchSpace(
        f"tfnas-{device}",
        tuple(_tfnas_stage(number, blocks) for number, blocks in enumerate(stages, 1)),
        "TF-NAS: expansion 2, 3, 4, 6 x kernel 3, 5 x squeeze-excite",
    )
    latencies = [[list(block["ms"].values()) for block in blocks] for blocks in stages]
    provenance = Provenance(
        source="TF-NAS block latency tables (AberHu/TF-NAS, MIT)",
        device=str(table["device"]),
        batch=int(table["batch_size"]),
    )
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(latencies[s][b][c]))
    unit, fixed = parse_unit(str(table["unit"])), float(table["stem_and_head_ms"])
    if not (math.isfinite(fixed) and all(np.isfinite(array).all() for array in values.arrays())):
        raise ValueError("a latency is not finite")
    return space, CostTable(space, {"latency": Cost("latency", unit, fixed, values, provenance=provenance)})


def _tfnas_stages(blocks: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The blocks stage by stage, which must be the published layout."""
    layout = [(s, b) for s, count in enumerate(TFNAS_BLOCKS, 1) for b in range(1, count + 1)]
    if [(block["stage"], block["block"]) for block in blocks] != layout:
        raise ValueError(f"blocks must come as stages of {', '.join(map(str, TFNAS_BLOCKS))} blocks")
    rest = iter(blocks)
    for count in TFNAS_BLOCKS:
        yield list(itertools.islice(rest, count))


def _tfnas_stage(number: int, blocks: Sequence[Mapping[str, Any]]) -> Stage:
    least = 1 if number == 1 else min(2, len(blocks))
    first = blocks[0]
    attributes: dict[str, OptionValue] = {
        "family": "mbconv",
        "channels": int(first["cout"]),
        "stride": int(first["stride"]),
        "activation": TFNAS_ACTIVATIONS[first["act"]],
    }
    configs = tuple(tuple(_tfnas_config(name) for name in block["ms"]) for block in blocks)
    return Stage(f"s{number}", tuple(range(least, len(blocks) + 1)), configs, make_options(attributes))


def _tfnas_config(text: str) -> Config:
    match = CONFIG.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a config such as k5_e6_se1")
    kernel, expansion, se = map(int, match.groups())
    name = f"k{kernel}e{expansion}" + ("se" if se else "")
    return Config(name, make_options({"kernel": kernel, "expansion": expansion, "se": bool(se)}))
