"""What each design choice contributes to accuracy (paper section 3.2), in percentage points.

ACC = base + sum_s Delta^s_{d^s} + sum_s sum_{b <= d^s} Delta^s_{b, c_b}      (equation of the estimator)

Errors of measured contributions depend on each other, so a table may carry their covariance; it gives the standard
error of a predicted accuracy and of the difference of two architectures.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from binas.base.errors import TableError, several
from binas.base.files import dump_json, write_text
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace, Stage
from binas.tables.entries import (
    Array,
    Column,
    ConfigEntries,
    DepthEntries,
    EntryReader,
    Number,
    Provenance,
    SpaceReference,
    column,
    config_data,
    depth_data,
    known_column,
    number_data,
    reference,
)
from binas.tables.reading import is_csv, other_space, read_table, validate

FORMAT = "binas/contributions"
AT_ONCE = 512  # architectures whose rows are in memory


DepthPairs = Mapping[tuple[int, int], Array]


class DepthPairEntry(BaseModel):
    """What the depths of two stages bring together beyond what each brings alone, in percentage points."""

    model_config = ConfigDict(extra="forbid")
    stages: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(description="Two stages")
    points: dict[str, dict[str, Annotated[float, Field(strict=True, allow_inf_nan=False)]]] = Field(
        description="depth of the first stage -> depth of the second stage -> points"
    )


class ContributionsFile(BaseModel):
    """A binas contributions table, version 1: accuracy in percentage points."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["binas/contributions"]
    version: Literal[1]
    space: SpaceReference | None = None
    unit: Literal["percent"] = "percent"
    base: Number = Field(description="Expected accuracy of a random architecture, E[Acc], in percent")
    depths: DepthEntries = Field(description="stage -> depth -> Delta_b^s")
    configs: ConfigEntries = Field(description="stage -> one object per block: config -> Delta_{b,c}^s")
    covariance: str | None = Field(
        None,
        description="Covariance of (base, configs, depths) in percent^2: lower triangle row by row, 32-bit little-endian "
        "floats in base64",
    )
    depth_pairs: list[DepthPairEntry] | None = Field(
        None, description="What depths of different stages bring together, where it was measured"
    )
    provenance: Provenance = Provenance()


@dataclass(frozen=True, slots=True)
class Extreme:
    """A choice with what it contributes, in points, and its standard error (NaN where not known)."""

    choice: str
    points: float
    error: float


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of a space: base accuracy, per depth, per config; NaN standard errors are unknown.

    ``covariance`` is that of (base, configs, depths), in the order of ``space.layout``, in percent^2. ``depth_pairs`` are
    effects of two depths together by numbers of the stages, (depths of the first, depths of the second), in points.
    """

    space: SearchSpace
    base: float
    values: Column
    base_stderr: float = math.nan
    stderr: Column | None = None
    count: Column | None = None
    provenance: Provenance = field(default_factory=Provenance)
    base_count: float = math.nan
    covariance: Array | None = None
    depth_pairs: DepthPairs | None = None

    def __post_init__(self) -> None:
        size = 1 + self.space.layout.size
        if self.covariance is not None and self.covariance.shape != (size, size):
            raise TableError(
                f"the covariance has shape {self.covariance.shape}; base and contributions of the space "
                f"{self.space.name!r} need {(size, size)}."
            )

    def predict(self, architectures: Iterable[Architecture]) -> tuple[Array, Array]:
        """Predicted accuracies in percent, (n,), and their standard errors in points, (n,), NaN where not known.

        base + z'theta and sqrt((1, z)' Cov (1, z)) with the rows z of ``space.layout``.
        """
        items, errors = list(architectures), [np.zeros(0)]
        values = self.base + self.values.total(self.space.layout.positions_of(items))
        for start in range(0, len(items), AT_ONCE):
            rows = self.space.layout.rows(items[start : start + AT_ONCE])
            errors.append(self.errors(np.column_stack([np.ones(len(rows)), rows])))
        return values, np.concatenate(errors)

    def errors(self, weights: Array) -> Array:
        """Standard errors of the sums w'(base, configs, depths), one per row w of ``weights``, (n,)."""
        return errors_of_sums(weights, self.base_stderr, self.stderr, self.covariance)

    def joint_errors(self, weights: Array) -> Array:
        """Covariance of these sums, in points^2, (n, n); NaN where not known."""
        if self.covariance is not None:
            return np.asarray(weights @ self.covariance @ weights.T)
        if self.stderr is None:
            return np.full((len(weights), len(weights)), math.nan)
        scaled = weights * single_errors(self.base_stderr, self.stderr)
        return np.asarray(scaled @ scaled.T)

    def extremes(self) -> Iterator[tuple[str, Extreme, Extreme]]:
        """Each decision by name with its best and its worst choice."""
        unknown = self.stderr or Column.full(self.space, math.nan)
        for s, stage in enumerate(self.space.stages):
            depths = [f"depth {depth}" for depth in stage.depths]
            yield stage.name, *_extremes(depths, self.values.depths[s], unknown.depths[s])
            for b, configs in enumerate(stage.blocks):
                names = [config.name for config in configs]
                numbers = self.values.configs[s][b], unknown.configs[s][b]
                yield f"{stage.name} block {b + 1}", *_extremes(names, *numbers)

    def sentence(self) -> str:
        """A measurement in one line: E[Acc], what it was measured from, and which outcome could not be used."""
        about = self.provenance.to_data()
        stable = f", stability {about['stability']:.3f}" if "stability" in about else ""
        left_out = f"; fitted to 0/1 outcomes, without the {about['left_out']}" if "left_out" in about else ""
        return (
            f"E[Acc] {self.base:.2f} ± {self.base_stderr:.2f} % from {about['evaluations']:,} image evaluations "
            f"({about['images']:,} validation images{stable}){left_out}"
        )

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        known: dict[str, Any] = (
            {} if self.covariance is None else {"covariance": covariance_data(self.covariance)}
        )
        if self.depth_pairs is not None:
            known["depth_pairs"] = _depth_pairs_data(self.space, self.depth_pairs)
        return {
            "format": FORMAT,
            "version": 1,
            "space": reference(self.space),
            "unit": "percent",
            "base": number_data(self.base, self.base_stderr, self.base_count),
            "depths": depth_data(self.space, self.values, self.stderr, self.count),
            "configs": config_data(self.space, self.values, self.stderr, self.count),
            **known,
            "provenance": self.provenance.to_data(),
        }

    def save(self, path: Path) -> None:
        """Write as ``.json`` or ``.csv``, atomically; a spreadsheet has no place for covariance and pairs of depths."""
        from binas.tables.spreadsheet import contributions_to_csv

        path = Path(path)
        write_text(path, contributions_to_csv(self) if is_csv(path) else dump_json(self.to_data()))


def _extremes(choices: list[str], values: Array, errors: Array) -> tuple[Extreme, Extreme]:
    best, worst = (
        Extreme(choices[i], values[i], errors[i]) for i in (int(values.argmax()), int(values.argmin()))
    )
    return best, worst


def errors_of_sums(
    weights: Array, base_stderr: float, stderr: Column | None, covariance: Array | None
) -> Array:
    """sqrt(w' Cov w) for every row w of ``weights`` over (base, configs, depths), (n,); NaN where not known.

    Without a covariance the errors are taken as independent, sqrt(sum w^2 stderr^2): a base of unknown error then
    counts as exact, and a contribution of unknown error matters only where its weight is not zero.
    """
    if covariance is not None:
        squares = ((weights @ covariance) * weights).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(0.0, squares)))  # weights that cancel may give -0 after rounding
    if stderr is None:
        return np.full(len(weights), math.nan)
    single = single_errors(base_stderr, stderr)
    return np.asarray(np.sqrt(np.where(weights == 0.0, 0.0, (weights * single) ** 2).sum(axis=1)))


def single_errors(base_stderr: float, stderr: Column) -> Array:
    """Standard errors of (base, configs, depths); a base of unknown error counts as exact."""
    return np.append(0.0 if math.isnan(base_stderr) else base_stderr, stderr.flat())


def contributions_from_data(data: Any, space: SearchSpace, where: str) -> Contributions:
    """Build from the JSON object, checking everything and reporting all problems at once."""
    parsed = validate(ContributionsFile, data, where)
    reader = EntryReader(space, "contributions", other_space(parsed.space, space))
    base = reader.single(parsed.base, "base")
    depths, configs = reader.depths(parsed.depths, required=True), reader.configs(parsed.configs)
    covariance = _covariance(parsed.covariance, 1 + space.layout.size, reader.problems)
    pairs = _depth_pairs(parsed.depth_pairs, space, reader.problems)
    if reader.problems:
        advice = f"The table must cover the space {space.name!r} completely with finite numbers"
        raise TableError(several(where, reader.problems, advice + "."))
    return Contributions(
        space,
        base.value,
        column(depths, configs, "value"),
        math.nan if base.stderr is None else base.stderr,
        known_column(depths, configs, "stderr"),
        known_column(depths, configs, "count"),
        parsed.provenance,
        math.nan if base.count is None else base.count,
        covariance,
        pairs,
    )


def covariance_data(covariance: Array) -> str:
    """The lower triangle as text: row by row, 32-bit little-endian floats, base64."""
    if not np.isfinite(covariance).all():
        raise TableError("the covariance of the contributions holds NaN or infinity; it cannot be written.")
    lower = covariance[np.tril_indices(len(covariance))]
    return base64.b64encode(lower.astype("<f4").tobytes()).decode("ascii")


def _covariance(text: str | None, size: int, problems: list[str]) -> Array | None:
    """The matrix of :func:`covariance_data`; what is wrong with it is added to ``problems``."""
    if text is None:
        return None
    try:
        lower = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float64)
    except (binascii.Error, ValueError) as error:
        problems.append(f"covariance cannot be read ({error})")
        return None
    if len(lower) != size * (size + 1) // 2 or not np.isfinite(lower).all():
        problems.append(
            f"covariance must hold {size * (size + 1) // 2} finite numbers, it holds {np.isfinite(lower).sum()}"
        )
        return None
    full = np.zeros((size, size))
    full[np.tril_indices(size)] = lower
    full += np.tril(full, -1).T
    spectrum = np.linalg.eigvalsh(full)
    if spectrum[0] < -1e-4 * max(spectrum[-1], 0.0):  # what 32-bit floats may do to a zero, and no more
        problems.append(
            "covariance is not one: it gives some combination of contributions a negative variance"
        )
    return full


def _depth_pairs_data(space: SearchSpace, pairs: DepthPairs) -> list[dict[str, Any]]:
    def points(first: Stage, second: Stage, values: Array) -> dict[str, dict[str, float]]:
        rows = zip(first.depths, values.tolist(), strict=True)
        return {str(depth): dict(zip(map(str, second.depths), row, strict=True)) for depth, row in rows}

    return [
        {"stages": [first.name, second.name], "points": points(first, second, values)}
        for (s, t), values in pairs.items()
        for first, second in [(space.stages[s], space.stages[t])]
    ]


def _depth_pairs(
    entries: list[DepthPairEntry] | None, space: SearchSpace, problems: list[str]
) -> DepthPairs | None:
    """The arrays of :func:`_depth_pairs_data`; what is wrong with them is added to ``problems``."""
    if entries is None:
        return None
    places, result = {stage.name: s for s, stage in enumerate(space.stages)}, dict[tuple[int, int], Array]()
    for entry in entries:
        pair = places.get(entry.stages[0], -1), places.get(entry.stages[1], -1)
        label = f"depth_pairs of {' and '.join(entry.stages)}"
        if not 0 <= pair[0] < pair[1] or pair in result:
            problems.append(f"{label} must be two stages of the space in its order, each pair once")
            continue
        wanted, inner = ([str(d) for d in space.stages[s].depths] for s in pair)
        if sorted(entry.points) != sorted(wanted) or any(
            sorted(r) != sorted(inner) for r in entry.points.values()
        ):
            problems.append(f"{label} must have a number for all their depths")
            continue
        result[pair] = np.array([[entry.points[d][e] for e in inner] for d in wanted])
    return result


def load_contributions(path: Path, space: SearchSpace) -> Contributions:
    """Read a contributions table (``.json`` or ``.csv``) and check it against the space."""
    from binas.tables.spreadsheet import contributions_data_from_csv

    return contributions_from_data(read_table(Path(path), contributions_data_from_csv), space, str(path))
