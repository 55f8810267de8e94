"""The files of published networks, checked when they are read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from binas.base.files import parse_yaml
from binas.base.settings import Settings
from binas.space.described import NetworkDescription


class PublishedCounts(Settings):
    """Counts as published: parameters and activations in millions, multiply-accumulates in billions."""

    params: float
    gmacs: float
    activations: float


class PublishedNetwork(NetworkDescription):
    """A network as its authors describe it, and the figures they or others published for it."""

    source: str = Field(description="where the blocks come from")
    counts: PublishedCounts | None = None
    top1: float = Field(description="ImageNet top-1 accuracy in percent")
    top1_source: str
    xeon_ms: float | None = Field(default=None, description="published latency on an Intel Xeon at batch 1")
    cost: str | None = Field(
        default=None,
        description="search and training of N networks in GPU hours, by the BINAS paper's table 1",
    )


class QuotedRow(Settings):
    """A row of the BINAS paper's table 1 whose network is not known here, or has other figures elsewhere, and why."""

    name: str
    top1: float = Field(description="ImageNet top-1 accuracy in percent, as printed")
    xeon_ms: float = Field(description="latency on an Intel Xeon at batch 1, as printed")
    cost: str = Field(description="search and training of N networks in GPU hours, as printed")
    reason: str


class _PublishedFile(Settings):
    format: Literal["binas/published"]
    version: Literal[1]
    networks: tuple[PublishedNetwork, ...]
    quoted: tuple[QuotedRow, ...]


class _DescribedFile(Settings):
    format: Literal["binas/described"]
    version: Literal[1]
    networks: tuple[NetworkDescription, ...]


def published_networks() -> dict[str, PublishedNetwork]:
    """All networks that results are compared with, by name."""
    return {network.name: network for network in _published().networks}


def quoted_rows() -> tuple[QuotedRow, ...]:
    """Rows of the BINAS paper's table 1 that can only be quoted."""
    return _published().quoted


@cache
def described_networks() -> dict[str, NetworkDescription]:
    """All networks whose structure is known, by name: those to compare with, and others that weights exist for."""
    file = _DescribedFile.model_validate(_data("others.yaml"))
    return {**published_networks(), **{network.name: network for network in file.networks}}


@cache
def _published() -> _PublishedFile:
    return _PublishedFile.model_validate(_data("networks.yaml"))


def _data(name: str) -> Any:
    text = files("binas.space.published").joinpath(name).read_text(encoding="utf-8")
    return parse_yaml(text, name).data
