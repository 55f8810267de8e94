"""Small problems with known optima that every solver should survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from binas.estimators.objective import (
    BilinearObjective,
    DepthsObjective,
    QuadraticObjective,
    StagewiseObjective,
)
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.space.space import Config, SearchSpace, Stage
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import parse_unit
from binas.testing.brute_force import brute_force


@dataclass(frozen=True, eq=False)
class Case:
    """A named problem; ``optimum`` is found by brute force, None where nothing keeps the limits."""

    name: str
    problem: SearchProblem

    @cached_property
    def optimum(self) -> float | None:
        """Best objective within the limits."""
        return brute_force(self.problem)


def small_space(shape: Sequence[tuple[Sequence[int], Sequence[int]]]) -> SearchSpace:
    """A space from (depths, number of configs per block) of each stage."""
    stages = tuple(
        Stage(f"s{s}", tuple(depths), tuple(tuple(Config(f"c{c}") for c in range(n)) for n in sizes))
        for s, (depths, sizes) in enumerate(shape, 1)
    )
    return SearchSpace("small", stages)


PLAIN = (((1, 2), (3, 3)), ((1, 2, 3), (2, 3, 2)))
VANISHING = (((0, 1, 2), (3, 2)), ((0, 2), (2, 2)), ((1,), (3,)))


def random_column(
    space: SearchSpace, rng: np.random.Generator, low: float, high: float, depth: float = 0.0
) -> Column:
    """Numbers drawn uniformly; the depth part from [-depth, depth]."""
    return Column.build(
        space, lambda s, i: float(rng.uniform(-depth, depth)), lambda s, b, c: float(rng.uniform(low, high))
    )


def make_cost(space: SearchSpace, name: str, values: Column, fixed: float = 1.0, unit: str = "ms") -> Cost:
    """A cost without provenance."""
    return Cost(name, parse_unit(unit), fixed, values)


def _random(space: SearchSpace, seed: int, limits: Sequence[Limit], **ranges: float) -> SearchProblem:
    rng = np.random.default_rng(seed)
    low, high = ranges.get("low", 0.0), ranges.get("high", 2.0)
    objective = BilinearObjective(70.0, random_column(space, rng, low, high, depth=1.0))
    costs = {
        "latency": make_cost(space, "latency", random_column(space, rng, 0.5, 5.0)),
        "energy": make_cost(space, "energy", random_column(space, rng, 0.5, 5.0), unit="mJ"),
        "params": make_cost(space, "params", random_column(space, rng, 1.0, 9.0), 0.0, "params"),
    }
    return SearchProblem(space, objective, costs, tuple(limits))


def _integers(space: SearchSpace, seed: int, limits: Sequence[Limit]) -> SearchProblem:
    """Small whole numbers, so that many architectures tie in value and in cost."""
    rng = np.random.default_rng(seed)
    values = random_column(space, rng, -0.5, 2.5, depth=1.0).map(np.rint)
    cost = random_column(space, rng, -0.4, 3.4).map(lambda x: np.abs(np.rint(x)))
    return SearchProblem(
        space,
        BilinearObjective(0.0, values),
        {"latency": make_cost(space, "latency", cost, 0.0)},
        tuple(limits),
    )


def _constant(space: SearchSpace, value: float, cost: float, limits: Sequence[Limit]) -> SearchProblem:
    costs = {"latency": make_cost(space, "latency", Column.full(space, cost), 0.0)}
    return SearchProblem(space, BilinearObjective(1.0, Column.full(space, value)), costs, tuple(limits))


def _per_depth_costs(space: SearchSpace) -> SearchProblem:
    rng = np.random.default_rng(5)
    values = random_column(space, rng, 0.0, 2.0, depth=1.0)
    overhead = Column.build(space, lambda s, i: 1.5 - 0.8 * i, lambda s, b, c: float(rng.uniform(0.2, 3.0)))
    costs = {"latency": make_cost(space, "latency", overhead)}
    return SearchProblem(space, BilinearObjective(50.0, values), costs, (Limit("latency", 9.0),))


def _non_monotone(space: SearchSpace) -> SearchProblem:
    """The config with the largest contribution is also the cheapest in some blocks, as in real tables."""
    values = Column.build(space, lambda s, i: 0.1 * i, lambda s, b, c: (0.3, 0.1, 0.5)[c % 3])
    cost = Column.build(space, lambda s, i: 0.0, lambda s, b, c: (4.0, 2.0, 1.0)[(c + b) % 3])
    return SearchProblem(
        space,
        BilinearObjective(60.0, values),
        {"latency": make_cost(space, "latency", cost)},
        (Limit("latency", 8.0),),
    )


def _peak(space: SearchSpace, seed: int, *limits: Limit) -> SearchProblem:
    """A problem with a cost that is the largest of its parts: peak memory."""
    problem = _random(space, seed, [])
    values = random_column(space, np.random.default_rng(1000 + seed), 0.0, 10.0)
    memory = replace(make_cost(space, "memory", values, 2.0, "kB"), combine="max")
    return SearchProblem(space, problem.objective, {**problem.costs, "memory": memory}, limits)


def bilinear_cases() -> list[Case]:
    """Cases with a bilinear objective."""
    plain, vanishing, one = (
        small_space(PLAIN),
        small_space(VANISHING),
        small_space((((1,), (1,)), ((2,), (1, 1)))),
    )
    three = [Limit("latency", 11.0), Limit("energy", 12.0), Limit("params", 20.0)]
    both = [Limit("latency", 14.0), Limit("latency", 9.0, lower=True), Limit("energy", 8.0, lower=True)]
    return [
        Case("no limit", _random(plain, 0, [])),
        Case("one limit", _random(plain, 1, [Limit("latency", 10.0)])),
        Case("several limits", _random(plain, 2, three)),
        Case("lower and upper limits", _random(plain, 3, both)),
        Case("negative contributions", _random(plain, 4, [Limit("latency", 11.0)], low=-3.0, high=-1.0)),
        Case("depth zero", _random(vanishing, 5, [Limit("latency", 7.0)])),
        Case("depth zero, everything may vanish", _random(vanishing, 6, [Limit("latency", 4.5)])),
        Case("costs per depth", _per_depth_costs(plain)),
        Case("non-monotone costs", _non_monotone(plain)),
        Case("ties", _integers(plain, 7, [Limit("latency", 4.0)])),
        Case("all architectures tie", _constant(plain, 0.5, 1.0, [Limit("latency", 4.0)])),
        Case("zero costs", _constant(plain, 0.5, 0.0, [Limit("latency", 0.0)])),
        Case("limit met exactly", _constant(plain, 1.0, 1.0, [Limit("latency", 5.0)])),
        Case("one architecture", _random(one, 8, [Limit("latency", 100.0)])),
        Case("one architecture, over the limit", _random(one, 9, [Limit("latency", 1.0)])),
        Case("infeasible", _random(plain, 10, [Limit("latency", 1.5)])),
        Case(
            "infeasible only together",
            _random(plain, 11, [Limit("latency", 6.0), Limit("params", 20.0, lower=True)]),
        ),
        Case("limit on a maximum", _peak(plain, 12, Limit("memory", 7.0))),
        Case("limits on a maximum and a sum", _peak(plain, 13, Limit("latency", 9.0), Limit("memory", 8.0))),
        Case("a maximum that ends depths", _peak(vanishing, 14, Limit("memory", 4.0))),
        Case("a maximum that nothing keeps", _peak(plain, 15, Limit("memory", 1.0))),
        *[
            Case(f"random {seed}", _random(plain, 100 + seed, [Limit("latency", 5.0 + seed)]))
            for seed in range(8)
        ],
    ]


def stagewise_cases() -> list[Case]:
    """Cases whose objective has interactions inside a stage."""
    plain = small_space(PLAIN)
    base = _random(plain, 20, [Limit("latency", 10.0), Limit("params", 25.0)])
    rng = np.random.default_rng(21)
    noise = rng.normal(size=100_000)
    objective = StagewiseObjective.from_function(
        plain,
        lambda s, index: float(noise[sum((i + 1) * 7**k for k, i in enumerate((s, *index))) % 100_000]),
        70.0,
    )
    made = SearchProblem(plain, objective, base.costs, base.limits)
    return [Case("interactions in a stage", made), Case("interactions, no limit", made.with_limits(()))]


def quadratic_cases() -> list[Case]:
    """Cases in which every choice acts together with every other."""
    rng, cases = np.random.default_rng(40), list[Case]()
    for case in (*bilinear_cases()[:8], *bilinear_cases()[13:20]):
        problem, size = case.problem, case.problem.space.layout.size
        objective = QuadraticObjective(70.0, rng.normal(size=size), 0.5 * rng.normal(size=(size, size)))
        cases.append(Case(f"pairs, {case.name}", replace(problem, objective=objective)))
    return cases


def depths_cases() -> list[Case]:
    """Cases in which the depths of different stages depend on each other."""
    rng, cases = np.random.default_rng(30), list[Case]()
    inner = [*bilinear_cases()[:7], *stagewise_cases(), *bilinear_cases()[15:20]]
    for case in inner:
        problem, objective = case.problem, case.problem.objective
        assert isinstance(objective, BilinearObjective | StagewiseObjective)
        joint = rng.normal(size=[len(stage.depths) for stage in problem.space.stages])
        cases.append(
            Case(
                f"depths together, {case.name}", replace(problem, objective=DepthsObjective(objective, joint))
            )
        )
    return cases
