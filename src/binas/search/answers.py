"""Answers as they are kept: a verified result with the question it answers, typed, and read without a problem."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from binas.base.settings import FileRecord
from binas.search.confirming import Confirmed
from binas.search.limits import Limit
from binas.search.on_device import Reading, not_confirmed, unconfirmed
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult
from binas.tables.conditions import Condition, conditions
from binas.tables.entries import Provenance
from binas.tables.units import format_quantity, parse_unit


class LimitRecord(FileRecord):
    """A limit in the unit of its cost."""

    cost: str
    value: float
    unit: str
    lower: bool

    def __str__(self) -> str:
        sign = ">=" if self.lower else "<="
        return f"{self.cost} {sign} {format_quantity(self.value, parse_unit(self.unit))}"


class CostRecord(FileRecord):
    """What an architecture costs by the table, the limits it was searched with, and what it was measured on."""

    value: float
    unit: str
    limit: float | None = None
    lower_limit: float | None = None
    conditions: dict[str, Condition] | None = None

    @field_validator("conditions")
    @classmethod
    def _of_a_table(cls, given: dict[str, Condition] | None) -> dict[str, Condition] | None:
        if given is not None and conditions(Provenance.model_validate(given)) != given:
            raise ValueError("these are no conditions that a table states")
        return given


class AnswerRecord(FileRecord):
    """The answer to one question; without an architecture it says ``why``. Accuracies in percent."""

    question: str
    limits: tuple[LimitRecord, ...]
    why: str = ""
    estimator: str = ""
    status: str
    architecture: str | None
    accuracy: float | None
    accuracy_stderr: float | None
    accuracy_raw: float | None = None
    costs: dict[str, CostRecord]
    bound: float | None
    gap: float | None
    seconds: float
    solver: str
    variant: str | None = None
    alternatives: tuple[dict[str, Any], ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)
    on_device: tuple[Reading, ...] = ()
    confirmed: Confirmed | None = None

    @classmethod
    def of(
        cls,
        question: str,
        problem: SearchProblem,
        result: SearchResult,
        why: str,
        estimator: str,
        confirmed: Confirmed | None = None,
    ) -> AnswerRecord:
        """A verified result as it is kept; ``problem`` has the limits that were asked for."""
        known = result.to_json()
        readings = known["details"].pop("on_device", ())
        limits = [_limit_record(problem, limit) for limit in problem.limits]
        return cls.model_validate(
            {
                "question": question,
                "limits": limits,
                "why": why,
                "estimator": estimator,
                "on_device": readings,
                "confirmed": confirmed,
                **known,
            }
        )

    @property
    def limits_text(self) -> str:
        """The limits in absolute units: ``latency <= 0.2 ms and macs <= 3 MMACs``, and the variant that keeps them."""
        return " and ".join(map(str, self.limits)) + (f" with {self.variant}" if self.variant else "")

    @property
    def searched_limits(self) -> list[Limit]:
        """The limits that the search kept: on a device upper ones may be tighter than those asked for."""
        return [Limit(limit.cost, self._searched(limit), limit.lower) for limit in self.limits]

    def _searched(self, limit: LimitRecord) -> float:
        tightened = self.costs[limit.cost].limit if limit.cost in self.costs else None
        return limit.value if limit.lower or tightened is None else tightened

    @property
    def unconfirmed(self) -> list[Reading]:
        """Readings of the answer that break limits: it is one by the table only, because the machine was in doubt."""
        return unconfirmed(str(self.architecture), self.variant, self.on_device)

    @property
    def remarks(self) -> list[str]:
        """What to know about how the answer was measured, for people: not confirmed, a busy machine, a slower one."""
        own = [self.measured(cost) for cost in {item.cost: None for item in self.on_device}]
        readings = [*self.unconfirmed, *(item for item in own if item is not None)]
        said = [*map(not_confirmed, self.unconfirmed), *(item.remark() for item in readings)]
        return [text for text in dict.fromkeys(said) if text]

    def measured(self, cost: str) -> Reading | None:
        """The last time the answer was built and measured within its limits; None where it was not measured."""
        kept = [item for item in self.on_device if item.architecture == self.architecture and item.kept]
        return next((item for item in reversed(kept) if item.cost == cost), None)


def _limit_record(problem: SearchProblem, limit: Limit) -> dict[str, Any]:
    unit = problem.costs[limit.cost].unit.name
    return {"cost": limit.cost, "value": limit.value, "unit": unit, "lower": limit.lower}
