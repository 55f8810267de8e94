"""Does the formula hold? A cost table against whole networks that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import MeasureError
from binas.base.interval import Interval
from binas.base.statistics import Statistic, bootstrap, kendall, spearman
from binas.costs.calibrate import MeasuredNetwork, apply_calibration, calibrate, mape_percent
from binas.space.architecture import Architecture
from binas.space.sampling import sample
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import today
from binas.tables.verification import NetworkCheck, Verification

Array = NDArray[np.float64]
FIT_SHARE = 0.4
FEWEST = 3  # networks held out


def draw_networks(
    space: SearchSpace, count: int, seed: int = 0
) -> tuple[list[Architecture], list[Architecture]]:
    """Architectures to fit to, and others to be held out: ``count`` random ones and the corners of the space.

    The lightest and the heaviest are fitted to, so that the calibration spans the space; deep but light and shallow
    but heavy are held out. All are distinct, so a tiny space gives fewer.
    """
    rng = np.random.default_rng(seed)
    corners = [_corner(space, deep, heavy) for deep, heavy in ((0, 0), (1, 1), (1, 0), (0, 1))]
    drawn = [sample(space, rng) for _ in range(count)]
    fit_to = round(FIT_SHARE * count)
    fit = list(dict.fromkeys([*corners[:2], *drawn[:fit_to]]))
    held_out = [a for a in dict.fromkeys([*corners[2:], *drawn[fit_to:]]) if a not in fit]
    if len(held_out) < FEWEST:
        raise MeasureError(
            f"{count} random networks of the space {space.name!r} leave only {len(held_out)} to verify with, and "
            f"{FEWEST} are needed; draw more with --samples, or none with --samples 0."
        )
    return fit, held_out


def _corner(space: SearchSpace, deep: int, heavy: int) -> Architecture:
    """Every stage at its largest or smallest depth, every block with its last or first config."""
    depths = [max(stage.depths) if deep else min(stage.depths) for stage in space.stages]
    return Architecture.of(
        [configs[-1 if heavy else 0].name for configs in stage.blocks[:depth]]
        for stage, depth in zip(space.stages, depths, strict=True)
    )


def check_formula(
    space: SearchSpace,
    isolated: Cost,
    fit: Sequence[MeasuredNetwork],
    held_out: Sequence[MeasuredNetwork],
    macs: Cost | None = None,
    given: Cost | None = None,
) -> Cost:
    """The table that predicts the networks of ``fit`` best, with its verification on those held out.

    It is made of the isolated costs (:func:`calibrate`), or the ``given`` one if that does as well. ``macs`` gives
    the baseline of a line through multiply-accumulates alone.
    """
    calibration = calibrate(space, isolated, fit)
    table = apply_calibration(space, isolated, calibration)
    if given is not None and _error(space, given, fit) <= calibration.tried[calibration.form]:
        table = given
    baseline = None if macs is None else _line_error(space, macs, fit, held_out)
    verification = verify_table(space, table, fit, held_out, _error(space, isolated, held_out), baseline)
    return replace(table, provenance=table.provenance.model_copy(update={"verification": verification}))


def verify_table(
    space: SearchSpace,
    table: Cost,
    fit: Sequence[MeasuredNetwork],
    held_out: Sequence[MeasuredNetwork],
    sum_percent: float,
    macs_percent: float | None = None,
) -> Verification:
    """Compare a table with measured networks; only those held out count for the numbers.

    ``sum_percent`` and ``macs_percent`` are the errors of the plain sum and of MACs, stored beside.
    """
    predicted, measured = _both(space, table, held_out)
    parts: tuple[tuple[Literal["fit", "held-out"], Sequence[MeasuredNetwork]], ...]
    parts = (("fit", fit), ("held-out", held_out))
    return Verification(
        networks=len(held_out),
        bias_percent=_interval(bias_percent, predicted, measured),
        mape_percent=_interval(mape_percent, predicted, measured),
        worst_percent=float(100.0 * np.abs(predicted / measured - 1.0).max()),
        spearman=_interval(spearman, predicted, measured),
        kendall=_interval(kendall, predicted, measured),
        retest_percent=retest_percent([*fit, *held_out]),
        sum_percent=sum_percent,
        macs_percent=macs_percent,
        date=today(),
        checks=tuple(_check(space, table, n, part) for part, networks in parts for n in networks),
    )


def _interval(statistic: Statistic, predicted: Array, measured: Array) -> Interval:
    """With its bootstrap interval over the networks; a rank correlation with a constant is 0."""
    return bootstrap(lambda *pair: float(np.nan_to_num(statistic(*pair))), predicted, measured)


def bias_percent(predicted: Array, measured: Array) -> float:
    """Mean of predicted / measured - 1, in percent."""
    return float(100.0 * np.mean(predicted / measured - 1.0))


def _check(
    space: SearchSpace, table: Cost, network: MeasuredNetwork, part: Literal["fit", "held-out"]
) -> NetworkCheck:
    return NetworkCheck(
        architecture=str(network.architecture),
        predicted=float(table.of(space, [network.architecture])[0]),
        measured=network.cost.value,
        low=network.cost.low,
        high=network.cost.high,
        part=part,
    )


def retest_percent(networks: Sequence[MeasuredNetwork]) -> float:
    """How far two halves of the same measurements are apart: no formula can be verified more closely."""
    first, second = np.array([network.halves for network in networks]).T
    return float(100.0 * np.mean(np.abs(first - second) / ((first + second) / 2)))


def _both(space: SearchSpace, table: Cost, networks: Sequence[MeasuredNetwork]) -> tuple[Array, Array]:
    """Predicted and measured costs."""
    predicted = table.of(space, [n.architecture for n in networks])
    return predicted, np.array([n.cost.value for n in networks])


def _error(space: SearchSpace, table: Cost, networks: Sequence[MeasuredNetwork]) -> float:
    return mape_percent(*_both(space, table, networks))


def _line_error(
    space: SearchSpace, macs: Cost, fit: Sequence[MeasuredNetwork], held_out: Sequence[MeasuredNetwork]
) -> float:
    """Mean absolute error in percent of a line through MACs, fitted and tested like the table."""
    counts, measured = _both(space, macs, fit)
    slope, start = np.polyfit(counts, measured, 1, w=1.0 / measured)
    others, truth = _both(space, macs, held_out)
    return mape_percent(slope * others + start, truth)
