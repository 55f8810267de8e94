"""Networks that cost the same, chosen without the search, and how the one it chose compares with them.

Two kinds of rivals: random architectures whose cost lies just below the limit, and hand-scaled ones: one config and one
depth for the whole network, as people scale networks. Validation images choose the best of each kind; every accuracy that
is shown is of test images, which choose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from binas.base.settings import FileRecord
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.space.twins import distinct

NEAR = 0.05  # random rivals cost at most this share less than the limit
TRIES = 200  # drawn for each rival asked for, at most
CANDIDATES = 8  # hand-scaled networks tried, the most expensive ones that keep the limits

Difference = tuple[float, float]  # points ahead, and their standard error


def random_rivals(problem: SearchProblem, limit: Limit, count: int, seed: int = 0) -> list[Architecture]:
    """Different random networks that keep all limits and come within ``NEAR`` of this one; maybe fewer."""
    from binas.contributions.strata import architectures_between

    cost, most = problem.costs[limit.cost], limit.value
    drawn = architectures_between(problem.space, cost, (1 - NEAR) * most, most, seed)
    tried = islice(drawn, TRIES * count)  # other limits may leave none
    different = distinct(problem.space, tried, lambda item: item)
    return list(islice((item for item in different if evaluate(problem, item).feasible), count))


def hand_scaled_rivals(problem: SearchProblem, limit: Limit) -> list[Architecture]:
    """The most expensive hand-scaled architectures that keep all limits, the most expensive first."""
    able = [item for item in hand_scaled(problem.space) if evaluate(problem, item).feasible]
    return sorted(able, key=lambda item: -problem.cost(limit.cost, item))[:CANDIDATES]


def hand_scaled(space: SearchSpace) -> Iterator[Architecture]:
    """Every architecture with one config in all blocks and depths of the same rank in all stages."""
    blocks = [{config.name for config in configs} for stage in space.stages for configs in stage.blocks]
    shared = set.intersection(*blocks) if blocks else set()
    ranks = range(max(len(stage.depths) for stage in space.stages))
    for name in sorted(shared):
        for rank in ranks:
            depths = [stage.depths[min(rank, len(stage.depths) - 1)] for stage in space.stages]
            yield Architecture.of([name] * depth for depth in depths)


def difference(one: NDArray[Any], two: NDArray[Any]) -> Difference:
    """Mean of ``one`` - ``two``, what two networks got right of the same images, in points, and its standard error."""
    gaps = 100 * (one.astype(np.float64) - two)
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a network got right: percent of the validation images, which choose, and which of the test images."""

    validation: float
    correct: NDArray[np.bool_]

    @property
    def percents(self) -> Percents:
        """As it is kept."""
        return Percents(validation=self.validation, test=100 * float(self.correct.mean()))


Outcomes = Mapping[str, Outcome]  # by architecture


class Percents(FileRecord):
    """Accuracy on the validation images, which choose the best of several, and on the test images, which do not."""

    validation: float
    test: float


class Rival(FileRecord):
    """A network under a limit: its cost by the table, one-shot accuracy (the supernet's weights), and after tuning."""

    architecture: str
    cost: float
    one_shot: Percents
    tuned: Percents | None = None

    def with_tuned(self, outcomes: Outcomes) -> Rival:
        """The same with its accuracy after tuning, where it was tuned."""
        known = outcomes.get(self.architecture)
        return self.model_copy(update={"tuned": known and known.percents})


class Leads(FileRecord):
    """How far the found network is ahead of rivals: points with their standard error over the same test images.

    Of the mean of the first ``count`` random ones, of the ``best`` random one by validation accuracy, and of the
    hand-scaled one.
    """

    count: int = Field(ge=0)
    best: str | None
    over_random: Difference | None
    over_best: Difference | None
    over_hand_scaled: Difference | None

    @classmethod
    def of(
        cls, found: Rival, random: Sequence[Rival], hand: Rival | None, outcomes: Outcomes, count: int
    ) -> Leads:
        """The leads by what each network got right; ``outcomes`` may hold some of the random ones only."""
        own = outcomes[found.architecture].correct
        drawn = {item.architecture: outcomes.get(item.architecture) for item in random}
        known = {name: item for name, item in drawn.items() if item is not None}
        first = [outcomes[item.architecture].correct for item in random[:count]]
        best = max(known, key=lambda name: known[name].validation, default=None)
        return cls(
            count=len(first),
            best=best,
            over_random=difference(own, np.mean(first, axis=0)) if first else None,
            over_best=None if best is None else difference(own, known[best].correct),
            over_hand_scaled=None if hand is None else difference(own, outcomes[hand.architecture].correct),
        )


class Comparison(FileRecord):
    """The network found under a limit compared with rivals on the same test images, one-shot and after tuning."""

    question: str
    identity: str
    cost: str
    limit: float
    unit: str
    images: int
    found: Rival
    random: tuple[Rival, ...]
    hand_scaled: Rival | None
    one_shot: Leads
    tuned: Leads | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Comparison:
        names = {rival.architecture for rival in self.random}
        for leads in (self.one_shot, self.tuned):
            if leads is not None and (leads.best not in (None, *names) or leads.count > len(self.random)):
                raise ValueError("the leads are over random networks that are not listed")
        return self

    def to_tune(self, count: int) -> list[str]:
        """The found one, the first ``count`` random ones, the best random one so far, and the hand-scaled one."""
        hand = [] if self.hand_scaled is None else [self.hand_scaled]
        names = [rival.architecture for rival in (self.found, *self.random[:count], *hand)]
        return list(dict.fromkeys([*names, *([self.one_shot.best] if self.one_shot.best else [])]))

    def with_tuned(self, outcomes: Outcomes, count: int) -> Comparison:
        """The same with what those of :meth:`to_tune` got right after tuning; without any where none was tuned."""
        hand, random = self.hand_scaled, self.random
        leads = Leads.of(self.found, random, hand, outcomes, count) if outcomes else None
        return self.model_copy(
            update={
                "found": self.found.with_tuned(outcomes),
                "random": tuple(rival.with_tuned(outcomes) for rival in random),
                "hand_scaled": hand and hand.with_tuned(outcomes),
                "tuned": leads,
            }
        )

    @property
    def verdict(self) -> Verdict:
        """What is shown: accuracies after tuning where the networks were tuned, else one-shot."""
        leads = self.tuned or self.one_shot
        random = {rival.architecture: self._shown(rival) for rival in self.random}
        return Verdict(
            self.tuned is not None,
            self._shown(self.found) or 0.0,
            tuple(value for value in islice(random.values(), leads.count) if value is not None),
            random[leads.best] if leads.best else None,
            self._shown(self.hand_scaled),
            len(self.random),
            leads,
        )

    def _shown(self, rival: Rival | None) -> float | None:
        """The test accuracy of a network that is shown."""
        known = rival and (rival.one_shot if self.tuned is None else rival.tuned)
        return known.test if known else None


@dataclass(frozen=True)
class Verdict:
    """Test accuracies of the found network and its rivals, all made ready in the same way, in percent.

    ``random`` are those that ``leads`` hold the mean of; ``best_random`` was chosen among ``drawn``.
    """

    tuned: bool
    found: float
    random: tuple[float, ...]
    best_random: float | None
    hand_scaled: float | None
    drawn: int
    leads: Leads

    @property
    def beaten(self) -> int:
        """How many of the random rivals are less accurate."""
        return sum(accuracy < self.found for accuracy in self.random)

    @property
    def how(self) -> str:
        """How the networks were made ready."""
        return "after the same fine-tuning" if self.tuned else "one-shot"

    def sentence(self) -> str:
        """Who is ahead, in words, with the standard error over images; no more than the numbers support."""
        leads, count = self.leads, len(self.random)
        several = (
            f"the mean of {count} random networks under the same limit, better than {self.beaten} of them"
        )
        rivals = {
            "one random network under the same limit" if count == 1 else several: leads.over_random,
            f"the best of {self.drawn} random ones": leads.over_best,
            "the best hand-scaled one": leads.over_hand_scaled,
        }
        parts = [f"{_ahead(*lead)} {rival}" for rival, lead in rivals.items() if lead is not None]
        return f"{self.found:.2f} % {self.how} on test images; {'; '.join(parts) or 'no network to compare with'}"


def is_clear(lead: Difference | None) -> bool:
    """Whether a lead is above two of its standard errors."""
    return lead is not None and lead[0] > 2 * lead[1]


def _ahead(points: float, error: float) -> str:
    if abs(points) <= 2 * error:
        return f"no clear difference ({points:+.2f} ± {error:.2f} points) to"
    return f"{abs(points):.2f} ± {error:.2f} points {'above' if points > 0 else 'below'}"
