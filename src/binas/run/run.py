"""A run: a folder that holds a configuration and everything made by it.

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
RUN/rivals/            networks the search did not choose, under the same limits; RUN/report.html the page
RUN/steps/             a record of every step; RUN/old/ what was replaced
RUN/metrics.jsonl      figures; RUN/tensorboard/ the same for TensorBoard; RUN/log.jsonl what happened when
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from binas.base.errors import CheckpointError, DataError, FileError
from binas.base.files import exists
from binas.data.dataset import ImageData
from binas.data.loading import load_data
from binas.run.config import FILE, RunConfig, load_config
from binas.run.data_step import recorded_fingerprint
from binas.space.files import load_space
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet
from binas.training.checkpoint import has_checkpoint, load_checkpoint, load_weights
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


def open_run(folder: Path) -> Run:
    """The run in a folder."""
    if not exists(folder / FILE):
        raise FileError(f"there is no run in {folder} (no {FILE}). `binas run --out {folder}` starts one.")
    return Run(folder, load_config(folder / FILE), load_space(folder / SPACE))
