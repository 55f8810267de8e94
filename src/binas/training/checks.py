"""What would stop training after hours is found before it begins."""

from __future__ import annotations

import os

import torch

from binas.base.errors import DataError, TrainingError
from binas.data.augment import Augmentation
from binas.data.dataset import ImageData
from binas.training.config import FinetuneSettings, Phase, TrainSettings


def check_training(config: TrainSettings, finetune: FinetuneSettings, data: ImageData) -> None:
    """Raise an error unless all phases can run on these images, in as many processes as were launched."""
    if config.mixed_precision == "fp16" and (config.device == "cpu" or not torch.cuda.is_available()):
        raise TrainingError(
            "train.mixed_precision is fp16, which needs a GPU, and there is none to be used. Set it to bf16 or no."
        )
    world = os.environ.get("WORLD_SIZE", "1")
    processes = int(world) if world.isdigit() else 1
    phases = {"train.heaviest": config.heaviest, "train.supernet": config.supernet, "finetune": finetune}
    for name, phase in phases.items():
        _check_phase(name, phase, data, processes)


def _check_phase(name: str, phase: Phase, data: ImageData, processes: int) -> None:
    if phase.batch_size > len(data.train):
        raise TrainingError(
            f"{name}: a batch of {phase.batch_size} images needs more than the {len(data.train)} training images there "
            f"are. Set {name}.batch_size to at most that."
        )
    if phase.batch_size < 2 * processes:
        raise TrainingError(
            f"{name}: a batch of {phase.batch_size} gives less than two images to each of {processes} processes, and "
            f"BatchNorm needs two. Set {name}.batch_size to at least {2 * processes}."
        )
    try:
        Augmentation.of(data, phase.augment)
    except DataError as error:
        raise TrainingError(f"{name}: {error} Change {name}.augment.") from error
