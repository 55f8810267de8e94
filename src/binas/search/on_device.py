"""Limits kept on the device, not only by the table.

The winner is built and measured. If the upper end of its confidence interval is above the limit, it is measured once
more, and the quicker of the two readings counts: what disturbs a measurement only ever slows it. If that breaks the limit
as well, the device is slower than its table says by the factor high / predicted; the limit is tightened by it and the
exact search repeated, until the measured value keeps the limit. Each step rules out at least the network it measured, so
the loop ends. A single slow network may have tightened the limit too far: a winner with more than ``ROOM`` left is
followed by one search with the limit its own factor allows, and the better network is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from binas.base.errors import ProblemError
from binas.base.interval import Interval
from binas.base.settings import FileRecord
from binas.search.limits import Limit
from binas.search.problem import Evaluation, SearchProblem
from binas.search.result import SearchResult, Status
from binas.space.architecture import Architecture
from binas.tables.costs import Cost

MOST_STEPS = 30
ROOM = 0.1  # share of the limit that may be left unused before it is widened again
STEP_BACK = 1e-6  # a tightened limit excludes the network that broke it, whatever the rounding

MeasureCost = Callable[[Cost, Architecture], Interval]  # measured again as its table was, in its unit


class Reading(FileRecord):
    """One network built and measured: ``asked`` is the limit wanted, ``limit`` the one searched with.

    The limit is ``kept`` where the upper end of the interval keeps it.
    """

    architecture: str
    cost: str
    unit: str
    asked: float
    limit: float
    predicted: float
    measured: float
    low: float
    high: float
    kept: bool
    variant: str | None = None

    @property
    def interval(self) -> Interval:
        """What was measured, with its confidence interval."""
        return Interval(self.measured, self.low, self.high)


@dataclass(frozen=True, eq=False)
class OnDevice:
    """The last result of the loop and everything that was measured on the way."""

    result: SearchResult
    steps: tuple[Reading, ...]

    @property
    def kept(self) -> bool:
        """Whether there is an architecture that keeps every measured limit."""
        return self.result.architecture is not None

    def sentence(self) -> str:
        """Why there is no answer, for people."""
        last = min((step for step in self.steps if not step.kept), key=lambda step: step.high / step.asked)
        count = len({step.architecture for step in self.steps})
        built = f"{count} was built" if count == 1 else f"{count} were built"
        asked, high, predicted = (
            f"{number:.5g} {last.unit}" for number in (last.asked, last.high, last.predicted)
        )
        end = (
            "the search then found none that could"
            if self.result.status is Status.INFEASIBLE
            else "no other was tried"
        )
        return (
            f"no network keeps {last.cost} <= {asked} when measured: {built}, and {end}. The nearest takes up to "
            f"{high} where the table says {predicted}. Allow at least that much, or measure the table again on this "
            "device (binas measure)."
        )


def keep_limits(
    problem: SearchProblem,
    measured: Iterable[str],
    measure: MeasureCost,
    search: Callable[[SearchProblem], SearchResult],
    most: int = MOST_STEPS,
) -> OnDevice:
    """Search, measure the winner, tighten and search again until the upper limits on ``measured`` costs are kept.

    ``measure`` is the device: it measures a cost of an architecture in the way the table of that cost was measured. At
    most ``most`` networks are built.
    """
    if most < 1:
        raise ProblemError(f"at least one network must be built, not {most}.")
    asked = _upper_limits(problem, list(measured))
    limits, steps = dict(asked), list[Reading]()
    for number in range(1, most + 1):
        result = search(_tighten(problem, limits))
        new = _measure_winner(result, asked, limits, measure)
        steps += new
        broken = [step for step in new if not step.kept]
        if not broken or number == most:
            break
        limits |= {step.cost: _next_limit(step) for step in broken}
    wider = {step.cost: _wider_limit(step, steps) for step in new if _has_room(step)}
    if wider and not broken and number < most:
        limits |= wider
        other = search(_tighten(problem, limits))
        if _better(other, result):
            new = _measure_winner(other, asked, limits, measure)
            steps += new
            result = other if all(step.kept for step in new) else result
    return _with_history(result, steps)


def first_kept(
    problem: SearchProblem,
    measured: Iterable[str],
    measure: MeasureCost,
    result: SearchResult,
    preferred: Iterable[Evaluation],
) -> SearchResult:
    """The result with the first of ``preferred`` networks that keeps the limits of ``problem`` when measured.

    ``result`` is one of :func:`keep_limits`: its own network was measured, and is taken where its turn comes.
    """
    asked, steps = _upper_limits(problem, list(measured)), list(result.details.get("on_device", []))
    limits = asked | _upper_limits(result.problem, list(asked))
    for item in preferred:
        if item.architecture == result.architecture:
            break
        other = replace(result, evaluation=item)
        new = _measure_winner(other, asked, limits, measure)
        steps += [step.model_dump(mode="json") for step in new]
        if all(step.kept for step in new):
            result = other
            break
    return replace(result, details={**result.details, "on_device": steps})


def _has_room(step: Reading) -> bool:
    """Whether a network was searched for under a tightened limit and turned out far below the one wanted."""
    return step.limit < step.asked and step.high < (1 - ROOM) * step.asked


def _wider_limit(step: Reading, steps: list[Reading]) -> float:
    """The limit that this network's own factor allows, below every network that broke the limit."""
    broken = [other.predicted for other in steps if other.cost == step.cost and not other.kept]
    allowed = step.asked * step.predicted / step.high
    return max(step.limit, min([allowed, *((1 - STEP_BACK) * value for value in broken)]))


def _better(one: SearchResult, other: SearchResult) -> bool:
    """Whether a result's predicted accuracy is higher."""
    return one.accuracy is not None and other.accuracy is not None and one.accuracy > other.accuracy


def _measure_winner(
    result: SearchResult, asked: dict[str, float], limits: dict[str, float], measure: MeasureCost
) -> list[Reading]:
    """The winner built and measured, once for each cost; nothing where there is none."""
    winner, steps = result.evaluation, list[Reading]()
    if winner is None:
        return steps
    for name in asked:
        cost = result.problem.of_variant(result.variant).costs[name]
        reading = measure(cost, winner.architecture)
        if reading.high > asked[name]:
            reading = min(reading, measure(cost, winner.architecture), key=lambda item: item.high)
        steps.append(
            Reading(
                architecture=str(winner.architecture),
                cost=name,
                unit=cost.unit.name,
                asked=asked[name],
                limit=limits[name],
                predicted=winner.costs[name],
                measured=reading.value,
                low=reading.low,
                high=reading.high,
                kept=reading.high <= asked[name],
                variant=result.variant,
            )
        )
    return steps


def _upper_limits(problem: SearchProblem, names: list[str]) -> dict[str, float]:
    """The tightest upper limit on each measured cost."""
    upper: dict[str, float] = {}
    for limit in problem.limits:
        if limit.cost in names and not limit.lower:
            upper[limit.cost] = min(limit.value, upper.get(limit.cost, limit.value))
    if not upper:
        raise ProblemError(
            "there is no limit to keep on the device: give an upper limit on a cost whose table says how it was "
            f"measured here ({', '.join(names) or 'none does'}), e.g. --limit latency=45ms."
        )
    return upper


def _tighten(problem: SearchProblem, limits: dict[str, float]) -> SearchProblem:
    others = [limit for limit in problem.limits if limit.lower or limit.cost not in limits]
    return problem.with_limits([*others, *(Limit(name, value) for name, value in limits.items())])


def _next_limit(step: Reading) -> float:
    """The limit under which a network this much slower than predicted would be kept."""
    return step.predicted * min(step.asked / step.high, 1.0 - STEP_BACK)


def _with_history(result: SearchResult, steps: list[Reading]) -> OnDevice:
    """The result with its history; an architecture that breaks a limit is no answer."""
    history = {"on_device": [step.model_dump(mode="json") for step in steps]}
    answer = (str(result.architecture), result.variant)
    broken = any((step.architecture, step.variant) == answer and not step.kept for step in steps)
    if broken:
        result = replace(result, status=Status.STOPPED_WITHOUT_ANSWER, evaluation=None, bound=None)
    return OnDevice(replace(result, details={**result.details, **history}), tuple(steps))
