"""Learned predictors by name: made, fitted on more and more samples (section 5.2, figure 7 left), read from files.

Files are safetensors for the MLP, JSON for all others.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from binas.base.errors import EstimatorError, several
from binas.base.files import read_json
from binas.base.settings import Settings
from binas.base.typed import found_problems
from binas.estimators.closed_form import (
    AdditivePredictor,
    BilinearPredictor,
    Chosen,
    ClosedFormPredictor,
    QuadraticPredictor,
    Solver,
)
from binas.estimators.gaussian_process import GaussianProcess, gaussian_process_from_data
from binas.estimators.learned import Predictor, QuadraticForm
from binas.estimators.links import LinkName
from binas.estimators.pairs import EffectsEstimator, PairsEstimator
from binas.estimators.within_stage import WithinStageEstimator
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference
from binas.tables.reading import other_space
from binas.tables.samples import Samples

TENSORS = ".safetensors"
CLOSED_FORMS: dict[str, type[ClosedFormPredictor]] = {
    cls.kind: cls for cls in (AdditivePredictor, BilinearPredictor, QuadraticPredictor, WithinStageEstimator)
}

VARIANCES: dict[str, type[PairsEstimator]] = {cls.kind: cls for cls in (EffectsEstimator, PairsEstimator)}


class SettingsEntry(BaseModel):
    """Arguments of the constructor."""

    model_config = ConfigDict(extra="forbid")
    link: LinkName
    solver: Solver
    components: int | None
    ridge: float | None
    weight: float | None
    folds: int
    seed: int


class ChosenEntry(BaseModel):
    """How strongly the fit was regularised."""

    model_config = ConfigDict(extra="forbid")
    components: int | None
    ridge: float | None
    weight: float


class PairsSettings(BaseModel):
    """Arguments of the constructor of :class:`PairsEstimator`."""

    model_config = ConfigDict(extra="forbid")
    link: LinkName
    seed: int


class FormFile(BaseModel):
    """What all files of quadratic forms say."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Literal["binas/predictor"]
    version: Literal[1]
    space: SpaceReference
    constant: float = Field(description="b")
    linear: list[float] = Field(description="a, in the order (alpha, beta)")
    quadratic: list[list[float]] | None = Field(description="Q by rows; null where there is none")


class PredictorFile(FormFile):
    """A binas predictor, version 1: the link of accuracy is b + a'z + z'Qz."""

    kind: Literal["additive", "bilinear", "quadratic", "within-stage"]
    settings: SettingsEntry
    chosen: ChosenEntry

    def unfilled(self) -> ClosedFormPredictor:
        """The predictor before its numbers."""
        predictor = CLOSED_FORMS[self.kind](**self.settings.model_dump())
        predictor.chosen_ = Chosen(**self.chosen.model_dump())
        return predictor


class PairsFile(FormFile):
    """A :class:`PairsEstimator`, version 1; ``chosen`` are its variances by kind of effect."""

    kind: Literal["pairs", "effects"]
    settings: PairsSettings
    chosen: dict[str, float]

    def unfilled(self) -> PairsEstimator:
        """The predictor before its numbers."""
        predictor = VARIANCES[self.kind](**self.settings.model_dump())
        predictor.variances_ = self.chosen
        return predictor


def load_predictor(path: Path, space: SearchSpace) -> Predictor:
    """Read a predictor that ``save`` wrote and check that it was learned for the space."""
    path = Path(path)
    if path.suffix == TENSORS:
        from binas.estimators.mlp import load_mlp

        return load_mlp(path, space)
    data = read_json(path)
    if isinstance(data, dict) and data.get("kind") == GaussianProcess.kind:
        return gaussian_process_from_data(data, space, str(path))
    return form_from_data(data, space, str(path))


def form_from_data(data: Any, space: SearchSpace, where: str) -> QuadraticForm:
    """Build from the JSON object, checking everything."""
    pairs = isinstance(data, dict) and str(data.get("kind")) in VARIANCES
    try:
        parsed: PredictorFile | PairsFile = (PairsFile if pairs else PredictorFile).model_validate(data)
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}"
            for item in found_problems(error)
        ]
        raise EstimatorError(several(f"{where} is not a binas predictor", found, "Fit it again.")) from error
    problems = other_space(parsed.space, space) + _size_problems(parsed, space)
    if problems:
        raise EstimatorError(several(where, problems))
    predictor = parsed.unfilled()
    predictor.space_, predictor.constant_ = space, parsed.constant
    predictor.linear_ = np.array(parsed.linear)
    size = len(parsed.linear)
    predictor.quadratic_ = np.array(parsed.quadratic) if parsed.quadratic else np.zeros((size, size))
    return predictor


def _size_problems(parsed: FormFile, space: SearchSpace) -> list[str]:
    size = space.alpha_size + space.beta_size
    rows = [[0.0] * size] * size if parsed.quadratic is None else parsed.quadratic
    if len(parsed.linear) == len(rows) == size and all(len(row) == size for row in rows):
        return []
    return [f"it has coefficients for another number of choices than the {size} of {space.name!r}"]


MLP = "mlp"
PREDICTORS = (*CLOSED_FORMS, *VARIANCES, GaussianProcess.kind, MLP)


@dataclass(frozen=True, eq=False)
class Learned:
    """A predictor fitted on ``count`` samples in ``seconds``."""

    predictor: Predictor
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


def make_predictor(name: str, link: LinkName = "log", solver: Solver = "ridge", seed: int = 0) -> Predictor:
    """A predictor by name, not yet fitted; ``solver`` is for those in closed form."""
    if name in CLOSED_FORMS:
        return CLOSED_FORMS[name](link=link, solver=solver, seed=seed)
    if name in VARIANCES:
        return VARIANCES[name](link, seed)
    if name == GaussianProcess.kind:
        return GaussianProcess(link, seed)
    if name == MLP:
        from binas.estimators.mlp import MLPPredictor

        return MLPPredictor(link=link, seed=seed)
    raise EstimatorError(f"there is no predictor {name[:40]!r}; choose from {', '.join(PREDICTORS)}.")


class PredictorSettings(Settings):
    """Which predictors are learned, from how many samples, and how they are judged."""

    fit: tuple[str, ...] = Field(
        ("additive", "within-stage", "quadratic", PairsEstimator.kind, GaussianProcess.kind),
        description=f"of {', '.join(PREDICTORS)}",
    )
    samples: tuple[int, ...] = Field((), description="numbers of samples to learn from; none = all")
    test: int | None = Field(None, ge=2, description="samples held out to judge by; none = a fifth")
    link: LinkName = Field("log", description="scale to learn on")
    solver: Solver = Field("ridge", description="of the closed forms: ridge, or svd (the paper's)")
    resamples: int = Field(1000, ge=1, description="bootstrap resamples behind the intervals")
    seed: int = Field(0, ge=0, description="of splits, fits and resamples")


def learn(samples: Samples, settings: PredictorSettings, folder: Path) -> tuple[list[Learned], Samples]:
    """Fit predictors on some samples; the others, held out, come back with them.

    The largest fits are saved in ``folder`` as they come, so that an interrupted call keeps what it has.
    """
    held = len(samples) // 5 if settings.test is None else settings.test
    fresh, known = samples.split(held, settings.seed)
    counts = settings.samples or (len(known),)
    learned = []
    for item in learning_curve(known, settings.fit, counts, settings.link, settings.solver, settings.seed):
        if item.count == max(counts):
            item.predictor.save(folder / item.file)
        learned.append(item)
    return learned, fresh


def learning_curve(
    samples: Samples,
    names: Sequence[str],
    counts: Sequence[int],
    link: LinkName = "log",
    solver: Solver = "ridge",
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
