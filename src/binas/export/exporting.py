"""Exporting: a finished network as files that others can use.

Every file is written atomically and ``model.json``, which names them, last: a folder with it is whole. Exporting the
same network into the same folder again makes only what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from binas.base.errors import ModelError
from binas.base.files import dump_json, exists, is_folder, listed, read_bytes, write_bytes
from binas.costs.analytic import architecture_work
from binas.export.card import model_card
from binas.export.facts import ModelFacts
from binas.export.graph import Graph, InputKind
from binas.export.graph_files import ONNX, TORCH, Parity, onnx_file, torch_file
from binas.export.int8 import INT8, Int8Facts, Quantisation, before_and_after, quantise
from binas.export.model_file import (
    JSON,
    MAX_WEIGHT_BYTES,
    WEIGHTS,
    FileEntry,
    GraphEntry,
    GraphName,
    InputEntry,
    ModelFile,
    network_without_memory,
    pack_weights,
    read_model_file,
)
from binas.space.files import space_to_data
from binas.space.networks import network_sizes
from binas.supernet.static import StaticNetwork
from binas.training.checkpoint import check_weights
from binas.version import __version__

Format = Literal["safetensors", "onnx", "torch"]
FORMATS: tuple[Format, ...] = ("safetensors", "onnx", "torch")
CARD = "README.md"
_GRAPHS: dict[Format, GraphName] = {"onnx": ONNX, "torch": TORCH}
_MAKERS: dict[GraphName, Callable[[Graph], tuple[bytes, tuple[Parity, ...]]]] = {
    ONNX: onnx_file,
    TORCH: torch_file,
}


@dataclass(frozen=True)
class Exported:
    """An exported network: its folder, what ``model.json`` says, and whether anything was written now."""

    folder: Path
    model: ModelFile
    written: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the export."""
        quantised = (INT8,) if self.model.int8 is not None else ()
        return tuple(self.folder / name for name in (CARD, JSON, WEIGHTS, *self.model.graphs, *quantised))


def export_network(
    network: StaticNetwork,
    facts: ModelFacts,
    folder: Path,
    formats: Collection[Format] = FORMATS,
    graph_input: InputKind = "bytes",
    quantisation: Quantisation | None = None,
) -> Exported:
    """Write a network, its card and its description into ``folder``.

    ``model.safetensors`` and ``model.json`` are always written; ``onnx`` and ``torch`` among ``formats`` add
    ``model.onnx`` and ``model.pt2``. Their input is the bytes of images, or with ``graph_input="normalised"`` what
    the network itself takes. ``quantisation`` adds ``model.int8.onnx`` with accuracy and latency before and after.
    """
    _check(network, facts)
    weights = pack_weights(network)
    old = _present(folder, FileEntry.of(weights), graph_input)
    made = _Files(folder, Graph.of(network, facts, graph_input))
    if old is not None:
        made.graphs, made.int8 = dict(old.graphs), old.int8
    made.write(WEIGHTS, weights)
    for key, name in _GRAPHS.items():
        if key in formats or (quantisation is not None and name == ONNX):
            made.add_graph(name)
    if quantisation is not None:
        made.add_int8(quantisation)
    model = _description(facts, FileEntry.of(weights), graph_input, made)
    made.write(CARD, model_card(model).encode())
    made.write(JSON, dump_json(model.model_dump(mode="json")).encode())
    return Exported(folder, model, made.written)


def _check(network: StaticNetwork, facts: ModelFacts) -> None:
    """Refuse facts that are not about this network, so that what is written can be loaded again."""
    check_weights(
        network_without_memory(facts.space, facts.architecture),
        network.state_dict(),
        f"the network given for {facts.architecture}",
    )
    channels, _, classes = network_sizes(facts.space)
    if not len(facts.mean) == len(facts.std) == channels:
        raise ModelError(
            f"mean and std have {len(facts.mean)} and {len(facts.std)} values; images have {channels} channels."
        )
    if len(facts.classes) not in (0, classes):
        raise ModelError(f"{len(facts.classes)} names are given for {classes} classes.")


@dataclass
class _Files:
    """The files of an export while it is made."""

    folder: Path
    graph: Graph
    graphs: dict[GraphName, GraphEntry] = field(default_factory=dict)
    int8: Int8Facts | None = None
    written: bool = False

    def write(self, name: str, data: bytes) -> None:
        """Write a file unless it holds just this."""
        path = self.folder / name
        if not (exists(path) and read_bytes(path, MAX_WEIGHT_BYTES) == data):
            write_bytes(path, data)
            self.written = True

    def add_graph(self, name: GraphName) -> None:
        """Make a file that runs without binas, unless it is there and whole."""
        if not self._whole(name, self.graphs.get(name)):
            data, parity = _MAKERS[name](self.graph)
            self.write(name, data)
            self.graphs[name] = GraphEntry(**FileEntry.of(data).model_dump(), parity=parity)

    def add_int8(self, how: Quantisation) -> None:
        """Quantise the ONNX file and measure both, unless that is done."""
        if not self._whole(INT8, self.int8):
            model = read_bytes(self.folder / ONNX, MAX_WEIGHT_BYTES)
            data = quantise(self.graph, model, how)
            self.int8 = before_and_after(self.graph, model, data, how)
            self.write(INT8, data)

    def _whole(self, name: str, entry: FileEntry | Int8Facts | None) -> bool:
        path = self.folder / name
        if entry is None or not exists(path):
            return False
        return FileEntry.of(read_bytes(path, MAX_WEIGHT_BYTES)).sha256 == entry.sha256


def _present(folder: Path, weights: FileEntry, graph_input: InputKind) -> ModelFile | None:
    """The export that is in the folder; an error where it is another network's, or the folder is not ours."""
    if not exists(folder):
        return None
    if not is_folder(folder):
        raise ModelError(f"{folder} is a file. Give a new or empty folder to export to.")
    if not exists(folder / JSON):
        _check_free(folder)
        return None
    old = read_model_file(folder / JSON)
    if old.weights != weights:
        raise ModelError(
            f"{folder} holds another network ({old.architecture}, or other weights of the same). Give another folder, "
            "or delete that one. It was left as it is."
        )
    if old.graphs and old.input.graphs != graph_input:
        raise ModelError(
            f"{folder} holds this network with {old.input.graphs} as input of its files. Give another folder. "
            "That one was left as it is."
        )
    return old


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but the beginning of an export that was killed."""
    ours = {WEIGHTS, ONNX, TORCH, INT8, CARD}
    names = {
        path.name
        for path in listed(folder)
        if not path.name.startswith(tuple(f".{n}." for n in (*ours, JSON)))
    }
    if not names <= ours or (names and WEIGHTS not in names):  # weights are written first
        raise ModelError(
            f"{folder} holds other files and no {JSON}. Give a new or empty folder to export to."
        )


def _description(facts: ModelFacts, weights: FileEntry, graph_input: InputKind, made: _Files) -> ModelFile:
    channels, side, _ = network_sizes(facts.space)
    work = architecture_work(facts.space, facts.architecture)
    return ModelFile(
        binas=__version__,
        name=facts.name,
        architecture=str(facts.architecture),
        space=space_to_data(facts.space),
        input=InputEntry(shape=(channels, side, side), mean=facts.mean, std=facts.std, graphs=graph_input),
        classes=facts.classes,
        parameters=work.params,
        macs=work.macs,
        weights=weights,
        graphs=made.graphs,
        int8=made.int8,
        data=facts.data,
        data_licence=facts.data_licence,
        limits=facts.limits,
        accuracy=facts.accuracy,
        latency=facts.latency,
        command=facts.command,
    )
