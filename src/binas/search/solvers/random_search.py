"""``random``: the baseline to beat: many random architectures, the best of those that keep the limits."""

from __future__ import annotations

import numpy as np

from binas.base.errors import ProblemError
from binas.search.problem import SearchProblem
from binas.search.result import Answer, Status
from binas.search.solvers._base import ANYTHING, Capabilities, Options, Solver
from binas.search.solvers.evolution import Judge, heuristic_answer, seed_genes

CHUNK = 10_000  # drawn at once
NUMBERS = 2**22  # that these are made of, at most
KEPT = 20  # in case the best ones break a limit by rounding


class RandomSearch(Solver):
    """``samples`` architectures drawn uniformly over decisions (section 3.2), the best feasible one returned.

    The cheapest architecture of each limit and the warm start are tried too, so that a problem with an
    answer is rarely reported without one. Deterministic for a seed. Nothing is proven about the answer.
    """

    name = "random"
    capabilities = Capabilities(
        exact=False,
        objectives=ANYTHING,
        summary="best of many random architectures; a baseline, any objective",
    )

    def __init__(self, samples: int = 10_000):
        if samples < 0:
            raise ProblemError(f"random needs a number of samples of at least 0, not {samples}.")
        self.samples = samples

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The best architecture drawn; never one that breaks a limit."""
        seeds = seed_genes(problem, options)
        if seeds is None:
            return Answer(Status.INFEASIBLE)
        judge, rng = Judge(problem), np.random.default_rng(options.seed)
        best, drawn = judge.nearest([(seeds, len(seeds))]), 0
        chunk = max(1, min(CHUNK, NUMBERS // len(problem.space.layout.slices)))
        while drawn < self.samples and not options.deadline.late:
            genes = judge.drawing.fresh(rng, min(chunk, self.samples - drawn))
            drawn += len(genes)
            best = judge.ranked([best, judge.nearest([(genes, len(genes))])], KEPT)
        return heuristic_answer(problem, best, drawn < self.samples, {"samples": drawn})
