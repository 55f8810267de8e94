"""Theorem 3.1: the estimator is right to first order in epsilon, on models that satisfy its assumptions.

The auxiliary theorem: choices X_i that are independent given the outcome A, each moving its probability by less than
a share epsilon. Then the relative error of E[A] + sum_i (E[A | X_i] - E[A]) is O(n epsilon).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from made import samples_of, space_of

from binas.estimators import BilinearEstimator
from binas.space import Architecture, SearchSpace, enumerate_all
from binas.tables import Column, Contributions

EPSILONS = [0.02, 0.01, 0.005, 0.0025]


def centred(rng: np.random.Generator, size: int) -> np.ndarray:
    """Effects of the choices of one decision, in [-1, 1], of mean zero under the uniform choice."""
    effects = rng.uniform(-1.0, 1.0, size)
    effects -= effects.mean()
    return np.asarray(effects / max(1.0, np.abs(effects).max()))


def falls_by(errors: Sequence[float]) -> list[float]:
    return [after / before for before, after in itertools.pairwise(errors)]


@pytest.mark.parametrize("count", [2, 5, 12])
def test_auxiliary_theorem_by_bayes(count: int) -> None:
    """A is right or wrong; P(X_i = x | A) = P(X_i = x) (1 + epsilon u) with u of mean zero over x and over A."""
    rng, right = np.random.default_rng(count), 0.7
    effects = [centred(rng, 4) for _ in range(count)]
    picks = rng.integers(4, size=(200, count))
    chosen = np.stack([effects[i][picks[:, i]] for i in range(count)], axis=1)
    worst, relative = [], []
    for epsilon in EPSILONS:
        when_right = np.prod(1 + epsilon * chosen, axis=1)
        when_wrong = np.prod(1 - epsilon * chosen * right / (1 - right), axis=1)
        truth = right * when_right / (right * when_right + (1 - right) * when_wrong)
        gaps = right * epsilon * chosen  # E[A | X_i] - E[A]
        error = np.abs(truth - right - gaps.sum(axis=1))
        worst.append(error.max())
        relative.append((error / np.abs(gaps).sum(axis=1)).max())
        assert relative[-1] < 3 * count * epsilon
    assert falls_by(worst) == pytest.approx([0.25] * 3, abs=0.06)  # of second order
    assert falls_by(relative) == pytest.approx(
        [0.5] * 3, abs=0.1
    )  # relative to the contributions: of first order


SPACE = space_of(((1, 2, 3), (3, 2, 2)), ((2, 3), (2, 3, 2)), ((0, 1), (3,)))
EVERY = enumerate_all(SPACE)


class ProductModel:
    """Acc = base * prod over the choices of an architecture of (1 + epsilon u), u of mean zero in every decision."""

    def __init__(self, epsilon: float, depth_effects: bool = True) -> None:
        rng = np.random.default_rng(3)
        self.base = 70.0
        self.depths = [epsilon * depth_effects * centred(rng, len(stage.depths)) for stage in SPACE.stages]
        self.configs = [
            [epsilon * centred(rng, len(block)) for block in stage.blocks] for stage in SPACE.stages
        ]

    def __call__(self, architecture: Architecture) -> float:
        value = self.base
        for s, names in enumerate(architecture.stages):
            value *= 1 + self.depths[s][SPACE.stages[s].depths.index(len(names))]
            for b, name in enumerate(names):
                value *= 1 + self.configs[s][b][SPACE.config_index(s, b, name)]
        return float(value)


def chance(space: SearchSpace, architecture: Architecture) -> float:
    """Probability under uniform decisions (section 3.2)."""
    result = 1.0
    for stage, names in zip(space.stages, architecture.stages, strict=True):
        result /= len(stage.depths)
        for block in stage.blocks[: len(names)]:
            result /= len(block)
    return result


def measured(model: ProductModel, against_depth: bool) -> Contributions:
    """Contributions by their definition, as exact conditional expectations under uniform decisions.

    Delta_b = E[Acc | d = b] - E[Acc]; Delta_{b,c} = E[Acc | O_b = c, d >= b] minus E[Acc | d >= b] or minus E[Acc].
    """
    samples = samples_of(SPACE, model, EVERY)
    weights = np.array([chance(SPACE, item) for item in EVERY])

    def mean(keep: list[bool]) -> float:
        return float(np.average(samples.accuracy[keep], weights=weights[keep]))

    base = mean([True] * len(EVERY))

    def depth(s: int, i: int) -> float:
        return mean([len(item.stages[s]) == SPACE.stages[s].depths[i] for item in EVERY]) - base

    def config(s: int, b: int, c: int) -> float:
        name = SPACE.stages[s].blocks[b][c].name
        reference = mean([len(item.stages[s]) > b for item in EVERY]) if against_depth else base
        return mean([len(item.stages[s]) > b and item.stages[s][b] == name for item in EVERY]) - reference

    return Contributions(SPACE, base, Column.build(SPACE, depth, config))


def worst_errors(against_depth: bool, depth_effects: bool = True) -> list[float]:
    errors = []
    for epsilon in EPSILONS:
        model = ProductModel(epsilon, depth_effects)
        predicted = BilinearEstimator(measured(model, against_depth)).predict(EVERY)
        errors.append(float(np.abs(predicted - [model(item) for item in EVERY]).max()))
    return errors


def test_the_estimator_is_right_to_first_order() -> None:
    errors = worst_errors(against_depth=True)
    assert falls_by(errors) == pytest.approx([0.25] * 3, abs=0.06)
    assert errors[-1] < 0.01  # points, where single contributions reach 0.17


def test_the_papers_gap_counts_depth_twice() -> None:
    """Held against E[Acc], a config's gap holds its depth's too: an error of first order, unless depths do not matter.

    The theorem takes {O_b, d} and d as independent, which a block's pairs with one d are not.
    """
    assert falls_by(worst_errors(against_depth=False)) == pytest.approx([0.5] * 3, abs=0.05)
    without = worst_errors(against_depth=False, depth_effects=False)
    assert falls_by(without) == pytest.approx([0.25] * 3, abs=0.06)
