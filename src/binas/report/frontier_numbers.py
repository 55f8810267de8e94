"""The frontier for a page: every network in a compact form, and the runner-ups at many limits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators._base import Estimator
from binas.search.alternatives import best_architectures
from binas.search.deadline import Deadline
from binas.search.frontier import Frontier
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.space.architecture import EMPTY_STAGE, Architecture

Array = NDArray[np.float64]

CHUNK = 2048  # architectures whose errors are computed at once

MOST_POINTS = 8000  # networks of a frontier that a page holds
STOPS = 400  # positions of the slider, about
RUNNER_LIMITS = 40  # limits at which runner-ups are computed, besides those asked for
RUNNER_SECONDS = 10.0  # for the positions of the slider together; only very large spaces need longer
ASKED_SECONDS = 10.0  # for each limit that was asked for
RUNNER_UPS = 4


def significant(value: float, digits: int) -> float:
    """Rounded to so many significant digits: short in a file."""
    return float(f"{value:.{digits}g}")


def standard_errors(estimator: Estimator, architectures: Sequence[Architecture]) -> Array | None:
    """Standard errors of predicted accuracies in points; None where they are not known."""
    parts = [
        estimator.standard_error(architectures[start : start + CHUNK])
        for start in range(0, len(architectures), CHUNK)
    ]
    errors = np.concatenate([np.zeros(0), *parts])
    return None if np.isnan(errors).any() else errors


def frontier_numbers(traced: Frontier, estimator: Estimator) -> dict[str, Any]:
    """A frontier with standard errors, as :func:`frontier_points`."""
    errors = standard_errors(estimator, [traced.architecture(i) for i in _kept(len(traced))])
    return {
        **frontier_points(traced),
        "stderr": None if errors is None else [significant(error, 3) for error in errors],
    }


def frontier_points(traced: Frontier) -> dict[str, Any]:
    """The points of a frontier and its slider. At most ``MOST_POINTS`` networks; ``loss`` says what that costs."""
    kept = _kept(len(traced))
    return {
        "exact": traced.exact,
        "certainty": traced.certainty,
        "networks": len(traced),
        "loss": _loss(traced.accuracies, kept),
        "costs": [significant(traced.costs[i], 12) for i in kept],
        "accuracies": [significant(traced.accuracies[i], 8) for i in kept],
        "stages": _stages([traced.architecture(i) for i in kept]),
        "slider": slider(float(traced.costs[0]), float(traced.costs[-1])),
    }


def _kept(count: int) -> list[int]:
    """All points, or evenly spread ones with the first and last."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, MOST_POINTS)).tolist()})


def _loss(accuracies: Array, kept: list[int]) -> float:
    """The most that the best kept network can lie below the best one, at any limit."""
    gaps = [float(accuracies[after - 1] - accuracies[i]) for i, after in itertools.pairwise(kept)]
    return max(gaps, default=0.0)


def _stages(architectures: Sequence[Architecture]) -> list[dict[str, Any]]:
    """Per stage the distinct variants as text, and for each network the index of its variant."""
    result = []
    for stage in zip(*(architecture.stages for architecture in architectures), strict=True):
        numbers = {names: i for i, names in enumerate(dict.fromkeys(stage))}
        variants = ["-".join(names) or EMPTY_STAGE for names in numbers]
        result.append({"variants": variants, "points": [numbers[names] for names in stage]})
    return result


def slider(low: float, high: float) -> dict[str, float]:
    """Round positions from the cheapest to the best network: step 1, 2 or 5 times a power of ten."""
    width = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(width / STOPS))
    step = next(power * factor for factor in (1, 2, 5, 10) if width / (power * factor) <= STOPS)
    first, last = math.ceil(low / step - 1e-9), math.ceil(high / step - 1e-9)
    return {"min": significant(first * step, 12), "max": significant(last * step, 12), "step": step}


def runner_ups(
    problem: SearchProblem, cost: str, positions: Mapping[str, float], asked: Iterable[float]
) -> list[dict[str, Any]]:
    """The best networks after the optimum, proven: at the limits asked for, and at positions of the slider.

    Positions are spread evenly, coarse first, until ``RUNNER_SECONDS`` are over; what is not proven by then is left out.
    """
    entries: dict[float, dict[str, Any]] = {}
    for limit in asked:
        entries[limit] = _runner_ups(problem, cost, limit, Deadline.after(ASKED_SECONDS))
    deadline = Deadline.after(RUNNER_SECONDS)
    for limit in _coarse_to_fine(positions):
        if deadline.late:
            break
        if limit not in entries:
            entries[limit] = _runner_ups(problem, cost, limit, deadline)
    return [entry for _, entry in sorted(entries.items()) if entry]


def _coarse_to_fine(positions: Mapping[str, float]) -> list[float]:
    """Evenly spread positions of the slider, ordered so that the first few are already spread over all of it."""
    low, high, step = (positions[key] for key in ("min", "max", "step"))
    stops = round((high - low) / step)
    places = sorted({round(i) for i in np.linspace(0, stops, min(stops + 1, RUNNER_LIMITS)).tolist()})
    bits = len(places).bit_length()
    order = sorted(range(len(places)), key=lambda i: f"{i:0{bits}b}"[::-1])
    return [significant(low + places[i] * step, 12) for i in order]


def _runner_ups(problem: SearchProblem, cost: str, limit: float, deadline: Deadline) -> dict[str, Any]:
    """The optimum at one limit and the best networks after it; empty where there are none, or none proven in time."""
    asked = problem.with_limits([Limit(cost, limit)])
    try:
        best = best_architectures(asked, RUNNER_UPS + 1, time_limit=deadline)
    except ProblemError:
        return {}
    if not best.complete:
        return {}
    items = [
        {
            "architecture": str(item.architecture),
            "accuracy": significant(item.accuracy, 8),
            "cost": significant(item.costs[cost], 8),
        }
        for item in best.items
    ]
    return {"limit": limit, **items[0], "items": items[1:]} if len(items) > 1 else {}
