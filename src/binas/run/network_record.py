"""``network.json``: what a fine-tuned network of a run is and how good, and where it lives.

RUN/networks/NAME/network.json    what it is and how good: architecture, accuracies, size (written when all is done)
RUN/networks/NAME/finetune/       checkpoints while it is fine-tuned, its weights afterwards
RUN/networks/NAME/metrics.jsonl   figures after each epoch; tensorboard/ the same for TensorBoard
RUN/networks/NAME/export/         files for others (:mod:`binas.export`)
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from binas.base.errors import FileError
from binas.base.files import exists
from binas.base.typed import read_typed
from binas.space.architecture import Architecture
from binas.training.tuned import Judgement

NETWORKS, RECORD, EXPORT = "networks", "network.json", "export"
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}")


class NetworkRecord(BaseModel):
    """``network.json``: a fine-tuned network of a run.

    ``judgement`` holds the accuracies with the supernet's weights and after fine-tuning; ``seconds`` is the time of
    the call that finished it. ``settings`` are those of ``training.finetune``, one level of dotted names. ``weights`` is
    a short hash of what the figures belong to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["binas/network"] = "binas/network"
    version: Literal[1] = 1
    name: str
    architecture: str
    from_scratch: bool
    settings: dict[str, Any]
    weights: str
    judgement: Judgement
    parameters: int
    macs: int
    seconds: float


def network_name(architecture: Architecture, from_scratch: bool = False) -> str:
    """The name a network has when none is given: a short hash of its architecture."""
    digest = hashlib.sha256(str(architecture).encode()).hexdigest()[:10]
    return f"{digest}-scratch" if from_scratch else digest


def network_folder(run: Path, name: str) -> Path:
    """Where the network of that name lives in the folder of a run."""
    if NAME.fullmatch(name) is None:
        raise FileError(f"{name[:100]!r} is no name of a network; use letters, digits, dots, _ and -.")
    return run / NETWORKS / name


def tuned_names(run: Path) -> list[str]:
    """Names of all finished networks in the folder of a run."""
    return sorted(path.parent.name for path in (run / NETWORKS).glob(f"*/{RECORD}"))


def read_record(path: Path) -> NetworkRecord:
    """Read a ``network.json``."""
    return read_typed(NetworkRecord, path, "Delete it; `binas finetune` writes it again from the weights.")


def record_of(folder: Path, architecture: Architecture) -> NetworkRecord | None:
    """The record in a folder, if there is one; an error where it is another architecture's."""
    if not exists(folder / RECORD):
        return None
    record = read_record(folder / RECORD)
    if record.architecture != str(architecture):
        raise FileError(
            f"{folder} holds the network {record.architecture}, not {architecture}. Give another name. "
            "Nothing was changed."
        )
    return record
