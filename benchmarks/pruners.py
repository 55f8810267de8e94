"""Pruning tools of others, for fastnas.py and shrink.py: what each makes of a trained network at one setting.

* FastNAS (PyPI nvidia-modelopt, torchprofile==0.0.4): channels layer by layer, by how much each costs on validation images,
  until FLOPs keep a limit. It knows no latency.
* Torch-Pruning (PyPI torch-pruning): a share of all channels, the smallest by magnitude first, chosen over the whole network
  or, for a uniform width, in every layer alike. The classifier's outputs stay.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from binas.base.files import write_bytes
from binas.data import normalise
from binas.data.dataset import ImageData
from binas.training.evaluation import accuracy

CPU = torch.device("cpu")
DIVISOR = 4  # channels stay multiples of it; FastNAS's own 32 leaves small networks nothing to prune
BATCH = 16  # images that FastNAS re-estimates BatchNorm with at a time, for each network it looks at
CALIBRATED = (
    50  # batches of them: its queue holds 50, and with fewer it leaves BatchNorm as it is, with a warning
)
HALVINGS = 12  # of the loss it allows a layer, until FLOPs keep the limit; below a fortieth of a point then
UNREACHABLE = "NOT all constraints can be satisfied"  # how its error begins where FLOPs cannot be as few
MOST = 0.95  # share of a layer's channels that Torch-Pruning may take


def fastnas(
    network: nn.Module,
    data: ImageData,
    macs: float,
    checkpoint: Path,
    judged: int | None = None,
    ratios: Sequence[float] | None = None,
) -> nn.Module:
    """A copy within ``macs``, by how much each layer matters for ``judged`` images: measured once, kept in ``checkpoint``.

    ``ratios`` are the shares of a layer's channels it may choose of; its own are twentieths. :class:`TooFew` where no
    choice has as few ``macs``. It re-estimates BatchNorm of each network it looks at in ``model.eval()``, so the score
    calls that. It rewrites its file in place; it is given a copy, so that processes may share ``checkpoint``.
    """
    import modelopt.torch.prune as mtp

    images = data.validation if judged is None else data.validation.take(range(judged))
    channels = {} if ratios is None else {"channels_ratio": tuple(ratios)}
    features = {} if ratios is None else {"features_ratio": tuple(ratios)}
    rule = {"channel_divisor": DIVISOR, **channels}
    linear = {"feature_divisor": DIVISOR, **features}
    mode = [
        ("fastnas", {"nn.Conv2d": {"*": rule}, "nn.BatchNorm2d": {"*": linear}, "nn.Linear": {"*": linear}})
    ]
    config = {
        "score_func": lambda model: accuracy(model.eval(), data, images, CPU).percent,
        "data_loader": list(itertools.islice(training_images(data), CALIBRATED)),
        "collect_func": lambda images: images,
        "num_iters": HALVINGS,
        "verbose": False,
    }
    with tempfile.TemporaryDirectory() as place, _quiet():
        own = Path(place) / checkpoint.name
        if checkpoint.exists():
            shutil.copyfile(checkpoint, own)
        try:
            pruned, _ = mtp.prune(
                copy.deepcopy(network),
                mode,
                constraints={"flops": 2 * macs},
                dummy_input=torch.zeros(1, data.channels, *data.size),
                config={**config, "checkpoint": str(own)},
            )
        except ValueError as error:
            if UNREACHABLE not in str(error):
                raise
            raise TooFew(f"{macs:.4g} multiply-accumulates are too few for FastNAS") from error
        if not checkpoint.exists():
            write_bytes(checkpoint, own.read_bytes())
    return compact(pruned)


class TooFew(ValueError):
    """FastNAS was asked for fewer multiply-accumulates than any of its choices has."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what FastNAS prints and warns of, but for BatchNorm that it does not re-estimate, which is an error here."""
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="modelopt data queue not filled")
        yield


def compact(network: nn.Module) -> nn.Module:
    """The network in eval mode, weights in channels_last as images come: backward was seen to crash where only one was."""
    return network.to(memory_format=torch.channels_last).eval()


def training_images(data: ImageData) -> Iterator[Tensor]:
    """At least :data:`CALIBRATED` batches of training images as networks take them."""
    size = max(2, min(BATCH, len(data.train) // CALIBRATED))
    for batch in data.train.batches(size, seed=0, epoch=0):
        yield normalise(batch.images, data.mean, data.std)


def magnitude(
    network: nn.Module, shape: tuple[int, ...], share: float, everywhere: bool, classes: int
) -> nn.Module:
    """A copy without ``share`` of its channels: those of least magnitude over the whole network, or ``everywhere`` alike."""
    import torch_pruning as tp

    pruned = copy.deepcopy(network)
    last = [
        layer for layer in pruned.modules() if isinstance(layer, nn.Linear) and layer.out_features == classes
    ]
    pruner: Any = tp.pruner.MetaPruner(
        pruned,
        torch.zeros(1, *shape),
        importance=tp.importance.GroupMagnitudeImportance(p=2),
        pruning_ratio=share,
        max_pruning_ratio=MOST,
        global_pruning=not everywhere,
        ignored_layers=last,
        round_to=DIVISOR,
    )
    pruner.step()
    return compact(pruned)


def macs_of(network: nn.Module, shape: tuple[int, ...]) -> float:
    """Multiply-accumulates of one image, as FastNAS counts them."""
    from torchprofile import profile_macs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(profile_macs(network, torch.zeros(1, *shape)))
