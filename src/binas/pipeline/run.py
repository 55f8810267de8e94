"""A run: a folder that holds a configuration, its space, checkpoints and figures. Steps continue what is there.

RUN/config.yaml      the configuration with all its values
RUN/space.yaml       the space
RUN/heaviest/        weights of the heaviest network (phase 1)
RUN/supernet/        weights of the supernet (phase 2)
RUN/metrics.jsonl    figures after each epoch; RUN/tensorboard/ the same for TensorBoard
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from binas.data.dataset import ImageData
from binas.data.loading import load_data
from binas.errors import CheckpointError, ConfigError, FileError
from binas.files import exists
from binas.pipeline.config import FILE, RunConfig, load_config, save_config
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet
from binas.training.checkpoint import has_checkpoint, load_checkpoint, load_weights
from binas.training.checks import check_training
from binas.training.loop import WEIGHTS, make_accelerator
from binas.training.phases import Bench, flattened, train_heaviest, train_supernet
from binas.training.reporting import Reporter

SPACE = "space.yaml"
# Settings that may change between two calls on one folder: training does not depend on them.
FREE = ("training.checkpoint_seconds", "training.device", "training.finetune.", "data.workers")


@dataclass(frozen=True)
class Run:
    """A run's folder, its configuration and its space."""

    folder: Path
    config: RunConfig
    space: SearchSpace

    @cached_property
    def data(self) -> ImageData:
        """The images, checked against the space."""
        data = load_data(self.config.data)
        data.check(self.space)
        return data

    def train(self, reporter: Reporter | None = None) -> Supernet:
        """Phases 1 and 2: the heaviest network, then the supernet; what is finished is not done again."""
        config = self.config.training
        accelerator = make_accelerator(config)
        heard = reporter if reporter and accelerator.is_main_process else Reporter()
        bench = Bench(self.data, config, self.folder, accelerator, heard)
        return train_supernet(train_heaviest(self.space, bench), bench)

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


def create_run(folder: Path, config: RunConfig) -> Run:
    """Start a run in ``folder``, or go on with the one there if its configuration is the same."""
    space = load_space(config.space)
    if exists(folder / FILE):
        _check_same(open_run(folder), config, space)
    elif exists(folder):
        _check_free(folder)
    run = Run(folder, config, space)
    check_training(config.training, run.data)  # before anything is written
    save_space(space, folder / SPACE)
    save_config(config, folder / FILE)  # last: with it the folder is a run
    return run


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but the beginning of a run that was killed."""
    if not folder.is_dir():
        raise FileError(f"{folder} is a file. Give a new or empty folder as --out.")
    others = [p.name for p in folder.iterdir() if not p.name.startswith((SPACE, f".{SPACE}.", f".{FILE}."))]
    if others:
        raise FileError(f"{folder} holds other files and no {FILE}. Give an empty or new folder as --out.")


def open_run(folder: Path) -> Run:
    """The run in a folder."""
    if not exists(folder / FILE):
        raise FileError(f"there is no run in {folder} (no {FILE}). `binas train --out {folder}` starts one.")
    return Run(folder, load_config(folder / FILE), load_space(folder / SPACE))


def _check_same(old: Run, config: RunConfig, space: SearchSpace) -> None:
    """Refuse to go on with other settings than those the run was started with."""
    was, now = (flattened(c.model_dump(mode="json", exclude={"space"})) for c in (old.config, config))
    was["space"], now["space"] = old.space.fingerprint, space.fingerprint
    changed = [
        key for key in sorted({*was, *now}) if was.get(key) != now.get(key) and not key.startswith(FREE)
    ]
    if changed:
        shown = "; ".join(f"{key} was {was.get(key)!r}, now {now.get(key)!r}" for key in changed[:5])
        raise ConfigError(
            f"{old.folder} was started with other settings: {shown}. Give another --out, or leave --config and --set "
            "away to go on with the settings it has. Nothing was changed."
        )
