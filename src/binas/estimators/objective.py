"""What a search maximises: the form in which an estimator hands itself over.

* :class:`BilinearObjective`: r + q_beta' beta + alpha' Q beta from contributions (section 3.3), the normal case.
* :class:`StagewiseObjective`: any sum of per-stage functions f_s(depth, configs); still solved exactly.
* :class:`DepthsObjective`: one of these two and any function of all depths together; still solved exactly.
* :class:`QuadraticObjective`: full quadratic form of the learned predictors (section 5.2).
* :class:`CallableObjective`: any function of an architecture, optionally differentiable in (alpha, beta).

An objective is on the scale of its ``link``. A link is increasing, so the optimum is the same; solvers and the verifier
work on that scale, and what people see is :meth:`Linked.accuracy` and :meth:`Linked.standard_error`, in percent. Where
predictions were held against measured networks, that is the recalibrated accuracy
(:mod:`binas.estimators.calibration`), increasing as well; :meth:`Linked.raw` is the estimator's own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import ProblemError
from binas.estimators.links import LinkName, get_link
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, errors_of_sums
from binas.tables.costs import Cost
from binas.tables.entries import Column

Array = NDArray[np.float64]
Errors = Callable[[Sequence[Architecture]], Array]
Rows = Callable[[Array], Array]

MOST_COMBINATIONS = 2000  # of depths of all stages: a search with a DepthsObjective looks at each


class Shown(Protocol):
    """An increasing function between percent: from what an estimator says to what people see."""

    @property
    def steepest(self) -> float:
        """The most points shown for a point predicted, above zero."""

    def of(self, predicted: Array) -> Array:
        """What is shown for predictions."""

    def before(self, accuracy: float) -> float:
        """The prediction for which ``accuracy`` is shown; infinite where no prediction is worth so much."""


def column_total(space: SearchSpace, column: Column, architecture: Architecture) -> float:
    """sum_s [depth part + config parts] of one architecture, summed exactly rounded."""
    return math.fsum(chosen_entries(space, column, architecture))


def chosen_entries(space: SearchSpace, column: Column, architecture: Architecture) -> Iterator[float]:
    """The number of every decision of an architecture: depths and configs of active blocks."""
    for s, (stage, names) in enumerate(zip(space.stages, architecture.stages, strict=True)):
        yield float(column.depths[s][stage.depths.index(len(names))])
        for b, name in enumerate(names):
            yield float(column.configs[s][b][space.config_index(s, b, name)])


def chosen_row(space: SearchSpace, architecture: Architecture) -> Array:
    """z = (alpha * active, beta) of one architecture, straight from its names: the verifier's own way."""
    alpha, beta = [], []
    for stage, names in zip(space.stages, architecture.stages, strict=True):
        for b, block in enumerate(stage.blocks):
            alpha += [b < len(names) and config.name == names[b] for config in block]
        beta += [depth == len(names) for depth in stage.depths]
    return np.array([*alpha, *beta], dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Linked(ABC):
    """What all objectives share: the link of their scale, and the errors of the accuracies they stand for.

    ``errors`` gives standard errors in points, NaN where unknown; without it an objective's own tables say what is known.
    ``shown`` brings the estimator's percent to those that people see; the same percent unless given.
    """

    kind: ClassVar[str]
    link: LinkName = "identity"
    errors: Errors | None = None
    shown: Shown | None = None

    @abstractmethod
    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture, on the scale of the link."""

    def accuracy(self, space: SearchSpace, architecture: Architecture) -> float:
        """Predicted accuracy of one architecture in percent."""
        return self.percent(self.value(space, architecture))

    def percent(self, value: float) -> float:
        """The accuracy in percent of a value on the scale of the link."""
        return float(self.percents(np.float64(value)))

    def percents(self, values: ArrayLike) -> Array:
        """The accuracies in percent of values on the scale of the link, of any shape."""
        own = get_link(self.link).inverse(values)
        return own if self.shown is None else self.shown.of(own)

    def at_percent(self, accuracy: float) -> float:
        """The value on the scale of the link whose accuracy that is, infinite where none has so little or so much."""
        own, link = accuracy if self.shown is None else self.shown.before(accuracy), get_link(self.link)
        if math.isinf(own):
            return own
        return -math.inf if link.bounded and own <= 0.0 else float(link.forward(own))

    @property
    def steepest(self) -> float:
        """The most points of accuracy that one unit on the scale of the link is worth."""
        return get_link(self.link).steepest * (1.0 if self.shown is None else self.shown.steepest)

    def raw(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """The estimator's own prediction in percent, where another one is shown."""
        if self.shown is None:
            return None
        return float(get_link(self.link).inverse(self.value(space, architecture)))

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """Standard error of the accuracy in points; None where it is not known."""
        if self.errors is None:
            return None
        error = float(self.errors([architecture])[0])
        return None if math.isnan(error) else error

    def on_link_scale(self) -> Self:
        """The same objective taken for the accuracy itself: what solvers see."""
        plain = self.link == "identity" and self.errors is None and self.shown is None
        return self if plain else replace(self, link="identity", errors=None, shown=None)


@dataclass(frozen=True, eq=False)
class BilinearObjective(Linked):
    """ACC = base + sum_s Delta^s_d + sum_s sum_{b<=d} Delta^s_{b,c}, with optional standard errors."""

    kind: ClassVar[str] = "bilinear"
    base: float
    values: Column
    base_stderr: float = math.nan
    stderr: Column | None = None
    covariance: Array | None = None  # of (base, configs, depths), in the order of ``Column.flat``

    @classmethod
    def from_contributions(cls, contributions: Contributions) -> BilinearObjective:
        """The paper's estimator (equation of ACC in section 3.3)."""
        c = contributions
        return cls(c.base, c.values, c.base_stderr, c.stderr, c.covariance)

    @classmethod
    def negative_cost(cls, cost: Cost) -> BilinearObjective:
        """Maximising this minimises the cost."""
        return cls(-cost.fixed, cost.values.map(lambda x: -x))

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        return self.base + column_total(space, self.values, architecture)

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """sqrt((1, z)' covariance (1, z)), z = (alpha * active, beta); without a covariance, errors are independent.

        None where they are not known.
        """
        if self.errors is not None:
            return super().standard_error(space, architecture)
        weights = np.append(1.0, space.layout.rows([architecture]))[None]
        (error,) = errors_of_sums(weights, self.base_stderr, self.stderr, self.covariance)
        return None if math.isnan(error) else float(error)


@dataclass(frozen=True, eq=False)
class StagewiseObjective(Linked):
    """base + sum_s f_s(depth, configs): ``tables[s][depth]`` has shape (|C_1|, ..., |C_depth|)."""

    kind: ClassVar[str] = "stagewise"
    base: float
    tables: tuple[Mapping[int, Array], ...]

    @classmethod
    def from_function(
        cls, space: SearchSpace, function: Callable[[int, tuple[int, ...]], float], base: float = 0.0
    ) -> StagewiseObjective:
        """Tabulate ``function(stage, config indices of its active blocks)`` for every stage of the space."""
        tables = []
        for s, stage in enumerate(space.stages):
            if stage.count > 5_000_000:
                raise ProblemError(f"stage {stage.name!r} has {stage.count} variants; too many to tabulate.")
            table = {}
            for depth in stage.depths:
                shape = tuple(len(configs) for configs in stage.blocks[:depth])
                table[depth] = np.array([function(s, index) for index in np.ndindex(*shape)]).reshape(shape)
            tables.append(table)
        return cls(base, tuple(tables))

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        parts = []
        for s, names in enumerate(architecture.stages):
            index = tuple(space.config_index(s, b, name) for b, name in enumerate(names))
            parts.append(float(self.tables[s][len(names)][index]))
        return self.base + math.fsum(parts)


@dataclass(frozen=True, eq=False)
class DepthsObjective(Linked):
    """inner + joint[depths]: a sum over stages, and what the depths of all stages together add to it.

    ``joint`` has an axis for every stage, as long as it has allowed depths. With all depths given it is a sum over stages,
    so a search is exact: the best over all of them (:mod:`binas.search.depths`).
    """

    kind: ClassVar[str] = "depths"
    inner: BilinearObjective | StagewiseObjective
    joint: Array

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        index = tuple(s.depths.index(d) for s, d in zip(space.stages, architecture.depths, strict=True))
        return self.inner.value(space, architecture) + float(self.joint[index])


@dataclass(frozen=True, eq=False)
class QuadraticObjective(Linked):
    """b + a'z + z'Qz with z = (alpha * active, beta): alpha is zero for blocks past the depth.

    Covers full alpha-alpha, beta-beta and alpha-beta interactions (section 5.2, equation of the
    quadratic predictor).
    """

    kind: ClassVar[str] = "quadratic"
    constant: float
    linear: Array
    quadratic: Array

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        z = chosen_row(space, architecture)
        return float(self.constant + self.linear @ z + z @ self.quadratic @ z)


@dataclass(frozen=True, eq=False)
class CallableObjective(Linked):
    """Any function of an architecture; ``relaxed`` and ``gradient`` take (alpha, beta) for Frank-Wolfe."""

    kind: ClassVar[str] = "callable"
    function: Callable[[Architecture], float]
    relaxed: Callable[[Array, Array], float] | None = None
    gradient: Callable[[Array, Array], tuple[Array, Array]] | None = None

    @classmethod
    def of_rows(
        cls, space: SearchSpace, totals: Rows, gradients: Rows | None = None, link: LinkName = "identity"
    ) -> CallableObjective:
        """From functions of rows z = (alpha * active, beta) (n, N): values (n,) and their derivatives (n, N).

        The relaxation gives a block's configs the weight alpha times the probability that the block runs.
        """
        runs = _runs(space)

        def function(architecture: Architecture) -> float:
            return float(totals(chosen_row(space, architecture)[None])[0])

        def relaxed(alpha: Array, beta: Array) -> float:
            return float(totals(np.concatenate([alpha * (runs @ beta), beta])[None])[0])

        def gradient(alpha: Array, beta: Array) -> tuple[Array, Array]:
            assert gradients is not None
            active = runs @ beta
            slopes = gradients(np.concatenate([alpha * active, beta])[None])[0]
            of_alpha, of_beta = slopes[: space.alpha_size], slopes[space.alpha_size :]
            return of_alpha * active, of_beta + (of_alpha * alpha) @ runs

        return cls(function, relaxed, gradients and gradient, link=link)

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        return float(self.function(architecture))


def _runs(space: SearchSpace) -> Array:
    """1[depth >= b] for every config of block b and every depth of its stage, (alpha_size, beta_size)."""
    layout, result = space.layout, np.zeros((space.alpha_size, space.beta_size))
    for stage, blocks, where in zip(space.stages, layout.config_slices, layout.beta_slices, strict=True):
        for b, configs in enumerate(blocks):
            result[configs, where] = np.array(stage.depths) > b
    return result


Objective = BilinearObjective | StagewiseObjective | DepthsObjective | QuadraticObjective | CallableObjective
