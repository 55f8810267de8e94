"""Latency tables of once-for-all and ProxylessNAS: YAML, one key per layer shape, milliseconds.

    expanded_conv-input:56x56x24-output:28x28x40-expand:144-kernel:5-stride:2-idskip:0-se:1-hs:0: {mean: 1.9}
    expanded_conv-input:56x56x24-output:28x28x40-expand:6-kernel:5-stride:2-idskip:0: {mean: 1.7, count: 60}

Shapes are height x width x channels. The first form (MobileNetV3) says the expanded channels, squeeze-excite and
h-swish; the second (ProxylessNAS) the expansion ratio, and is of blocks with ReLU and without squeeze-excite.
``Conv``, ``Conv_1``, ``AvgPool2D``, ``Conv_2`` and ``Logits`` are the fixed layers. A third form is that of nsganetv2, of
once-for-all's networks at many resolutions:

    MBConv-input:50x50x24-output:50x50x24-expand:3-kernel:5-stride:1-idskip:1-se:0: {mean: 0.6, var: 2.0e-07}

with the expansion ratio, and no word about the activation, which in these networks goes with the stage. Its fixed layers are
``first_conv``, ``final_expand_layer`` (pooling included), ``feature_mix_layer`` and ``classifier``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from binas.base.errors import SpaceError, TableError
from binas.base.files import read_yaml
from binas.costs.foreign._match import KINDS, Block, Found, leaving, number, stated, to_cost
from binas.space import BlockCode
from binas.space.blockstrings import parse_repeated
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Provenance

RELU = ("re", "r6")
NSGANET = "MBConv-"


def read_once_for_all(
    path: Path, space: SearchSpace, name: str = "latency", provenance: Provenance | None = None
) -> Cost:
    """The latency of every choice of ``space``, in ms, from a YAML table; an error names what it lacks."""
    known = stated(provenance, f"once-for-all look-up table {path.name}")
    entries = _entries(path)
    nsganet = any(key.startswith(NSGANET) for key in entries)
    table = NsgaNet(entries) if nsganet else OnceForAll(entries)
    return to_cost(table, space, name, "ms", known, str(path))


def _entries(path: Path) -> dict[str, float]:
    data = read_yaml(path).data
    if not isinstance(data, dict) or not data:
        raise TableError(f"{path} is not a look-up table: it must map keys such as Conv-input:... to costs.")
    entries = {}
    for key, value in data.items():
        place = f"{path}: the entry {str(key)[:100]!r}"
        if isinstance(value, dict):
            if "mean" not in value:
                raise TableError(f"{place} has no mean.")
            for known in (item for item in value.values() if isinstance(item, float)):
                number(known, place)
            value = value["mean"]
        entries[str(key)] = number(value, place)
    return entries


@dataclass(frozen=True, eq=False)
class OnceForAll:
    """The entries of a table by key."""

    entries: Mapping[str, float]

    def block(self, block: Block) -> Found:
        """The MobileNetV3 key where the table has it, else the ProxylessNAS key if it can mean this block."""
        keys = [key for key in (_mobilenet_key(block), _proxyless_key(block)) if key is not None]
        if not keys:
            raise SpaceError(f"once-for-all tables have no blocks with the activation {block.activation!r}.")
        return self._first(keys)

    def _first(self, keys: list[str]) -> Found:
        known = next((key for key in keys if key in self.entries), keys[0])
        return Found(known, self.entries.get(known))

    def fixed(self, space: SearchSpace) -> list[Found]:
        """First convolution and stem blocks, head blocks, pooling, features and classifier."""
        assert space.channels is not None  # checked where the blocks were listed
        assert space.resolution is not None
        stem, _ = self._row("Conv", space.stem, (space.channels, space.resolution))
        head, (channels, size) = self._row("Conv_1", space.head, leaving(space))
        return [*stem, *head, *self._classifier(space, channels, size)]

    def _row(
        self, name: str, texts: tuple[str, ...], shape: tuple[int, int]
    ) -> tuple[list[Found], tuple[int, int]]:
        """Layers one after another from (channels, size), and the shape that leaves them."""
        layers = []
        for code in (code for text in texts for code in parse_repeated(text)):
            layers.append(self._layer(name, code, *shape))
            shape = code.channels, -(-shape[1] // code.stride)
        return layers, shape

    def _layer(self, name: str, code: BlockCode, channels: int, size: int) -> Found:
        if code.kind in KINDS:
            return self.block(Block.of(code, channels, size))
        out = -(-size // code.stride)
        return self._first([_key(name, (size, size, channels), (out, out, code.channels))])

    def _classifier(self, space: SearchSpace, channels: int, size: int) -> list[Found]:
        """Pooling, features and classifier one by one, or all that follows the last convolution in one entry."""
        whole = _key("Logits", (size, size, channels), (space.classes,))
        if space.features is None and whole in self.entries:
            return [self._first([whole])]
        keys = [_key("AvgPool2D", (size, size, channels), (1, 1, channels))]
        if space.features is not None:
            keys.append(_key("Conv_2", (1, 1, channels), (1, 1, space.features)))
            channels = space.features
        keys.append(_key("Logits", (1, 1, channels), (space.classes,)))
        return [self._first([key]) for key in keys]

    def hint(self) -> str:
        """The shapes the table starts with; where there are none, what its keys look like."""
        return self._hint("Conv")

    def _hint(self, first: str) -> str:
        starts = [key.removeprefix(f"{first}-") for key in self.entries if key.startswith(f"{first}-")]
        if not starts:
            kinds = sorted({key.partition("-")[0][:40] for key in self.entries})
            return (
                f"The table has no first convolution ({first}-input:...); its keys begin with {', '.join(kinds[:6])}. This "
                "reader knows tables of once-for-all, ProxylessNAS (expanded_conv-...) and nsganetv2 (MBConv-...)."
            )
        known = ", ".join(starts[:3]) + (f" and {len(starts) - 3} more" if len(starts) > 3 else "")
        return f"The table's first convolutions are {known}; give a space of that resolution and width."


class NsgaNet(OnceForAll):
    """The same with the keys of nsganetv2."""

    def block(self, block: Block) -> Found:
        """The key with the expansion ratio and squeeze-excite; of any activation that once-for-all has."""
        if block.activation not in (*RELU, "hs") or block.expansion != int(block.expansion):
            raise SpaceError(
                f"nsganetv2 tables have blocks with ReLU or h-swish and whole expansions, not {block.activation!r} and "
                f"{block.expansion:g}."
            )
        shape = _expanded(block, int(block.expansion)).removeprefix("expanded_conv-")
        return self._first([f"{NSGANET}{shape}-se:{int(block.se)}"])

    def fixed(self, space: SearchSpace) -> list[Found]:
        """First convolution and stem blocks, head blocks, features and classifier."""
        assert space.channels is not None  # checked where the blocks were listed
        assert space.resolution is not None
        stem, _ = self._row("first_conv", space.stem, (space.channels, space.resolution))
        head, (channels, _) = self._row("final_expand_layer", space.head, leaving(space))
        keys = []
        if space.features is not None:
            keys.append(_key("feature_mix_layer", (1, 1, channels), (1, 1, space.features)))
            channels = space.features
        keys.append(_key("classifier", (channels,), (space.classes,)))
        return [*stem, *head, *(self._first([key]) for key in keys)]

    def hint(self) -> str:
        """The shapes the table starts with."""
        return self._hint("first_conv")


def _key(name: str, inputs: tuple[int | None, ...], outputs: tuple[int | None, ...]) -> str:
    return f"{name}-input:{'x'.join(map(str, inputs))}-output:{'x'.join(map(str, outputs))}"


def _expanded(block: Block, expand: int) -> str:
    out = block.size_out
    shape = _key("expanded_conv", (block.size, block.size, block.inputs), (out, out, block.outputs))
    return f"{shape}-expand:{expand}-kernel:{block.kernel}-stride:{block.stride}-idskip:{int(block.skip)}"


def _mobilenet_key(block: Block) -> str | None:
    if block.activation not in (*RELU, "hs"):
        return None
    return f"{_expanded(block, block.width)}-se:{int(block.se)}-hs:{int(block.activation == 'hs')}"


def _proxyless_key(block: Block) -> str | None:
    """A key that names neither squeeze-excite nor activation is of a block without it, with ReLU."""
    plain = not block.se and block.activation in RELU and block.expansion == int(block.expansion)
    return _expanded(block, int(block.expansion)) if plain else None
