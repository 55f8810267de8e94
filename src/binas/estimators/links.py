"""Monotone links between accuracy in percent and the scale on which contributions add up.

An estimator with link g says g(accuracy) = r + sum of contributions. Near the top a point is harder to win than
at the bottom; ``log`` and ``logit`` know that. A link is increasing, so the architecture with the best sum has the
best accuracy: a search maximises the sum and nothing of its exactness is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import EstimatorError

Array = NDArray[np.float64]
LinkName = Literal["identity", "logit", "log"]

MARGIN = 0.01  # points: a measured 100 % (or 0 %) is taken for this much less (more), or its link is infinite
STEEP = 700.0  # sums below -STEEP, which only damaged tables have, are taken for it: exp would overflow


@dataclass(frozen=True)
class Link:
    """g, its inverse and its derivative g'(accuracy), for accuracies in percent."""

    name: LinkName
    _forward: Callable[[Array], Array] = field(repr=False)
    _inverse: Callable[[Array], Array] = field(repr=False)
    _slope: Callable[[Array], Array] = field(repr=False)

    @property
    def steepest(self) -> float:
        """The most points of accuracy that one unit on the scale of the link is worth, between 0 and 100 %."""
        return {"identity": 1.0, "logit": 25.0, "log": 100.0}[self.name]

    @property
    def bounded(self) -> bool:
        """Whether accuracies must lie between 0 and 100 %."""
        return self.name != "identity"

    def forward(self, accuracy: ArrayLike) -> Array:
        """g(accuracy)."""
        return self._forward(self._inside(accuracy))

    def inverse(self, total: ArrayLike) -> Array:
        """The accuracy in percent whose link is ``total``."""
        return self._inverse(np.asarray(total, dtype=np.float64))

    def slope(self, accuracy: ArrayLike) -> Array:
        """g'(accuracy) per percentage point."""
        return self._slope(self._inside(accuracy))

    def _inside(self, accuracy: ArrayLike) -> Array:
        values = np.asarray(accuracy, dtype=np.float64)
        return np.clip(values, MARGIN, 100.0 - MARGIN) if self.bounded else values


LINKS: dict[str, Link] = {
    "identity": Link("identity", lambda a: a, lambda t: t, np.ones_like),
    "logit": Link(
        "logit",
        lambda a: np.log(a) - np.log(100.0 - a),
        lambda t: np.asarray(50.0 * (1.0 + np.tanh(t / 2))),  # 100 / (1 + exp(-t)) without overflow
        lambda a: 100.0 / (a * (100.0 - a)),
    ),
    "log": Link(
        "log",
        lambda a: -np.log1p(-a / 100.0),
        lambda t: -100.0 * np.expm1(np.minimum(-t, STEEP)),
        lambda a: 1.0 / (100.0 - a),
    ),
}


def get_link(name: str) -> Link:
    """The link called ``identity``, ``logit`` (log(p / (1 - p))) or ``log`` (-log(1 - p)), p = accuracy / 100."""
    if name not in LINKS:
        raise EstimatorError(f"there is no link {name!r}; choose one of {', '.join(LINKS)}.")
    return LINKS[name]
