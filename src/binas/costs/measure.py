"""Measuring on this machine: workloads, backend, session and table put together."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from binas.base.errors import MeasureError
from binas.base.interval import Taken
from binas.base.progress import Progress
from binas.costs.backends import make_backend
from binas.costs.device import BackendDevice
from binas.costs.job import QUANTITIES, Job, Quantity, make_cost, network_entry
from binas.costs.journal import Journal
from binas.costs.machine import device_name, runtime_name
from binas.costs.meters import Meter, energy_zones, joules
from binas.costs.session import CONTROL, Measured, Plan, run_session
from binas.costs.settings import Effort, Settings, settings_of
from binas.costs.verify import draw_networks
from binas.costs.workloads import Workload, control_workload, network_workload, space_workloads
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.costs import NAME, Cost, CostTable
from binas.tables.entries import Provenance


@dataclass(frozen=True)
class Measuring:
    """How to measure on this machine: the setting, what is measured, how carefully, and where samples are kept.

    With a ``journal`` an interrupted session is resumed, unless ``resume`` is False.
    """

    settings: Settings = field(default_factory=Settings)
    quantity: str = "latency"
    plan: Plan = field(default_factory=Plan)
    journal: Path | None = None
    resume: bool = True
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise MeasureError(f"cannot measure {self.quantity[:40]!r}; known are {', '.join(QUANTITIES)}.")

    @property
    def kind(self) -> Quantity:
        """Unit and scale of what is measured."""
        return QUANTITIES[self.quantity]

    def run(self, entries: Sequence[str], build: Callable[[str], Workload]) -> Measured:
        """One session over entries that ``build`` makes workloads for."""
        backend, meter = make_backend(self.settings), self._meter()
        plan = replace(self.plan, sample_seconds=max(self.plan.sample_seconds, self.kind.sample_seconds))
        identity = self._identity(plan, entries)
        journal = None if self.journal is None else Journal.open(self.journal, identity, self.resume)
        with backend.pinned():
            device = BackendDevice(backend, build, meter)
            return run_session(entries, device, plan, time.perf_counter, journal, self.progress)

    def provenance(self, measured: Measured) -> Provenance:
        """Where the numbers of a session come from."""
        estimates = measured.estimates.values()
        return Provenance.made(
            "measured by binas",
            device=device_name(self.settings),
            runtime=runtime_name(self.settings),
            statistic=f"quantile {measured.quantile:g} of the samples",
            repeats=min(item.count for item in estimates),
            dispersion=max(item.uncertainty for item in estimates),
            disturbance=measured.control.spread,
            control=measured.control.value,
            **self.settings.to_data(),
        )

    def _meter(self) -> Meter | None:
        """What reads the quantity; None for the clock of the device."""
        return joules(energy_zones()) if self.quantity == "energy" else None

    def _identity(self, plan: Plan, entries: Sequence[str]) -> dict[str, Any]:
        """What a journal must agree in to be resumed: everything but the time given."""
        return {
            "quantity": self.quantity,
            "settings": self.settings.to_data(),
            "device": device_name(self.settings),
            "runtime": runtime_name(self.settings),
            "procedure": {key: value for key, value in asdict(plan).items() if key != "budget"},
            "entries": [CONTROL, *entries],
        }


def measuring_again(cost: Cost, plan: Plan) -> Measuring:
    """How to measure what a cost holds once more: the setting its provenance names."""
    what = f"the table of {cost.name}"
    settings = settings_of(cost.provenance, what)
    quantity = next((name for name, kind in QUANTITIES.items() if kind.unit == cost.unit.name), None)
    if quantity is None:
        known = " or ".join(kind.unit for kind in QUANTITIES.values())
        raise MeasureError(f"{what} is in {cost.unit.name}; only tables in {known} can be measured again.")
    return Measuring(settings, quantity, plan)


def measurable(costs: Mapping[str, Cost]) -> list[str]:
    """The costs whose tables say how they were measured, so that it can be done again."""
    return [name for name, cost in costs.items() if cost.provenance.backend is not None]


@dataclass(frozen=True, eq=False)
class MeasuredCost:
    """A measured cost, and the session it comes from."""

    cost: Cost
    session: Measured


def describe_measured(done: MeasuredCost) -> list[str]:
    """What a session found, for people: entries, the formula, how it holds on whole networks, warnings."""
    known, session = done.cost.provenance, done.session
    lines = [
        f"{done.cost.name} in {done.cost.unit.name} on {known.device}, {known.runtime}: {len(session.estimates)} entries, "
        f"at least {known.repeats} samples each, in {session.seconds:.0f} s"
    ]
    if known.calibration is not None:
        lines.append(f"formula: {known.calibration.form}")
    if known.verification is not None:
        lines.append(known.verification.sentence())
    return [*lines, *(f"warning: {warning}" for warning in session.warnings)]


def measure_space(
    space: SearchSpace,
    how: Measuring,
    samples: int = 30,
    seed: int = 0,
    name: str = "latency",
    given: Cost | None = None,
) -> MeasuredCost:
    """The cost of every choice of a space on this machine (paper section 3.4).

    With ``samples`` random networks (and the corners of the space), built whole and measured in the same session,
    the table is calibrated on some and verified on the others; with 0 it is the plain table of isolated blocks.
    ``given`` is an older table, kept if it predicts the networks as well.
    """
    if re.fullmatch(NAME, name) is None:
        raise MeasureError(f"{name[:60]!r} is no name of a cost; use letters, digits, dots, _ and -.")
    workloads = space_workloads(space)
    fit, held_out = draw_networks(space, samples, seed) if samples else ([], [])
    job = Job(space, workloads.places, tuple(fit), tuple(held_out))
    measured = how.run(job.entries, _builder(space, workloads.all(), [*fit, *held_out]))
    cost = make_cost(job, measured, how.kind, name, how.provenance(measured), given)
    return MeasuredCost(cost, measured)


def seconds_to_prepare(space: SearchSpace, settings: Settings) -> tuple[float, float]:
    """Seconds to prepare all blocks of a space for measuring, and one whole network, from a few of them."""
    start = time.perf_counter()
    workloads = space_workloads(space)
    building, known, backend = time.perf_counter() - start, workloads.all(), make_backend(settings)
    corners = [space.extreme(largest) for largest in (False, True)]
    device = BackendDevice(backend, _builder(space, known, corners), None)

    def prepare(entries: Sequence[str]) -> float:
        start = time.perf_counter()
        for entry in entries:
            device.warm_up(entry)
        return (time.perf_counter() - start) / len(entries)

    with backend.pinned():
        prepare([CONTROL])  # packages are loaded now
        block = prepare(list(known)[:: max(1, len(known) // 3)])
        network = prepare([network_entry(corner) for corner in corners])
    return building + len(known) * block, network


def only_measurable(costs: Mapping[str, Cost], where: str) -> str:
    """The one cost of a table that can be measured again; an error where there are none or several."""
    names = measurable(costs)
    if len(names) != 1:
        several = f"several costs measured by binas ({', '.join(names)})"
        raise MeasureError(
            f"{where} holds {several if names else 'no cost measured by binas'}; name the one to verify with --cost."
        )
    return names[0]


def verify_again(
    costs: CostTable, cost: str, effort: Effort, journal: Path, progress: Progress
) -> MeasuredCost:
    """A cost of a table held against whole networks once more; it keeps its numbers where no new table does better."""
    given = costs[cost]
    how = replace(measuring_again(given, effort.plan), journal=journal, progress=progress)
    return measure_space(costs.space, how, effort.samples, effort.seed, cost, given)


def measure_architecture(space: SearchSpace, architecture: Architecture, how: Measuring) -> Taken:
    """The cost of one whole network on this machine, in the unit of the quantity's tables, and how busy the machine was."""
    entry = network_entry(architecture)
    measured = how.run([entry], _builder(space, {}, [architecture]))
    found = measured.estimates[entry].scaled(how.kind.factor)
    return Taken(found.value, found.low, found.high, measured.control.spread, measured.control.value)


def _builder(
    space: SearchSpace, known: Mapping[str, Workload], architectures: Sequence[Architecture]
) -> Callable[[str], Workload]:
    """The workload of each entry; whole networks are built when asked for, since they are large."""
    networks = {network_entry(a): a for a in architectures}

    def build(entry: str) -> Workload:
        if entry == CONTROL:
            return control_workload()
        return known[entry] if entry in known else network_workload(space, networks[entry])

    return build
