"""Why an architecture looks as it does: per decision, what it brings, what it costs, and the best alternative."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from binas.estimators.objective import BilinearObjective
from binas.search.deadline import Deadline, TimeLimit
from binas.search.frontier import frontier
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import costs_json, raw_json
from binas.search.solve import solve
from binas.search.terms import is_separable
from binas.search.variants import by_variant
from binas.space.architecture import Architecture
from binas.space.space import Stage
from binas.tables.entries import Column


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
    that keeps the limits. Either may be worse than the choice made.
    """

    stage: str
    block: int | None
    choice: str
    contribution: float | None
    costs: Mapping[str, float]
    best: Alternative | None
    best_within: Alternative | None


@dataclass(frozen=True, slots=True)
class VariantStanding:
    """One variant compared with the one the explained architecture is in.

    ``costs`` and ``feasible`` are those of the explained architecture in this variant; ``best`` is the highest accuracy of
    any architecture within the limits in it (None: nothing keeps them). ``here``: best at these limits, alone or with
    others; ``somewhere``: best, or first of equals, at some limit on the cost ``traced``; None where no frontier can tell.
    """

    name: str
    chosen: bool
    costs: Mapping[str, float]
    feasible: bool
    best: float | None
    here: bool
    somewhere: bool | None
    traced: str

    def sentence(self, limits: str) -> str:
        """Where this variant stands, for people."""
        best = "keeps nothing" if self.best is None else f"reaches {self.best:.4f} %"
        here = "is the one chosen" if self.chosen else "is as good" if self.here else "is dominated"
        never = self.somewhere is False and not self.here
        word = f"is dominated at every limit on {self.traced}" if never else here
        return f"{self.name} {best} within {limits}: it {word}."

    def to_json(self) -> dict[str, Any]:
        """The object under ``variants`` in ``binas explain --json``."""
        return {
            "name": self.name,
            "chosen": self.chosen,
            "costs": dict(self.costs),
            "feasible": self.feasible,
            "best": self.best,
            "dominated_here": not self.here,
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

    Where there are variants, its decisions are explained in the one that suits it best, which is compared with the others:
    for at most ``time_limit`` seconds, by what was found until then.
    """
    base = evaluate(problem, architecture)
    single, decisions = problem.of_variant(base.variant), list[Decision]()
    for s, stage in enumerate(problem.space.stages):
        decisions.append(_depth_decision(single, base, s, stage))
        for b in range(len(architecture.stages[s])):
            decisions.append(_config_decision(single, base, s, b))
    return Explanation(
        problem, base, tuple(decisions), tuple(_standings(problem, base, Deadline.after(time_limit)))
    )


def _standings(problem: SearchProblem, base: Evaluation, deadline: Deadline) -> Iterator[VariantStanding]:
    singles = by_variant(problem)
    if not singles:
        return
    parts = range(len(singles) + 1, 1, -1)  # the frontier of all gets a share of the time too
    best = {
        name: _best_accuracy(single, deadline.shared(left))
        for left, (name, single) in zip(parts, singles.items(), strict=True)
    }
    highest = max((value for value in best.values() if value is not None), default=0.0)
    traced = _traced_cost(problem)
    winners = _winners(problem, traced, deadline)
    for name, single in singles.items():
        judged = evaluate(single, base.architecture)
        value = best[name]
        here = value is not None and value >= highest - 1e-9 * max(1.0, abs(highest))
        somewhere = None if winners is None else name in winners
        chosen = name == base.variant
        yield VariantStanding(name, chosen, judged.costs, judged.feasible, value, here, somewhere, traced)


def _best_accuracy(problem: SearchProblem, deadline: Deadline) -> float | None:
    """The highest accuracy within the limits."""
    solver = "auto" if is_separable(problem) else "evolution"
    return solve(problem, solver, time_limit=deadline).accuracy


def _traced_cost(problem: SearchProblem) -> str:
    """The first limited cost that differs between variants, or the first that differs."""
    differing = list(dict.fromkeys(name for own in problem.variants.values() for name in own))
    limited = [limit.cost for limit in problem.limits if limit.cost in differing]
    return (limited or differing)[0]


def _winners(problem: SearchProblem, cost: str, deadline: Deadline) -> set[str | None] | None:
    """The variants that are best at some limit on ``cost``, the other limits unchanged; None where that is not known."""
    if not is_separable(problem):
        return None
    others = [limit for limit in problem.limits if limit.cost != cost]
    curve = frontier(problem.with_limits(others), cost, time_limit=deadline)
    return None if curve.stopped else {point.variant for point in curve}


def _depth_decision(problem: SearchProblem, base: Evaluation, s: int, stage: Stage) -> Decision:
    names = base.architecture.stages[s]
    index = stage.depths.index(len(names))
    values = _values(problem)
    contribution = None if values is None else _points(problem, float(values.depths[s][index]))
    costs = {name: float(cost.values.depths[s][index]) for name, cost in problem.costs.items()}
    options = list(_other_depths(problem, base, s, stage))
    return Decision(stage.name, None, str(len(names)), contribution, costs, *_best_two(options))


def _config_decision(problem: SearchProblem, base: Evaluation, s: int, b: int) -> Decision:
    stage, names = problem.space.stages[s], base.architecture.stages[s]
    c = problem.space.config_index(s, b, names[b])
    values = _values(problem)
    contribution = None if values is None else _points(problem, float(values.configs[s][b][c]))
    costs = {name: float(cost.values.configs[s][b][c]) for name, cost in problem.costs.items()}
    others = [config.name for config in stage.blocks[b] if config.name != names[b]]
    options = [_alternative(problem, base, s, (*names[:b], name, *names[b + 1 :]), name) for name in others]
    return Decision(stage.name, b + 1, names[b], contribution, costs, *_best_two(options))


def _other_depths(problem: SearchProblem, base: Evaluation, s: int, stage: Stage) -> Iterator[Alternative]:
    """Other depths: blocks are cut off at the end, or added one by one with the config that brings most."""
    names = base.architecture.stages[s]
    for depth in stage.depths:
        if depth < len(names):
            yield _alternative(problem, base, s, names[:depth], str(depth))
        elif depth > len(names):
            yield from _deeper(problem, base, s, depth)


def _deeper(problem: SearchProblem, base: Evaluation, s: int, depth: int) -> Iterator[Alternative]:
    """The stage at a larger depth: added blocks take the most accurate configs, the cheapest, or all the same one."""
    names, stage = base.architecture.stages[s], problem.space.stages[s]
    blocks = range(len(names), depth)
    shared = set.intersection(*(_names(stage, b) for b in blocks))
    added = {(name,) * len(blocks) for name in shared}
    for column in _columns(problem):
        best = [int(column.configs[s][b].argmax()) for b in blocks]
        added.add(tuple(stage.blocks[b][c].name for b, c in zip(blocks, best, strict=True)))
    for more in sorted(added):
        label = more[0] if len(set(more)) == 1 else "-".join(more)
        yield _alternative(problem, base, s, names + more, f"{depth} (+{label})")


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


def _alternative(
    problem: SearchProblem, base: Evaluation, s: int, names: tuple[str, ...], label: str
) -> Alternative:
    stages = list(base.architecture.stages)
    stages[s] = names
    other = evaluate(problem, Architecture(tuple(stages)))
    costs = {name: other.costs[name] - base.costs[name] for name in base.costs}
    return Alternative(label, other.accuracy - base.accuracy, costs, other.feasible)


def _best_two(options: list[Alternative]) -> tuple[Alternative | None, Alternative | None]:
    best = max(options, key=lambda item: item.accuracy, default=None)
    within = max((item for item in options if item.feasible), key=lambda item: item.accuracy, default=None)
    return best, within
