"""``model.json`` and ``model.safetensors``: everything from which a network is built again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from binas.base.errors import BinasError, ModelError
from binas.base.files import exists, read_bytes, read_json
from binas.base.typed import check_typed
from binas.export.facts import AccuracyFact, LatencyFact
from binas.export.graph import InputKind
from binas.export.graph_files import Parity
from binas.export.int8 import Int8Facts
from binas.space.architecture import Architecture
from binas.space.files import space_from_data
from binas.space.space import SearchSpace
from binas.supernet.static import StaticNetwork
from binas.training.checkpoint import check_weights

FORMAT = "binas/model"
VERSION = 1
JSON, WEIGHTS = "model.json", "model.safetensors"
MAX_WEIGHT_BYTES = 16 * 2**30

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
GraphName = Literal["model.onnx", "model.pt2"]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FileEntry(_Strict):
    """A file beside ``model.json``."""

    sha256: Digest
    byte_count: Count

    @classmethod
    def of(cls, data: bytes) -> FileEntry:
        """The entry of a file with this content."""
        return cls(sha256=hashlib.sha256(data).hexdigest(), byte_count=len(data))


class GraphEntry(FileEntry):
    """A file that runs without binas, and how well it agrees with PyTorch."""

    parity: tuple[Parity, ...] = ()


class InputEntry(_Strict):
    """What goes in: (n, *shape) float32 to the network, (x - mean) / std of pixels x in 0..1.

    ``graphs`` says what the ONNX and torch.export files take: ``bytes`` (uint8, they normalise themselves) or
    ``normalised``.
    """

    shape: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    graphs: InputKind


class ModelFile(_Strict):
    """A finished network, version 1 of the format."""

    format: Literal["binas/model"] = "binas/model"
    version: Literal[1] = 1
    binas: str
    name: str
    architecture: str
    space: dict[str, Any]
    input: InputEntry
    classes: tuple[str, ...]
    parameters: Count
    macs: Count
    weights: FileEntry
    graphs: dict[GraphName, GraphEntry] = {}
    int8: Int8Facts | None = None
    data: str = ""
    data_licence: str = ""
    limits: tuple[str, ...] = ()
    accuracy: tuple[AccuracyFact, ...] = ()
    latency: tuple[LatencyFact, ...] = ()
    command: str = ""


def pack_weights(network: torch.nn.Module) -> bytes:
    """Weights and BatchNorm statistics in the safetensors format."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    data: bytes = save(tensors)
    return data


def read_model_file(path: Path) -> ModelFile:
    """Read and check a ``model.json``."""
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ModelError(
            f'{path} is not the description of a model (it needs "format": "{FORMAT}" and "version": {VERSION}). '
            "`binas export` writes one."
        )
    return check_typed(ModelFile, data, str(path), "Export the network again.", ModelError)


def load_model(path: str | Path) -> StaticNetwork:
    """The network of an exported folder (or of its ``model.json`` or ``model.safetensors``), in eval mode, on the CPU.

    It takes normalised images: (x - mean) / std of pixels in 0..1, as ``model.json`` says. Files that are cut off,
    changed, or do not fit each other are refused before memory for the network is taken.
    """
    folder = _folder(Path(path))
    model = read_model_file(folder / JSON)
    tensors = _read_weights(folder / WEIGHTS, model.weights)
    try:
        space = space_from_data(model.space)
        network = network_without_memory(space, space.parse(model.architecture))
        check_weights(network, tensors, str(folder / WEIGHTS))
    except BinasError as error:
        raise ModelError(f"{folder / JSON} does not describe a network that can be built: {error}") from error
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def network_without_memory(space: SearchSpace, architecture: Architecture) -> StaticNetwork:
    """The network with shapes only, so that a file that claims huge layers costs nothing."""
    try:
        with torch.device("meta"):
            return StaticNetwork.from_architecture(space, architecture)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:  # sizes beyond what torch can count
        raise ModelError(f"no network of {architecture} can be built: {error}.") from error


def _folder(path: Path) -> Path:
    """The folder of an exported model that a path names, or names a file of."""
    folder = path.parent if path.name in (JSON, WEIGHTS) else path
    if not exists(folder / JSON):
        raise ModelError(
            f"there is no exported model at {path} (no {JSON}). Give the folder that `binas export` wrote, or its {JSON}."
        )
    return folder


def _read_weights(path: Path, entry: FileEntry) -> dict[str, Tensor]:
    data = read_bytes(path, MAX_WEIGHT_BYTES, f"It belongs beside {JSON}.")
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise ModelError(
            f"{path} is not the file that {JSON} describes: its size or SHA-256 differs. It was cut off or changed; "
            "copy it again or export the network again."
        )
    try:
        return dict(load(data))
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelError(f"{path} is not a safetensors file: {error}.") from error
