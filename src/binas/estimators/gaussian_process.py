"""A Gaussian process over the decisions of an architecture: exact, with standard errors, without torch.

g(accuracy) = c + f(z),    f ~ GP(0, k),    k(z, z') = scale * (linear <x, x'> + exp(-rate |x - x'|^2)),

plus noise of variance scale * noise; x = z and, beside it, the option values of the blocks (expansion 3, kernel 5, ...), so
that configs which share options are alike (``Layout.option_entries``). The linear part is an effect per choice, the other
whatever depends on all other choices. ``linear``, ``rate`` and ``noise`` maximise the restricted likelihood
(:mod:`binas.estimators.process`) over a pattern of steps in their logarithms, on at most ``CHOOSING`` samples; all are
then fitted at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from binas.base.errors import BinasError, EstimatorError, several
from binas.estimators.gram import CHOOSING
from binas.estimators.learned import Predictor
from binas.estimators.links import LinkName, get_link
from binas.estimators.objective import CallableObjective
from binas.estimators.process import Posterior
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import LARGEST, SpaceReference
from binas.tables.reading import other_space
from binas.tables.samples import Samples

Array = NDArray[np.float64]

START = {"linear": 0.1, "rate": 0.3, "noise": 0.01}  # the rate is divided by the number of decisions
STEPS = (8.0, 3.0, 1.5)  # factors, tried one after the other
BOUNDS = (1e-6, 1e4)


@dataclass(frozen=True)
class Kernel:
    """The covariance relative to its scale: linear <x, x'> + exp(-rate |x - x'|^2), and the noise of a measurement."""

    linear: float
    rate: float
    noise: float

    def between(self, left: Array, right: Array) -> Array:
        """k / scale of all pairs of rows x, (n, m)."""
        inner = left @ right.T
        apart = -2.0 * inner  # two matrices of this size, no more
        apart += (left**2).sum(axis=1)[:, None]
        apart += (right**2).sum(axis=1)
        apart *= -self.rate
        np.exp(apart, out=apart)
        inner *= self.linear
        inner += apart
        return np.asarray(inner)

    def at(self, rows: Array) -> Array:
        """k / scale of every row with itself, (n,)."""
        return np.asarray(self.linear * (rows**2).sum(axis=1) + 1.0)

    def gradients(self, rows: Array, posterior: Posterior[Kernel]) -> Array:
        """Derivatives of ``posterior.totals`` with respect to x, (n, size)."""
        smooth = self.between(rows, posterior.rows) - self.linear * (rows @ posterior.rows.T)
        weights = smooth * posterior.dual
        apart = weights.sum(axis=1)[:, None] * rows - weights @ posterior.rows
        return np.asarray(self.linear * (posterior.dual @ posterior.rows) - 2 * self.rate * apart)


class GaussianProcessFile(BaseModel):
    """A Gaussian process over architectures, version 1: its samples on the scale of the link, and its kernel."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Literal["binas/predictor"]
    version: Literal[1]
    kind: Literal["gaussian-process"]
    space: SpaceReference
    link: LinkName
    seed: int
    linear: float = Field(gt=0, le=LARGEST)
    rate: float = Field(gt=0, le=LARGEST)
    noise: float = Field(gt=0, le=LARGEST)
    architectures: list[str] = Field(min_length=2)
    values: list[float] = Field(description="g(accuracy) of each architecture")


@dataclass(eq=False)
class GaussianProcess(Predictor):
    """An exact Gaussian process; the search with it is by ``evolution`` or ``frank-wolfe``, nothing is proven.

    Learned: ``space_``, ``architectures_``, ``posterior_``.
    """

    kind = "gaussian-process"

    seed: int = 0

    architectures_: list[Architecture] = field(init=False, repr=False)
    posterior_: Posterior[Kernel] = field(init=False, repr=False)

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures."""
        self.check_count(samples)
        values = get_link(self.link).forward(samples.accuracy)
        rows = extended(samples.space, samples.space.layout.rows(samples.architectures))
        some = np.random.default_rng(self.seed).permutation(len(rows))[:CHOOSING]
        kernel = choose_kernel(rows[some], values[some], len(samples.space.layout.slices))
        self.space_, self.architectures_ = samples.space, samples.architectures
        self.posterior_ = Posterior(kernel, rows, values)
        return self

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predicted accuracies in points, (n,), to first order."""
        self.check_fitted()
        rows = self.space_.layout.rows(architectures)
        return self.in_points(self.posterior_.errors(extended(self.space_, rows)), rows)

    def objective(self) -> CallableObjective:
        """c + E[f(z)] on the scale of the link, with its gradient."""
        return CallableObjective.of_rows(self.space, self.totals, self.gradients, self.link)

    def totals(self, rows: Array) -> Array:
        """Predictions of rows z on the scale of the link, (n,)."""
        return self.posterior_.totals(extended(self.space_, rows))

    def gradients(self, rows: Array) -> Array:
        """Derivatives of :meth:`totals` with respect to z, (n, N)."""
        kernel, size = self.posterior_.kernel, rows.shape[1]
        found = kernel.gradients(extended(self.space_, rows), self.posterior_)
        return np.asarray(found[:, :size] + found[:, size:] @ self.space_.layout.option_entries.T)

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        head, kernel = super().to_data(), self.posterior_.kernel
        return head | {
            **self.settings(),
            "linear": kernel.linear,
            "rate": kernel.rate,
            "noise": kernel.noise,
            "architectures": [str(item) for item in self.architectures_],
            "values": self.posterior_.values.tolist(),
        }


def extended(space: SearchSpace, rows: Array) -> Array:
    """x of rows z: z and the option values of every block, (n, size)."""
    return np.hstack([rows, rows @ space.layout.option_entries])


def choose_kernel(rows: Array, values: Array, decisions: int) -> Kernel:
    """The kernel with the most restricted likelihood that steps in the three logarithms find."""
    if not np.ptp(values) > 0.0 or not np.ptp(rows, axis=0).any():
        raise EstimatorError(
            "all samples have the same accuracy or are the same to this predictor; there is nothing to learn from."
        )
    best = {**START, "rate": START["rate"] / decisions}
    most = _likelihood(best, rows, values)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for name in best:
                for factor in (step, 1 / step):
                    tried = {**best, name: float(np.clip(best[name] * factor, *BOUNDS))}
                    found = _likelihood(tried, rows, values)
                    if found > most + 1e-6:
                        best, most, improved = tried, found, True
                        break
    return Kernel(**best)


def _likelihood(kernel: dict[str, float], rows: Array, values: Array) -> float:
    try:
        return Posterior(Kernel(**kernel), rows, values).log_likelihood()
    except np.linalg.LinAlgError:  # too little noise for so many samples
        return -math.inf


def gaussian_process_from_data(data: Any, space: SearchSpace, where: str) -> GaussianProcess:
    """Build from the JSON object, checking everything."""
    try:
        parsed = GaussianProcessFile.model_validate(data)
        architectures = [Architecture.parse(text) for text in parsed.architectures]
    except (ValidationError, BinasError) as error:
        problem = f"{where} is not a Gaussian process of binas: {str(error)[:300]}"
        raise EstimatorError(f"{problem}. Fit it again.") from error
    problems = other_space(parsed.space, space)
    if len(architectures) != len(parsed.values):
        problems.append(f"it has {len(architectures)} architectures and {len(parsed.values)} values")
    if problems:
        raise EstimatorError(several(where, problems))
    found = GaussianProcess(parsed.link, parsed.seed)
    found.space_, found.architectures_ = space, architectures
    rows = extended(space, space.layout.rows(architectures))
    kernel = Kernel(parsed.linear, parsed.rate, parsed.noise)
    found.posterior_ = Posterior(kernel, rows, np.array(parsed.values))
    try:
        _ = found.posterior_.factor
    except np.linalg.LinAlgError as error:
        problem = f"{where}: with these numbers no matrix of covariances is positive definite"
        raise EstimatorError(f"{problem}. Fit it again.") from error
    return found
