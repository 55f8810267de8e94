"""Equality before anything else: a network whose weights came from a file computes what their source computes.

Weights of the right names and shapes still give another network under another padding, epsilon or activation. So logits are
compared on random images, and a difference is traced to the first layer whose output differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from binas.base.errors import ModelError
from binas.base.packed import read_arrays
from binas.space.described import NetworkDescription
from binas.supernet.plain import in_mode
from binas.supernet.weights.files import read_safetensors
from binas.supernet.weights.loading import LoadedNetwork
from binas.supernet.weights.names import Pair

TOLERANCE = 1e-4  # largest difference of logits, relative to the largest absolute logit
IMAGES = 4
SMALLEST, LARGER = 8, 4  # sides of recorded images: so many pixels, and so many times those of the network


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far logits differ at most, how large they are at most, and how many images were compared."""

    difference: float
    largest: float
    images: int

    @property
    def holds(self) -> bool:
        """max |a - b| <= 1e-4 * max |b|: sums in float32 in another order differ by about 1e-6 of their size."""
        return self.difference <= TOLERANCE * self.largest

    def sentence(self) -> str:
        """For people."""
        return (
            f"logits on {self.images} images differ by at most {self.difference:.2g}, where the largest is "
            f"{self.largest:.3g}"
        )


def random_images(description: NetworkDescription, count: int = IMAGES, seed: int = 0) -> Tensor:
    """Normalised images of random pixels, (count, channels, resolution, resolution)."""
    side, rules = description.resolution, description.rules
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand((count, description.channels, side, side), generator=generator)
    mean, std = (
        torch.tensor(values).view(-1, 1, 1) for values in (rules.mean or (0.5,), rules.std or (0.25,))
    )
    return (pixels - mean) / std


def check_equal(loaded: LoadedNetwork, source: nn.Module, images: Tensor | None = None) -> Agreement:
    """Refuse a network whose logits are not those of the live module it came from; say where they part.

    ``images`` are normalised as the module takes them; random ones unless given. The module's mode is put back.
    """
    images = random_images(loaded.description) if images is None else images
    with in_mode(source, training=False), torch.no_grad():
        wanted = _logits(source(images), loaded.description)
        agreement = compare(loaded.network(images), wanted)
        if not agreement.holds:
            place = _first_difference(loaded, source, images)
            raise ModelError(f"{_unequal(loaded, agreement)} {place}")
    return agreement


def check_recorded(loaded: LoadedNetwork, path: str | Path) -> Agreement:
    """The same against recorded pairs: ``images`` (n, c, h, w), normalised, and ``logits``, as safetensors or .npz."""
    images, logits = _recorded(Path(path), loaded.description)
    with torch.no_grad():
        ours = torch.cat([loaded.network(some.float()) for some in torch.split(images, IMAGES)])
        agreement = compare(ours, _logits(logits, loaded.description))
    if not agreement.holds:
        raise ModelError(
            f"{_unequal(loaded, agreement)} Give the live module to learn which layer differs first."
        )
    return agreement


def _recorded(path: Path, description: NetworkDescription) -> tuple[Tensor, Tensor]:
    """Images and logits of a file, of which there must be as many; of images neither channels nor sizes are believed."""
    found = _tensors(path)
    images, logits = found.get("images"), found.get("logits")
    if images is None or logits is None or images.ndim != 4 or len(images) != len(logits) or not len(images):
        raise ModelError(
            f"{path} must hold 'images' (n, c, h, w) as the network takes them, and their 'logits' (n, classes)."
        )
    channels, *sides = images.shape[1:]
    most = LARGER * description.resolution
    if channels != description.channels or not SMALLEST <= min(sides) <= max(sides) <= most:
        raise ModelError(
            f"the images in {path} have the shape {tuple(images.shape)}; (n, {description.channels}, h, w) with sides of "
            f"{SMALLEST} to {most} pixels are needed."
        )
    if images.is_complex() or logits.is_complex() or not bool(torch.isfinite(logits.float()).all()):
        raise ModelError(f"the numbers in {path} are complex, or logits are not finite. Record them again.")
    return images, logits.float()


def _tensors(path: Path) -> dict[str, Tensor]:
    if path.suffix != ".npz":
        return read_safetensors(path)
    try:
        arrays = read_arrays(path, ("images", "logits"))
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
    except (TypeError, ValueError) as error:
        raise ModelError(f"{path} holds arrays of another type than numbers ({error}).") from error


def compare(logits: Tensor, wanted: Tensor) -> Agreement:
    """How far two sets of logits (n, classes) are apart."""
    return Agreement(float((logits - wanted).abs().max()), float(wanted.abs().max()), len(wanted))


def _logits(output: Any, description: NetworkDescription) -> Tensor:
    if not isinstance(output, Tensor):
        raise ModelError(
            f"the module gives a {type(output).__name__}, not a tensor of logits; wrap it in one that gives these."
        )
    if output.ndim != 2 or output.shape[1] != description.classes:
        raise ModelError(
            f"the source gives outputs of the shape {tuple(output.shape)}; logits (n, {description.classes}) are needed, "
            "as its weights have."
        )
    return output


def _unequal(loaded: LoadedNetwork, agreement: Agreement) -> str:
    return (
        f"the network {loaded.description.name} does not compute what its source computes: {agreement.sentence()}. "
        "Its rules (padding, BatchNorm epsilon, activations, squeeze-excite) are not those the weights were trained with."
    )


def _first_difference(loaded: LoadedNetwork, source: nn.Module, images: Tensor) -> str:
    """The first layer whose outputs differ, in words; the source's layers are found by the names of their weights."""
    layers = [pair for pair in loaded.pairs if not pair.norm]
    names = dict(source.named_modules())
    if any(pair.theirs not in names for pair in layers):
        return "The module's layers are not named as its weights, so the first difference cannot be located."
    ours = _outputs(loaded.network, [pair.ours for pair in layers], images)
    theirs = _outputs(source, [pair.theirs for pair in layers], images)
    before: Pair | None = None
    for pair in layers:
        agreement = compare(ours[pair.ours].flatten(1), theirs[pair.theirs].flatten(1))
        if not agreement.holds:
            after = f", after {before.theirs} agreed" if before else ""
            return f"The first difference arises at {pair.theirs}, {pair.where}{after}."
        before = pair
    return "All layers agree; the difference arises behind the classifier."


def _outputs(module: nn.Module, names: Sequence[str], images: Tensor) -> dict[str, Tensor]:
    """What the layers called ``names`` give in one pass."""
    kept: dict[str, Tensor] = {}

    def keep(name: str, _: nn.Module, __: Any, output: Tensor) -> None:
        kept[name] = output.detach().clone()  # activations may write over it

    handles = [module.get_submodule(name).register_forward_hook(partial(keep, name)) for name in names]
    try:
        module(images)
    finally:
        for handle in handles:
            handle.remove()
    return kept
