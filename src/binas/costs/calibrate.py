"""From the costs of isolated blocks to a table that adds up.

A block measured alone carries the overhead of a call of its own and finds other caches than inside a network, so
plain sums are biased. Whole networks tell by how much:

    cost = scale * (sum of the blocks) + sum_s per_block_s * depth_s + constant

The second term is the depth part of a cost table, so the formula stays bilinear (paper, equation of LAT). Which terms
are used is decided by leave-one-out cross-validation on the networks given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.base.interval import Interval
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.verification import Calibration

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasuredNetwork:
    """A whole network, what it costs as measured, and the values of two halves of its samples."""

    architecture: Architecture
    cost: Interval
    halves: tuple[float, float]


def mape_percent(predicted: Array, measured: Array) -> float:
    """Mean of |predicted / measured - 1|, in percent."""
    return float(100.0 * np.mean(np.abs(predicted / measured - 1.0)))


def block_sums(space: SearchSpace, cost: Cost, architectures: Sequence[Architecture]) -> Array:
    """The config parts of the active blocks alone, added up, (n,)."""
    configs, _ = space.layout.split(cost.values.flat())
    blocks = np.append(configs, np.zeros(space.beta_size))
    return Column.from_flat(space, blocks).total(space.layout.positions_of(architectures))


def _rows(space: SearchSpace, isolated: Cost, networks: Sequence[MeasuredNetwork]) -> Array:
    """One row per network: sum of blocks, depth of each stage, 1."""
    architectures = [network.architecture for network in networks]
    depths = np.array([item.depths for item in architectures], dtype=np.float64)
    return np.column_stack(
        [
            block_sums(space, isolated, architectures),
            depths.reshape(-1, len(space.stages)),
            np.ones(len(networks)),
        ]
    )


def _affine(stages: int) -> Array:
    """a * sum of the blocks + c: columns (scale, constant) in terms of (scale, one overhead per stage, constant)."""
    return np.eye(stages + 2)[:, [0, -1]]


def _per_block(stages: int) -> Array:
    """a * sum of the blocks + b * number of blocks + c: one overhead for all blocks."""
    shared = np.r_[0.0, np.ones(stages), 0.0]
    return np.column_stack([np.eye(stages + 2)[:, 0], shared, np.eye(stages + 2)[:, -1]])


def _per_stage(stages: int) -> Array:
    """a * sum of the blocks + sum over stages of b_s * depth_s + c: an overhead for the blocks of each stage."""
    return np.eye(stages + 2)


SUM = "sum"  # of the blocks + fixed part: nothing is fitted
FITTED: dict[str, Callable[[int], Array]] = {
    "affine": _affine,
    "per-block": _per_block,
    "per-stage": _per_stage,
}


def _fit(basis: Array, rows: Array, measured: Array) -> Array:
    """Least squares in relative errors; scale and constant from zero up, for a table holds no negative cost."""
    design = rows @ basis / measured[:, None]
    largest = np.abs(design).max(axis=0)
    size = np.where(largest > 0, largest, 1.0)  # a stage may be empty in every network
    return np.asarray(
        basis @ (_least_squares(design / size, np.ones(len(measured))) / size), dtype=np.float64
    )


def _least_squares(design: Array, right: Array) -> Array:
    """min ||design x - right|| with the first and the last of x not negative: the best of the four sets of zeros."""
    solutions = []
    for zeros in ([], [0], [-1], [0, -1]):
        free, x = np.delete(np.arange(design.shape[1]), zeros), np.zeros(design.shape[1])
        x[free] = np.linalg.lstsq(design[:, free], right, rcond=None)[0]
        if x[0] >= 0 and x[-1] >= 0:
            solutions.append(x)
    return min(solutions, key=lambda x: float(((design @ x - right) ** 2).sum()))


def calibrate(space: SearchSpace, isolated: Cost, networks: Sequence[MeasuredNetwork]) -> Calibration:
    """The form with the smallest cross-validated error on these networks, fitted to all of them.

    A form is tried when there are at least two networks more than numbers to fit.
    """
    rows = _rows(space, isolated, networks)
    measured = np.array([network.cost.value for network in networks])
    plain = np.r_[1.0, np.zeros(len(space.stages)), isolated.fixed]
    errors = {SUM: mape_percent(rows @ plain, measured)}
    for form, columns in FITTED.items():
        basis = columns(len(space.stages))
        if len(networks) >= basis.shape[1] + 2:
            errors[form] = mape_percent(_left_out(basis, rows, measured), measured)
    best = min(errors, key=lambda form: round(errors[form], 6))  # of equals the simplest, which comes first
    parameters = plain if best == SUM else _fit(FITTED[best](len(space.stages)), rows, measured)
    scale, *per_block, constant = parameters.tolist()
    return Calibration(
        form=best,
        scale=scale,
        per_block=tuple(per_block),
        constant=constant,
        networks=0 if best == SUM else len(networks),
        tried=errors,
    )


def _left_out(basis: Array, rows: Array, measured: Array) -> Array:
    """Each network's cost by the fit to all others."""
    predicted = np.empty(len(measured))
    for i in range(len(measured)):
        others = np.arange(len(measured)) != i
        predicted[i] = rows[i] @ _fit(basis, rows[others], measured[others])
    return predicted


def apply_calibration(space: SearchSpace, isolated: Cost, calibration: Calibration) -> Cost:
    """The table that the calibration makes of isolated costs.

    Standard errors are those of the measured blocks, scaled; a fitted fixed part has none.
    """
    scale = calibration.scale
    values = Column.build(
        space,
        lambda s, i: calibration.per_block[s] * space.stages[s].depths[i],
        lambda s, b, c: scale * float(isolated.values.configs[s][b][c]),
    )
    stderr = None if isolated.stderr is None else isolated.stderr.map(lambda part: scale * part)
    provenance = isolated.provenance.model_copy(update={"calibration": calibration})
    return replace(
        isolated,
        fixed=calibration.constant,
        fixed_stderr=isolated.fixed_stderr if calibration.form == SUM else math.nan,
        values=values,
        stderr=stderr,
        provenance=provenance,
    )
