"""Weight files of others: safetensors, or PyTorch's own read without running any code that is in them."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from binas.base.errors import BinasError, ModelError
from binas.base.files import exists, open_regular, reading
from binas.base.packed import check_packed, check_unpacked

ZIP = b"PK\x03\x04"  # how a packed file begins; older ones of PyTorch are not packed
PYTORCH = (".pth", ".pt", ".bin", ".ckpt")
INSIDE = (
    "state_dict",
    "model_state_dict",
    "model",
)  # where training scripts put the weights beside other things
PREFIXES = ("module.", "_orig_mod.", "model.")  # of DataParallel, torch.compile and wrappers
UNUSED = "num_batches_tracked"  # BatchNorm counts batches; nothing here depends on it


@dataclass(frozen=True, eq=False)
class WeightFile:
    """Tensors by the names their authors gave them, as float32; ``notes`` says what was changed on the way."""

    where: str
    tensors: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, tensors: Mapping[str, Any], where: str, unused: Collection[str] = ()) -> WeightFile:
        """Weights from a state dict: prefixes of wrappers taken off, numbers checked and made float32.

        Those that are ``unused`` are left out, whatever they are.
        """
        wrong = [str(name) for name, value in tensors.items() if not isinstance(value, Tensor)]
        if wrong or not tensors:
            what = f"{wrong[0][:80]!r} is no tensor" if wrong else "it is empty"
            raise ModelError(
                f"{where} does not hold the weights of a network: {what}. Save model.state_dict()."
            )
        named = without_prefix({str(name): value.detach() for name, value in tensors.items()})
        kept = {
            name: value for name, value in named.items() if not name.endswith(UNUSED) and name not in unused
        }
        _check_numbers(kept, where)
        return cls(where, {name: value.float() for name, value in kept.items()}, tuple(_notes(kept, where)))


def read_weights(source: str | Path | Mapping[str, Any], unused: Collection[str] = ()) -> WeightFile:
    """The weights in a ``.safetensors`` file, in a ``.pth``, ``.pt``, ``.bin`` or ``.ckpt`` of tensors, or a state dict."""
    if isinstance(source, Mapping):
        return WeightFile.of(source, "the weights", unused)
    path = Path(source)
    if not exists(path):
        raise ModelError(f"there is no weight file {path}.")
    if path.suffix == ".safetensors":
        return WeightFile.of(read_safetensors(path), str(path), unused)
    if path.suffix in PYTORCH:
        return WeightFile.of(_read_pytorch(path), str(path), unused)
    raise ModelError(f"{path} is neither a .safetensors file nor one of PyTorch ({', '.join(PYTORCH)}).")


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; pages of it are read when they are used."""
    open_regular(path).close()  # safetensors would wait for a pipe
    try:
        with reading(path):
            return dict(load_file(path))
    except (SafetensorError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} cannot be read as safetensors ({error}); it may be cut off. Copy it again."
        ) from error


def _read_pytorch(path: Path) -> Mapping[str, Any]:
    with open_regular(path) as file:
        data = _unpickled(file, path)
    if not isinstance(data, Mapping):
        raise ModelError(f"{path} holds a {type(data).__name__}, no named tensors. Save model.state_dict().")
    found = _inside(data)
    tensors = [value for value in found.values() if isinstance(value, Tensor)]
    check_unpacked(
        sum(value.numel() * value.element_size() for value in tensors), path
    )  # views of one number
    return found


def _inside(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The weights among what a training script has saved: under a usual name, or the only named tensors there are."""
    usual = [key for key in INSIDE if isinstance(data.get(key), Mapping)]
    named = [key for key, value in data.items() if _named_tensors(value)]
    keys = usual[:1] or (named if len(named) == 1 else [])
    found: Mapping[str, Any] = data[keys[0]] if keys else data
    return found


def _named_tensors(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(v, Tensor) for v in value.values())


def _unpickled(file: BinaryIO, path: Path) -> Any:
    """What torch has written, without running code."""
    try:
        if file.read(len(ZIP)) == ZIP:
            check_packed(file, path)
        file.seek(0)
        return torch.load(file, map_location="cpu", weights_only=True)
    except BinasError:
        raise
    except pickle.UnpicklingError as error:
        raise ModelError(
            f"{path} holds more than tensors, or is damaged. Files that may run code are not opened: in the program that "
            "made it, save model.state_dict() with torch.save or safetensors.torch.save_file, and give that file."
        ) from error
    except Exception as error:  # torch's reader of damaged files raises anything
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ModelError(f"{path} cannot be read ({reason}); it may be cut off. Copy it again.") from error


def without_prefix(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors in their order by names without the prefix of a wrapper that all have."""
    for prefix in PREFIXES:
        if tensors and all(name.startswith(prefix) for name in tensors):
            return without_prefix({name[len(prefix) :]: value for name, value in tensors.items()})
    return tensors


def _check_numbers(tensors: Mapping[str, Tensor], where: str) -> None:
    for name, value in tensors.items():
        if value.layout is not torch.strided or value.is_meta:
            raise ModelError(f"{name} in {where} is sparse or has no numbers; save plain tensors.")
        if not value.is_floating_point():
            kind = str(value.dtype).removeprefix("torch.")
            raise ModelError(
                f"{name} in {where} is of the type {kind}; only floating point weights can be trained on."
            )
        if not bool(torch.isfinite(value.float()).all()):
            raise ModelError(f"{name} in {where} has values that are not finite; the training went wrong.")


def _notes(tensors: Mapping[str, Tensor], where: str) -> list[str]:
    kinds = Counter(str(value.dtype).removeprefix("torch.") for value in tensors.values())
    return [
        f"{count} tensors of {where} are {kind}; they were converted to float32."
        for kind, count in kinds.items()
        if kind != "float32"
    ]
