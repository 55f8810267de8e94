"""What a report is made of: plain values. Only space, contributions, costs and the name of one cost are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from binas.base.errors import TableError
from binas.base.interval import Interval
from binas.estimators._base import Estimator
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.choosing import Choice
from binas.search.confirming import Confirmed
from binas.search.frontier import Frontier
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost, CostTable
from binas.tables.samples import Samples
from binas.tables.verification import Verification


@dataclass(frozen=True)
class Chosen:
    """A network that was searched for: predicted, and as far as known measured. Accuracies in percent.

    ``limit`` is what was asked for, in words (``latency <= 45 ms``); ``cost`` and ``measured_cost`` are of the report's
    cost, in its unit. ``confirmed`` is the accuracy on images that chose nothing, ``compared`` says how it stands against
    networks chosen without the search, ``remark`` what to know about how it was measured.
    """

    limit: str
    architecture: Architecture
    accuracy: float
    stderr: float | None
    cost: float
    measured_cost: Interval | None = None
    one_shot: float | None = None
    fine_tuned: float | None = None
    parameters: float | None = None
    files: tuple[str, ...] = ()
    compared: str = ""
    confirmed: Confirmed | None = None
    remark: str = ""


@dataclass(frozen=True)
class Reference:
    """A network to compare with, measured the same way: accuracy in percent, cost in the unit of the report's cost."""

    name: str
    group: str
    accuracy: float
    cost: float


@dataclass(frozen=True)
class StepTime:
    """How long one step took."""

    name: str
    seconds: float


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything a report may show; what is absent has no section.

    ``metrics`` are the rows of ``metrics.jsonl`` (:mod:`binas.training.reporting`), ``config`` the text of the
    configuration, ``commands`` what was typed. ``estimator`` predicts accuracies, the contributions added up unless given;
    its name lets it be judged on what it did not learn from, ``choice`` says why it was chosen. ``frontier`` is that of the
    report's cost, traced where it is not given. ``story`` are the sentences of :mod:`binas.report.story`.
    """

    space: SearchSpace
    contributions: Contributions
    costs: CostTable
    cost: str
    title: str = ""
    chosen: tuple[Chosen, ...] = ()
    references: tuple[Reference, ...] = ()
    verification: Verification | None = None
    samples: Samples | None = None
    metrics: tuple[Mapping[str, Any], ...] = ()
    times: tuple[StepTime, ...] = ()
    config: str = ""
    commands: tuple[str, ...] = ()
    estimator: Estimator | None = None
    estimator_name: str = ""
    choice: Choice | None = None
    frontier: Frontier | None = None
    story: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if {self.contributions.space.fingerprint, self.costs.space.fingerprint} != {self.space.fingerprint}:
            raise TableError(
                f"the tables of this report were made for another space than {self.space.name!r}."
            )
        for item in self.chosen:
            self.space.check(item.architecture)
        self.costs[self.cost]  # names the costs there are where it is none of them

    @property
    def predictor(self) -> Estimator:
        """What predicts accuracies in this report."""
        return BilinearEstimator(self.contributions) if self.estimator is None else self.estimator

    @property
    def traced(self) -> Cost:
        """The cost that the frontier is drawn against."""
        return self.costs[self.cost]
