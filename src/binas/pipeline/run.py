"""A run: a folder that holds a configuration and everything made by it. Steps continue what is there.

RUN/config.yaml        the configuration with all its values
RUN/space.yaml         the space
RUN/data.json          what the images are: fingerprint, classes, counts
RUN/heaviest/          weights of the heaviest network (phase 1)
RUN/supernet/          weights of the supernet (phase 2)
RUN/costs.json         what each choice costs; RUN/verification.json the table against whole networks
RUN/contributions.json what each choice contributes; RUN/outcomes/ what was recorded for it
RUN/samples.json       random architectures measured; RUN/estimator.json the estimator judged by them
RUN/results/           the answer to each limit; RUN/frontier.csv those to all limits
RUN/networks/          fine-tuned networks, each in a folder of its own; RUN/networks.json all of them
RUN/steps/             a record of every step; RUN/old/ what was replaced
RUN/metrics.jsonl      figures; RUN/tensorboard/ the same for TensorBoard; RUN/log.jsonl what happened when
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from binas.data.dataset import ImageData
from binas.data.loading import load_data
from binas.errors import CheckpointError, DataError, FileError
from binas.files import exists
from binas.pipeline import lock
from binas.pipeline.config import FILE, RunConfig, load_config, save_config
from binas.pipeline.data_step import recorded_fingerprint
from binas.pipeline.engine import advance, clear_expensive, refuse_expensive
from binas.pipeline.limits import check_questions
from binas.pipeline.steps import STEPS, TRAINING
from binas.pipeline.teller import Teller
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet
from binas.training.checkpoint import has_checkpoint, load_checkpoint, load_weights
from binas.training.checks import check_training
from binas.training.loop import WEIGHTS

SPACE = "space.yaml"


@dataclass(frozen=True)
class Run:
    """A run's folder, its configuration and its space.

    With ``look_again`` the images are read even where a record says what they are.
    """

    folder: Path
    config: RunConfig
    space: SearchSpace
    look_again: bool = False

    @cached_property
    def data(self) -> ImageData:
        """The images, checked against the space and against the record of the run's first look at them."""
        data = load_data(self.config.data)
        data.check(self.space)
        known = None if self.look_again else recorded_fingerprint(self)
        if known not in (None, data.fingerprint()):
            raise DataError(
                f"the images of {self.folder / FILE} are no longer those this run was made with, so held-out images may "
                "have been trained on. Bring them back, give another --out, or train anew with --redo."
            )
        return data

    @cached_property
    def images(self) -> str:
        """The fingerprint of the images; read from the record where there is one, since images take long to read."""
        known = None if self.look_again else recorded_fingerprint(self)
        return known or self.data.fingerprint()

    def train(self, teller: Teller | None = None) -> Supernet:
        """The run's first steps: the heaviest network, then the supernet; what is finished is not done again."""
        advance(self, TRAINING, teller)
        return self.supernet()

    def supernet(self, phase: str = "supernet") -> Supernet:
        """The trained weights of ``supernet`` or ``heaviest``, in eval mode, where training would be done."""
        folder = self.folder / phase
        if not has_checkpoint(folder, WEIGHTS):
            raise CheckpointError(
                f"{self.folder} holds no trained {phase} yet. `binas train --out {self.folder}` does it."
            )
        found = load_checkpoint(folder, WEIGHTS)
        identity = found.values.get("identity")
        identity = identity if isinstance(identity, dict) else {}
        made_for = identity.get("space")
        if made_for != self.space.fingerprint:
            raise CheckpointError(
                f"the weights in {folder} were trained for another space (fingerprint {made_for}, this space "
                f"{self.space.name!r} has {self.space.fingerprint}). Use the space.yaml they were trained with."
            )
        if identity.get("data") != self.data.fingerprint():
            raise CheckpointError(
                f"the weights in {folder} were trained on other images, or on another split of them, than "
                f"{self.folder / FILE} now describes, so held-out images may have been trained on. Bring the data "
                "back to what it was, or train anew in another folder."
            )
        supernet = Supernet(self.space)
        load_weights(supernet, found.tensors, str(folder))
        on_cpu = self.config.training.device == "cpu" or not torch.cuda.is_available()
        return supernet.eval().to("cpu" if on_cpu else "cuda")


def create_run(folder: Path, config: RunConfig, redo: bool = False, teller: Teller | None = None) -> Run:
    """Start a run in ``folder``, or give the one there this configuration.

    A change that makes finished training stale is refused, unless ``redo`` allows it; then its weights are set aside.
    """
    run = Run(folder, config, load_space(config.space), redo)
    old = open_run(folder) if exists(folder / FILE) else None
    if old is None and exists(folder):
        _check_free(folder)
    check_questions(config, run.space)  # all checks before anything is written
    if redo or old is None or _trains_otherwise(old, run):
        check_training(config.training, run.data)
    if not redo:
        refuse_expensive(run, STEPS)
    with lock.locked(folder):
        clear_expensive(run, STEPS, teller or Teller())
        save_space(run.space, folder / SPACE)
        save_config(
            config.model_copy(update={"space": SPACE}), folder / FILE
        )  # last: with it the folder is a run
    return run


def _trains_otherwise(old: Run, new: Run) -> bool:
    """Whether anything that training depends on has changed."""
    parts = {"data", "training"}
    was, now = (run.config.model_dump(include=parts) for run in (old, new))
    return was != now or old.space.fingerprint != new.space.fingerprint


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but the beginning of a run that was killed."""
    if not folder.is_dir():
        raise FileError(f"{folder} is a file. Give a new or empty folder as --out.")
    own = (lock.FILE, SPACE, f".{SPACE}.", f".{FILE}.")
    others = [path.name for path in folder.iterdir() if not path.name.startswith(own)]
    if others:
        raise FileError(f"{folder} holds other files and no {FILE}. Give an empty or new folder as --out.")


def open_run(folder: Path) -> Run:
    """The run in a folder."""
    if not exists(folder / FILE):
        raise FileError(f"there is no run in {folder} (no {FILE}). `binas run --out {folder}` starts one.")
    return Run(folder, load_config(folder / FILE), load_space(folder / SPACE))
