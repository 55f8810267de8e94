"""Settings of training: one typed object, two recipes (paper appendix "Reproducibility", and one for small data)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from binas.data.augment import AugmentConfig

Share = Annotated[float, Field(ge=0, le=1)]
Recipe = Literal["small", "imagenet"]


class Settings(BaseModel):
    """Base of all settings: unknown keys are refused, values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Phase(Settings):
    """One training phase: epochs over the training images with one optimizer and a cosine schedule."""

    epochs: int = Field(gt=0, description="passes over the training images")
    batch_size: int = Field(gt=0, description="images per forward and backward pass, all processes together")
    accumulate: int = Field(1, gt=0, description="batches whose gradients are added up before a step")
    optimizer: Literal["sgd", "adamw"] = Field("sgd", description="sgd is with Nesterov momentum")
    learning_rate: float = Field(gt=0, description="highest learning rate; cosine to 0 follows")
    warmup: float = Field(0.0, ge=0, description="epochs of linear growth from 0 to the learning rate")
    momentum: float = Field(0.9, ge=0, lt=1, description="of SGD")
    weight_decay: float = Field(1e-4, ge=0, description="on weights of two and more dimensions")
    label_smoothing: Share = Field(0.1, description="share of the target spread over all classes")
    clip: float | None = Field(None, gt=0, description="largest norm of the gradient; none = unlimited")
    ema: float | None = Field(
        None, gt=0, lt=1, description="decay per step of the averaged weights; none = off"
    )
    augment: AugmentConfig | None = Field(
        None, description="random changes of the training images; none = as their size suggests"
    )


class Distillation(Settings):
    """Learning from the heaviest network: loss = (1 - share) * cross entropy + share * T^2 * KL(teacher || student)."""

    share: Share = Field(description="weight of the teacher; 0 = no distillation")
    temperature: float = Field(1.0, gt=0, description="T, divides both logits")
    cache: Literal["auto", "yes", "no"] = Field(
        "auto", description="teacher logits of the plain images computed once; auto = where the data is small"
    )


class MultiPath(Phase):
    """Training of the supernet: every image on a path of its own."""

    groups: int | None = Field(
        None, gt=0, description="distinct configs per block and step; none = all, the paper's sampling"
    )
    distillation: Distillation = Field(description="from the heaviest network")
    recalibration: int = Field(gt=1, description="images that re-estimate BatchNorm at the end")


class FineTuning(Phase):
    """Training of one extracted network."""

    distillation: Distillation = Field(description="from the heaviest network")
    from_scratch: bool = Field(
        False, description="fresh weights instead of those of the supernet, to compare"
    )
    recalibration: int = Field(gt=1, description="images that re-estimate BatchNorm before the first step")


class TrainingConfig(Settings):
    """Everything training needs to know besides space and data."""

    recipe: Recipe = Field("small", description="where values not given come from")
    seed: int = Field(0, ge=0, lt=2**31, description="of weights, order, augmentation and paths")
    device: Literal["auto", "cpu"] = Field("auto", description="auto = a GPU where there is one")
    mixed_precision: Literal["no", "fp16", "bf16"] = Field(
        "no", description="arithmetic of forward and backward"
    )
    heaviest: Phase = Field(description="phase 1, the heaviest network")
    supernet: MultiPath = Field(description="phase 2, the supernet")
    finetune: FineTuning = Field(description="phase 3, each network that is found")
    checkpoint_seconds: float = Field(60.0, ge=0, description="time between checkpoints within an epoch")

    @classmethod
    def from_recipe(cls, given: Mapping[str, Any] | None = None) -> TrainingConfig:
        """The recipe ``given`` names (``small`` when it names none), changed by the other values it gives."""
        return cls.model_validate(cls.with_defaults(given or {}))

    @staticmethod
    def with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
        """``given`` filled up with the values of its recipe, not yet checked."""
        return _merge(RECIPES.get(str(given.get("recipe", "small")), {}), given)


def _merge(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with values of ``given``, mapping by mapping."""
    result = dict(base)
    for key, value in given.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


_SMALL: dict[str, Any] = {
    "batch_size": 64,
    "optimizer": "adamw",
    "learning_rate": 8e-3,
    "weight_decay": 0.02,
    "label_smoothing": 0.0,
    "warmup": 0.5,
    "augment": {"flip": True},
}
# Paper, appendix "Reproducibility": SGD 0.1, cosine, Nesterov 0.9, weight decay 1e-4, label smoothing 0.1, cutout
# and AutoAugment (our default for large images), mixed precision, EMA. Appendix "Overview": 250 + 100 epochs with a
# batch of 200 on 8 GPUs, which we read as 200 on each.
_PAPER: dict[str, Any] = {
    "batch_size": 1600,
    "learning_rate": 0.1,
    "ema": 0.9998,
}
RECIPES: dict[str, dict[str, Any]] = {
    "small": {
        "heaviest": {**_SMALL, "epochs": 2},
        "supernet": {
            **_SMALL,
            "epochs": 6,
            "learning_rate": 4e-3,
            "groups": 2,
            "distillation": {"share": 0.5},
            "recalibration": 2048,
        },
        "finetune": {
            **_SMALL,
            "epochs": 3,
            "learning_rate": 2e-3,
            "distillation": {"share": 0.5},
            "recalibration": 1024,
        },
    },
    "imagenet": {
        "mixed_precision": "fp16",
        "heaviest": {**_PAPER, "epochs": 250},
        "supernet": {**_PAPER, "epochs": 100, "distillation": {"share": 0.5}, "recalibration": 20_000},
        "finetune": {**_PAPER, "epochs": 15, "distillation": {"share": 0.5}, "recalibration": 20_000},
    },
}
