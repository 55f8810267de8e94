"""Reading learned predictors: JSON for those in closed form, safetensors for the MLP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from binas.base.errors import EstimatorError, several
from binas.base.files import read_json
from binas.estimators.closed_form import (
    AdditivePredictor,
    BilinearPredictor,
    Chosen,
    ClosedFormPredictor,
    QuadraticPredictor,
    Solver,
)
from binas.estimators.links import LinkName
from binas.estimators.within_stage import WithinStageEstimator
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference
from binas.tables.reading import other_space

if TYPE_CHECKING:
    from binas.estimators.mlp import MLPPredictor

TENSORS = ".safetensors"
CLOSED_FORMS: dict[str, type[ClosedFormPredictor]] = {
    cls.kind: cls for cls in (AdditivePredictor, BilinearPredictor, QuadraticPredictor, WithinStageEstimator)
}


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


class PredictorFile(BaseModel):
    """A binas predictor, version 1: the link of accuracy is b + a'z + z'Qz."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Literal["binas/predictor"]
    version: Literal[1]
    kind: Literal["additive", "bilinear", "quadratic", "within-stage"]
    space: SpaceReference
    settings: SettingsEntry
    chosen: ChosenEntry
    constant: float = Field(description="b")
    linear: list[float] = Field(description="a, in the order (alpha, beta)")
    quadratic: list[list[float]] | None = Field(description="Q by rows; null where there is none")


def load_predictor(path: Path, space: SearchSpace) -> ClosedFormPredictor | MLPPredictor:
    """Read a predictor that ``save`` wrote and check that it was learned for the space."""
    path = Path(path)
    if path.suffix == TENSORS:
        from binas.estimators.mlp import load_mlp

        return load_mlp(path, space)
    return closed_form_from_data(read_json(path), space, str(path))


def closed_form_from_data(data: Any, space: SearchSpace, where: str) -> ClosedFormPredictor:
    """Build from the JSON object, checking everything."""
    try:
        parsed = PredictorFile.model_validate(data)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}" for item in error.errors()]
        raise EstimatorError(several(f"{where} is not a binas predictor", found, "Fit it again.")) from error
    problems = other_space(parsed.space, space) + _size_problems(parsed, space)
    if problems:
        raise EstimatorError(several(where, problems))
    predictor = CLOSED_FORMS[parsed.kind](**parsed.settings.model_dump())
    predictor.space_, predictor.constant_ = space, parsed.constant
    predictor.chosen_ = Chosen(**parsed.chosen.model_dump())
    predictor.linear_ = np.array(parsed.linear)
    size = len(parsed.linear)
    predictor.quadratic_ = np.array(parsed.quadratic) if parsed.quadratic else np.zeros((size, size))
    return predictor


def _size_problems(parsed: PredictorFile, space: SearchSpace) -> list[str]:
    size = space.alpha_size + space.beta_size
    rows = [[0.0] * size] * size if parsed.quadratic is None else parsed.quadratic
    if len(parsed.linear) == len(rows) == size and all(len(row) == size for row in rows):
        return []
    return [f"it has coefficients for another number of choices than the {size} of {space.name!r}"]
