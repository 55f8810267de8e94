"""Which published networks are measured beside ours."""

from __future__ import annotations

from pydantic import Field

from binas.base.settings import Settings
from binas.costs.backends import DEFAULT_BACKEND


class PublishedSettings(Settings):
    """Which published networks are measured, and how."""

    backend: str = Field(DEFAULT_BACKEND, description="what runs the networks")
    threads: int = Field(1, ge=1, description="CPU threads")
    batch: int = Field(1, ge=1, description="images of one run")
    networks: tuple[str, ...] = Field((), description="published networks; none = all of them")
    reference: str = Field("MobileNetV3-Large", description="the network that ratios are to")
    cost: str = Field("latency", description="the latency of our own tables")
    seconds: float = Field(120.0, gt=0, description="time for measuring, per session")
