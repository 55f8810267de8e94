"""Gaussian processes over rows of features: what samples say, given a covariance.

    values = c + f(x) + noise,    f ~ GP(0, scale * k),    noise of variance scale * ``noise``,

c by generalised least squares. With c integrated out and the scale profiled, the restricted likelihood is

    log L = -1/2 [(n - 1) log(r' K^-1 r / (n - 1)) + log det K + log(1' K^-1 1)],    r = values - c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from binas.estimators.triangular import factorise, solve_lower, solve_lower_transposed

Array = NDArray[np.float64]


class Covariance(Protocol):
    """A covariance relative to its scale, and the noise of a measurement."""

    @property
    def noise(self) -> float:
        """Variance of a measurement / scale."""

    def between(self, left: Array, right: Array) -> Array:
        """k / scale of all pairs of rows, (n, m)."""

    def at(self, rows: Array) -> Array:
        """k / scale of every row with itself, (n,)."""


Kind = TypeVar("Kind", bound=Covariance)


@dataclass(frozen=True, eq=False)
class Posterior(Generic[Kind]):
    """Samples with rows x and values on the scale of the link, read through a kernel."""

    kernel: Kind
    rows: Array
    values: Array

    @cached_property
    def factor(self) -> Array:
        """L with L L' = K + noise I."""
        matrix = self.kernel.between(self.rows, self.rows)
        matrix[np.diag_indices_from(matrix)] += self.kernel.noise
        return factorise(matrix)

    @cached_property
    def ones(self) -> Array:
        """L^-1 1."""
        return solve_lower(self.factor, np.ones(len(self.rows)))

    @cached_property
    def constant(self) -> float:
        """c by generalised least squares."""
        return float(self.ones @ solve_lower(self.factor, self.values) / (self.ones @ self.ones))

    @cached_property
    def whitened(self) -> Array:
        """L^-1 (values - c)."""
        return solve_lower(self.factor, self.values - self.constant)

    @cached_property
    def dual(self) -> Array:
        """(K + noise I)^-1 (values - c)."""
        return solve_lower_transposed(self.factor, self.whitened)

    @property
    def scale(self) -> float:
        """The scale of the kernel with the most likelihood."""
        return float(self.whitened @ self.whitened) / (len(self.rows) - 1)

    def log_likelihood(self) -> float:
        """log L, up to a constant."""
        determinant = 2 * float(np.log(np.diag(self.factor)).sum())
        spread = max(self.scale, 1e-300)
        freedom = len(self.rows) - 1
        return -0.5 * (freedom * math.log(spread) + determinant + math.log(float(self.ones @ self.ones)))

    def totals(self, rows: Array) -> Array:
        """c + E[f(x) | samples] of new rows, (n,)."""
        return np.asarray(self.constant + self.kernel.between(rows, self.rows) @ self.dual)

    def errors(self, rows: Array) -> Array:
        """Standard deviation of c + f(x) given the samples, (n,)."""
        solved = solve_lower(self.factor, self.kernel.between(rows, self.rows).T)
        known = (solved**2).sum(axis=0)
        of_constant = (1.0 - self.ones @ solved) ** 2 / (self.ones @ self.ones)
        return np.asarray(np.sqrt(self.scale * np.maximum(self.kernel.at(rows) - known + of_constant, 0.0)))
