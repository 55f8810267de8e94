"""What was found when a cost table was held against whole networks, and how it was improved. Plain values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from binas.base.interval import Interval


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NetworkCheck(_Value):
    """One whole network: its cost by the table and as measured, in the unit of the cost."""

    architecture: str
    predicted: float
    measured: float
    low: float = Field(description="lower end of the 95 % confidence interval of measured")
    high: float
    part: Literal["fit", "held-out"] = Field(description="whether the calibration saw this network")


class Calibration(_Value):
    """How the table was made of the costs of isolated blocks.

    cost = scale * (sum of the blocks) + sum over stages of per_block[s] * depth_s + constant
    """

    form: str
    scale: float
    per_block: tuple[float, ...] = Field(description="overhead per active block, one number per stage")
    constant: float = Field(description="the fixed part of the table")
    networks: int = Field(description="how many whole networks the numbers were fitted to")
    tried: dict[str, float] = Field(description="form -> mean absolute error in cross-validation, percent")


class Verification(_Value):
    """The table against whole networks that were held out from the calibration; errors in percent of measured."""

    networks: int
    bias_percent: Interval
    mape_percent: Interval = Field(description="mean absolute error")
    worst_percent: float
    spearman: Interval
    kendall: Interval
    retest_percent: float | None = Field(
        default=None, description="mean difference between two halves of the same measurements"
    )
    sum_percent: float = Field(description="mean absolute error of the plain sum of isolated blocks")
    macs_percent: float | None = Field(default=None, description="the same of a line through MACs alone")
    date: str
    checks: tuple[NetworkCheck, ...]

    def sentence(self) -> str:
        """The result for people."""
        retest = self.retest_percent
        floor = "" if retest is None else f"; two halves of the measurements differ by {retest:.2f} %"
        return (
            f"on {self.networks} networks held out: mean error {self.mape_percent.value:.2f} % "
            f"({self.mape_percent.low:.2f} to {self.mape_percent.high:.2f}), worst {self.worst_percent:.2f} %, "
            f"bias {self.bias_percent.value:+.2f} %, Spearman {self.spearman:.3f}, "
            f"Kendall {self.kendall.value:.3f}{floor}"
        )
