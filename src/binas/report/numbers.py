"""All numbers of a report as one JSON object: what the page draws, and what ``binas report --json`` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import BinasError, SpaceError
from binas.costs.analytic import analytic_costs
from binas.estimators.calibration import CalibratedEstimator
from binas.estimators.choosing import predict_held_out
from binas.estimators.judging import report
from binas.insights.summary import find_insights
from binas.report.data import Chosen, Reference, ReportData
from binas.report.frontier_numbers import frontier_numbers, runner_ups, significant
from binas.search.frontier import frontier
from binas.search.limits import parse_limits
from binas.search.problem import SearchProblem
from binas.space.space import OptionValue, SearchSpace
from binas.tables.conditions import describe, disturbed
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.samples import Samples
from binas.tables.units import format_quantity
from binas.version import TOOL

FORMAT = "binas/report"
RESAMPLES = 200  # behind the intervals of ranking correlations
SAME_COST = 1.02  # references up to so many times the cost of a chosen network are compared with it
WIDTHS = ("expansion", "width", "ratio", "channels")  # options that may be drawn as the width of a block
GLYPHS = ("kernel",)  # as a grid of dots


def report_numbers(data: ReportData) -> dict[str, Any]:
    """Every number a report shows, plain and finite: null where something is not known."""
    problem = SearchProblem.build(data.predictor, data.costs)
    curve = frontier(problem, data.cost) if data.frontier is None else data.frontier
    traced = frontier_numbers(curve, data.predictor)
    asked = [_asked(data, item) for item in data.chosen]
    numbers = {
        "format": FORMAT,
        "version": 1,
        "tool": TOOL,
        "title": data.title or f"Networks of {data.space.name}",
        "story": list(data.story),
        "space": _space(data.space),
        "drawing": drawing(data.space),
        "cost": data.cost,
        "unit": data.traced.unit.name,
        "conditions": describe(data.traced.provenance),
        "disturbed": _disturbed(data),
        "sources": _sources(data),
        "costs": {name: _cost(cost) for name, cost in data.costs.costs.items()},
        "contributions": {"base": data.contributions.base, **_column(data.contributions.values)},
        "estimator": _estimator(data),
        "frontier": traced,
        "runner_ups": runner_ups(problem, data.cost, traced["slider"], asked),
        "chosen": [_chosen(data, item) for item in data.chosen],
        "references": [vars(item) for item in data.references],
        "insights": _insights(data),
        "verification": None if data.verification is None else data.verification.model_dump(mode="json"),
        "ranking": _ranking(data),
        "training": [dict(row) for row in data.metrics],
        "times": [vars(item) for item in data.times],
        "config": data.config,
        "commands": list(data.commands),
    }
    return dict(_finite(numbers))


def _disturbed(data: ReportData) -> str | None:
    """That the machine was busy, or not as it was, while the table or the networks were measured; None where it was not."""
    said = [disturbed(data.cost, data.traced.provenance), *(item.remark for item in data.chosen)]
    return " ".join(dict.fromkeys(filter(None, said))) or None


def _finite(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _space(space: SearchSpace) -> dict[str, Any]:
    """The space; blocks name their list of configs by its index in ``kinds``, as most blocks share one."""
    # Told apart as text: Python takes 1 and True for equal.
    blocks = {repr(block): block for stage in space.stages for block in stage.blocks}
    index = {text: i for i, text in enumerate(blocks)}
    return {
        "name": space.name,
        "description": space.description,
        "architectures": str(space.count),
        "kinds": [[{"name": c.name, **dict(c.options)} for c in block] for block in blocks.values()],
        "stages": [
            {
                "name": stage.name,
                "depths": list(stage.depths),
                "attributes": dict(stage.attributes),
                "blocks": [index[repr(block)] for block in stage.blocks],
            }
            for stage in space.stages
        ],
    }


def drawing(space: SearchSpace) -> dict[str, Any]:
    """How blocks are drawn: which option is the width (a number), which the glyph (a whole number), the badges, the words.

    Configs that have neither width nor glyph are drawn with their names.
    """
    values = _values(space)
    width = next((key for key in WIDTHS if _numbers(values.get(key, []))), None)
    glyph = next((key for key in GLYPHS if _whole(values.get(key, []))), None)
    badges = [key for key, own in values.items() if all(isinstance(value, bool) for value in own)]
    words = [key for key in values if key not in (width, glyph, *badges)]
    most = max((float(value) for value in values.get(width or "", [])), default=1.0)
    return {
        "width": width,
        "most": most,
        "glyph": glyph,
        "badges": badges,
        "words": words,
    }


def _values(space: SearchSpace) -> dict[str, list[OptionValue]]:
    """All values of every option."""
    values: dict[str, list[OptionValue]] = {}
    for stage in space.stages:
        for block in stage.blocks:
            for config in block:
                for key, value in config.options:
                    values.setdefault(key, []).append(value)
    return values


def _numbers(values: list[OptionValue]) -> bool:
    """Whether there are values, all of them numbers above zero."""
    return bool(values) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < float("inf") for v in values
    )


def _whole(values: list[OptionValue]) -> bool:
    """Whether all are whole numbers small enough to be drawn as a grid of dots."""
    return _numbers(values) and all(isinstance(value, int) and value <= 9 for value in values)


def _sources(data: ReportData) -> dict[str, str]:
    """Where the tables come from, in their own words."""
    tables = {"contributions": data.contributions.provenance, data.cost: data.traced.provenance}
    return {name: known.source for name, known in tables.items() if known.source}


def _column(column: Column) -> dict[str, Any]:
    return {
        "depths": [[significant(x, 8) for x in row.tolist()] for row in column.depths],
        "configs": [[[significant(x, 8) for x in b.tolist()] for b in row] for row in column.configs],
    }


def _cost(cost: Cost) -> dict[str, Any]:
    unit = cost.unit
    return {
        "unit": unit.name,
        "kind": unit.kind,
        "factor": unit.factor,
        "combine": cost.combine,
        "fixed": cost.fixed,
        **_column(cost.values),
    }


def _asked(data: ReportData, item: Chosen) -> float:
    """Where on the frontier a chosen network belongs: its limit on the traced cost where it has one, else its cost."""
    try:
        limits = parse_limits(item.limit, data.costs.space, data.costs.costs)
    except BinasError:  # words
        return item.cost
    upper = [limit.value for limit in limits if limit.cost == data.cost and not limit.lower]
    return min(upper, default=item.cost)


def _chosen(data: ReportData, item: Chosen) -> dict[str, Any]:
    measured = item.measured_cost
    most, least = SAME_COST * item.cost, item.cost / SAME_COST - 0.1 * item.cost
    best: dict[str, Reference] = {}
    for other in data.references:
        if least <= other.cost <= most and other.accuracy > getattr(
            best.get(other.group), "accuracy", -math.inf
        ):
            best[other.group] = other
    return {
        **vars(item),
        "architecture": str(item.architecture),
        "at": _asked(data, item),
        "measured_cost": None if measured is None else measured.to_json(),
        "files": list(item.files),
        "confirmed": None if item.confirmed is None else item.confirmed.model_dump(mode="json"),
        "best_references": [vars(other) for other in best.values()],
    }


def _estimator(data: ReportData) -> dict[str, str] | None:
    """Which estimator predicts, and why; None where it is not said."""
    if not data.estimator_name:
        return None
    why = f"{data.estimator_name} was asked for." if data.choice is None else data.choice.why
    shown = data.predictor
    line = f" Shown: {shown.calibration.sentence()}" if isinstance(shown, CalibratedEstimator) else ""
    return {"name": data.estimator_name, "why": why + line}


def _insights(data: ReportData) -> dict[str, Any]:
    """The insights; without costs where the traced cost is a maximum, in which single choices have none."""
    cost = None if data.traced.combine == "max" else data.traced
    return find_insights(data.contributions, cost).to_json()


def _ranking(data: ReportData) -> dict[str, Any] | None:
    """Predicted against measured accuracy, with MACs alone and the noise ceiling; None without samples.

    An estimator that learns from samples is judged on those it did not see.
    """
    samples = data.samples
    if samples is None or len(samples) < 2:
        return None
    predicted = _predict_samples(data, samples)
    macs = _macs(data)
    baseline = None if macs is None else macs.of(data.space, samples.architectures)
    judged = report({"contributions": predicted}, samples, baseline, resamples=RESAMPLES)
    return {
        **judged.to_json(),
        "predicted": [significant(x, 7) for x in predicted.tolist()],
        "measured": samples.accuracy.tolist(),
        "measured_stderr": samples.error.tolist(),
        "architectures": [str(item) for item in samples.architectures],
    }


def _predict_samples(data: ReportData, samples: Samples) -> NDArray[np.float64]:
    if not data.estimator_name:
        return data.predictor.predict(samples.architectures)
    predicted = predict_held_out(data.estimator_name, data.contributions, samples)
    shown = data.predictor
    return shown.calibration.of(predicted) if isinstance(shown, CalibratedEstimator) else predicted


def _macs(data: ReportData) -> Cost | None:
    """The MACs of the table, or counted from the space where it says enough."""
    if "macs" in data.costs.costs:
        return data.costs["macs"]
    try:
        return analytic_costs(data.space)["macs"]
    except SpaceError:  # a space of names only: nothing to count
        return None


def summary(numbers: Mapping[str, Any], data: ReportData) -> list[str]:
    """What a report says, in a few lines for a terminal."""
    traced = numbers["frontier"]
    low, high = (format_quantity(traced["costs"][i], data.traced.unit) for i in (0, -1))
    first = f"{traced['networks']} best networks from {low} to {high} ({traced['certainty']})"
    return [first, *numbers["insights"]["sentences"][:3]]
