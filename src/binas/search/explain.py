"""Why an architecture looks as it does: per decision, what it brings, what it costs, and the best alternative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.estimators.objective import BilinearObjective
from binas.search.deadline import Deadline, TimeLimit
from binas.search.frontier import frontier
from binas.search.objective import objective_values
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import SearchResult, Status, costs_json, raw_json
from binas.search.solve import solve
from binas.search.terms import is_separable
from binas.search.variants import by_variant
from binas.space.architecture import Architecture
from binas.space.space import Stage
from binas.tables.entries import Column

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

AT_ONCE = 256  # architectures judged between looks at the clock: milliseconds


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another choice for one decision, all others unchanged: differences to the explained architecture."""

    choice: str
    accuracy: float
    costs: Mapping[str, float]
    feasible: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its contribution in points and its costs (each relative to the average choice for
    accuracy, absolute for costs), and the alternatives that would change the accuracy most.

    ``best`` is the alternative with the highest accuracy whatever it costs; ``best_within`` the best one
    that keeps the limits. Either may be worse than the choice made. ``complete``: all alternatives were looked at; else
    they are the best of those that were until time was up.
    """

    stage: str
    block: int | None
    choice: str
    contribution: float | None
    costs: Mapping[str, float]
    best: Alternative | None
    best_within: Alternative | None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class VariantStanding:
    """One variant compared with the one the explained architecture is in.

    ``costs`` and ``feasible`` are those of the explained architecture in this variant; ``best`` is the highest accuracy of
    any architecture within the limits in it (None: nothing keeps them), where not ``complete`` of those found until time
    was up. ``here``: best at these limits, alone or with others; None where that was not settled. ``somewhere``: best, or
    first of equals, at some limit on the cost ``traced``; None where no frontier can tell.
    """

    name: str
    chosen: bool
    costs: Mapping[str, float]
    feasible: bool
    best: float | None
    here: bool | None
    somewhere: bool | None
    traced: str
    complete: bool = True

    def sentence(self, limits: str) -> str:
        """Where this variant stands, for people."""
        least, none = (
            ("", "keeps nothing") if self.complete else ("at least ", "was not found to keep anything")
        )
        best = none if self.best is None else f"reaches {least}{self.best:.4f} %"
        never = self.somewhere is False and not self.here
        word = f"is dominated at every limit on {self.traced}" if never else self._here
        return f"{self.name} {best} within {limits}: it {word}."

    @property
    def _here(self) -> str:
        if self.chosen:
            return "is the one chosen"
        known = {True: "is as good", False: "is dominated", None: "may be better or not, for time was up"}
        return known[self.here]

    def to_json(self) -> dict[str, Any]:
        """The object under ``variants`` in ``binas explain --json``."""
        return {
            "name": self.name,
            "chosen": self.chosen,
            "costs": dict(self.costs),
            "feasible": self.feasible,
            "best": self.best,
            "complete": self.complete,
            "dominated_here": None if self.here is None else not self.here,
            "dominated_at_every_limit": None if self.somewhere is None else not self.somewhere,
            "traced": self.traced,
        }


@dataclass(frozen=True)
class Explanation:
    """All decisions of one architecture."""

    problem: SearchProblem
    evaluation: Evaluation
    decisions: tuple[Decision, ...]
    variants: tuple[VariantStanding, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all was looked at; else time was up, and decisions and variants say where."""
        known = [*(item.complete for item in self.decisions), *(item.complete for item in self.variants)]
        return all(known)

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas explain --json`` prints."""
        judged = self.evaluation
        data = {
            "architecture": str(judged.architecture),
            "accuracy": judged.accuracy,
            "accuracy_stderr": judged.accuracy_stderr,
            **raw_json(judged),
            "costs": costs_json(self.problem, judged),
            "feasible": judged.feasible,
            "complete": self.complete,
            "decisions": [_decision_json(item) for item in self.decisions],
        }
        if not self.problem.variants:
            return data
        return {**data, "variant": judged.variant, "variants": [item.to_json() for item in self.variants]}


def _decision_json(item: Decision) -> dict[str, Any]:
    return {
        "stage": item.stage,
        "kind": "depth" if item.block is None else "config",
        "block": item.block,
        "choice": item.choice,
        "contribution": item.contribution,
        "costs": dict(item.costs),
        "best_alternative": _alternative_json(item.best),
        "best_alternative_within_limits": _alternative_json(item.best_within),
        "complete": item.complete,
    }


def _alternative_json(item: Alternative | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "choice": item.choice,
        "accuracy": item.accuracy,
        "costs": dict(item.costs),
        "feasible": item.feasible,
    }


def explain(
    problem: SearchProblem, architecture: Architecture, *, time_limit: TimeLimit = None
) -> Explanation:
    """Explain every decision of an architecture under the problem's tables and limits.

    Where there are variants, its decisions are explained in the one that suits it best, which is compared with the others.
    After ``time_limit`` seconds alternatives and variants that were not looked at are left out, and said to be.
    """
    deadline = Deadline.after(time_limit)
    base = evaluate(problem, architecture)
    own = deadline.shared(2) if problem.variants else deadline
    changes, decisions = _Changes(problem.of_variant(base.variant), base, own), list[Decision]()
    for s in range(len(problem.space.stages)):
        decisions.append(changes.of_depth(s))
        decisions += [changes.of_config(s, b) for b in range(len(architecture.stages[s]))]
    return Explanation(problem, base, tuple(decisions), tuple(_standings(problem, base, deadline)))


def _standings(problem: SearchProblem, base: Evaluation, deadline: Deadline) -> Iterator[VariantStanding]:
    singles = by_variant(problem)
    if not singles:
        return
    parts = range(len(singles) + 1, 1, -1)  # the frontier of all gets a share of the time too
    best = {
        name: _best(single, deadline.shared(left))
        for left, (name, single) in zip(parts, singles.items(), strict=True)
    }
    highest = max((result.accuracy for result in best.values() if result.accuracy is not None), default=0.0)
    traced, whole = _traced_cost(problem), all(_ended(result) for result in best.values())
    winners = _winners(problem, traced, deadline)
    for name, single in singles.items():
        judged, value, ended = evaluate(single, base.architecture), best[name].accuracy, _ended(best[name])
        first = value is not None and value >= highest - 1e-9 * max(1.0, abs(highest))
        here = first if (whole if first else ended) else None
        somewhere, chosen = None if winners is None else name in winners, name == base.variant
        yield VariantStanding(
            name, chosen, judged.costs, judged.feasible, value, here, somewhere, traced, ended
        )


def _best(problem: SearchProblem, deadline: Deadline) -> SearchResult:
    """The highest accuracy within the limits."""
    return solve(problem, "auto" if is_separable(problem) else "evolution", time_limit=deadline)


def _ended(result: SearchResult) -> bool:
    """Whether a search ended before time was up."""
    return result.status not in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)


def _traced_cost(problem: SearchProblem) -> str:
    """The first limited cost that differs between variants, or the first that differs."""
    differing = list(dict.fromkeys(name for own in problem.variants.values() for name in own))
    limited = [limit.cost for limit in problem.limits if limit.cost in differing]
    return (limited or differing)[0]


def _winners(problem: SearchProblem, cost: str, deadline: Deadline) -> set[str | None] | None:
    """The variants that are best at some limit on ``cost``, the other limits unchanged; None where that is not known."""
    if not is_separable(problem) or deadline.late:
        return None
    others = [limit for limit in problem.limits if limit.cost != cost]
    curve = frontier(problem.with_limits(others), cost, time_limit=deadline)
    return None if curve.stopped else {point.variant for point in curve}


@dataclass(frozen=True, slots=True)
class _Change:
    """Other config indices of the active blocks of one stage, and what to call them."""

    choice: str
    configs: tuple[int, ...]


class _Changes:
    """Architectures that differ from an explained one in one stage, many judged at once, while there is time."""

    def __init__(self, problem: SearchProblem, base: Evaluation, deadline: Deadline):
        self.problem, self.space, self.deadline = problem, problem.space, deadline
        self.at_once = 1 if problem.objective.kind == "callable" else AT_ONCE
        self.depths, self.configs = problem.space.to_indices([base.architecture])
        self.accuracy, self.costs = self._numbers(self.depths, self.configs)

    def of_depth(self, s: int) -> Decision:
        """What the depth of a stage brings and costs, and other depths."""
        stage, configs = self.space.stages[s], self._active(s)
        place = stage.depths.index(len(configs))
        changes = _other_depths(self.problem, s, configs)
        return self._decision(s, None, str(len(configs)), lambda column: column.depths[s][place], changes)

    def of_config(self, s: int, b: int) -> Decision:
        """What a config brings and costs, and the others of its block."""
        names, configs = [config.name for config in self.space.stages[s].blocks[b]], self._active(s)
        c = configs[b]
        others = [i for i in range(len(names)) if i != c]
        changes = (_Change(names[i], (*configs[:b], i, *configs[b + 1 :])) for i in others)
        return self._decision(s, b + 1, names[c], lambda column: column.configs[s][b][c], changes)

    def _active(self, s: int) -> tuple[int, ...]:
        """The configs of a stage's active blocks."""
        return tuple(self.configs[0, s, : self.depths[0, s]].tolist())

    def _decision(
        self,
        s: int,
        block: int | None,
        choice: str,
        entry: Callable[[Column], float],
        changes: Iterator[_Change],
    ) -> Decision:
        problem, values = self.problem, _values(self.problem)
        contribution = None if values is None else _points(problem, float(entry(values)))
        costs = {name: float(entry(cost.values)) for name, cost in problem.costs.items()}
        options, complete = self._alternatives(s, changes)
        best = _best_two(options)
        return Decision(self.space.stages[s].name, block, choice, contribution, costs, *best, complete)

    def _alternatives(self, s: int, changes: Iterator[_Change]) -> tuple[list[Alternative], bool]:
        """The changes judged, and whether that was all of them."""
        found = list[Alternative]()
        while some := list(islice(changes, self.at_once)):
            if self.deadline.late:
                return found, False
            found += self._judged(s, some)
        return found, True

    def _judged(self, s: int, changes: list[_Change]) -> Iterator[Alternative]:
        """Changes of one stage as alternatives."""
        depths, configs = (np.repeat(own, len(changes), axis=0) for own in (self.depths, self.configs))
        configs[:, s] = -1
        for row, change in enumerate(changes):
            depths[row, s] = len(change.configs)
            configs[row, s, : len(change.configs)] = change.configs
        accuracy, costs = self._numbers(depths, configs)
        more = {name: values - self.costs[name] for name, values in costs.items()}
        for row, change in enumerate(changes):
            kept = all(self.problem.keeps(x, float(costs[x.cost][row])) for x in self.problem.limits)
            dearer = {name: float(values[row]) for name, values in more.items()}
            yield Alternative(change.choice, float(accuracy[row] - self.accuracy[0]), dearer, kept)

    def _numbers(self, depths: Indices, configs: Indices) -> tuple[Array, dict[str, Array]]:
        """Accuracy in percent and costs of architectures."""
        problem, positions = self.problem, self.space.layout.positions(depths, configs)
        values = objective_values(problem.objective, self.space, depths, configs)
        costs = {name: cost.total(positions) for name, cost in problem.costs.items()}
        return problem.objective.percents(values), costs


def _other_depths(problem: SearchProblem, s: int, configs: tuple[int, ...]) -> Iterator[_Change]:
    """Other depths: blocks are cut off at the end, or added one by one with the config that brings most."""
    for depth in problem.space.stages[s].depths:
        if depth < len(configs):
            yield _Change(str(depth), configs[:depth])
        elif depth > len(configs):
            yield from _deeper(problem, s, configs, depth)


def _deeper(problem: SearchProblem, s: int, configs: tuple[int, ...], depth: int) -> Iterator[_Change]:
    """The stage at a larger depth: added blocks take the most accurate configs, the cheapest, or all the same one."""
    stage, blocks = problem.space.stages[s], range(len(configs), depth)
    shared = set.intersection(*(_names(stage, b) for b in blocks))
    added = {(name,) * len(blocks) for name in shared}
    for column in _columns(problem):
        best = [int(column.configs[s][b].argmax()) for b in blocks]
        added.add(tuple(stage.blocks[b][c].name for b, c in zip(blocks, best, strict=True)))
    for more in sorted(added):
        label = more[0] if len(set(more)) == 1 else "-".join(more)
        chosen = (problem.space.config_index(s, b, name) for b, name in zip(blocks, more, strict=True))
        yield _Change(f"{depth} (+{label})", (*configs, *chosen))


def _columns(problem: SearchProblem) -> list[Column]:
    """What makes a config attractive: its contribution, or a low cost."""
    values = _values(problem)
    cheap = [cost.values.map(np.negative) for cost in problem.costs.values()]
    return cheap if values is None else [values, *cheap]


def _values(problem: SearchProblem) -> Column | None:
    """What each choice adds on the scale of the link, where the objective is such a sum."""
    return problem.objective.values if isinstance(problem.objective, BilinearObjective) else None


def _points(problem: SearchProblem, value: float) -> float:
    """A contribution in points: what the choice alone adds to the average network."""
    objective = problem.objective
    if not isinstance(objective, BilinearObjective) or (objective.link == "identity" and not objective.shown):
        return value
    return objective.percent(objective.base + value) - objective.percent(objective.base)


def _names(stage: Stage, block: int) -> set[str]:
    return {config.name for config in stage.blocks[block]}


def _best_two(options: list[Alternative]) -> tuple[Alternative | None, Alternative | None]:
    best = max(options, key=lambda item: item.accuracy, default=None)
    within = max((item for item in options if item.feasible), key=lambda item: item.accuracy, default=None)
    return best, within
