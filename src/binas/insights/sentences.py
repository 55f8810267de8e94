"""Sentences about design choices, written only where the numbers carry them (paper section 5.3).

A comparison is spoken of when it is beyond three standard errors of the difference *and* large enough to matter; a trend
when, besides, a straight line explains most of it. Effects of an option that cannot be told apart from another option
are passed over. Where a table has no standard errors its numbers are taken as exact; whoever shows the sentences says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from binas.insights.effects import Effect, Effects
from binas.insights.rules import Rule, per_unit
from binas.insights.steps import DepthStep, OptionStep

MATTERS = 1.25  # the larger of two effects is at least so many times the smaller
STRAIGHT = 0.5  # share of the variation that a straight line must explain


def sentences(
    effects: Effects,
    depths: Sequence[DepthStep],
    options: Sequence[OptionStep],
    rules: Sequence[Rule],
) -> tuple[str, ...]:
    """What can be said, most general first; empty where nothing is clear."""
    sound = [step for step in options if step.balanced]
    return (
        *_depth_sentences(effects, depths),
        *itertools.chain.from_iterable(_option_sentences(effects, step) for step in sound),
        *_option_comparison(effects, sound),
        *_losses(sound),
        *_best_places(effects, rules),
    )


def _depth_sentences(effects: Effects, depths: Sequence[DepthStep]) -> Iterator[str]:
    for name in dict.fromkeys(step.name for step in depths):
        series = {step.stage: step.effect for step in depths if step.name == name}
        yield from _place(effects, series, "stages", name)


def _option_sentences(effects: Effects, step: OptionStep) -> Iterator[str]:
    yield from _place(effects, step.per_stage, "stages", step.name)
    blocks = {f"block {block}": effect for block, effect in step.per_block.items()}
    yield from _place(effects, blocks, "blocks", step.name)


def _place(effects: Effects, series: Mapping[str, Effect], places: str, what: str) -> Iterator[str]:
    """Where along stages or blocks a change brings most: later, earlier, in between, or nothing to say."""
    names, items = list(series), list(series.values())
    if len(items) < 2:
        return
    first, last = (names[0], items[0]), (names[-1], items[-1])
    if _line(effects, items) > 0 and _more(effects, items[-1], items[0]):
        yield f"Later {places} gain more from {what}: {_versus(last, first)}."
    elif _line(effects, items) < 0 and _more(effects, items[0], items[-1]):
        yield f"Earlier {places} gain more from {what}: {_versus(first, last)}."
    else:
        peak = int(np.argmax([item.value for item in items]))
        ends = [items[0], items[-1]]
        if 0 < peak < len(items) - 1 and all(_more(effects, items[peak], end) for end in ends):
            best = names[peak], items[peak]
            yield f"Intermediate {places} gain most from {what}: {_versus(best, first, last)}."


def _line(effects: Effects, items: Sequence[Effect]) -> float:
    """Slope of the straight line through a series, or 0 where it is not clear or does not explain the series."""
    place = np.arange(len(items)) - (len(items) - 1) / 2
    share = place / float(place @ place)
    slope = effects.effect(np.sum([w * item.weights for w, item in zip(share, items, strict=True)], axis=0))
    values = np.array([item.value for item in items])
    total = float(((values - values.mean()) ** 2).sum())
    explained = slope.value**2 * float(place @ place)
    return slope.value if slope.clear and explained >= STRAIGHT * total > 0 else 0.0


def _more(effects: Effects, one: Effect, two: Effect) -> bool:
    """Whether ``one`` brings clearly more than ``two``, by an amount that matters."""
    matters = one.value > 0 and one.value >= MATTERS * two.value
    return matters and one.clear and effects.difference(one, two).clear


def _versus(best: tuple[str, Effect], *others: tuple[str, Effect]) -> str:
    rest = " and ".join(f"{name} {points_of(effect)}" for name, effect in others)
    return f"{best[0]} {points_of(best[1])} against {rest} points"


def points_of(effect: Effect) -> str:
    """The value with its sign and standard error, where that is known."""
    error = "" if effect.stderr is None else f" ± {effect.stderr:.2g}"
    return f"{effect.value:+.3f}{error}"


def largest_steps(options: Iterable[OptionStep]) -> dict[str, OptionStep]:
    """Of every option the step that brings most on average over all blocks."""
    best: dict[str, OptionStep] = {}
    for step in options:
        if step.option not in best or step.overall.value > best[step.option].overall.value:
            best[step.option] = step
    return best


def _option_comparison(effects: Effects, options: Iterable[OptionStep]) -> Iterator[str]:
    """Which option brings most and which least, each by its largest step on average over all blocks."""
    order = sorted(largest_steps(options).values(), key=lambda step: -step.overall.value)
    if len(order) > 1 and _more(effects, order[0].overall, order[-1].overall):
        pair = [(step.name, step.overall) for step in (order[0], order[-1])]
        yield f"Of the options {order[0].option} matters most and {order[-1].option} least: {_versus(*pair)} on average."


def _losses(options: Iterable[OptionStep]) -> Iterator[str]:
    for step in options:
        if step.overall.value < 0 and step.overall.clear:
            yield f"{step.name.capitalize()} loses accuracy: {points_of(step.overall)} points on average."


def _best_places(effects: Effects, rules: Sequence[Rule]) -> Iterator[str]:
    """For depth and for options: the rule that pays best per unit, against the stage where it pays least."""
    sound = [rule for rule in rules if rule.per_cost is not None and rule.balanced and rule.effect.clear]
    for kind in ("depth", "option"):
        same_kind = [rule for rule in sound if rule.kind == kind]
        yield from _best_place(effects, [rule for rule in same_kind if rule.name == same_kind[0].name])


def _best_place(effects: Effects, ranked: Sequence[Rule]) -> Iterator[str]:
    if len(ranked) < 2 or effects.cost is None or not _pays_more(effects, ranked[0], ranked[-1]):
        return
    best, least, per = ranked[0], ranked[-1], per_unit(effects.cost)
    paid = [f"{(rule.per_cost or 0.0) * per.scale:+.3g}" for rule in (best, least)]
    yield f"Per {per.unit}, {best.name} pays best in {best.stage}: {paid[0]} against {paid[1]} points in {least.stage}."


def _pays_more(effects: Effects, one: Rule, two: Rule) -> bool:
    """Whether the difference of points per unit is clear; costs are taken as exact."""
    best, least = one.per_cost, two.per_cost
    if best is None or least is None or best <= 0 or best < MATTERS * least:
        return False
    shares = [rule.effect.weights / (rule.effect.cost or 1.0) for rule in (one, two)]
    return effects.effect(shares[0] - shares[1]).clear
