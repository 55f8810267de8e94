"""The file of published networks, checked when it is read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from binas.base.files import parse_yaml
from binas.base.settings import Settings
from binas.costs.backends import DEFAULT_BACKEND

CLASSES, RESOLUTION, CHANNELS = 1000, 224, 3


class PublishedSettings(Settings):
    """Which published networks are measured, and how."""

    backend: str = Field(DEFAULT_BACKEND, description="what runs the networks")
    threads: int = Field(1, ge=1, description="CPU threads")
    batch: int = Field(1, ge=1, description="images of one run")
    networks: tuple[str, ...] = Field((), description="published networks; none = all of them")
    reference: str = Field("MobileNetV3-Large", description="the network that ratios are to")
    cost: str = Field("latency", description="the latency of our own tables")
    seconds: float = Field(120.0, gt=0, description="time for measuring, per session")


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedCounts(_Value):
    """Counts as published: parameters and activations in millions, multiply-accumulates in billions."""

    params: float
    gmacs: float
    activations: float


class PublishedNetwork(_Value):
    """A network as its authors describe it, and the figures they or others published for it."""

    name: str
    source: str = Field(description="where the blocks come from")
    blocks: str = Field(description="all blocks after the first convolution, as block strings")
    stem: str = "cn_k3_s2_c32_nre"
    features: int | None = Field(
        default=None, description="width of the layer between pooling and classifier"
    )
    squeeze: dict[str, Any] = Field(
        default={}, description="how squeeze-excite ratios are meant: a SqueezeRule"
    )
    counts: PublishedCounts | None = None
    top1: float = Field(description="ImageNet top-1 accuracy in percent")
    top1_source: str
    xeon_ms: float | None = Field(default=None, description="published latency on an Intel Xeon at batch 1")
    cost: str | None = Field(
        default=None,
        description="search and training of N networks in GPU hours, by the BINAS paper's table 1",
    )


class _PublishedFile(_Value):
    format: Literal["binas/published"]
    version: Literal[1]
    networks: tuple[PublishedNetwork, ...]


@cache
def published_networks() -> dict[str, PublishedNetwork]:
    """All published networks by name."""
    text = files("binas.costs.published").joinpath("networks.yaml").read_text(encoding="utf-8")
    file = _PublishedFile.model_validate(parse_yaml(text, "networks.yaml").data)
    return {network.name: network for network in file.networks}
