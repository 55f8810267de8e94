"""The parts of a run's configuration that come after training: measuring, contributions, check, search, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from binas.base.errors import ProblemError
from binas.costs.session import Plan
from binas.costs.settings import Settings as MeasuredWith
from binas.search.limits import check_form
from binas.search.solvers import SOLVERS
from binas.training.config import Settings

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class MeasuringConfig(Settings):
    """What networks cost: measured on this machine, or read from a table. MACs, parameters and memory are counted."""

    backend: Literal["torch", "onnxruntime", "openvino", "none"] = Field(
        "onnxruntime", description="what runs the networks; none = no latency, only what can be counted"
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="where they run")
    threads: int = Field(1, ge=1, description="CPU threads")
    batch: int = Field(1, ge=1, description="images of one run; a latency is that of the whole batch")
    dtype: Literal["float32", "float16", "bfloat16"] = Field(
        "float32", description="numbers they compute with"
    )
    memory_format: Literal["contiguous", "channels_last"] = Field(
        "contiguous", description="layout of images in torch"
    )
    onednn: bool = Field(True, description="torch's CPU library; the paper measured without it")
    samples: int = Field(
        30, ge=0, le=10_000, description="random networks, built whole, that calibrate and verify the table"
    )
    rounds: int = Field(60, ge=1, description="samples of each entry, at least")
    tolerance: float = Field(0.01, gt=0, le=1, description="relative uncertainty to reach for each entry")
    seconds: float = Field(300.0, gt=0, description="time for measuring, at most")
    seed: int = Field(0, ge=0, description="of the drawn networks and the order of measuring")
    table: Path | None = Field(
        None, description="a cost table (.json, .csv) to use instead of measuring, such as that of a phone"
    )

    @property
    def settings(self) -> MeasuredWith:
        """The setting to measure in."""
        return MeasuredWith(
            self.backend,
            self.device,
            self.threads,
            self.batch,
            self.dtype,
            self.memory_format,
            self.onednn,
        )

    @property
    def plan(self) -> Plan:
        """How carefully to measure."""
        return Plan(rounds=self.rounds, tolerance=self.tolerance, budget=self.seconds, seed=self.seed)

    @property
    def measures(self) -> bool:
        """Whether anything is measured on this machine."""
        return self.table is None and self.backend != "none"


class ContributionsConfig(Settings):
    """What each choice contributes to accuracy, measured on one half of the validation images."""

    protocol: Literal["factorial", "paper"] = Field("factorial", description="ours, or the paper's")
    passes: int = Field(24, ge=2, description="factorial: passes over the images, at most")
    outcome: Literal["correct", "probability", "log-probability"] = Field(
        "log-probability", description="factorial: what is fitted"
    )
    stability: float | None = Field(
        None, ge=0, le=1, description="factorial: stop at this Kendall tau between halves; none = all passes"
    )
    repeats: int = Field(10, ge=1, description="paper: passes per decision")
    reading: Literal["base", "depth"] = Field(
        "base", description="paper: a config's accuracy minus E[Acc], or minus E[Acc | depth]"
    )
    images: int | None = Field(None, ge=2, description="only about this many images; none = the whole half")
    seed: int = Field(0, ge=0, description="of the drawn paths")


class CheckConfig(Settings):
    """How the estimator is judged: random architectures measured one by one on the other half of the images."""

    count: int = Field(100, ge=2, description="architectures to measure")
    strata: Literal["uniform", "cost"] = Field(
        "uniform", description="uniform over decisions, or evenly over the range of MACs"
    )
    recalibrate: bool = Field(False, description="re-estimate each one's BatchNorm on training images first")
    resamples: int = Field(1000, ge=1, description="bootstrap resamples behind the intervals")
    seed: int = Field(0, ge=0, description="of the drawn architectures")


class SearchConfig(Settings):
    """The questions to answer, each exactly."""

    limits: tuple[Question, ...] = Field(
        ("latency=50%",),
        min_length=1,
        description="one search each: COST=QUANTITY with a unit (latency=0.2ms, params=300k), or in percent of the "
        "way from the least to the greatest cost a network of the space has by the table (latency=40%); several "
        "limits at once are joined by 'and'",
    )
    solver: str = Field("auto", description="a solver of `binas solvers`; auto is exact")
    time_limit: float | None = Field(None, gt=0, description="seconds a solver may take; none = unlimited")
    closed_loop: bool | None = Field(
        None,
        description="build and measure each answer, and search again with tighter limits until the measured one keeps "
        "them; none = where this run measured the table",
    )
    seconds_per_network: float = Field(30.0, gt=0, description="time to measure one answer, at most")

    @field_validator("limits")
    @classmethod
    def _readable(cls, limits: tuple[str, ...]) -> tuple[str, ...]:
        for limit in limits:
            try:
                check_form(limit)
            except ProblemError as error:
                raise ValueError(str(error).rstrip(".")) from error
        if len(set(limits)) < len(limits):
            raise ValueError("the same limit stands there twice")
        return limits

    @field_validator("solver")
    @classmethod
    def _known(cls, solver: str) -> str:
        if solver not in SOLVERS:
            raise ValueError(f"must be one of {', '.join(SOLVERS)}")
        return solver


class CompareConfig(Settings):
    """What the search bought: rivals of the same cost, chosen without it, measured on the same test images."""

    random: int = Field(
        20, ge=0, description="random networks beside each found one; also the best hand-scaled one"
    )
    tune: int = Field(
        0, ge=0, description="that many of them, and the hand-scaled one, are fine-tuned as well"
    )
    seed: int = Field(0, ge=0, description="of the drawn networks")


class ExportConfig(Settings):
    """What a finished network is written as."""

    formats: tuple[Literal["onnx", "torch", "safetensors"], ...] = Field(
        ("onnx", "safetensors"), min_length=1, description="kinds of files; torch is torch.export's"
    )
    int8: bool = Field(False, description="also an ONNX file quantised to 8 bits")
