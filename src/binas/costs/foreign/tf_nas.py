"""Latency tables of TF-NAS as JSON, in either of two layouts; milliseconds.

By key, as TF-NAS keeps them: size, input, squeeze and output channels, kernel, stride and activation, then the
latency of every expanded width. ``base`` is everything that is not searched::

    {"base": 9.36, "MBI_112_16_0_24_k3_s2_relu": {"32": 2.67, "48": 3.32, ...}, ...}

By block, under the name of a device::

    {"cpu": {"device": "Xeon", "batch_size": 1, "unit": "ms", "stem_and_head_ms": 9.36, "blocks": [
        {"in_hw": 112, "cin": 16, "cout": 24, "stride": 2, "act": "relu", "ms": {"k3_e2_se0": 2.67, ...}}, ...]}}

TF-NAS publishes pickles, which are never read here: a pickle can run any code. Convert one where you trust it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from binas.base.errors import TableError
from binas.base.files import read_json
from binas.costs.foreign._match import Block, Found, number, stated, to_cost
from binas.space.codes import round_channels
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Provenance

ACTIVATIONS = {"re": "relu", "r6": "relu6", "hs": "h_swish", "sw": "swish"}
_KEY = re.compile(
    r"MBI_([0-9]{1,5})_([0-9]{1,5})_([0-9]{1,5})_([0-9]{1,5})_k([0-9]{1,2})_s([0-9])_([a-z0-9_]{2,10})"
)
CONFIG = re.compile(r"k([0-9]{1,2})_e([0-9]{1,2})_se([01])")


def read_tf_nas(
    path: Path,
    space: SearchSpace,
    device: str | None = None,
    name: str = "latency",
    provenance: Provenance | None = None,
) -> Cost:
    """The latency of every choice of ``space``, in ms; ``device`` names one of several in the file.

    An error names what the table lacks.
    """
    data = read_json(path)
    if not isinstance(data, dict) or not data:
        raise TableError(f"{path} is not a TF-NAS table: it must be a JSON object.")
    known = stated(provenance, f"TF-NAS table {path.name}")
    if "base" in data:
        return to_cost(_by_key(data, str(path)), space, name, "ms", known, str(path))
    if device not in data:
        listed = ", ".join(map(str, data))[:200]
        raise TableError(f"{path} holds the devices {listed}; say which one with --table {next(iter(data))}.")
    table = data[device]
    blocks = _by_block(table, f"{path}: {device}")
    return to_cost(blocks, space, name, "ms", _completed(known, table), str(path))


def _completed(known: Provenance, table: Mapping[str, Any]) -> Provenance:
    """Device and batch as the table says, where the caller does not."""
    batch, device = table.get("batch_size"), table.get("device")
    update: dict[str, object] = {}
    if known.device is None and isinstance(device, str):
        update["device"] = device
    if known.batch is None and type(batch) is int:
        update["batch"] = batch
    if known.batch not in (None, batch):
        raise TableError(f"the table is of batch {batch}, not {known.batch}.")
    return known.model_copy(update=update)


class Shape(NamedTuple):
    """What TF-NAS tells blocks apart by."""

    size: int
    inputs: int
    outputs: int
    kernel: int
    stride: int
    activation: str
    se: bool
    width: int

    def __str__(self) -> str:
        squeeze = "se" if self.se else "0"
        shape = f"{self.size}_{self.inputs}_{squeeze}_{self.outputs}_k{self.kernel}_s{self.stride}"
        return f"MBI_{shape}_{self.activation} width {self.width}"


@dataclass(frozen=True, eq=False)
class TfNas:
    """Latencies by shape, and that of everything that is not searched."""

    values: Mapping[Shape, float]
    base: float

    def block(self, block: Block) -> Found:
        """The entry of one block."""
        shape = Shape(
            block.size,
            block.inputs,
            block.outputs,
            block.kernel,
            block.stride,
            ACTIVATIONS[block.activation],
            block.se,
            block.width,
        )
        return Found(str(shape), self.values.get(shape))

    def fixed(self, space: SearchSpace) -> list[Found]:
        """Everything that is not searched is one number."""
        return [Found("base", self.base)]

    def hint(self) -> str:
        """The shapes the table has."""
        shapes = dict.fromkeys(
            f"{x.size}x{x.size}x{x.inputs} to {x.outputs} {x.activation}" for x in self.values
        )
        return f"The table has blocks of {', '.join(list(shapes)[:8])}."


def _by_key(data: Mapping[str, Any], where: str) -> TfNas:
    """Of several squeeze widths for one block the smallest that has its expanded width, as TF-NAS builds them."""
    by_shape: dict[Shape, dict[int, float]] = defaultdict(dict)
    for key, widths in data.items():
        if key == "base":
            continue
        match = _KEY.fullmatch(key)
        if match is None or not isinstance(widths, dict):
            raise TableError(
                f"{where} has the key {key[:60]!r}, which is not one such as MBI_112_16_0_24_k3_s2_relu."
            )
        size, inputs, squeeze, outputs, kernel, stride = map(int, match.groups()[:6])
        for width, value in widths.items():
            if not re.fullmatch("[0-9]{1,5}", width):
                raise TableError(
                    f"{where}: {key} has the width {width[:20]!r}, which is no number of channels."
                )
            shape = Shape(size, inputs, outputs, kernel, stride, match[7], squeeze > 0, int(width))
            by_shape[shape][squeeze] = number(value, f"{where}: {key}, width {width}")
    values = {shape: by_squeeze[min(by_squeeze)] for shape, by_squeeze in by_shape.items()}
    return TfNas(values, number(data["base"], f"{where}: base"))


def _by_block(table: Any, where: str) -> TfNas:
    values: dict[Shape, float] = {}
    try:
        if table["unit"] != "ms":
            raise TableError(f"{where} is in {str(table['unit'])[:20]!r}, not in ms.")
        for i, item in enumerate(table["blocks"], 1):
            for shape, value in _configs(item, f"{where}: block {i}").items():
                if values.setdefault(shape, value) != value:
                    raise TableError(
                        f"{where}: block {i} has another cost for {shape} than a block before it."
                    )
        return TfNas(values, number(table["stem_and_head_ms"], f"{where}: stem_and_head_ms"))
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise TableError(f"{where} is damaged: {error!r}.") from error


def _configs(item: Mapping[str, Any], where: str) -> dict[Shape, float]:
    """The configs of one block, such as ``k5_e6_se1``."""
    values = {}
    for text, value in item["ms"].items():
        match = CONFIG.fullmatch(text)
        if match is None:
            raise TableError(f"{where} has the config {text[:40]!r}, which is not one such as k5_e6_se1.")
        kernel, expansion, se = map(int, match.groups())
        width = round_channels(item["cin"] * expansion)
        sizes = item["in_hw"], item["cin"], item["cout"], kernel, item["stride"]
        values[Shape(*sizes, item["act"], bool(se), width)] = number(value, f"{where}, {text}")
    return values
