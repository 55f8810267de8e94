"""How good a fine-tuned network is, and how good it was before."""

from __future__ import annotations

from dataclasses import dataclass

from binas.data.dataset import ImageData
from binas.space.architecture import Architecture
from binas.supernet.network import Supernet, extract
from binas.supernet.static import StaticNetwork
from binas.training.calibration import recalibrate
from binas.training.checkpoint import load_checkpoint
from binas.training.evaluation import Accuracy, accuracy, calibration_batches, device_of
from binas.training.loop import BEST
from binas.training.phases import Bench


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Accuracy on the validation images, by which the epoch was chosen, and on the test images, which chose nothing."""

    validation: Accuracy
    test: Accuracy


@dataclass(frozen=True, slots=True)
class Judgement:
    """A network before (the supernet's weights, BatchNorm re-estimated) and after fine-tuning.

    ``epoch`` is the one that was kept; 0 is the start.
    """

    one_shot: HeldOut
    tuned: HeldOut
    epoch: int


def judge(network: StaticNetwork, supernet: Supernet, architecture: Architecture, bench: Bench) -> Judgement:
    """Judge what :func:`binas.training.fine_tune` returned for the same arguments. Done once, after all choices."""
    data, count = bench.data, bench.config.finetune.recalibration
    before = extract(supernet, architecture).eval()
    recalibrate(before, calibration_batches(data, count, device_of(supernet)))
    best = load_checkpoint(bench.folder / "finetune", BEST)
    return Judgement(_held_out(before, data), _held_out(network, data), int(best.values["epoch"]))


def _held_out(network: StaticNetwork, data: ImageData) -> HeldOut:
    device = device_of(network)
    parts = (accuracy(network, data, images, device) for images in (data.validation, data.test))
    return HeldOut(*parts)
