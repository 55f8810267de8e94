"""What every solver returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from binas.search.limits import Limit
from binas.search.problem import Evaluation, SearchProblem
from binas.space.architecture import Architecture
from binas.tables.conditions import conditions


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"  # proven: no architecture within the limits is better
    FEASIBLE = "feasible"  # a valid answer of a heuristic, nothing proven
    INFEASIBLE = "infeasible"  # proven: no architecture keeps the limits
    STOPPED_WITH_ANSWER = "stopped-with-answer"  # time or iterations ran out; the answer is valid
    STOPPED_WITHOUT_ANSWER = "stopped-without-answer"  # ran out with nothing; nothing is proven

    @property
    def has_answer(self) -> bool:
        """Whether there is an architecture."""
        return self in (Status.OPTIMAL, Status.FEASIBLE, Status.STOPPED_WITH_ANSWER)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a solver claims, before verification: status, architecture, value and upper bound of the objective."""

    status: Status
    architecture: Architecture | None = None
    value: float | None = None
    bound: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SearchResult:
    """A verified result.

    ``accuracy`` and ``bound`` are in percent; ``gap`` = bound - accuracy, None when nothing is proven. Of an optimal answer
    it is zero, or what was left of the 1e-6 points that count as proven when the search ended. (What the verifier returns is
    on the scale of the objective's link; ``solve`` brings it to percent.)
    """

    problem: SearchProblem
    status: Status
    solver: str
    seconds: float
    evaluation: Evaluation | None = None
    bound: float | None = None
    alternatives: tuple[Evaluation, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> Architecture | None:
        """The architecture found."""
        return None if self.evaluation is None else self.evaluation.architecture

    @property
    def variant(self) -> str | None:
        """The variant of the answer, where the problem has variants."""
        return None if self.evaluation is None else self.evaluation.variant

    @property
    def accuracy(self) -> float | None:
        """Predicted accuracy of the architecture."""
        return None if self.evaluation is None else self.evaluation.accuracy

    @property
    def gap(self) -> float | None:
        """How much better an unknown architecture could still be."""
        if self.bound is None or self.accuracy is None or not math.isfinite(self.bound):
            return None
        return max(0.0, self.bound - self.accuracy)

    def sentence(self) -> str:
        """The accuracy of the answer, what it is worth, and who found it; for people."""
        if self.evaluation is None:
            return f"no architecture ({self.status}; {self.solver}, {self.seconds * 1e3:.1f} ms)"
        stderr, proven = self.evaluation.accuracy_stderr, self.status is Status.OPTIMAL
        error = "" if stderr is None else f" ± {stderr:.3f}"
        gap = "" if self.gap is None or proven else f", at most {self.gap:.4f} points from the best"
        proof = "proven optimal" if proven else str(self.status)
        return (
            f"predicted accuracy {self.evaluation.accuracy:.4f} %{error} ({proof}{gap}; {self.solver}, "
            f"{self.seconds * 1e3:.1f} ms)"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas search --json`` prints."""
        answer = self.evaluation
        return {
            "status": str(self.status),
            "architecture": None if answer is None else str(answer.architecture),
            **({"variant": self.variant} if self.problem.variants else {}),
            "accuracy": None if answer is None else answer.accuracy,
            "accuracy_stderr": None if answer is None else answer.accuracy_stderr,
            **({} if answer is None else raw_json(answer)),
            "costs": {} if answer is None else costs_json(self.problem, answer),
            "bound": self.bound,
            "gap": self.gap,
            "seconds": self.seconds,
            "solver": self.solver,
            "alternatives": [evaluation_json(self.problem, item) for item in self.alternatives],
            "details": dict(self.details),
        }


def costs_json(problem: SearchProblem, evaluation: Evaluation) -> dict[str, Any]:
    """Each cost with its unit and limits, and what it was measured on."""
    upper = {limit.cost: limit.value for limit in _loosest_first(problem) if not limit.lower}
    lower = {limit.cost: limit.value for limit in _loosest_first(problem) if limit.lower}
    result: dict[str, Any] = {}
    tables = problem.of_variant(evaluation.variant).costs
    for name, value in evaluation.costs.items():
        cost = tables[name]
        result[name] = {"value": value, "unit": cost.unit.name, "limit": upper.get(name)}
        if conditions(cost.provenance):
            result[name]["conditions"] = conditions(cost.provenance)
        if name in lower:
            result[name]["lower_limit"] = lower[name]
    return result


def _loosest_first(problem: SearchProblem) -> list[Limit]:
    """Limits ordered so that of several on one cost the tightest comes last."""
    return sorted(problem.limits, key=lambda limit: -limit.sign * limit.value)


def raw_json(evaluation: Evaluation) -> dict[str, float]:
    """The estimator's own prediction in percent, where the accuracy that is shown is a recalibrated one."""
    return {} if evaluation.raw is None else {"accuracy_raw": evaluation.raw}


def evaluation_json(problem: SearchProblem, evaluation: Evaluation) -> dict[str, Any]:
    """One architecture with accuracy and costs."""
    return {
        "architecture": str(evaluation.architecture),
        **({} if evaluation.variant is None else {"variant": evaluation.variant}),
        "accuracy": evaluation.accuracy,
        "accuracy_stderr": evaluation.accuracy_stderr,
        **raw_json(evaluation),
        "costs": costs_json(problem, evaluation),
    }
