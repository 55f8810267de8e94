"""Limits kept on the device, not only by the table.

The winner is built and measured. If the upper end of its confidence interval is above the limit, it is measured once
more, and the quicker of the two readings counts: what disturbs a measurement only ever slows it. A reading that is further
above the prediction than any network was when the table was verified says more about the machine than about the network:
it is taken a third time after a rest, once for an answer. If that breaks the limit as well, the device is slower than its
table says by the factor high / predicted; the limit is tightened by it and the exact search repeated, until the measured
value keeps the limit. A limit that no network keeps by the table is set to the cheapest network's cost: none is given up
before that one was built. Each step rules out at least the network it measured, so the loop ends. A single slow network
may have tightened the limit too far: a winner with more than ``ROOM`` left is followed by one search with the limit its own
factor allows, and the better network is the answer.

A machine that stays busy would be measured for as long as its readings swing, so its sessions are counted: after
``BUSY_SESSIONS`` of them beside other work nothing is measured twice, and no other network is built. With sessions of at
most t seconds (``search.seconds_per_network``) and c limits on measured costs an answer takes at most
(BUSY_SESSIONS + c - 1) t + REST seconds beside other work, c t more for the candidate that its images prefer, and the
time to build the networks. On a quiet machine sessions are short, and only the number of networks is limited.

Where nothing keeps the limit, and readings say that the machine was not as it was when the table was made (busy, or off
by more than the table's verified error), the answer is not confirmed rather than none: the best of the networks built that
would keep it if all were slowed by the least factor seen. Its readings are not ``kept``, and everybody who shows it says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from binas.base.errors import ProblemError
from binas.base.interval import Interval, Taken
from binas.base.settings import FileRecord
from binas.search.infeasible import explain_infeasible
from binas.search.limits import Limit
from binas.search.problem import Evaluation, SearchProblem
from binas.search.result import SearchResult, Status
from binas.space.architecture import Architecture
from binas.tables.conditions import NOISY
from binas.tables.costs import Cost

MOST_STEPS = 30
BUSY_SESSIONS = (
    6  # beside other work, for one answer: three of the first network, then one or two tighter limits
)
ROOM = 0.1  # share of the limit that may be left unused before it is widened again
STEP_BACK = 1e-6  # a tightened limit excludes the network that broke it, whatever the rounding

SLOWED = 3.0  # times what the table says that a machine's other work may explain
SWING = 0.03  # share by which a tightened limit is tightened further beside other work: the next reading may be slower again
MOST_SESSIONS = 3  # of one network, the last after a rest
REST = 5.0  # seconds after which a reading that no verified error explains is taken again

MeasureCost = Callable[[Cost, Architecture], Taken]  # measured again as its table was, in its unit


class Reading(FileRecord):
    """One network built and measured: ``asked`` is the limit wanted, ``limit`` the one searched with.

    The limit is ``kept`` where the upper end of the interval keeps it. Of ``sessions`` the quickest counts; in it the
    control was disturbed by that share, and numbers are divided by ``slower``, the control's time over that of the table's
    session. ``explained``: the table's verified errors are as large as this one, or it was not verified.
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
    disturbance: float = 0.0
    slower: float = 1.0
    sessions: int = 1
    explained: bool = True

    @property
    def busy(self) -> bool:
        """Whether the machine did something else meanwhile."""
        return self.disturbance > NOISY

    @property
    def in_doubt(self) -> bool:
        """Whether a broken limit may be the machine's fault: busy, slower than it was, or off by more than was verified."""
        return not self.kept and (_beside_work(self) or not self.explained)

    def remark(self) -> str:
        """What to know about this reading, for people; empty where there is nothing."""
        parts = [self._beside()] if self.busy else []
        if self.slower > 1.0:
            parts.append(
                f"The device was {self.slower - 1:.0%} slower than when the table of {self.cost} was made, by the control; "
                f"what was measured of {self.architecture} is brought to the table's speed."
            )
        return " ".join(parts)

    def _beside(self) -> str:
        kept = "; the limit was kept all the same" if self.kept else ""
        return (
            f"{self.architecture} was measured on a busy machine (a fixed piece of work took {self.disturbance:.0%} "
            f"longer a quarter of the time){kept}."
        )

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
        return self.result.architecture is not None and not self.unconfirmed

    @property
    def unconfirmed(self) -> list[Reading]:
        """The last readings of the answer, one for each cost, that break their limits."""
        return unconfirmed(str(self.result.architecture), self.result.variant, self.steps)

    def sentence(self) -> str:
        """Why there is no answer, or none that is confirmed, for people."""
        if self.result.architecture is not None:
            return " ".join(map(not_confirmed, self.unconfirmed))
        last = min((step for step in self.steps if not step.kept), key=lambda step: step.high / step.asked)
        count = len({step.architecture for step in self.steps})
        built = f"{count} was built" if count == 1 else f"{count} were built"
        asked, high, predicted = (
            f"{number:.5g} {last.unit}" for number in (last.asked, last.high, last.predicted)
        )
        end = "no other was tried" + (", because the machine stayed busy" if _is_over(self.steps) else "")
        if self.result.status is Status.INFEASIBLE:
            end = "the search then found none that could"
        return (
            f"no network keeps {last.cost} <= {asked} when measured: {built}, and {end}. The nearest takes up to "
            f"{high} where the table says {predicted}. Allow at least that much, or measure the table again on this "
            "device (binas measure)."
        )


def unconfirmed(architecture: str, variant: str | None, steps: Iterable[Reading]) -> list[Reading]:
    """The last readings of a network, one for each cost, that break their limits."""
    own = [item for item in steps if (item.architecture, item.variant) == (architecture, variant)]
    return [item for item in {item.cost: item for item in own}.values() if not item.kept]


def not_confirmed(reading: Reading) -> str:
    """That a network is an answer by its table only, for people."""
    asked, high, predicted = (
        f"{number:.5g} {reading.unit}" for number in (reading.asked, reading.high, reading.predicted)
    )
    why = "the machine was busy" if reading.busy else "the machine is not as it was when the table was made"
    return (
        f"{reading.cost} <= {asked} is not confirmed: {why}. By the table {reading.architecture} takes {predicted}, the "
        f"quickest of {reading.sessions} sessions up to {high}. Measure again on a quiet machine (`binas measure`, "
        "then `binas search`)."
    )


def keep_limits(
    problem: SearchProblem,
    measured: Iterable[str],
    measure: MeasureCost,
    search: Callable[[SearchProblem], SearchResult],
    most: int = MOST_STEPS,
    rest: Callable[[], object] = lambda: None,
) -> OnDevice:
    """Search, measure the winner, tighten and search again until the upper limits on ``measured`` costs are kept.

    ``measure`` is the device: it measures a cost of an architecture in the way the table of that cost was measured. At
    most ``most`` networks are built, fewer on a machine that stays busy (see ``BUSY_SESSIONS``); ``rest`` waits before a
    reading that nothing explains is taken again.
    """
    if most < 1:
        raise ProblemError(f"at least one network must be built, not {most}.")
    asked = _upper_limits(problem, list(measured))
    limits, tried, steps = dict(asked), list[Tried](), list[Reading]()
    for number in range(1, most + 1):
        result = search(_tighten(problem, limits))
        cheapest = _cheapest(result, asked, tried)
        if cheapest:
            limits |= cheapest
            result = search(_tighten(problem, limits))
        new = _measure_winner(result, asked, limits, measure, steps, rest)
        tried.append(Tried(result, new))
        steps += new
        broken = [step for step in new if not step.kept]
        last = number == most or _is_over(steps)
        if not broken or last:
            break
        limits |= {step.cost: _next_limit(step) for step in broken}
    wider = {step.cost: _wider_limit(step, steps) for step in new if _has_room(step)}
    if wider and not broken and not last:
        limits |= wider
        other = search(_tighten(problem, limits))
        if _better(other, result):
            new = _measure_winner(other, asked, limits, measure, steps, rest)
            steps += new
            result = other if all(step.kept for step in new) else result
    return _with_history(result, steps, tried)


@dataclass(frozen=True, eq=False)
class Tried:
    """A result and the readings of its network; none where there is no network."""

    result: SearchResult
    readings: list[Reading]

    def would_keep(self, slower: float) -> bool:
        """Whether every limit would be kept on a device that is that much quicker."""
        return bool(self.readings) and all(step.high <= slower * step.asked for step in self.readings)


def _cheapest(result: SearchResult, asked: dict[str, float], tried: list[Tried]) -> dict[str, float]:
    """Where tightened limits leave nothing: the one to the cheapest network that was not built yet; nothing where it was."""
    if result.status is not Status.INFEASIBLE or not tried:
        return {}
    broken = [step for item in tried for step in item.readings if not step.kept]
    for item in explain_infeasible(result.problem, known=True).relaxations:
        name, value = item.limit.cost, item.value * (1 + STEP_BACK)
        built = any(step.cost == name and step.predicted <= value for step in broken)
        if name in asked and not item.limit.lower and value <= asked[name] and not built:
            return {name: value}
    return {}


def first_kept(
    problem: SearchProblem,
    measured: Iterable[str],
    measure: MeasureCost,
    result: SearchResult,
    preferred: Iterable[Evaluation],
) -> SearchResult:
    """The result with the first of ``preferred`` networks that keeps the limits of ``problem`` when measured.

    ``result`` is one of :func:`keep_limits`: its own network was measured, and is taken where its turn comes. On a machine
    that stays busy it comes after the first.
    """
    asked, steps = _upper_limits(problem, list(measured)), _history(result)
    limits = asked | _upper_limits(result.problem, list(asked))
    for number, item in enumerate(preferred):
        if item.architecture == result.architecture or (number and _is_over(steps)):
            break
        other = replace(result, evaluation=item)
        new = _measure_winner(other, asked, limits, measure, steps)
        steps += new
        if all(step.kept for step in new):
            result = other
            break
    return _with_steps(result, steps)


def _history(result: SearchResult) -> list[Reading]:
    """What was measured for a result."""
    return [Reading.model_validate(step) for step in result.details.get("on_device", [])]


def _with_steps(result: SearchResult, steps: Iterable[Reading]) -> SearchResult:
    """The result with what was measured for it."""
    history = [step.model_dump(mode="json") for step in steps]
    return replace(result, details={**result.details, "on_device": history})


def _beside_work(session: Taken | Reading) -> bool:
    """Whether the machine did something else meanwhile, or was slower than when the table was made, by the control."""
    return session.disturbance > NOISY or session.slower > 1.0


def _is_over(steps: Iterable[Reading], taken: Iterable[Taken] = ()) -> bool:
    """Whether a busy machine was measured for long enough: the sessions of earlier networks, and of this one so far."""
    earlier = sum(step.sessions for step in steps if _beside_work(step))
    return earlier + sum(map(_beside_work, taken)) >= BUSY_SESSIONS


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
    result: SearchResult,
    asked: dict[str, float],
    limits: dict[str, float],
    measure: MeasureCost,
    earlier: Sequence[Reading],
    rest: Callable[[], object] | None = None,
) -> list[Reading]:
    """The winner built and measured, for each cost; nothing where there is none. ``earlier`` networks used up patience."""
    winner, steps = result.evaluation, list[Reading]()
    if winner is None:
        return steps
    for name in asked:
        cost = result.problem.of_variant(result.variant).costs[name]
        explained = winner.costs[name] * (1 + _verified_error(cost))
        session = partial(measure, cost, winner.architecture)
        taken = _sessions(session, asked[name], explained, [*earlier, *steps], rest)
        best = min(taken, key=lambda item: item.high)
        steps.append(
            Reading(
                architecture=str(winner.architecture),
                cost=name,
                unit=cost.unit.name,
                asked=asked[name],
                limit=limits[name],
                predicted=winner.costs[name],
                measured=best.value,
                low=best.low,
                high=best.high,
                kept=best.high <= asked[name],
                variant=result.variant,
                disturbance=best.disturbance,
                slower=best.slower,
                sessions=len(taken),
                explained=best.high <= explained,
            )
        )
    return steps


def _sessions(
    session: Callable[[], Taken],
    limit: float,
    explained: float,
    earlier: Sequence[Reading],
    rest: Callable[[], object] | None,
) -> list[Taken]:
    """One session; a second where it breaks the limit; a third after a ``rest`` where nothing explains what was found.

    There is one rest for an answer: a machine that is no quicker after it stays as it is. A busy machine that was measured
    for long enough gets one session only.
    """
    taken = [session()]
    if taken[0].high > limit and not _is_over(earlier, taken):
        taken.append(session())
    rested = any(step.sessions == MOST_SESSIONS for step in earlier)
    unexplained = min(item.high for item in taken) > max(limit, explained)
    if rest is not None and not rested and unexplained and not _is_over(earlier, taken):
        rest()
        taken.append(session())
    return taken


def _verified_error(cost: Cost) -> float:
    """The largest error, as a share, that the table had on networks held out; infinite where it was not verified."""
    known = cost.provenance.verification
    return math.inf if known is None else known.worst_percent / 100


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
    """The limit under which a network this much slower than predicted would be kept, with some room where readings swing."""
    room = SWING if _beside_work(step) else STEP_BACK
    return step.predicted * min(step.asked / step.high, 1.0) * (1.0 - room)


def _with_history(result: SearchResult, steps: list[Reading], tried: list[Tried]) -> OnDevice:
    """The result with its history; an architecture that breaks a limit is an answer only where readings are in doubt."""
    if result.architecture is None or unconfirmed(str(result.architecture), result.variant, steps):
        result = _in_doubt(tried) or _none(result)
    return OnDevice(_with_steps(result, steps), tuple(steps))


def _in_doubt(tried: list[Tried]) -> SearchResult | None:
    """The best network that would keep its limits were the machine as quick as it may be; None: no reading in doubt."""
    steps = [step for item in tried for step in item.readings]
    if not any(step.in_doubt for step in steps):
        return None
    slower = min(SLOWED, max(1.0, min(step.high / step.predicted for step in steps)))
    return next((item.result for item in tried if item.would_keep(slower * (1 + STEP_BACK))), None)


def _none(result: SearchResult) -> SearchResult:
    """The result without its architecture, which breaks a limit."""
    if result.architecture is None:
        return result
    return replace(result, status=Status.STOPPED_WITHOUT_ANSWER, evaluation=None, bound=None)
