"""Images a small network learns in seconds: each class has a bright bar at its own height, under noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from small_networks import SIZE

from binas.data import ImageData, from_arrays
from binas.training import (
    Bench,
    FinetuneSettings,
    Reporter,
    TrainSettings,
    fill_from_recipe,
    make_accelerator,
)

CLASSES = 5


def bars(count: int = 300, channels: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    images = rng.integers(0, 120, (count, channels, SIZE, SIZE))
    for image, label in zip(images, labels, strict=True):
        image[:, 2 * label + 1 : 2 * label + 3] += 100
    return {"images": images.astype(np.uint8), "labels": labels}


def bar_data(count: int = 300, channels: int = 3) -> ImageData:
    return from_arrays(**bars(count, channels), name="bars")


PHASE: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 0.01,
    "warmup": 0,
    "augment": {"crop": 1},
}
MULTI: dict[str, Any] = {**PHASE, "distillation": {"share": 0.5}, "recalibration": 64}


def quick(**changes: Any) -> TrainSettings:
    """Settings that train a small network in about a second, on the CPU."""
    given: dict[str, Any] = {"device": "cpu", "heaviest": PHASE, "supernet": {**MULTI, "groups": 2}}
    for key, value in changes.items():
        given[key] = {**given[key], **value} if isinstance(value, dict) else value
    return TrainSettings.model_validate(fill_from_recipe({"train": given})["train"])


def quick_tuning(**changes: Any) -> FinetuneSettings:
    """The same for fine-tuning."""
    return FinetuneSettings.model_validate(fill_from_recipe({"finetune": {**MULTI, **changes}})["finetune"])


def bench(folder: Path, config: TrainSettings | None = None, reporter: Reporter | None = None) -> Bench:
    config = config or quick()
    return Bench(bar_data(), config, folder, make_accelerator(config), reporter or Reporter())
