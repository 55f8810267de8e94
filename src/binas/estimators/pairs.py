"""Choices, and all pairs of them, learned from few samples because alike choices are expected to have alike effects.

    g(accuracy) = c + a'z + z'Qz,    a ~ N(0, sum_k v_k A_k A_k'),    Q ~ sum_l w_l N(0, (B_l B_l') x (B_l B_l'))

A_k says which choices share an effect: none (one per config, one per depth), those with an option value (expansion 3,
...) in the same block, those with it in any block, those with two option values together in the same block, and in any. B_l
are the same, each beside the depths; so the pairs go from two single choices to "kernel 5 is worth more where another block
has expansion 6". The covariance of two networks is then

    k(z, z') = sum_k v_k <A_k'z, A_k'z'> + sum_l w_l <B_l'z, B_l'z'>^2.

All v, w and the noise maximise the restricted likelihood (:mod:`binas.estimators.variances`) on at most ``CHOOSING``
samples; a kind of effect that the samples do not speak for gets none. Then all samples are fitted exactly. What is learned
is a quadratic form of z, so a search can prove its optimum (``branch-bound``). Without pairs (:class:`EffectsEstimator`) it
is the form of the paper's estimator, which every solver takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from binas.estimators.gram import CHOOSING
from binas.estimators.learned import QuadraticForm
from binas.estimators.links import get_link
from binas.estimators.objective import BilinearObjective
from binas.estimators.process import Posterior
from binas.estimators.variances import Observed, choose_variances
from binas.space.space import SearchSpace
from binas.tables.entries import Column
from binas.tables.samples import Samples

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effects:
    """One kind of effects: ``factor`` (N, m) says which choices share one; of single choices, or of pairs."""

    name: str
    factor: Array
    pairs: bool

    def between(self, left: Array, right: Array) -> Array:
        """Covariance of rows z with variance one, (n, m)."""
        inner = (left @ self.factor) @ (right @ self.factor).T
        return np.asarray(inner * inner if self.pairs else inner)

    def at(self, rows: Array) -> Array:
        """The same of every row with itself, (n,)."""
        own = ((rows @ self.factor) ** 2).sum(axis=1)
        return np.asarray(own * own if self.pairs else own)


def effects_of(space: SearchSpace, with_pairs: bool = True) -> list[Effects]:
    """The kinds of effects in a space; those that no choice has (no options, one depth everywhere) are left out."""
    layout, one = space.layout, np.eye(space.layout.size)
    vary = any(len(stage.depths) > 1 for stage in space.stages)
    depths = one[:, space.alpha_size :] if vary else one[:, :0]
    kinds = {
        "config": one[:, : space.alpha_size],
        "option in a block": layout.option_entries,
        "option": layout.shared_options,
        "two options in a block": layout.option_pairs,
        "two options": layout.in_any_block(layout.option_pairs),
    }
    known = {name: factor for name, factor in kinds.items() if factor.any()}
    found = [
        Effects(name, factor, False) for name, factor in {"depth": depths, **known}.items() if factor.any()
    ]
    if with_pairs:
        found += [Effects(f"pairs, {name}", np.hstack([f, depths]), True) for name, f in known.items()]
    return found


def observed(effects: Sequence[Effects], rows: Array, values: Array) -> Observed:
    """Values (n,) of rows z, to choose variances by.

    Sums over choices lie in the span of 1 and the N columns of the rows, so with more samples than that they are looked at
    there; pairs do not.
    """
    if any(kind.pairs for kind in effects) or rows.shape[1] + 1 >= len(rows):
        return Observed.of([kind.between(rows, rows) for kind in effects], values)
    basis = np.linalg.qr(np.column_stack([np.ones(len(rows)), rows]))[0]
    centred = values - values.mean()
    inside, seen = basis.T @ rows, basis.T @ centred
    beyond = centred - basis @ seen
    matrices = [kind.between(inside, inside) for kind in effects]
    return Observed(matrices, seen, basis.sum(axis=0), len(rows) - len(seen), float(beyond @ beyond))


@dataclass(frozen=True, eq=False)
class PairsKernel:
    """sum of effects, each with its variance, and the noise of a measurement."""

    effects: list[Effects]
    variances: Array
    noise: float

    def between(self, left: Array, right: Array) -> Array:
        """Covariance of all pairs of rows z, (n, m)."""
        total = np.zeros((len(left), len(right)))
        for kind, variance in zip(self.effects, self.variances.tolist(), strict=True):
            if variance > 0.0:
                total += variance * kind.between(left, right)
        return total

    def at(self, rows: Array) -> Array:
        """Variance of every row, (n,)."""
        each = [v * kind.at(rows) for kind, v in zip(self.effects, self.variances, strict=True)]
        return np.asarray(sum(each, np.zeros(len(rows))))

    def form(self, posterior: Posterior[PairsKernel]) -> tuple[Array, Array]:
        """a (N,) and Q (N, N) of what a posterior with this kernel predicts: c + a'z + z'Qz."""
        rows, dual = posterior.rows, posterior.dual
        seen, products = rows.T @ dual, (rows * dual[:, None]).T @ rows
        linear, quadratic = np.zeros(rows.shape[1]), np.zeros((rows.shape[1], rows.shape[1]))
        for kind, variance in zip(self.effects, self.variances.tolist(), strict=True):
            if kind.pairs:
                inner = kind.factor.T @ products @ kind.factor
                quadratic += variance * (kind.factor @ inner @ kind.factor.T)
            else:
                linear += variance * (kind.factor @ (kind.factor.T @ seen))
        return linear, quadratic


@dataclass(eq=False)
class PairsEstimator(QuadraticForm):
    """Every choice and every pair of choices, as large as the samples say each kind of effect is.

    Learned beside the form: ``variances_`` by kind of effect, ``noise`` among them; ``posterior_``, None where it was read.
    """

    kind = "pairs"
    has_products = True

    seed: int = 0

    variances_: dict[str, float] = field(init=False, repr=False)

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures."""
        self.check_count(samples)
        rows = samples.space.layout.rows(samples.architectures)
        values = get_link(self.link).forward(samples.accuracy)
        effects = effects_of(samples.space, self.has_products)
        some = np.random.default_rng(self.seed).permutation(len(rows))[:CHOOSING]
        variances, noise = choose_variances(observed(effects, rows[some], values[some]))
        kernel = PairsKernel(effects, variances, noise)
        posterior = Posterior(kernel, rows, values)
        self.linear_, self.quadratic_ = kernel.form(posterior)
        names = [kind.name for kind in effects]
        self.variances_ = {**dict(zip(names, variances.tolist(), strict=True)), "noise": noise}
        self.constant_, self.posterior_, self.space_ = posterior.constant, posterior, samples.space
        return self

    def chosen_data(self) -> dict[str, Any]:
        """The variances by kind of effect."""
        return self.variances_


@dataclass(eq=False)
class EffectsEstimator(PairsEstimator):
    """The same without pairs: g(accuracy) = c + a'z, a sum over choices, so that a search with it is exact."""

    kind = "effects"
    has_products = False

    def objective(self) -> BilinearObjective:
        """c + a'z on the scale of the link."""
        values = Column.from_flat(self.space, self.linear_)
        return BilinearObjective(self.constant_, values, link=self.link, errors=self.standard_error)
