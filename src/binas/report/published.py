"""Published networks compared with ours, measured on the same machine in the same session (the paper's main table).

Machines differ, so what counts are ratios to one of the networks. How to measure is an argument: a function that
takes all networks at once, so that a session can let them take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from binas.base.errors import ProblemError
from binas.base.interval import Interval
from binas.base.progress import Progress
from binas.costs.measure import Measuring
from binas.costs.published.build import Counts, Shape, build, count
from binas.costs.published.settings import PublishedSettings
from binas.costs.session import CONTROL, Plan
from binas.costs.settings import Settings
from binas.costs.workloads import Workload, control_workload
from binas.search.frontier import Frontier, FrontierPoint, frontier
from binas.search.problem import SearchProblem
from binas.space.described import CHANNELS, RESOLUTION
from binas.space.published import PublishedNetwork, published_networks
from binas.space.space import SearchSpace
from binas.supernet import StaticNetwork
from binas.tables.conditions import check_conditions
from binas.tables.units import convert, parse_unit

REFERENCE = "MobileNetV3-Large"


Builder = Callable[[], tuple[nn.Module, Shape]]
Measure = Callable[[Mapping[str, Builder]], Mapping[str, Interval]]


@dataclass(frozen=True, slots=True)
class Row:
    """One network: measured latency in ms, ratio to the reference, counts, accuracy in percent.

    ``published_ratio`` is the ratio of published latencies, where both are known. Of our own networks ``compared_with``
    names the published ones that are as fast, and ``top1`` is a prediction.
    """

    name: str
    latency: Interval
    ratio: float
    params: int
    macs: int
    top1: float
    published_ratio: float | None = None
    compared_with: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas published --json`` prints for one network."""
        return {
            "name": self.name,
            "ours": bool(self.compared_with),
            "latency_ms": self.latency.value,
            "low_ms": self.latency.low,
            "high_ms": self.latency.high,
            "ratio": self.ratio,
            "published_ratio": self.published_ratio,
            "params": self.params,
            "macs": self.macs,
            "top1": self.top1,
            "compared_with": list(self.compared_with),
        }


def measure_published(
    settings: PublishedSettings, problem: SearchProblem | None, progress: Progress
) -> list[Row]:
    """Published networks by rising latency, and our best within the latency of each where ``problem`` has tables of ours."""
    curve = None if problem is None else frontier(problem, settings.cost)
    if curve is not None:
        about = curve.problem.costs[settings.cost].provenance
        conditions = {"threads": str(settings.threads), "batch": str(settings.batch)}
        check_conditions(settings.cost, about, conditions)
    setup = Settings(backend=settings.backend, threads=settings.threads, batch=settings.batch)
    measure = measure_networks(Measuring(setup, plan=Plan(budget=settings.seconds), progress=progress))
    rows = compare_published(measure, settings.networks, settings.reference)
    ours = [] if curve is None else compare_with_ours(curve, rows, measure, settings.reference)
    return [*rows, *ours]


def measure_networks(how: Measuring) -> Measure:
    """A function that measures many networks in one session, taking turns."""

    def measure(builders: Mapping[str, Builder]) -> dict[str, Interval]:
        def workload(entry: str) -> Workload:
            return control_workload() if entry == CONTROL else _workload(builders[entry])

        estimates = how.run(list(builders), workload).estimates
        return {name: estimates[name].scaled(how.kind.factor) for name in builders}

    return measure


def _workload(build: Builder) -> Workload:
    module, shape = build()
    return Workload(module, (shape,))


def chosen_networks(names: Sequence[str] | None, reference: str = REFERENCE) -> dict[str, PublishedNetwork]:
    """The published networks called ``names`` (all without any), and the reference."""
    known = published_networks()
    wanted = dict.fromkeys([*(names or known), reference])
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ProblemError(
            f"there is no published network {unknown[0][:60]!r}; known are {', '.join(known)}."
        )
    return {name: known[name] for name in known if name in wanted}


def compare_published(
    measure: Measure, names: Sequence[str] | None = None, reference: str = REFERENCE
) -> list[Row]:
    """Published networks by rising latency, all measured in one session."""
    networks = chosen_networks(names, reference)
    shape = (CHANNELS, RESOLUTION, RESOLUTION)
    found = measure({name: partial(_published, network, shape) for name, network in networks.items()})
    base, paper = found[reference].value, networks[reference].xeon_ms
    rows = []
    for name, network in networks.items():
        counts = count(build(network), shape)
        ratio = network.xeon_ms / paper if network.xeon_ms and paper else None
        rows.append(_row(name, found[name], base, counts, network.top1, ratio))
    return sorted(rows, key=lambda row: row.latency.value)


def _published(network: PublishedNetwork, shape: Shape) -> tuple[nn.Module, Shape]:
    return build(network), shape


def _row(
    name: str,
    latency: Interval,
    base: float,
    counts: Counts,
    top1: float,
    published_ratio: float | None = None,
    compared_with: tuple[str, ...] = (),
) -> Row:
    return Row(
        name, latency, latency.value / base, counts.params, counts.macs, top1, published_ratio, compared_with
    )


def compare_with_ours(
    frontier: Frontier, rows: Sequence[Row], measure: Measure, reference: str = REFERENCE
) -> list[Row]:
    """Our most accurate architectures within the latency of each published network, measured with the reference.

    ``frontier`` is traced over a latency table; its limits are the measured latencies of ``rows``. One session
    measures them and the reference once more, whose latency there their ratios are to.
    """
    space = frontier.problem.space
    shape = _image(space)
    points = _points(frontier, rows)
    builders: dict[str, Builder] = {
        name: partial(_ours, space, point, shape) for name, (point, _) in points.items()
    }
    known = published_networks()[reference]
    found = measure({reference: partial(_published, known, (CHANNELS, RESOLUTION, RESOLUTION)), **builders})
    made = []
    for name, (point, compared_with) in points.items():
        counts = count(builders[name]()[0], shape)
        made.append(
            _row(
                name, found[name], found[reference].value, counts, point.accuracy, None, tuple(compared_with)
            )
        )
    return sorted(made, key=lambda row: row.latency.value)


def _points(frontier: Frontier, rows: Sequence[Row]) -> dict[str, tuple[FrontierPoint, list[str]]]:
    """Frontier points by the string of their architecture, with the published networks that are as fast as each."""
    points: dict[str, tuple[FrontierPoint, list[str]]] = {}
    for row in rows:
        point = frontier.at(convert(row.latency.value, parse_unit("ms"), frontier.unit))
        if point is not None:
            points.setdefault(str(point.architecture), (point, []))[1].append(row.name)
    if not points:
        raise ProblemError(
            "every architecture of the space is slower than all published networks by its table."
        )
    return points


def _ours(space: SearchSpace, point: FrontierPoint, shape: Shape) -> tuple[nn.Module, Shape]:
    return StaticNetwork.from_architecture(space, point.architecture).eval(), shape


def _image(space: SearchSpace) -> Shape:
    if space.channels is None or space.resolution is None:
        raise ProblemError(
            f"the space {space.name!r} does not say channels and resolution, so nothing can be built."
        )
    return space.channels, space.resolution, space.resolution
