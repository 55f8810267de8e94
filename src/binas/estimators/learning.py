"""Predictors by name, and how they do with more and more samples (section 4.2, figure 5 left)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binas.base.errors import EstimatorError
from binas.estimators.closed_form import ClosedFormPredictor, Solver
from binas.estimators.files import CLOSED_FORMS, TENSORS
from binas.estimators.links import LinkName
from binas.tables.samples import Samples

if TYPE_CHECKING:
    from binas.estimators.mlp import MLPPredictor

MLP = "mlp"
PREDICTORS = (*CLOSED_FORMS, MLP)


@dataclass(frozen=True, eq=False)
class Learned:
    """A predictor fitted on ``count`` samples in ``seconds``."""

    predictor: ClosedFormPredictor | MLPPredictor
    count: int
    seconds: float

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.predictor.kind}, {self.count} samples"

    @property
    def file(self) -> str:
        """Name of the file it is saved as."""
        return self.predictor.kind + (TENSORS if self.predictor.kind == MLP else ".json")


def make_predictor(
    name: str, link: LinkName = "identity", solver: Solver | None = None, seed: int = 0
) -> ClosedFormPredictor | MLPPredictor:
    """A predictor by name, not yet fitted; ``solver`` is for those in closed form, None for their own choice."""
    if name in CLOSED_FORMS:
        kind = CLOSED_FORMS[name]
        return kind(link=link, solver=solver or kind.solver, seed=seed)
    if name == MLP:
        from binas.estimators.mlp import MLPPredictor

        return MLPPredictor(link=link, seed=seed)
    raise EstimatorError(f"there is no predictor {name[:40]!r}; choose from {', '.join(PREDICTORS)}.")


def learning_curve(
    samples: Samples,
    names: Sequence[str],
    counts: Sequence[int],
    link: LinkName = "identity",
    solver: Solver | None = None,
    seed: int = 0,
) -> Iterator[Learned]:
    """Fit every predictor on the first ``count`` samples, for every count, one after the other."""
    for name in names:
        make_predictor(name, link, solver, seed)  # a wrong name is found before the work
    too_many = [count for count in counts if count > len(samples)]
    if too_many:
        raise EstimatorError(
            f"cannot learn from {too_many[0]} samples: there are {len(samples)} that are not held out. Measure more, "
            "or ask for fewer."
        )
    for name, count in itertools.product(names, counts):
        start = time.perf_counter()
        fitted = make_predictor(name, link, solver, seed).fit(samples.take(range(count)))
        yield Learned(fitted, count, time.perf_counter() - start)
