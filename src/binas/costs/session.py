"""The measuring procedure (paper section 3.4, appendix C), made for machines that are not quiet.

Entries are measured in rounds, each round in a new random order, so that a slow moment hits all alike. A sample is
as many runs as it takes to be well above the resolution of the clock. A control that has nothing to do with the
entries is sampled all along; if its level drifts, samples are divided by it. After a minimum of rounds, entries whose
confidence interval is still too wide get further rounds until all are tight or the time is over.

Everything here is given a device and a clock, so tests give it invented ones. Samples go to the journal as they are
taken; a session that resumes first replays the journal, so it ends with the same numbers as one never interrupted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import numpy as np

from binas.base.errors import MeasureError
from binas.base.progress import Progress
from binas.costs.journal import Journal, Sample
from binas.costs.statistics import Drift, Estimate, estimate, find_drift
from binas.tables.conditions import NOISY

CONTROL = "control"
LOOK_EVERY = 5  # further rounds between two looks at which entries are settled


class Device(Protocol):
    """What can be measured. Costs are per run: seconds, or whatever the device counts."""

    def warm_up(self, entry: str) -> float:
        """Run an entry until it is stable; the seconds one run then takes."""
        ...

    def sample(self, entry: str, repeats: int) -> float:
        """Mean cost of one run over ``repeats`` runs in a row."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How carefully to measure.

    ``quantile`` of an entry's samples is its value; at least ``rounds`` samples of each; more until half of every
    95 % interval is within ``tolerance`` of its value, or ``budget`` seconds have been spent measuring. A sample
    lasts at least ``sample_seconds``; the control is sampled once every ``control_every`` samples.
    """

    quantile: float = 0.1
    rounds: int = 60
    tolerance: float = 0.01
    budget: float = 300.0
    sample_seconds: float = 1e-3
    control_every: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 0.5:
            raise MeasureError(f"the quantile must be above 0 and at most 0.5, got {self.quantile}.")
        for key in ("rounds", "tolerance", "budget", "sample_seconds", "control_every"):
            if not 0 < getattr(self, key) < math.inf:
                raise MeasureError(f"{key} must be above 0, got {getattr(self, key)}.")


@dataclass(frozen=True, eq=False)
class Measured:
    """What a session found: an estimate per entry, its samples corrected for drift, and what to be told about.

    ``quantile`` of the samples is the value of an estimate; ``seconds`` were spent measuring.
    """

    quantile: float
    estimates: dict[str, Estimate]
    samples: dict[str, list[float]]
    control: Estimate
    drift: Drift
    seconds: float
    warnings: tuple[str, ...]


@dataclass
class _State:
    """Samples by entry, with the time each was taken."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    elapsed: float = 0.0

    def add(self, sample: Sample) -> None:
        self.values[sample.entry].append(sample.value)
        self.times[sample.entry].append(sample.elapsed)
        self.elapsed = sample.elapsed


def run_session(
    entries: Sequence[str],
    device: Device,
    plan: Plan,
    clock: Callable[[], float],
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Measure all entries and the control; ``clock`` gives seconds."""
    if not entries:
        raise MeasureError("there is nothing to measure.")
    session = _Session(tuple(entries), device, plan, clock, journal or Journal(), progress or Progress())
    session.run()
    return _summary(entries, session.state, plan)


@dataclass
class _Session:
    entries: tuple[str, ...]
    device: Device
    plan: Plan
    clock: Callable[[], float]
    journal: Journal
    progress: Progress
    state: _State = field(default_factory=_State)
    warm: bool = False

    def run(self) -> None:
        """Rounds until all is tight or the time is over; what the journal holds is not measured again."""
        recorded = iter(list(self.journal.samples))
        active = list(self.entries)
        for number in count():
            if number >= self.plan.rounds and (number - self.plan.rounds) % LOOK_EVERY == 0:
                active = self._unsettled()
            if not active:
                return
            order = _order(active, self.plan, number)
            for place, entry in enumerate(order):
                if number > 0 and self.state.elapsed >= self.plan.budget:
                    return
                if entry == CONTROL:
                    self._report(number + place / len(order), len(active))
                self.state.add(self._next(entry, recorded))

    def _unsettled(self) -> list[str]:
        """The entries that are not yet known well enough."""
        estimates = _summary(self.entries, self.state, self.plan).estimates
        return [entry for entry in self.entries if estimates[entry].uncertainty > self.plan.tolerance]

    def _next(self, entry: str, recorded: Iterator[Sample]) -> Sample:
        """The recorded sample if there is one, else a new one."""
        known = next(recorded, None)
        if known is None:
            return self._measure(entry)
        if known.entry != entry:
            raise MeasureError(
                f"the journal {self.journal.path} has a sample of {known.entry!r} where {entry!r} should be. It "
                "was changed, or belongs to another version: start afresh with --redo."
            )
        return known

    def _measure(self, entry: str) -> Sample:
        self._warm_up()
        start = self.clock()
        value = self.device.sample(entry, self.journal.repeats[entry])
        if not (math.isfinite(value) and value > 0):
            raise MeasureError(f"measuring {entry!r} gave {value}, which is no cost.")
        sample = Sample(entry, value, self.state.elapsed + self.clock() - start)
        self.journal.add(sample)
        return sample

    def _warm_up(self) -> None:
        """Once per process, before the first sample: run everything until stable, and choose the repeats."""
        if self.warm:
            return
        everything, seconds = (CONTROL, *self.entries), {}
        for done, entry in enumerate(everything):
            self.progress.show(done / len(everything), f"preparing {entry}")
            seconds[entry] = self.device.warm_up(entry)
        if not self.journal.repeats:
            least = self.plan.sample_seconds
            self.journal.set_repeats({e: max(1, math.ceil(least / s)) for e, s in seconds.items()})
        self.warm = True

    def _report(self, done: float, active: int) -> None:
        """Tell how far it is; ``done`` counts rounds and the part of the one that is running."""
        elapsed, rounds = self.state.elapsed, self.plan.rounds
        left = max(0.0, self.plan.budget - elapsed)
        if done >= rounds:
            self.progress.show(1.0, f"round {done:.0f}, {active} entries to settle", left)
        elif done > 0:
            left = min(left, elapsed / done * (rounds - done))
            self.progress.show(done / rounds, f"round {math.ceil(done)} of {rounds}", left)


def _order(active: list[str], plan: Plan, number: int) -> list[str]:
    """The samples of one round: the entries shuffled, the control first and then every few entries."""
    shuffled = np.random.default_rng([plan.seed, number]).permutation(len(active))
    order: list[str] = []
    for place, index in enumerate(shuffled):
        if place % plan.control_every == 0:
            order.append(CONTROL)
        order.append(active[index])
    return order


def _summary(entries: Sequence[str], state: _State, plan: Plan) -> Measured:
    """Estimates from the samples, divided by the drift of the control where there is drift."""
    drift = find_drift(state.times[CONTROL], state.values[CONTROL], plan.quantile)
    samples = {
        entry: (np.array(state.values[entry]) / drift.factor(state.times[entry])).tolist()
        for entry in entries
    }
    estimates = {entry: estimate(values, plan.quantile) for entry, values in samples.items()}
    control = estimate(state.values[CONTROL], plan.quantile)
    warnings = tuple(_warnings(estimates, control, drift, plan))
    return Measured(plan.quantile, estimates, samples, control, drift, state.elapsed, warnings)


def _warnings(estimates: dict[str, Estimate], control: Estimate, drift: Drift, plan: Plan) -> Iterator[str]:
    wide = {e: x.uncertainty for e, x in estimates.items() if x.uncertainty > plan.tolerance}
    if wide:
        worst = max(wide, key=lambda e: wide[e])
        yield (
            f"{len(wide)} of {len(estimates)} entries are not known to {plan.tolerance:.1%} in the time given; "
            f"the worst is {worst} with {wide[worst]:.1%}. {_reason(control)}"
        )
    if drift.detected:
        yield (
            f"the device's speed drifted by {drift.change:.0%} during the session (throttling, or other programs); "
            "samples were corrected by the control's speed at their time."
        )


def _reason(control: Estimate) -> str:
    if control.spread <= NOISY:
        return "Give more time with --budget."
    return (
        f"The machine is noisy: a quarter of the control's samples took over {control.spread:.0%} longer than they "
        "need. Close other programs, or give more time with --budget."
    )
