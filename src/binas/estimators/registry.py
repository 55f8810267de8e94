"""The estimators there are, by name: declared once, from the simplest to the richest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from binas.base.errors import EstimatorError
from binas.base.plugins import load_plugins
from binas.estimators._base import Estimator
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.closed_form import AdditivePredictor, BilinearPredictor, QuadraticPredictor
from binas.estimators.depths import DepthsEstimator
from binas.estimators.gaussian_process import GaussianProcess
from binas.estimators.links import LinkName
from binas.estimators.pairs import EffectsEstimator, PairsEstimator
from binas.estimators.within_stage import CorrectedEstimator, WithinStageEstimator
from binas.tables.contributions import Contributions
from binas.tables.samples import Samples

Make = Callable[[Contributions | None], Estimator]


@dataclass(frozen=True)
class Candidate:
    """An estimator by name. Of several that rank equally well the one of the lowest ``complexity`` is taken.

    ``make`` gives it before it has learned; ``reads`` whether it needs contributions, ``learns`` whether it needs samples.
    Only ``automatic`` ones are tried unasked: those with which a search proves its answer at once.
    """

    name: str
    complexity: int
    about: str
    make: Make
    reads: bool = False
    learns: bool = False
    automatic: bool = True


def _additive(link: LinkName, contributions: Contributions | None) -> Estimator:
    assert contributions is not None
    return BilinearEstimator(contributions, link)


def _depths(contributions: Contributions | None) -> Estimator:
    assert contributions is not None
    return DepthsEstimator(contributions)


def _corrected(pairs: bool, contributions: Contributions | None) -> Estimator:
    assert contributions is not None
    return CorrectedEstimator(contributions, pairs=pairs)


def _mlp(contributions: Contributions | None) -> Estimator:
    from binas.estimators.mlp import MLPPredictor  # loads torch

    return MLPPredictor()


BUILT_IN = (
    Candidate(
        "additive",
        1,
        "contributions added up, in points (paper, 3.3)",
        partial(_additive, "identity"),
        reads=True,
    ),
    Candidate(
        "additive-log",
        2,
        "contributions added up on the scale -log(1 - accuracy)",
        partial(_additive, "log"),
        reads=True,
    ),
    Candidate(
        "additive-logit",
        3,
        "contributions added up on the scale log(accuracy / (1 - accuracy))",
        partial(_additive, "logit"),
        reads=True,
    ),
    Candidate(
        "depths",
        4,
        "contributions and what depths of different stages bring together, each as far as samples confirm it",
        _depths,
        reads=True,
        learns=True,
    ),
    Candidate(
        "corrected",
        5,
        "contributions on the log scale, and what samples say beyond them about each choice",
        partial(_corrected, False),
        reads=True,
        learns=True,
    ),
    Candidate(
        "ridge",
        6,
        "one effect per choice, learned from samples on the scale -log(1 - accuracy)",
        lambda contributions: AdditivePredictor(),
        learns=True,
    ),
    Candidate(
        EffectsEstimator.kind,
        7,
        "one effect per choice, alike choices expected to have alike effects, learned from samples on the log scale",
        lambda contributions: EffectsEstimator(),
        learns=True,
    ),
    Candidate(
        "within-stage",
        8,
        "effects and all pairs of choices inside a stage, learned from samples on the log scale",
        lambda contributions: WithinStageEstimator(),
        learns=True,
    ),
    Candidate(
        "corrected-within-stage",
        9,
        "contributions on the log scale, and what samples say beyond them about choices and pairs inside a stage",
        partial(_corrected, True),
        reads=True,
        learns=True,
    ),
    Candidate(
        "bilinear",
        10,
        "every config with every depth (paper, 5.2); no frontier, single limits are proven by branch-bound",
        lambda contributions: BilinearPredictor(),
        learns=True,
        automatic=False,
    ),
    Candidate(
        "quadratic",
        11,
        "all pairs of choices (paper, 5.2); no frontier, single limits are proven by branch-bound",
        lambda contributions: QuadraticPredictor(),
        learns=True,
        automatic=False,
    ),
    Candidate(
        PairsEstimator.kind,
        12,
        "all pairs of choices, alike choices expected to have alike effects; no frontier, proven by branch-bound",
        lambda contributions: PairsEstimator(),
        learns=True,
        automatic=False,
    ),
    Candidate(
        GaussianProcess.kind,
        13,
        "an effect per choice and what depends on all others, by likelihood; nothing is proven, search with frank-wolfe or "
        "evolution",
        lambda contributions: GaussianProcess(),
        learns=True,
        automatic=False,
    ),
    Candidate(
        "mlp",
        14,
        "a network of the choices (needs torch); nothing is proven, search with frank-wolfe or evolution",
        _mlp,
        learns=True,
        automatic=False,
    ),
)


def candidates() -> dict[str, Candidate]:
    """All estimators by name, the simplest first: those of binas and of installed packages."""
    known = [*BUILT_IN, *load_plugins("binas.estimators", Candidate).values()]
    return {item.name: item for item in sorted(known, key=lambda item: item.complexity)}


def find_candidate(name: str) -> Candidate:
    """The estimator called ``name``."""
    known = candidates()
    if name not in known:
        raise EstimatorError(f"there is no estimator {name[:40]!r}; choose from {', '.join(known)}.")
    return known[name]


def make_estimator(name: str, contributions: Contributions | None, samples: Samples | None) -> Estimator:
    """The estimator called ``name``, fitted on all samples where it learns; the same input gives the same estimator."""
    candidate = find_candidate(name)
    if candidate.reads and contributions is None:
        raise EstimatorError(
            f"the estimator {name!r} needs contributions; `binas estimate RUN` measures them."
        )
    if not candidate.learns:
        return candidate.make(contributions)
    if samples is None:
        raise EstimatorError(f"the estimator {name!r} learns from samples; `binas sample RUN` measures them.")
    return candidate.make(contributions).fit(samples)
