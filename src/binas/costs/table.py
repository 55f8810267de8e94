"""The cost table of a space, as settings say: measured on this machine or read from a file, with what can be counted.

Several backends or numbers of threads make variants: the search then chooses among them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from binas.base.errors import TableError
from binas.base.files import check_replaceable, listed, remove
from binas.base.progress import Progress
from binas.base.settings import OneOrMore
from binas.costs.analytic import counted_costs
from binas.costs.backends import BACKENDS, DEFAULT_BACKEND
from binas.costs.settings import Effort, Settings as MeasuredWith
from binas.space.space import SearchSpace
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.entries import Column
from binas.tables.units import parse_unit

if TYPE_CHECKING:
    from binas.base.interval import Taken
    from binas.costs.session import Plan
    from binas.space.architecture import Architecture

NONE = "none"
JOURNAL = ".journal"
SLOWEST = 1.25  # factor of a slower device that is taken out of a reading: beyond, the control is no measure of networks
UNITS = {"latency": "ms", "energy": "mJ"}


class MeasureSettings(Effort):
    """What networks cost: measured on this machine, or read from a table. MACs, parameters and memory are counted."""

    backend: OneOrMore[str] = Field(
        (DEFAULT_BACKEND,),
        min_length=1,
        description=f"what runs the networks: {', '.join(BACKENDS)}, or none = only what can be counted; several = the "
        "search chooses",
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="where they run")
    threads: OneOrMore[int] = Field(
        (1,), min_length=1, description="CPU threads; several = the search chooses"
    )
    batch: int = Field(1, ge=1, description="images of one run; a latency is that of the whole batch")
    dtype: Literal["float32", "float16", "bfloat16"] = Field(
        "float32", description="numbers they compute with"
    )
    memory_format: Literal["contiguous", "channels_last"] = Field(
        "contiguous", description="layout of images in torch"
    )
    onednn: bool = Field(True, description="torch's CPU library; the paper measured without it")
    quantity: Literal["latency", "energy"] = Field("latency", description="what is measured")
    table: Path | None = Field(
        None, description="a cost table (.json, .csv) to use instead of measuring, such as that of a phone"
    )

    @field_validator("backend")
    @classmethod
    def _known(cls, backends: tuple[str, ...]) -> tuple[str, ...]:
        for backend in backends:
            if backend not in (*BACKENDS, NONE) or (backend == NONE and len(backends) > 1):
                raise ValueError(f"must be of {', '.join(BACKENDS)}, or {NONE} alone")
        return backends

    @field_validator("threads")
    @classmethod
    def _positive(cls, threads: tuple[int, ...]) -> tuple[int, ...]:
        if min(threads) < 1:
            raise ValueError("must be greater than or equal to 1")
        return threads

    @property
    def variants(self) -> dict[str, MeasuredWith]:
        """Every setting to measure in, named by what differs; a single one is called by the empty name."""
        named = {}
        for backend, threads in product(self.backend, self.threads):
            parts = [f"backend={backend}"] if len(self.backend) > 1 else []
            parts += [f"threads={threads}"] if len(self.threads) > 1 else []
            named[", ".join(parts)] = MeasuredWith(
                backend, self.device, threads, self.batch, self.dtype, self.memory_format, self.onednn
            )
        return named

    @property
    def measures(self) -> bool:
        """Whether anything is measured on this machine."""
        return self.table is None and NONE not in self.backend


def measure_costs(
    space: SearchSpace, settings: MeasureSettings, out: Path, progress: Progress, fresh: bool = False
) -> CostTable:
    """The table of a space as the settings say: measured (samples are kept beside ``out`` until it is), or read."""
    counted = counted_costs(space)
    if settings.table is not None:
        given = load_costs(settings.table, space)
        return CostTable(space, {**counted, **given.costs}, given.variants)
    if settings.measures:
        check_replaceable(out)
    measured = {
        name: _measure(
            space, settings, how, out.with_name(f"{out.name}{JOURNAL}{number or ''}"), fresh, progress
        )
        for number, (name, how) in enumerate(settings.variants.items())
        if settings.measures
    }
    first = next(iter(measured.values()), {})
    variants = measured if len(measured) > 1 else {}
    table = CostTable(space, {**counted, **first}, variants)
    if not table.costs:
        raise TableError("there is no cost to limit: set measure.backend or measure.table.")
    return table


def _measure(
    space: SearchSpace,
    settings: MeasureSettings,
    how: MeasuredWith,
    journal: Path,
    fresh: bool,
    progress: Progress,
) -> Mapping[str, Cost]:
    """One cost in one setting, calibrated and verified on whole networks."""
    from binas.costs.measure import Measuring, describe_measured, measure_space

    measuring = Measuring(how, settings.quantity, settings.plan, journal, not fresh, progress)
    done = measure_space(space, measuring, settings.samples, settings.seed, settings.quantity)
    for line in describe_measured(done):
        progress.say(line)
    return {done.cost.name: done.cost}


def write_costs(
    space: SearchSpace, settings: MeasureSettings, out: Path, progress: Progress, fresh: bool = False
) -> CostTable:
    """Measure, write the table, then drop the samples it was made of."""
    table = measure_costs(space, settings, out, progress, fresh)
    table.save(out)
    for journal in listed(out.parent, f"{out.name}{JOURNAL}*"):
        remove(journal)
    return table


def measure_on_device(
    space: SearchSpace, plan: Plan, progress: Progress
) -> Callable[[Cost, Architecture], Taken]:
    """A function that measures one cost of an architecture, built whole, as its table was measured.

    Where the control says that the device is slower than it was then, what was measured is brought to that speed.
    """
    from binas.costs.measure import measure_architecture, measuring_again
    from binas.costs.statistics import DRIFT

    def measure(cost: Cost, architecture: Architecture) -> Taken:
        how = replace(measuring_again(cost, plan), progress=progress)
        found = measure_architecture(space, architecture, how)
        return found.as_fast_as(cost.provenance.control, 1 + DRIFT, SLOWEST)

    return measure


def known_costs(settings: MeasureSettings, space: SearchSpace) -> dict[str, Cost]:
    """The costs a run will have, those that are measured with zeros."""
    counted = counted_costs(space)
    if settings.table is not None:
        return {**counted, **load_costs(settings.table, space).costs}
    if not settings.measures:
        return counted
    name = settings.quantity
    return {**counted, name: Cost(name, parse_unit(UNITS[name]), 0.0, Column.full(space, 0.0))}
