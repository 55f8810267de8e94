"""Settings of training: one typed object, two recipes (paper appendix "Reproducibility", and one for small data)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from binas.base.settings import Settings
from binas.data.config import AugmentConfig

Share = Annotated[float, Field(ge=0, le=1)]
Recipe = Literal["small", "imagenet"]


EASING = ("learning_rate", "clip")  # settings that may be lowered when training has exploded
GROWN = 0.6  # share of a phase after which images have their full size


class Phase(Settings):
    """One training phase: epochs over the training images with one optimizer and a cosine schedule."""

    epochs: int = Field(gt=0, description="passes over the training images")
    batch_size: int = Field(gt=0, description="images per forward and backward pass, all processes together")
    accumulate: int = Field(1, gt=0, description="batches whose gradients are added up before a step")
    optimizer: Literal["sgd", "adamw"] = Field("sgd", description="sgd is with Nesterov momentum")
    learning_rate: float = Field(gt=0, le=1000, description="highest learning rate; cosine to 0 follows")
    warmup: float = Field(0.0, ge=0, description="epochs of linear growth from 0 to the learning rate")
    momentum: float = Field(0.9, ge=0, lt=1, description="of SGD")
    weight_decay: float = Field(1e-4, ge=0, le=10, description="on weights of two and more dimensions")
    label_smoothing: Share = Field(0.1, description="share of the target spread over all classes")
    clip: float | None = Field(None, gt=0, description="largest norm of the gradient; none = unlimited")
    ema: float | None = Field(
        None, gt=0, lt=1, description="decay per step of the averaged weights; none = off"
    )
    augment: AugmentConfig | None = Field(
        None, description="random changes of the training images; none = as their size suggests"
    )
    first_size: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the images' side that training begins with; they grow to their full size over the first "
        "60 % of the phase",
    )
    shards: int | None = Field(
        None,
        gt=0,
        description="parts of a batch that processes share, each with BatchNorm statistics of its own; none = as many as "
        "cores when a run starts, of 32 images or more",
    )

    statistics: Literal["shard", "batch"] = Field(
        "shard",
        description="images over which BatchNorm takes statistics while it trains: a shard, or the whole batch, for which "
        "processes exchange them in every layer; weights then agree up to rounding, not to the bit, whatever their number",
    )

    @property
    def mean_area(self) -> float:
        """Mean share of the images' pixels that a step sees: G (f^2 + f + 1) / 3 + 1 - G, as they grow from f until G."""
        return GROWN * (self.first_size**2 + self.first_size + 1) / 3 + 1 - GROWN


class HeaviestPhase(Phase):
    """Training of the heaviest network; weights that it starts from may be good enough already."""

    epochs: int = Field(
        ge=0, description="passes over the training images; 0 = the weights of train.start as they are"
    )
    features: float = Field(
        0.0,
        ge=0,
        description="weight of staying near what the classifier reads with the weights of train.start: "
        "f |features - given|^2 / |given|^2; 0 = off",
    )


class Distillation(Settings):
    """Learning from the heaviest network: loss = (1 - share) * cross entropy + share * T^2 * KL(teacher || student)."""

    share: Share = Field(description="weight of the teacher; 0 = no distillation")
    temperature: float = Field(1.0, gt=0, description="T, divides both logits")
    cache: Literal["auto", "yes", "no"] = Field(
        "auto", description="teacher logits of the plain images computed once; auto = where the data is small"
    )


Around = Annotated[
    tuple[Share, ...],
    Field(
        description="shares of the range of MACs that drawn networks have on average, in turns, such as [0.75, 0.5]; none = "
        "every choice is equally likely"
    ),
]


class MultiPath(Phase):
    """Training of the supernet: every image on a path of its own."""

    around: Around = ()
    sandwich: float = Field(
        0.0, ge=0, le=0.5, description="share of a batch on the heaviest path, and as many on the lightest"
    )

    gradual: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the phase over which drawn networks come to differ from the heaviest, one decision after "
        "another; 0 = from the first step on",
    )

    groups: int | None = Field(
        None, gt=0, description="distinct configs per block and step; none = all, the paper's sampling"
    )
    distillation: Distillation = Field(description="from the heaviest network")
    recalibration: int = Field(gt=1, description="images that re-estimate BatchNorm at the end")

    @model_validator(mode="after")
    def _has_own_statistics(self) -> MultiPath:
        if self.statistics == "batch":
            raise ValueError(
                "statistics: batch is for phases in which all images take the same path; here every shard has its own"
            )
        return self


class FinetuneSettings(Phase):
    """Phase 3, the training of each network that is found: as a network of its own."""

    distillation: Distillation = Field(description="from the heaviest network")
    from_scratch: bool = Field(
        False, description="fresh weights instead of those of the supernet, to compare"
    )
    recalibration: int = Field(gt=1, description="images that re-estimate BatchNorm before the first step")
    blends: int = Field(
        0,
        ge=0,
        le=100,
        description="steps from the heaviest network's weights to the supernet's, of which fine-tuning starts at the best "
        "by validation images; 0 = at the supernet's",
    )


class TrainSettings(Settings):
    """The supernet: phase 1 trains its heaviest network, phase 2 all of them."""

    start: Path | None = Field(
        None,
        description="weights that the heaviest network starts from, safetensors as `binas shrink` writes them; none = fresh",
    )

    recipe: Recipe = Field("small", description="where values not given come from, here and in finetune")
    seed: int = Field(0, ge=0, lt=2**31, description="of weights, order, augmentation and paths")
    device: Literal["auto", "cpu"] = Field("auto", description="auto = a GPU where there is one")
    mixed_precision: Literal["no", "fp16", "bf16"] = Field(
        "no", description="arithmetic of forward and backward"
    )
    processes: int | None = Field(
        None,
        gt=0,
        description="one-thread processes that work on a run on a CPU, at most; none = the cores it may use",
    )
    heaviest: HeaviestPhase = Field(description="phase 1, the heaviest network")
    supernet: MultiPath = Field(description="phase 2, the supernet")
    checkpoint_seconds: float = Field(60.0, ge=0, description="time between checkpoints within an epoch")
    old_gib: float = Field(
        10.0,
        ge=0,
        description="GiB that RUN/old/ may hold of what was replaced; beyond, the oldest is deleted and the newest stays",
    )

    @model_validator(mode="after")
    def _has_weights(self) -> TrainSettings:
        if self.start is None and not self.heaviest.epochs:
            raise ValueError("heaviest.epochs is 0, so it needs weights to start from: give train.start")
        return self


def fill_from_recipe(given: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration whose parts ``train`` and ``finetune`` are filled with their recipe's values, not yet checked."""
    train = given.get("train", {})
    recipe = RECIPES.get(str(train.get("recipe", "small")) if isinstance(train, Mapping) else "", {})
    return _merge(recipe, given)


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
        "train": {
            "heaviest": {**_SMALL, "epochs": 2},
            "supernet": {
                **_SMALL,
                "epochs": 6,
                "learning_rate": 4e-3,
                "gradual": 0.4,
                "groups": 2,
                "distillation": {"share": 0.5},
                "recalibration": 2048,
            },
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
        "train": {
            "mixed_precision": "fp16",
            "heaviest": {**_PAPER, "epochs": 250},
            "supernet": {**_PAPER, "epochs": 100, "distillation": {"share": 0.5}, "recalibration": 20_000},
        },
        "finetune": {**_PAPER, "epochs": 15, "distillation": {"share": 0.5}, "recalibration": 20_000},
    },
}
