"""What a run found, in three sentences for those who do not read tables; nothing that two standard errors do not carry."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from binas.search.answers import AnswerRecord
from binas.search.rivals import Comparison, Difference, Verdict, is_clear
from binas.tables.units import format_quantity, parse_unit
from binas.training.judgement import Accuracy, NetworkRecord


def tell(
    answers: Iterable[AnswerRecord], networks: Mapping[str, NetworkRecord], comparisons: Iterable[Comparison]
) -> list[str]:
    """How good the found networks are, what others of the same cost reach, and whether limits were kept when measured."""
    answers = list(answers)
    found = [answer for answer in answers if answer.question in networks]
    accuracies = [networks[answer.question].judgement.tuned.test for answer in found]
    verdicts = {item.question: item.verdict for item in comparisons}
    compared = [verdicts[answer.question] for answer in found if answer.question in verdicts]
    none = [answer for answer in answers if answer.architecture is None]
    sentences = [_reached(found, accuracies), _bought(compared), _kept(found, none)] if found else []
    return [sentence for sentence in sentences if sentence]


def _reached(found: Sequence[AnswerRecord], accuracies: Sequence[Accuracy]) -> str:
    """The limits, the test accuracies, and whether a wider limit buys accuracy."""
    limits = _with_one_unit([_limit(answer) for answer in found])
    network = "the network that was found is" if len(found) == 1 else "the networks that were found are"
    right = _percents([accuracy.percent for accuracy in accuracies])
    rise = f"; {_rise(accuracies)}" if len(found) > 1 else ""
    return f"Within {limits} {network} right on {right} of {accuracies[0].images:,} images nobody had seen{rise}."


def _limit(answer: AnswerRecord) -> str:
    """The limits of an answer, rounded; a latency is per image where it was measured with one."""
    shown = []
    for limit in answer.limits:
        known, unit = answer.costs.get(limit.cost), parse_unit(limit.unit)
        single = unit.kind == "time" and known is not None and (known.conditions or {}).get("batch") == 1
        quantity = format_quantity(float(f"{limit.value:.3g}"), unit)
        shown.append(f"{'at least ' if limit.lower else ''}{quantity}{' per image' if single else ''}")
    return " with ".join(shown)


def _rise(accuracies: Sequence[Accuracy]) -> str:
    """Whether the last is better than the first; the errors are taken as independent, which is the careful side."""
    first, last = accuracies[0], accuracies[-1]
    lead = last.percent - first.percent, math.hypot(first.error, last.error)
    if is_clear(lead):
        return f"from the first limit to the last {lead[0]:.1f} points are gained"
    return "between the first limit and the last there is no clear difference"


@dataclass(frozen=True)
class Chosen:
    """Networks chosen without the search, by limit: what they are called, their accuracies, and the found ones' leads."""

    name: str
    short: str
    percents: Sequence[float | None]
    leads: Sequence[Difference | None]

    @property
    def ahead(self) -> int:
        """The number of limits at which the found network is clearly ahead."""
        return sum(map(is_clear, self.leads))

    @property
    def behind(self) -> int:
        """The number of limits at which it is clearly behind."""
        return sum(lead is not None and is_clear((-lead[0], lead[1])) for lead in self.leads)


def _bought(compared: Sequence[Verdict]) -> str:
    """What networks chosen without the search reach under the same limits."""
    alike = [item for item in compared if item.tuned == compared[0].tuned]
    others = [kind for kind in _chosen(alike) if any(value is not None for value in kind.percents)]
    if not others:
        return ""
    how = "After the same fine-tuning" if alike[0].tuned else "Before any fine-tuning"
    reached = [(kind.name, kind.percents) for kind in others]
    if not alike[0].tuned:
        reached.insert(0, ("what was found", [item.found for item in alike]))
    (first, values), *rest = reached
    parts = [f"{first} is right on {_percents(values)}", *(f"{name} on {_percents(x)}" for name, x in rest)]
    limits = "limits" if len(alike) > 1 else "limit"
    return f"{how} {', '.join(parts)} under the same {limits}: {_judged(others, len(alike))}."


def _chosen(alike: Sequence[Verdict]) -> list[Chosen]:
    """The kinds of rivals: random networks on average, where there are several, the best of them, the hand-scaled one."""
    averaged = max((item.leads.count for item in alike), default=0)
    drawn = max((item.drawn for item in alike), default=0)
    kinds = [
        Chosen(
            f"the average of {averaged} random networks",
            "the average",
            [mean(item.random) if item.random else None for item in alike],
            [item.leads.over_random for item in alike],
        ),
        Chosen(
            f"the best of {drawn} random networks",
            "the best random one",
            [item.best_random for item in alike],
            [item.leads.over_best for item in alike],
        ),
        Chosen(
            "the best one scaled by hand",
            "the hand-scaled one",
            [item.hand_scaled for item in alike],
            [item.leads.over_hand_scaled for item in alike],
        ),
    ]
    return kinds if averaged > 1 else kinds[1:]


def _judged(others: Sequence[Chosen], limits: int) -> str:
    """At how many limits the found network is clearly ahead of each kind of rivals, and clearly behind."""
    ahead = [(kind.short, kind.ahead) for kind in others]
    behind = [(kind.short, kind.behind) for kind in others if kind.behind]
    said = (
        f"clearly ahead of {_where(ahead, limits)}"
        if any(count for _, count in ahead)
        else "not clearly ahead"
    )
    return f"the search is {said}" + (f", and clearly behind {_where(behind, limits)}" if behind else "")


def _where(counts: Sequence[tuple[str, int]], limits: int) -> str:
    """Rivals with the number of limits; where there is one limit, those that it holds for."""
    if limits == 1:
        return _listed([name for name, count in counts if count])
    held = _listed([f"{name} at {count or 'none'}" for name, count in counts])
    return f"{held} of {limits} limits"


def _kept(found: Sequence[AnswerRecord], none: Sequence[AnswerRecord]) -> str:
    """Whether the limits were kept by networks that were built and measured, and which were not, or have no network."""
    parts = [_measured(found, sum(not limit.lower for answer in none for limit in answer.limits))]
    open_ = [answer for answer in found if answer.unconfirmed]
    if open_:
        they = "it was" if len(open_) == 1 else "they were"
        parts.append(
            f"{_listed([answer.question for answer in open_])} could not be confirmed on a machine that was busy or "
            f"changed: by the table {they} kept."
        )
    if none:
        parts.append(f"No network was found for {_listed([answer.question for answer in none])}.")
    return " ".join(parts)


def _measured(found: Sequence[AnswerRecord], unanswered: int) -> str:
    """How many limits were kept when measured, and what networks took."""
    upper = [(answer, limit) for answer in found for limit in answer.limits if not limit.lower]
    readings = [(limit, reading) for answer, limit in upper if (reading := answer.measured(limit.cost))]
    if not readings and any(answer.unconfirmed for answer in found):
        return "No limit was seen to be kept when measured."
    if not readings:
        return "By the table every limit is kept; none was measured."
    took = _listed(
        [f"{reading.measured:.3g} of {limit.value:.3g} {limit.unit}" for limit, reading in readings]
    )
    asked = len(upper) + unanswered
    who = "Every limit was" if len(readings) == asked else f"{len(readings)} of {asked} limits were"
    return f"{who} kept when measured: {took}."


def _with_one_unit(quantities: Sequence[str]) -> str:
    """Quantities in a row; a unit that all have is written once."""
    parts = [quantity.partition(" ") for quantity in quantities]
    if len({unit for _, _, unit in parts}) > 1:
        return _listed(quantities)
    return f"{_listed([number for number, _, _ in parts])} {parts[0][2]}".strip()


def _percents(values: Sequence[float | None]) -> str:
    return f"{_listed(['-' if value is None else f'{value:.1f}' for value in values])} %"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
