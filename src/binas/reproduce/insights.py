"""Figure 8: what depth, expansion, kernel and squeeze-excite bring, by stage and by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from binas.base.interval import Z
from binas.insights import find_insights
from binas.insights.effects import Effect, Effects
from binas.insights.sentences import largest_steps, points_of
from binas.insights.steps import DepthStep, OptionStep
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded

WIDER, KERNEL = ("expansion", "se"), "kernel"  # options, as families of blocks name them


def make(study: Study) -> Finding:
    """The insights of the run's contributions: depth for stages, options for stages, options for blocks."""
    tables = study.run.tables
    cost = tables.costs.costs[study.cost]
    found = find_insights(tables.contributions, cost if cost.combine == "sum" else None)
    sound = [option for option in found.options if option.balanced]
    rows = [_row("depth", step.stage, step.name, step.effect) for step in found.depths]
    for option in found.options:
        rows += [_row("stage", stage, option.name, effect) for stage, effect in option.per_stage.items()]
        rows += [_row("block", str(block), option.name, effect) for block, effect in option.per_block.items()]
    panels = (
        Panel(title="depth", x="depth", y="points gained", series=_depths(found.depths)),
        Panel(title="options, by stage", x="stage", y="points gained", series=_options(found.options, True)),
        Panel(title="options, by block", x="block", y="points gained", series=_options(found.options, False)),
    )
    said = found.sentences[:4] or ("Nothing can be said with certainty.",)
    preferred = _preferred(Effects(tables.contributions), largest_steps(sound))
    return Finding(sentence=" ".join([*said, *preferred]), rows=tuple(rows), panels=panels)


def _preferred(effects: Effects, steps: Mapping[str, OptionStep]) -> Iterator[str]:
    """The paper's "prefer width and S&E over bigger kernels", answered by the largest step of each on average."""
    kernel, wider = steps.get(KERNEL), [steps[name] for name in WIDER if name in steps]
    if kernel is None or not wider:
        yield "This space does not offer both kernels and width or squeeze-excite, to prefer one to the other."
        return
    for step in wider:
        difference = effects.difference(step.overall, kernel.overall)
        more = step.name if difference.value > 0 else kernel.name
        verdict = f"{more} brings more" if difference.clear else "no clear difference"
        both = ", ".join(f"{item.name} {points_of(item.overall)}" for item in (step, kernel))
        yield f"{step.option.capitalize()} or kernel: {both} points on average; {verdict} ({points_of(difference)})."


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
