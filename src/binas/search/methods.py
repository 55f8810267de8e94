"""Search methods of others on the same supernet, space, costs and budget as ours, and what each of them found.

=================  ====================================================================================================
``hardcore``       HardCoRe-NAS: stochastic Frank-Wolfe on the supernet's loss, the limit kept (:mod:`.solvers.hardcore`)
``once-for-all``   an MLP fitted on random sub-networks that were measured, and evolution under the limit
``soft-penalty``   FBNet, TF-NAS, ProxylessNAS: gradient descent on the loss times a power of the cost, then argmax
``darts``          the same without a word about the cost
``random``         random sub-networks within the limit, measured; the best
=================  ====================================================================================================

The methods of gradients may break the limit, so what a method gives is an architecture and not a verified answer;
:class:`MethodRecord` says by how much each limit was overstepped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from binas.base.errors import ProblemError
from binas.base.settings import FileRecord
from binas.search.answers import LimitRecord
from binas.search.oracle import Oracle
from binas.search.penalised import descend
from binas.search.problem import SearchProblem, evaluate
from binas.search.rivals import random_rivals
from binas.search.solve import solve
from binas.space.architecture import Architecture
from binas.space.relaxed import Gradient
from binas.space.sampling import sample_many
from binas.tables.entries import Provenance
from binas.tables.samples import Sample, Samples

BATCH = 256  # images of one gradient
LEAST = 10  # sub-networks that a predictor is fitted on


@dataclass(frozen=True, eq=False)
class Contest:
    """What every method gets: the problem with its limits, the supernet, so many image evaluations, and a seed."""

    problem: SearchProblem
    oracle: Oracle
    budget: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.problem.variants or self.problem.limits_on_maxima:
            raise ProblemError(
                "methods are compared on one table, under limits on sums: relaxed networks have no variant and no maximum. "
                "Measure a table without variants, and limit another cost than a maximum."
            )

    @property
    def schedule(self) -> dict[str, Any]:
        """Steps and batch size of a method of gradients that spend the budget."""
        return schedule(self.budget, self.oracle.images)

    @property
    def networks(self) -> int:
        """How many sub-networks can be measured for the budget."""
        return self.budget // self.oracle.images_per_network


def schedule(budget: int, images: int) -> dict[str, Any]:
    """Steps and batch size that spend ``budget`` image evaluations, at least one step, where there are ``images``."""
    batch_size = min(BATCH, images)
    return {"steps": max(1, budget // batch_size), "batch_size": batch_size}


def _hardcore(contest: Contest) -> Architecture | None:
    found = solve(contest.problem, "hardcore", seed=contest.seed, oracle=contest.oracle, **contest.schedule)
    return found.architecture


def _soft_penalty(contest: Contest) -> Architecture | None:
    return descend(contest.problem, contest.oracle, **contest.schedule, seed=contest.seed)


def _darts(contest: Contest) -> Architecture | None:
    return descend(contest.problem, contest.oracle, **contest.schedule, seed=contest.seed, weight=0.0)


def _random(contest: Contest) -> Architecture | None:
    """The best of random ones that cost nearly what they may; of any cost where no upper limit says how much."""
    problem, count = contest.problem, contest.networks
    _need(count, 1, "random search")
    upper = next((limit for limit in problem.limits if not limit.lower), None)
    if upper is None:
        drawn = [x for x in _different(contest, count) if evaluate(problem, x).feasible]
    else:
        drawn = random_rivals(problem, upper, count, contest.seed)
    return drawn[int(np.argmax(contest.oracle.accuracies(drawn)))] if drawn else None


def _once_for_all(contest: Contest) -> Architecture | None:
    """An MLP of accuracies of random sub-networks, and evolution with the paper's settings under the limits."""
    from binas.estimators.predictors import make_predictor

    problem, drawn = contest.problem, _different(contest, contest.networks)
    _need(len(drawn), LEAST, "a predictor")
    found = contest.oracle.accuracies(drawn).tolist()
    rows = [Sample(item, accuracy) for item, accuracy in zip(drawn, found, strict=True)]
    samples = Samples(problem.space, tuple(rows), Provenance(source="measured"))
    fitted = make_predictor("mlp", seed=contest.seed).fit(samples)
    predicted = SearchProblem.build(fitted, problem.costs, problem.limits)
    return solve(predicted, "evolution", seed=contest.seed).architecture


def _different(contest: Contest, count: int) -> list[Architecture]:
    """``count`` random sub-networks, uniform over decisions, without repeats."""
    return list(dict.fromkeys(sample_many(contest.problem.space, count, contest.seed)))


def _need(count: int, least: int, what: str) -> None:
    if count < least:
        raise ProblemError(
            f"{what} needs {least} measured sub-networks, and the budget pays for {count}. Give a larger --budget."
        )


METHODS: dict[str, Callable[[Contest], Architecture | None]] = {
    "hardcore": _hardcore,
    "once-for-all": _once_for_all,
    "soft-penalty": _soft_penalty,
    "darts": _darts,
    "random": _random,
}
BY_GRADIENT = ("hardcore", "soft-penalty", "darts")


class LimitUse(LimitRecord):
    """A limit, what the architecture costs by the table, and by how much that oversteps it, in the limit's unit."""

    used: float
    violation: float

    @property
    def percent(self) -> float:
        """The violation in percent of the limit."""
        return 100 * self.violation / abs(self.value) if self.violation else 0.0


class MethodRecord(FileRecord):
    """What one method found under the limits of one question with one seed; without an architecture nothing else is known.

    ``accuracy`` is one-shot, in percent of ``images`` test images, which chose nothing in any method; ``error`` its standard
    error over them. ``gradient`` is what it followed, if it follows one. ``evaluations`` are images that went through a
    network to find it, ``gradients`` those of them that a loss was differentiated on too; ``shared``: they serve every other
    limit as well. ``seconds`` include all of that.
    """

    method: str
    question: str
    seed: int
    budget: int
    identity: str
    gradient: Gradient = "score"
    architecture: str | None
    limits: tuple[LimitUse, ...]
    accuracy: float | None
    error: float | None
    images: int
    evaluations: int
    gradients: int
    shared: bool
    seconds: float

    @property
    def name(self) -> str:
        """The method, with its gradient where that is straight-through."""
        return self.method if self.gradient == "score" else f"{self.method}, {self.gradient}"

    @property
    def violation(self) -> float:
        """The largest violation of a limit in percent of it; 0 where all are kept."""
        return max((use.percent for use in self.limits), default=0.0)

    @property
    def kept(self) -> bool:
        """Whether there is an architecture, and it keeps every limit."""
        return self.architecture is not None and self.violation == 0.0


def limit_uses(problem: SearchProblem, architecture: Architecture | None) -> tuple[LimitUse, ...]:
    """Every limit with what an architecture costs; an overstep within the tolerance is none."""
    if architecture is None:
        return ()
    judged = evaluate(problem, architecture)
    uses = []
    for limit in problem.limits:
        over = limit.sign * (judged.costs[limit.cost] - limit.value) if limit in judged.broken else 0.0
        known: dict[str, Any] = {"cost": limit.cost, "value": limit.value, "lower": limit.lower}
        unit, used = problem.costs[limit.cost].unit.name, judged.costs[limit.cost]
        uses.append(LimitUse(**known, unit=unit, used=used, violation=max(over, 0.0)))
    return tuple(uses)


@dataclass(frozen=True)
class MethodSummary:
    """One method under one question over its seeds: mean and standard deviation of accuracy (percent, points).

    Of the seeds that found an architecture; ``spread`` is None for a single one. ``violation`` is the largest.
    """

    method: str
    question: str
    seeds: int
    found: int
    kept: int
    accuracy: float | None
    spread: float | None
    violation: float
    evaluations: int
    gradients: int
    shared: bool
    seconds: float

    @classmethod
    def of(cls, records: Sequence[MethodRecord]) -> MethodSummary:
        """Of the records of one method and question."""
        reached = [item.accuracy for item in records if item.accuracy is not None]
        first = records[0]
        return cls(
            first.name,
            first.question,
            len(records),
            len(reached),
            sum(item.kept for item in records),
            float(np.mean(reached)) if reached else None,
            float(np.std(reached, ddof=1)) if len(reached) > 1 else None,
            max(item.violation for item in records),
            round(np.mean([item.evaluations for item in records])),
            round(np.mean([item.gradients for item in records])),
            first.shared,
            float(np.mean([item.seconds for item in records])),
        )


def summarise(records: Iterable[MethodRecord]) -> list[MethodSummary]:
    """Every method under every question, in the order in which they come."""
    groups: dict[tuple[str, str], list[MethodRecord]] = {}
    for item in records:
        groups.setdefault((item.question, item.name), []).append(item)
    return [MethodSummary.of(items) for items in groups.values()]
