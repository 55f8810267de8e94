"""How a run stands: what is done, what is stale and why, what is left and how long that will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from binas.run.engine import State, states
from binas.run.log import read_log
from binas.run.plan import plan_of
from binas.tasks import all_steps

if TYPE_CHECKING:
    from binas.run.run import Run


@dataclass(frozen=True)
class Standing:
    """One step: its state, the seconds it took and those it will take; None where they are not known."""

    state: State
    took: float | None
    left: float | None

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas status --json`` lists."""
        record = self.state.record
        return {
            "step": self.state.step.name,
            "does": self.state.step.does,
            "state": self.state.word,
            "why": list(self.state.reasons),
            "seconds": self.took,
            "left_seconds": self.left,
            "time": None if record is None else record.time,
            "files": [] if record is None else list(record.files),
        }


def standings(run: Run) -> list[Standing]:
    """How every step stands."""
    events, plan = read_log(run.folder), plan_of(run)
    planned = {} if plan is None else {name: seconds.total for name, seconds in plan.expected.items()}
    return [standing(state, events, planned.get(state.step.name)) for state in states(run, all_steps())]


def standing(state: State, events: list[dict[str, Any]], planned: float | None = None) -> Standing:
    """One step with its times, by its record and the events of the log; where they say nothing, as it was planned."""
    record = state.record
    finished = record is not None and record.state == "finished"
    took = record.seconds if record is not None and finished else None
    if state.word == "done":
        return Standing(state, took, 0.0)
    left = _by_rate(state.step.name, events) if state.word == "started" else _by_record(state)
    return Standing(state, took, planned if left is None else left)


def _by_record(state: State) -> float | None:
    """The time it took before, by the ratio of the setting it grows with."""
    record, amount = state.record, next((item.setting for item in state.step.amounts), None)
    if record is None or record.state != "finished":
        return None
    was, now = (inputs.get(amount) if amount else None for inputs in (record.inputs, state.inputs or {}))
    return record.seconds * now / was if was and now else record.seconds


def _by_rate(step: str, events: list[dict[str, Any]]) -> float | None:
    """From the last line about how far the step is: seconds per share since it was started, times the share left."""
    for event in reversed(events):
        if event.get("step") == step and event.get("event") == "progress":
            done, since, seconds = (event.get(key) for key in ("done", "since", "seconds"))
            if not all(isinstance(value, int | float) for value in (done, since, seconds)):
                continue
            share = float(done) - float(since)
            return float(seconds) / share * (1 - float(done)) if share > 0 else None
        if event.get("step") == step and event.get("event") in ("finished", "set aside"):
            return None
    return None


def total_left(found: Sequence[Standing]) -> tuple[float, list[str]]:
    """Seconds left of the steps whose time is known, and the names of those whose time is not."""
    known = sum(item.left for item in found if item.left is not None)
    return known, [item.state.step.name for item in found if item.left is None]
