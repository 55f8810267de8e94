"""``evolution``: evolutionary search with the paper's settings (section 3.5 and appendix), for any objective.

A generation draws children from the best architectures so far: half of them mutated copies of one parent,
half crossings of two. Candidates that break a limit rank behind all that keep them, by how far they
overstep, so a search that starts outside the limits walks towards them. A generation draws a fixed number
of candidates: unlike "draw until feasible", it ends on any limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.dual import Padded, Relaxed, best_for, cheapest, indices_of
from binas.search.objective import objective_values
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import ANYTHING, Capabilities, Options, Solver
from binas.search.terms import build_terms, limit_rows
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Evolution(Solver):
    """Evolutionary search (section 3.5); the defaults are those of the paper's appendix.

    ``population`` children a generation, ``parent_ratio`` of that many survive as parents, ``mutation_ratio``
    of the children are mutated (each decision redrawn with ``mutation_probability``) and the others crossed,
    for ``iterations`` generations. ``attempts`` times as many candidates are drawn as children are needed and
    new ones that keep the limits taken first. No architecture is judged twice, so parents are distinct; where
    few are left, they have children more often. Deterministic for a seed. Nothing is proven about the answer.
    """

    name = "evolution"
    capabilities = Capabilities(
        exact=False,
        objectives=ANYTHING,
        summary="evolutionary search with the paper's settings; any objective",
    )

    def __init__(
        self,
        population: int = 100,
        mutation_probability: float = 0.1,
        parent_ratio: float = 0.25,
        mutation_ratio: float = 0.5,
        iterations: int = 500,
        attempts: int = 3,
    ):
        ratios = (mutation_probability, parent_ratio, mutation_ratio)
        if (
            population < 1
            or iterations < 0
            or attempts < 1
            or not all(0.0 <= ratio <= 1.0 for ratio in ratios)
        ):
            raise ProblemError(
                "evolution needs population and attempts of at least 1, iterations of at least 0, and its "
                "probability and ratios between 0 and 1."
            )
        self.population, self.iterations, self.attempts = population, iterations, attempts
        self.mutation_probability, self.mutation_ratio = mutation_probability, mutation_ratio
        self.parents = max(1, round(parent_ratio * population))

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The best architecture met; never one that breaks a limit."""
        seeds = seed_genes(problem, options)
        if seeds is None:
            return Answer(Status.INFEASIBLE)
        judge, rng = Judge(problem), np.random.default_rng(options.seed)
        parents = self._first(judge, seeds, rng)
        generations = 0
        while generations < self.iterations and not options.deadline.late:
            parents = judge.ranked([parents, self._children(judge, parents.genes, rng)], self.parents)
            generations += 1
        details = {"generations": generations, "evaluations": judge.evaluations}
        return heuristic_answer(problem, parents, generations < self.iterations, details)

    def _first(self, judge: Judge, seeds: Genes, rng: np.random.Generator) -> Ranked:
        """Parents from random architectures and from mutated copies of the cheapest ones."""
        drawing = judge.drawing
        fresh = drawing.fresh(rng, self.attempts * self.population)
        near = drawing.mutated(rng, seeds.pick(rng, self.population), self.mutation_probability)
        parts = [(seeds, len(seeds)), (fresh, self.population), (near, self.population)]
        return judge.ranked([judge.nearest(parts)], self.parents)

    def _children(self, judge: Judge, parents: Genes, rng: np.random.Generator) -> Ranked:
        """Mutated and crossed children of random parents."""
        mutations = round(self.mutation_ratio * self.population)
        crossings, times = self.population - mutations, self.attempts
        mutated = judge.drawing.mutated(rng, parents.pick(rng, times * mutations), self.mutation_probability)
        pair = parents.pick(rng, times * crossings), parents.pick(rng, times * crossings)
        crossed = judge.drawing.crossed(rng, *pair)
        return judge.nearest([(mutated, mutations), (crossed, crossings)])


@dataclass(frozen=True, eq=False)
class Genes:
    """Architectures as index arrays: depths (n, S) and configs (n, S, D), also of blocks past the depth."""

    depths: Ints
    configs: Ints

    def __len__(self) -> int:
        return len(self.depths)

    def take(self, rows: Ints) -> Genes:
        """Some of the architectures."""
        return Genes(self.depths[rows], self.configs[rows])

    def pick(self, rng: np.random.Generator, count: int) -> Genes:
        """``count`` of the architectures at random, with repeats."""
        return self.take(rng.integers(0, len(self), count))

    @staticmethod
    def join(parts: list[Genes]) -> Genes:
        """One after the other."""
        return Genes(np.concatenate([p.depths for p in parts]), np.concatenate([p.configs for p in parts]))


@dataclass(frozen=True, eq=False)
class Drawing:
    """Random architectures of a space, many at once."""

    space: SearchSpace

    @cached_property
    def _depths(self) -> tuple[Ints, Ints]:
        """Allowed depths (S, P), padded, and how many each stage has (S,)."""
        counts = np.array([len(stage.depths) for stage in self.space.stages], dtype=np.int64)
        table = np.zeros((len(counts), counts.max(initial=1)), dtype=np.int64)
        for s, stage in enumerate(self.space.stages):
            table[s, : counts[s]] = stage.depths
        return table, counts

    @cached_property
    def _sizes(self) -> Ints:
        """Number of configs (S, D); 1 where a stage has no such block."""
        sizes = np.ones((len(self.space.stages), self.space.max_depth), dtype=np.int64)
        for s, stage in enumerate(self.space.stages):
            sizes[s, : len(stage.blocks)] = [len(block) for block in stage.blocks]
        return sizes

    def fresh(self, rng: np.random.Generator, count: int) -> Genes:
        """Every depth of a stage and every config of a block equally likely (section 3.2)."""
        table, counts = self._depths
        places = rng.integers(0, counts, size=(count, len(counts)))
        configs = rng.integers(0, self._sizes, size=(count, *self._sizes.shape))
        return Genes(table[np.arange(len(counts)), places], configs)

    def mutated(self, rng: np.random.Generator, genes: Genes, probability: float) -> Genes:
        """Every decision redrawn with the given probability."""
        new = self.fresh(rng, len(genes))
        depths = np.where(rng.random(new.depths.shape) < probability, new.depths, genes.depths)
        configs = np.where(rng.random(new.configs.shape) < probability, new.configs, genes.configs)
        return Genes(depths, configs)

    def crossed(self, rng: np.random.Generator, one: Genes, two: Genes) -> Genes:
        """Every decision from one of two parents, each equally likely."""
        depths = np.where(rng.random(one.depths.shape) < 0.5, one.depths, two.depths)
        return Genes(depths, np.where(rng.random(one.configs.shape) < 0.5, one.configs, two.configs))

    @cached_property
    def _multipliers(self) -> tuple[Ints, Ints]:
        """Odd random numbers for the depths and for the configs."""
        stages, blocks = len(self.space.stages), self.space.max_depth
        numbers = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, stages * (1 + blocks)) | 1
        return numbers[:stages], numbers[stages:]

    def keys(self, genes: Genes) -> Ints:
        """One 64-bit number per architecture; blocks past the depth do not count."""
        active = np.arange(self.space.max_depth) < genes.depths[:, :, None]
        stages, blocks = self._multipliers
        running = np.where(active, genes.configs, 0).reshape(len(genes), len(blocks))
        return np.asarray(genes.depths @ stages + running @ blocks)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Architectures with ``excess`` (0: all limits kept) and ``values`` (-inf where a limit is broken)."""

    genes: Genes
    excess: Array
    values: Array


@dataclass(eq=False)
class Judge:
    """Excess and objective of many architectures at once, each architecture only once."""

    problem: SearchProblem
    evaluations: int = 0
    seen: set[int] = field(default_factory=set)

    @cached_property
    def drawing(self) -> Drawing:
        """Draws from the problem's space."""
        return Drawing(self.problem.space)

    def excess(self, genes: Genes) -> Array:
        """sum over limits of max(0, sign * (cost - limit)) / (scale of the limit), a plain number."""
        total, positions = (
            np.zeros(len(genes)),
            self.problem.space.layout.positions(genes.depths, genes.configs),
        )
        for limit in self.problem.limits:
            cost = self.problem.costs[limit.cost]
            slack = self.problem.tolerance(limit)
            values = cost.total(positions)
            over = np.maximum(limit.sign * (values - limit.value) - slack, 0.0)
            total += over / max(abs(limit.value), self.problem.scales[limit.cost], 1e-300)
        return total

    def nearest(self, parts: list[tuple[Genes, int]]) -> Ranked:
        """Of each part so many new ones: those that keep the limits, then those that overstep least."""
        genes = Genes.join([part for part, _ in parts])
        keys = self.drawing.keys(genes)
        new = self._new(keys)
        genes, owner = genes.take(new), np.repeat(np.arange(len(parts)), [len(p) for p, _ in parts])[new]
        excess = self.excess(genes)
        chosen = np.concatenate([_least(excess, owner == i)[:count] for i, (_, count) in enumerate(parts)])
        self.seen.update(keys[new[chosen]].tolist())
        return self._valued(genes.take(chosen), excess[chosen])

    def _new(self, keys: Ints) -> Ints:
        """Rows of the first copies of architectures that have not been judged."""
        rows = {key: row for row, key in reversed(list(enumerate(keys.tolist())))}
        return np.array(sorted(row for key, row in rows.items() if key not in self.seen), dtype=np.int64)

    def _valued(self, genes: Genes, excess: Array) -> Ranked:
        values = np.full(len(genes), -np.inf)
        inside = np.flatnonzero(excess == 0.0)
        kept = genes.take(inside)
        values[inside] = objective_values(
            self.problem.objective, self.problem.space, kept.depths, kept.configs
        )
        self.evaluations += len(inside)
        return Ranked(genes, excess, values)

    @staticmethod
    def ranked(parts: list[Ranked], count: int) -> Ranked:
        """The best ``count`` architectures: least excess first, then largest value."""
        genes = Genes.join([part.genes for part in parts])
        excess = np.concatenate([part.excess for part in parts])
        values = np.concatenate([part.values for part in parts])
        order = np.lexsort((-values, excess))[:count]
        return Ranked(genes.take(order), excess[order], values[order])


def _least(excess: Array, mask: NDArray[np.bool_]) -> Ints:
    """Rows within the mask by rising excess, in the order drawn on ties."""
    rows = np.flatnonzero(mask)
    return np.asarray(rows[np.argsort(excess[rows], kind="stable")])


def seed_genes(problem: SearchProblem, options: Options) -> Genes | None:
    """Where to start: the cheapest architecture of each limit and of all together, and the warm start.

    None if the cheapest architecture of some limit breaks it, which proves that nothing keeps the limits.
    """
    nothing = BilinearObjective(0.0, Column.full(problem.space, 0.0))
    padded = Padded(build_terms(replace(problem, objective=nothing), limit_rows(problem)))
    rows = range(padded.terms.rows)
    found = [cheapest(padded, row) for row in rows]
    if any(least.totals[1 + row] > padded.budget[row] for row, least in zip(rows, found, strict=True)):
        return None
    parts = [_genes(padded, relaxed) for relaxed in [*found, _cheapest_overall(problem, padded)]]
    if options.warm_start is not None:
        depths, configs = problem.space.to_indices([options.warm_start])
        parts.append(Genes(depths, np.maximum(configs, 0)))
    return Genes.join(parts)


def _genes(padded: Padded, relaxed: Relaxed) -> Genes:
    depths, configs = indices_of(padded, relaxed)
    return Genes(depths[None], np.maximum(configs, 0)[None])


def _cheapest_overall(problem: SearchProblem, padded: Padded) -> Relaxed:
    """Least sum of all limited costs, each in units of its scale."""
    weights = [1.0 / max(problem.scales[limit.cost], 1e-300) for limit in problem.limits]
    return best_for(padded, np.array(weights), value_weight=0.0)


def heuristic_answer(problem: SearchProblem, found: Ranked, stopped: bool, details: dict[str, int]) -> Answer:
    """The best of the ranked architectures that keeps every limit, judged once more from the tables."""
    best = _first_kept(problem, found)
    if best is None:
        return Answer(Status.STOPPED_WITHOUT_ANSWER, details=details)
    status = Status.STOPPED_WITH_ANSWER if stopped else Status.FEASIBLE
    return Answer(status, best.architecture, best.accuracy, None, details)


def _first_kept(problem: SearchProblem, found: Ranked) -> Evaluation | None:
    inside = found.genes.take(np.flatnonzero(found.excess == 0.0))
    for depths, configs in zip(inside.depths.tolist(), inside.configs.tolist(), strict=True):
        judged = evaluate(problem, problem.space.from_indices(depths, configs))
        if judged.feasible:
            return judged
    return None
