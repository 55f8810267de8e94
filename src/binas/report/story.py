"""What a run found, in three sentences for those who do not read tables; nothing that two standard errors do not carry."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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


def _bought(compared: Sequence[Verdict]) -> str:
    """What networks chosen without the search reach under the same limits."""
    alike = [item for item in compared if item.tuned == compared[0].tuned]
    reached = {
        f"the best of {max((item.drawn for item in alike), default=0)} random networks": (
            [item.best_random for item in alike],
            [item.leads.over_best for item in alike],
        ),
        "the best one scaled by hand": (
            [item.hand_scaled for item in alike],
            [item.leads.over_hand_scaled for item in alike],
        ),
    }
    known = {name: both for name, both in reached.items() if any(value is not None for value in both[0])}
    if not known:
        return ""
    how = "After the same fine-tuning" if alike[0].tuned else "Before any fine-tuning"
    reach: dict[str, Sequence[float | None]] = {name: some for name, (some, _) in known.items()}
    if not alike[0].tuned:
        reach = {"what was found": [item.found for item in alike], **reach}
    (first, values), *others = reach.items()
    parts = [f"{first} is right on {_percents(values)}", *(f"{name} on {_percents(x)}" for name, x in others)]
    leads = list(zip(*(leads for _, leads in known.values()), strict=True))
    limits = "limits" if len(alike) > 1 else "limit"
    return f"{how} {', '.join(parts)} under the same {limits}: {_judged(leads, len(known))}."


def _judged(leads: Sequence[Sequence[Difference | None]], rivals: int) -> str:
    """At how many limits the found network is clearly ahead of all rivals, and clearly behind one of them."""
    count, them = len(leads), "both" if rivals == 2 else "it"
    ahead = sum(all(lead is None or is_clear(lead) for lead in row) for row in leads)
    behind = sum(any(lead is not None and is_clear((-lead[0], lead[1])) for lead in row) for row in leads)
    where = f"at {ahead} of {count} limits" if count > 1 else ""
    said = (
        f"the search is clearly ahead of {them} {where}".strip()
        if ahead
        else "the search is not clearly ahead"
    )
    return f"{said}, and clearly behind at {behind}" if behind else said


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
