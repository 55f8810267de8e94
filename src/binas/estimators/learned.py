"""What all predictors that learn from samples share, and those among them that are a quadratic form of z."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.base.files import dump_json, write_text
from binas.estimators.links import LinkName, get_link
from binas.estimators.objective import Objective, QuadraticObjective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import reference
from binas.tables.samples import Samples

Array = NDArray[np.float64]

FORMAT = "binas/predictor"
LEAST = 10  # samples: fewer say nothing about how much to regularise


@dataclass(eq=False)
class Predictor(ABC):
    """A predictor of g(accuracy), g the ``link``, learned from measured architectures. Learned: ``space_``."""

    kind: ClassVar[str]

    link: LinkName = "log"

    space_: SearchSpace = field(init=False, repr=False)

    @property
    def space(self) -> SearchSpace:
        """The space of the samples."""
        self.check_fitted()
        return self.space_

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    @abstractmethod
    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures."""

    @abstractmethod
    def totals(self, rows: Array) -> Array:
        """Predictions of rows z on the scale of the link, (n,)."""

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,)."""
        self.check_fitted()
        return get_link(self.link).inverse(self.totals(self.space_.layout.rows(architectures)))

    @abstractmethod
    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predicted accuracies in points, (n,), to first order; NaN where not known."""

    def in_points(self, errors: Array, rows: Array) -> Array:
        """Errors on the scale of the link as points, to first order, (n,)."""
        link = get_link(self.link)
        return np.asarray(errors / link.slope(link.inverse(self.totals(rows))))

    @abstractmethod
    def objective(self) -> Objective:
        """What a search maximises, on the scale of the link."""

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file: what it is, and of which space; subclasses add what was learned."""
        self.check_fitted()
        return {"format": FORMAT, "version": 1, "kind": self.kind, "space": reference(self.space_)}

    def save(self, path: Path) -> None:
        """Write what was learned as JSON, atomically; :func:`binas.estimators.load_predictor` reads it."""
        write_text(Path(path), dump_json(self.to_data()))

    def check_fitted(self) -> None:
        """Refuse to go on before anything was learned."""
        if not hasattr(self, "space_"):
            raise EstimatorError(
                f"this {self.kind} predictor has learned nothing yet; call fit(samples) first."
            )

    def check_count(self, samples: Samples, least: int = LEAST) -> None:
        """Refuse too few samples."""
        if len(samples) < least:
            raise EstimatorError(
                f"the {self.kind} predictor learns from at least {least} samples; there are {len(samples)}."
            )


class Errors(Protocol):
    """What knows the standard errors of predictions on the scale of the link."""

    def errors(self, rows: Array) -> Array:
        """Standard errors of rows z, (n,)."""


@dataclass(eq=False)
class QuadraticForm(Predictor):
    """g(accuracy) = b + a'z + z'Qz, z = (alpha * active, beta).

    Learned: ``constant_`` b, ``linear_`` a (N,), ``quadratic_`` Q (N, N), zero unless ``has_products``, and
    ``posterior_``, None where errors are not known.
    """

    has_products: ClassVar[bool]

    constant_: float = field(init=False, repr=False)
    linear_: Array = field(init=False, repr=False)
    quadratic_: Array = field(init=False, repr=False)
    posterior_: Errors | None = field(init=False, repr=False, default=None)

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predicted accuracies in points, (n,), to first order; NaN when read from a file."""
        self.check_fitted()
        rows = self.space_.layout.rows(architectures)
        if self.posterior_ is None:
            return np.full(len(rows), math.nan)
        return self.in_points(self.posterior_.errors(rows), rows)

    def objective(self) -> Objective:
        """b + a'z + z'Qz on the scale of the link."""
        self.check_fitted()
        return QuadraticObjective(
            self.constant_, self.linear_, self.quadratic_, link=self.link, errors=self.standard_error
        )

    def totals(self, rows: Array) -> Array:
        """b + a'z + z'Qz of rows z, on the scale of the link."""
        products = ((rows @ self.quadratic_) * rows).sum(axis=1)
        return np.asarray(self.constant_ + rows @ self.linear_ + products)

    @abstractmethod
    def chosen_data(self) -> dict[str, Any]:
        """How the fit was regularised, for the file."""

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return super().to_data() | {
            "settings": self.settings(),
            "chosen": self.chosen_data(),
            "constant": self.constant_,
            "linear": self.linear_.tolist(),
            "quadratic": self.quadratic_.tolist() if self.has_products else None,
        }
