"""Hypothesis strategies for small random problems whose optimum brute force can find; a clock that counts its looks."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from binas.estimators.objective import BilinearObjective, QuadraticObjective, StagewiseObjective
from binas.search.deadline import Deadline
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.testing.brute_force import all_values, feasible_mask
from binas.testing.cases import VANISHING, make_cost, random_column, small_space


def sorted_values(problem: SearchProblem) -> NDArray[np.float64]:
    """The values of all architectures within the limits, falling."""
    _, values, costs = all_values(problem)
    return np.sort(values[feasible_mask(problem, costs)])[::-1]


SHAPES = st.lists(
    st.integers(1, 3)
    .flatmap(
        lambda blocks: st.tuples(
            st.sets(st.integers(0, blocks), min_size=1).map(sorted).filter(lambda d: d[-1] > 0),
            st.lists(st.integers(1, 3), min_size=blocks, max_size=blocks),
        )
    )
    .map(lambda pair: (tuple(pair[0]), tuple(pair[1][: pair[0][-1]]))),
    min_size=1,
    max_size=3,
)

BELOW_8 = (Limit("latency", 8.0),)


def quadratic_problem(seed, limits=BELOW_8):
    """Interactions everywhere (the matrix is not symmetric), depth zero allowed."""
    space, rng = small_space(VANISHING), np.random.default_rng(seed)
    size = space.alpha_size + space.beta_size
    objective = QuadraticObjective(70.0, rng.normal(size=size), rng.normal(size=(size, size)))
    costs = {"latency": make_cost(space, "latency", random_column(space, rng, 0.5, 5.0, depth=1.0))}
    return SearchProblem(space, objective, costs, tuple(limits))


@st.composite
def problems(draw, limits: int | None = None, lower: bool = True, stagewise: bool = False) -> SearchProblem:
    """A random problem: small whole numbers (many ties) or reals, some limits, some of them impossible."""
    space = small_space(draw(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole = draw(st.booleans())

    def column(low: float, high: float, depth: float):
        made = random_column(space, rng, low, high, depth)
        return made.map(np.rint) if whole else made

    names = ["latency", "energy", "params"]
    costs = {n: make_cost(space, n, column(0.0, 4.0, 0.0), 1.0, "1") for n in names}
    objective = BilinearObjective(10.0, column(-2.0, 3.0, 1.5))
    if stagewise:
        table = {}
        objective = StagewiseObjective.from_function(
            space,
            lambda s, i: table.setdefault(
                (s, i), float(np.rint(rng.normal() * 3) if whole else rng.normal())
            ),
            10.0,
        )
    count = draw(st.integers(0, 3)) if limits is None else limits
    chosen = []
    for k in range(count):
        name = names[k % 3] if draw(st.booleans()) else names[0]
        fraction = draw(st.floats(0.0, 1.0))
        value = 1.0 + fraction * sum(4.0 * len(stage.blocks) for stage in space.stages)
        chosen.append(
            Limit(
                name, float(np.rint(value)) if whole else value, lower=lower and draw(st.integers(0, 3)) == 0
            )
        )
    return SearchProblem(space, objective, costs, tuple(chosen))


class Ticks:
    """A clock that goes on by a millisecond whenever it is looked at, with a deadline after so many looks."""

    def __init__(self, number):
        self.count, self.number = 0, number
        self.deadline = Deadline.after(number / 1000, self)

    def __call__(self):
        self.count += 1
        return (self.count - 1) / 1000

    @property
    def passed(self):
        return self.count > self.number
