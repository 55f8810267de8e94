"""Blocks as files, for a device that runs no Python: one ONNX file each, a manifest, a CSV to fill in.

The folder is all that the other side needs: a phone's benchmark tool, a vendor's profiler, another team. What
comes back is read by :mod:`binas.costs.filled`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from binas.base.errors import FileError, TableError
from binas.base.files import exists, write_bytes
from binas.base.progress import Progress
from binas.costs.job import FIXED
from binas.costs.manifest import FILL_IN, MANIFEST, SPACE, BlockFile, Manifest, Use
from binas.costs.onnx_graph import to_onnx
from binas.costs.workloads import SpaceWorkloads, Workload, network_workload, space_workloads
from binas.space.architecture import Architecture
from binas.space.files import save_space
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference, reference
from binas.version import TOOL


def export_blocks(
    space: SearchSpace,
    folder: Path,
    batch: int = 1,
    networks: Sequence[Architecture] = (),
    progress: Progress | None = None,
) -> Manifest:
    """Write every distinct block, the fixed part and some whole networks of a space as ONNX, with fresh weights.

    ``networks`` are to be measured beside the blocks, so that their sum can be checked and corrected.
    A folder that holds an export is refused.
    """
    taken = [name for name in (MANIFEST, FILL_IN) if exists(folder / name)]
    if taken:
        raise FileError(f"{folder} already holds {taken[0]}; choose another folder, so that nothing is lost.")
    if batch < 1:
        raise TableError(f"the batch must be at least 1, got {batch}.")
    workloads, progress = space_workloads(space), progress or Progress()
    total, files = len(workloads.all()) + len(networks), []
    for number, piece in enumerate(_pieces(workloads, networks), 1):
        files.append(_write(folder, f"{number:04d}", piece, batch))
        progress.show(number / total, f"file {number} of {total}")
    save_space(space, folder / SPACE)
    made_for = SpaceReference.model_validate(reference(space))
    manifest = Manifest(tool=TOOL, space=made_for, batch=batch, files=tuple(files))
    manifest.save(folder)
    return manifest


def some_networks(space: SearchSpace, count: int, seed: int = 0) -> list[Architecture]:
    """Architectures to measure whole: the lightest, the heaviest and random ones, all distinct.

    At most ``count``; fewer where the space has no more.
    """
    corners = [space.extreme(heaviest=False), space.extreme(heaviest=True)]
    drawn = sample_many(space, 4 * count + 8, seed)  # of a small space many are drawn twice
    return list(dict.fromkeys([*corners, *drawn]))[:count]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Something to write: its key in the CSV, what it is, and what it stands for."""

    key: str
    kind: Literal["block", "fixed", "network"]
    workload: Workload
    uses: tuple[Use, ...] = ()
    architecture: str | None = None


def _pieces(workloads: SpaceWorkloads, networks: Sequence[Architecture]) -> Iterator[_Piece]:
    """Blocks, the fixed part, then whole networks, which are built one at a time."""
    uses: dict[str, list[Use]] = {}
    for (s, b, c), key in sorted(workloads.places.items()):
        stage = workloads.space.stages[s]
        uses.setdefault(key, []).append(Use(stage=stage.name, block=b + 1, config=stage.blocks[b][c].name))
    for key, entries in uses.items():
        yield _Piece(key, "block", workloads.blocks[key], tuple(entries))
    yield _Piece(FIXED, "fixed", workloads.fixed)
    for item in networks:
        yield _Piece(
            f"network/{item}", "network", network_workload(workloads.space, item), architecture=str(item)
        )


def _write(folder: Path, number: str, piece: _Piece, batch: int) -> BlockFile:
    inputs = [torch.zeros(batch, *shape) for shape in piece.workload.shapes]
    data = to_onnx(piece.workload.module, inputs)
    label = "network" if piece.kind == "network" else re.sub(r"[^A-Za-z0-9._+-]", "_", piece.key)
    name = f"{number}_{label}.onnx"
    write_bytes(folder / name, data)
    return BlockFile(
        key=piece.key,
        kind=piece.kind,
        file=name,
        sha256=hashlib.sha256(data).hexdigest(),
        inputs=tuple(tuple(x.shape) for x in inputs),
        uses=piece.uses,
        architecture=piece.architecture,
    )
