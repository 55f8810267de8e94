"""How good a fine-tuned network is, and how good it was before."""

from __future__ import annotations

from binas.space.architecture import Architecture
from binas.supernet.network import Supernet
from binas.supernet.static import StaticNetwork
from binas.training.checkpoint import load_checkpoint
from binas.training.evaluation import accuracy, device_of, one_shot_network
from binas.training.judgement import HeldOut, Judgement
from binas.training.loop import BEST
from binas.training.phases import FINETUNE, Bench


def judge(
    network: StaticNetwork, supernet: Supernet, architecture: Architecture, bench: Bench, recalibration: int
) -> Judgement:
    """Judge what :func:`binas.training.fine_tune` returned for the same arguments. Done once, after all choices."""
    before = one_shot_network(supernet, architecture, bench.data, recalibration, team=bench.team)
    best = load_checkpoint(bench.folder / FINETUNE, BEST)
    return Judgement(held_out(before, bench), held_out(network, bench), int(best.values["epoch"]))


def held_out(network: StaticNetwork, bench: Bench) -> HeldOut:
    """Accuracy of a network, in eval mode, on the validation and on the test images."""
    data, device = bench.data, device_of(network)
    parts = (accuracy(network, data, images, device, bench.team) for images in (data.validation, data.test))
    return HeldOut(*parts)
