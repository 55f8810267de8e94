"""Accuracy of networks on held-out images, alone or as sub-networks of a supernet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from binas.base.errors import ExplodedError
from binas.data.augment import normalise
from binas.data.dataset import ImageData
from binas.data.images import Images, moved
from binas.space.architecture import Architecture
from binas.space.odds import Odds
from binas.supernet.network import Supernet, extract
from binas.supernet.paths import Paths, sample_paths
from binas.supernet.plain import fold_norms
from binas.supernet.static import StaticNetwork
from binas.training.calibration import recalibrate, recalibrate_supernet
from binas.training.judgement import Accuracy
from binas.training.randomness import generator
from binas.training.team import ALONE, Team

Correct = NDArray[np.bool_]
NOT_FINITE = 2
EVAL_PIXELS = 1024 * 64 * 64  # of a batch: 83 images of 224 x 224
MOST, MOST_ON_CPU = 1024, 256  # images of a batch: on a CPU what layers hand on must stay in its caches


def shared_batches(
    data: ImageData, images: Images, device: torch.device, team: Team = ALONE
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Every n-th batch of a set for each process of a ``team``: where it is in the set, normalised images, labels.

    Batches have a size that suits the images', and hold the same images whatever the number of processes; only those of
    this process are read.
    """
    height, width = images.size
    most = MOST_ON_CPU if device.type == "cpu" else MOST
    size = min(most, max(1, EVAL_PIXELS // (height * width)))
    for round_, batch in enumerate(images.batches(size * team.size, **_places(team, size))):
        if len(batch):
            first = (round_ * team.size + team.rank) * size
            here = normalise(moved(batch.images, device), data.mean, data.std)
            yield slice(first, first + len(batch)), here, moved(batch.labels, device)


def _places(team: Team, size: int) -> dict[str, Any]:
    """What to ask of batches of ``size`` images for each process: only those of this one, where there are others."""
    return {"places": range(team.rank * size, (team.rank + 1) * size)} if team.size > 1 else {}


def normalised_batches(
    data: ImageData, images: Images, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """All batches (normalised images, labels) in order, of a size that suits the images'."""
    return ((batch, labels) for _, batch, labels in shared_batches(data, images, device))


def accuracy(
    predict: Callable[..., Tensor],
    data: ImageData,
    images: Images,
    device: torch.device,
    team: Team = ALONE,
    paths: Paths | None = None,
) -> Accuracy:
    """Accuracy of a function from normalised images to logits on one set of images; arguments as for :func:`correct`."""
    right = correct(predict, data, images, device, team, paths)
    return Accuracy(100 * int(right.sum()) / len(right), len(right))


def correct(
    predict: Callable[..., Tensor],
    data: ImageData,
    images: Images,
    device: torch.device,
    team: Team = ALONE,
    paths: Paths | None = None,
) -> Correct:
    """Which images of a set a function from normalised images to logits classifies rightly, (n,).

    With ``paths``, one per image, it is a function of images and paths. Each process of a ``team`` does every n-th batch.
    """
    right = torch.zeros(len(images), dtype=torch.uint8, device=device)
    with torch.inference_mode():
        for rows, batch, labels in shared_batches(data, images, device, team):
            own = () if paths is None else ((paths[0][rows], paths[1][rows]),)
            right[rows] = _judged(predict(batch, *own), labels)
    return _checked(team.add_up(right).cpu().numpy())


def _judged(logits: Tensor, labels: Tensor) -> Tensor:
    """1 for an image classified rightly, 0 for another, :data:`NOT_FINITE` where logits are no numbers, (n,)."""
    right = (logits.argmax(1) == labels).byte()
    return right.where(logits.isfinite().all(1), NOT_FINITE)


def _checked(judged: NDArray[np.uint8]) -> Correct:
    """Refuse an accuracy of a network that has none, in all processes of a team alike."""
    lost = int((judged == NOT_FINITE).sum())
    if lost:
        raise ExplodedError(
            f"the logits of {lost} of {len(judged)} images are not finite, so there is no accuracy: the weights have "
            "exploded. Train them with a lower learning_rate, or with clip."
        )
    return judged.astype(np.bool_)


def multipath_accuracy(
    supernet: Supernet,
    data: ImageData,
    images: Images,
    seed: int = 0,
    team: Team = ALONE,
    odds: Sequence[Odds] = (),
) -> Accuracy:
    """Mean accuracy of architectures drawn uniformly, or by odds, each image on its own (E[Acc], paper section 3.2)."""
    drawn = generator(seed, "multi-path accuracy")
    paths = sample_paths(supernet.space, len(images), drawn, odds=odds)
    return accuracy(supernet, data, images, device_of(supernet), team, paths)


def evaluate_architecture(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    images: Images,
    recalibration: int = 0,
    seed: int = 0,
) -> Accuracy:
    """Accuracy of one architecture with the supernet's weights, as a network of its own.

    With ``recalibration`` > 0 its BatchNorm statistics are first re-estimated on that many training images.
    """
    network = one_shot_network(supernet, architecture, data, recalibration, seed)
    return accuracy(network, data, images, device_of(supernet))


def one_shot_network(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    recalibration: int = 0,
    seed: int = 0,
    team: Team = ALONE,
) -> StaticNetwork:
    """One architecture with the supernet's weights, ready to be judged: BatchNorm folded into convolutions, in eval mode.

    With ``recalibration`` > 0 its statistics are first re-estimated on that many training images.
    """
    network = extract(supernet, architecture).eval()
    if recalibration:
        batches = calibration_batches(data, recalibration, device_of(supernet), seed, team=team)
        recalibrate(network, batches, team)
    fold_norms(network)
    return network


def calibration_batches(
    data: ImageData, count: int, device: torch.device, seed: int = 0, size: int = 256, team: Team = ALONE
) -> Iterator[Tensor | None]:
    """``count`` normalised training images (all, if there are fewer), in an order that depends on the seed.

    A last batch of a single image is left out: it may have no variance. In a ``team`` each process gets every n-th batch,
    and None where it has none while another one has.
    """
    left = min(count, len(data.train))
    size = min(size, left)
    for batch in data.train.batches(size * team.size, seed=seed, **_places(team, size)):
        mine = batch.images[: max(0, left - team.rank * size)]
        yield normalise(moved(mine, device), data.mean, data.std) if len(mine) > 1 else None
        left -= size * team.size
        if left <= 0:
            return


def calibrate_multipath(
    supernet: Supernet,
    data: ImageData,
    count: int,
    seed: int = 0,
    team: Team = ALONE,
    odds: Sequence[Odds] = (),
) -> None:
    """Re-estimate the supernet's own norms on paths of ``count`` training images, drawn uniformly or by ``odds``."""
    drawn = generator(seed, "recalibration")
    count = min(count, len(data.train))
    size = min(256, count)

    def one_pass(number: int, batch: Tensor | None) -> Callable[[], Tensor] | None:
        """Every process draws the paths of all batches, in their order."""
        firsts = range(number * team.size * size, count, size)[: team.size]
        lengths = [min(size, count - first) for first in firsts]
        paths = [sample_paths(supernet.space, length, drawn, None, odds) for length in lengths if length > 1]
        return None if batch is None else lambda: supernet(batch, paths[team.rank])

    batches = calibration_batches(data, count, device_of(supernet), seed, size, team)
    recalibrate_supernet(supernet, (one_pass(*item) for item in enumerate(batches)), team)


def device_of(network: nn.Module) -> torch.device:
    """Where a network's weights are."""
    return next(network.parameters()).device
