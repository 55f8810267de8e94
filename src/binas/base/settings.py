"""The base of everything a user may set."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Unknown keys are refused, values are finite and never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
