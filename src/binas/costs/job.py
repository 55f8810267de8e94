"""What is measured for the table of a space, and the table made of it. Pure: the device is an argument."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from binas.base.errors import SpaceError
from binas.costs.analytic import analytic_costs
from binas.costs.calibrate import MeasuredNetwork
from binas.costs.session import Measured
from binas.costs.statistics import estimate
from binas.costs.verify import check_formula
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Column, Provenance
from binas.tables.units import parse_unit

FIXED = "fixed part"
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is measured: unit of its table, how many of those one unit of the meter is, seconds of a sample."""

    unit: str
    factor: float
    sample_seconds: float


QUANTITIES = {
    "latency": Quantity("ms", 1e3, 1e-3),
    "energy": Quantity("mJ", 1e3, 0.2),  # energy counters step about every millisecond
}


@dataclass(frozen=True, eq=False)
class Job:
    """Distinct blocks, fixed part and whole networks of a space.

    ``places`` names the entry of every (stage, block, config). ``fit`` are the networks a calibration may see,
    ``held_out`` those that only verify it.
    """

    space: SearchSpace
    places: Mapping[Place, str]
    fit: tuple[Architecture, ...] = ()
    held_out: tuple[Architecture, ...] = ()

    @property
    def entries(self) -> list[str]:
        """Names of all entries, each once."""
        networks = [network_entry(a) for a in (*self.fit, *self.held_out)]
        return [*dict.fromkeys(self.places.values()), FIXED, *networks]


def network_entry(architecture: Architecture) -> str:
    """The entry of a whole network."""
    return f"network {architecture}"


def make_cost(
    job: Job,
    measured: Measured,
    quantity: Quantity,
    name: str,
    provenance: Provenance,
    given: Cost | None = None,
) -> Cost:
    """The table of isolated blocks; with networks, the best that can be made of it, verified.

    ``given`` is a table that is kept if it does as well.
    """
    isolated = _isolated_cost(job, measured, quantity, name, provenance)
    if not job.held_out:
        return isolated
    fit = [_network(a, measured, quantity.factor) for a in job.fit]
    held_out = [_network(a, measured, quantity.factor) for a in job.held_out]
    return check_formula(job.space, isolated, fit, held_out, _macs(job.space), given)


def _isolated_cost(
    job: Job, measured: Measured, quantity: Quantity, name: str, provenance: Provenance
) -> Cost:
    known = {entry: estimate.scaled(quantity.factor) for entry, estimate in measured.estimates.items()}
    values = Column.build(job.space, lambda s, i: 0.0, lambda s, b, c: known[job.places[s, b, c]].value)
    stderr = Column.build(job.space, lambda s, i: math.nan, lambda s, b, c: known[job.places[s, b, c]].stderr)
    fixed = known[FIXED]
    return Cost(name, parse_unit(quantity.unit), fixed.value, values, fixed.stderr, stderr, provenance)


def _network(architecture: Architecture, measured: Measured, factor: float) -> MeasuredNetwork:
    entry = network_entry(architecture)
    cost, samples = measured.estimates[entry].scaled(factor), measured.samples[entry]
    first, second = (
        factor * estimate(half or samples, measured.quantile).value for half in (samples[::2], samples[1::2])
    )
    return MeasuredNetwork(architecture, cost, (first, second))


def _macs(space: SearchSpace) -> Cost | None:
    """Multiply-accumulates where they are known."""
    try:
        return analytic_costs(space)["macs"]
    except SpaceError:
        return None
