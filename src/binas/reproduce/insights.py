"""Figure 8: what depth, expansion, kernel and squeeze-excite bring, by stage and by block."""

from __future__ import annotations

from collections.abc import Mapping

from binas.insights import find_insights
from binas.insights.effects import Effect
from binas.insights.steps import DepthStep, OptionStep
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, Z, rounded


def make(study: Study) -> Finding:
    """The insights of the run's contributions: depth for stages, options for stages, options for blocks."""
    tables = study.run.tables
    cost = tables.costs.costs[study.cost]
    found = find_insights(tables.contributions, cost if cost.combine == "sum" else None)
    rows = [_row("depth", step.stage, step.name, step.effect) for step in found.depths]
    for option in found.options:
        rows += [_row("stage", stage, option.name, effect) for stage, effect in option.per_stage.items()]
        rows += [_row("block", str(block), option.name, effect) for block, effect in option.per_block.items()]
    panels = (
        Panel(title="depth", x="depth", y="points gained", series=_depths(found.depths)),
        Panel(title="options, by stage", x="stage", y="points gained", series=_options(found.options, True)),
        Panel(title="options, by block", x="block", y="points gained", series=_options(found.options, False)),
    )
    said = " ".join(found.sentences[:4]) or "Nothing can be said with certainty."
    return Finding(sentence=said, rows=tuple(rows), panels=panels)


def _row(panel: str, where: str, step: str, effect: Effect) -> Row:
    known = effect.to_json()
    return {
        "panel": panel,
        "where": where,
        "step": step,
        "points": rounded(effect.value),
        "error": rounded(known["stderr"]),
    }


def _depths(steps: tuple[DepthStep, ...]) -> tuple[Series, ...]:
    stages = dict.fromkeys(step.stage for step in steps)
    return tuple(
        _line(
            stage,
            {f"{step.shallow} to {step.deep}": step.effect for step in steps if step.stage == stage},
        )
        for stage in stages
    )


def _options(steps: tuple[OptionStep, ...], by_stage: bool) -> tuple[Series, ...]:
    return tuple(
        _line(
            step.name,
            step.per_stage if by_stage else {str(block): effect for block, effect in step.per_block.items()},
        )
        for step in steps
    )


def _line(name: str, effects: Mapping[str, Effect]) -> Series:
    errors = [effect.to_json()["stderr"] for effect in effects.values()]
    return Series(
        name=name,
        x=tuple(effects),
        y=tuple(effect.value for effect in effects.values()),
        error=tuple(Z * error if error is not None else None for error in errors),
    )


EXPERIMENT = Experiment(
    "insights",
    "figure 8",
    "Deepen later stages; add width and squeeze-excite to later stages and to the first blocks of a stage; prefer both over "
    "larger kernels.",
    make,
    ("contributions.json", "costs.json", "results/*.json"),
    "Contributions are of one half of the validation images; nothing is judged. Errors are the standard errors of the fit, "
    "bars 1.96 of them.",
)
