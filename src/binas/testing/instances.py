"""Made-up spaces and tables of any size, for tests and benchmarks."""

from __future__ import annotations

import numpy as np

from binas.estimators.objective import BilinearObjective
from binas.search.problem import SearchProblem
from binas.space.space import Config, SearchSpace, Stage, make_options
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import parse_unit


def make_space(stages: int, blocks: int, configs: int, min_depth: int | None = None) -> SearchSpace:
    """A space of equal stages; depths run from half of ``blocks`` (or ``min_depth``) to ``blocks``."""
    low = max(1, blocks // 2) if min_depth is None else min_depth
    block = tuple(Config(f"c{c}", make_options({"size": c})) for c in range(configs))
    made = tuple(Stage(f"s{s + 1}", tuple(range(low, blocks + 1)), (block,) * blocks) for s in range(stages))
    return SearchSpace(f"made-{stages}x{blocks}x{configs}", made)


def make_problem(space: SearchSpace, seed: int, extra_costs: int = 0) -> SearchProblem:
    """A problem with realistic tables: more costly configs tend to contribute more, with noise in both.

    Contributions have diminishing returns in cost and fade along a stage; costs are in ms.
    """
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 3.0, len(space.stages))
    gain = rng.uniform(0.05, 0.3, len(space.stages))
    size = [[np.sort(rng.uniform(0.3, 1.7, len(block))) for block in stage.blocks] for stage in space.stages]
    noise = [[rng.normal(0.0, 0.15, len(block)) for block in stage.blocks] for stage in space.stages]
    costs = {}
    for name in ["latency", *(f"cost{k}" for k in range(1, extra_costs + 1))]:
        wobble = [[rng.uniform(0.85, 1.15, len(block)) for block in stage.blocks] for stage in space.stages]
        scale = weight if name == "latency" else rng.uniform(0.5, 3.0, len(space.stages))
        values = Column.build(
            space,
            lambda s, i: 0.0,
            lambda s, b, c, w=wobble, k=scale: float(k[s] * size[s][b][c] * w[s][b][c]),  # type: ignore[misc]
        )
        costs[name] = Cost(name, parse_unit("ms"), 5.0, values)
    values = Column.build(
        space,
        lambda s, i: float(gain[s] * 3 * np.log1p(i)),
        lambda s, b, c: float(gain[s] * (np.sqrt(size[s][b][c]) - 1 + noise[s][b][c]) / (1 + 0.5 * b)),
    )
    return SearchProblem(space, BilinearObjective(70.0, values), costs)
