"""Checkpoints: tensors in safetensors, everything else in JSON, never half written.

A checkpoint is two files, ``NAME-STEP.safetensors`` and ``NAME.json``. The JSON is written last and names the
tensor file, so a process killed at any moment leaves the old checkpoint or the new one, whole. Older tensor files
are removed afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from binas.base.errors import CheckpointError
from binas.base.files import dump_json, exists, listed, read_bytes, read_json, remove, write_bytes, write_text
from binas.version import __version__

FORMAT = "binas/checkpoint"
VERSION = 1
MAX_TENSOR_BYTES = 64 * 2**30
DIGITS = "?" * 12  # of the digest in a tensor file's name

Tensors = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Named tensors and plain JSON values."""

    tensors: Tensors
    values: dict[str, Any]


def save_checkpoint(
    folder: Path, name: str, tensors: Mapping[str, Tensor], values: Mapping[str, Any]
) -> None:
    """Write a checkpoint under ``name``, replacing the one there at the very end."""
    data = _pack(tensors)
    digest = hashlib.sha256(data).hexdigest()
    file = f"{name}-{digest[: len(DIGITS)]}.safetensors"
    write_bytes(folder / file, data)
    header = {"format": FORMAT, "version": VERSION, "binas": __version__, "tensors": file, "sha256": digest}
    write_text(folder / f"{name}.json", dump_json({**header, "values": dict(values)}))
    remove_orphans(folder, name)


def remove_orphans(folder: Path, name: str = "*") -> None:
    """Delete tensor files that no checkpoint names: those of older ones, and what a process left that was killed."""
    for file in listed(folder, f"{name}-{DIGITS}.safetensors"):
        owner = folder / f"{file.name.rpartition('-')[0]}.json"
        if not exists(owner) or _header(owner)["tensors"] != file.name:
            remove(file)


def _pack(tensors: Mapping[str, Tensor]) -> bytes:
    data: bytes = save({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()})
    return data


def has_checkpoint(folder: Path, name: str) -> bool:
    """Whether a finished checkpoint of that name is there."""
    return exists(folder / f"{name}.json")


def remove_checkpoint(folder: Path, name: str) -> None:
    """Delete a checkpoint, the JSON first, so that no half of it is taken for a whole."""
    remove(folder / f"{name}.json")
    remove_orphans(folder, name)


def weights_digest(network: torch.nn.Module) -> str:
    """Short SHA-256 of a network's weights and statistics: what later steps depend on."""
    return hashlib.sha256(_pack(network.state_dict())).hexdigest()[:16]


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor with a number that is not finite; None where all are."""
    floating = ((name, tensor) for name, tensor in tensors.items() if tensor.is_floating_point())
    return next((name for name, tensor in floating if not tensor.isfinite().all()), None)


def read_values(folder: Path, name: str) -> dict[str, Any]:
    """The plain values of a checkpoint, without its tensors."""
    values: dict[str, Any] = _header(folder / f"{name}.json")["values"]
    return values


def load_checkpoint(folder: Path, name: str) -> Checkpoint:
    """Read a checkpoint; a missing, cut off or changed file is an error that names it."""
    header = _header(folder / f"{name}.json")
    return Checkpoint(_read_tensors(folder / header["tensors"], str(header.get("sha256"))), header["values"])


def _header(path: Path) -> dict[str, Any]:
    """The JSON file of a checkpoint, which names a tensor file beside it and holds values."""
    header = read_json(path)
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("version") != VERSION:
        raise CheckpointError(f"{path} is not a binas checkpoint of version {VERSION}.")
    file, values = header.get("tensors"), header.get("values")
    if not isinstance(file, str) or Path(file).name != file or not isinstance(values, dict):
        raise CheckpointError(f"{path} names no tensor file beside it, or holds no values; it is damaged.")
    return header


def _read_tensors(path: Path, digest: str) -> Tensors:
    data = read_bytes(path, MAX_TENSOR_BYTES, "It belongs to the JSON file beside it.")
    if hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(
            f"{path} is not the file that was written: its SHA-256 differs from the one in the JSON file beside it. "
            "It was cut off or changed; copy both files again, or delete them to train anew (with --redo where training was "
            "finished)."
        )
    return _parsed(path, data)


def read_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file."""
    return _parsed(path, read_bytes(path, MAX_TENSOR_BYTES))


def _parsed(path: Path, data: bytes) -> Tensors:
    try:
        return dict(load(data))
    except (
        SafetensorError,
        ValueError,
        KeyError,
    ) as error:  # KeyError: a type of number that torch does not have
        raise CheckpointError(f"{path} is not a safetensors file: {error}.") from error


def load_weights(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module of exactly the same names and shapes."""
    check_weights(module, tensors, where)
    module.load_state_dict(dict(tensors))


def check_weights(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors whose names, shapes or types are not those of the module, which may be without memory (meta)."""
    own = module.state_dict()
    problems = [f"{name} is missing" for name in own if name not in tensors]
    problems += [f"{name} is not part of the network" for name in tensors if name not in own]
    problems += [
        f"{name} is {_form(tensors[name])} instead of {_form(value)}"
        for name, value in own.items()
        if name in tensors and _form(tensors[name]) != _form(value)
    ]
    if problems:
        raise CheckpointError(
            f"the weights in {where} do not fit this network ({len(problems)} differences, first: {problems[0]}). "
            "They belong to another space or block family."
        )


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], where: str) -> None:
    """Continue an optimizer from its tensors, ``INDEX.NAME`` for entry NAME of parameter INDEX.

    torch takes state of any shape and fails, or computes something else, later: entries must belong to a parameter and be
    of its shape, or a single number (the count of steps).
    """
    parameters = [item for group in optimizer.param_groups for item in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition(".")
        number = int(index) if index.isdecimal() and len(index) < 10 else -1
        if not 0 <= number < len(parameters) or value.shape not in (parameters[number].shape, torch.Size()):
            raise CheckpointError(
                f"the state of the optimizer in {where} is not of this network: {name[:60]!r} is {_form(value)}. "
                "Delete the checkpoint to train this phase anew."
            )
        state.setdefault(number, {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def load_generator(state: Tensor | None, where: str) -> None:
    """Set torch's generator to the state a checkpoint holds."""
    known = torch.get_rng_state()
    if state is None or _form(state) != _form(known):
        raise CheckpointError(
            f"the checkpoint in {where} lacks the state of the random generator, or holds another. It was changed; delete "
            "it to train this phase anew."
        )
    try:
        torch.set_rng_state(state)
    except RuntimeError as error:
        torch.set_rng_state(known)
        raise CheckpointError(
            f"the checkpoint in {where} holds a damaged state of the random generator."
        ) from error
