"""The networks of a run that experiments show: found ones and their rivals, all after the same fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binas.base.errors import FileError
from binas.reproduce._base import Study
from binas.search.answers import AnswerRecord
from binas.search.rivals import Comparison, Difference
from binas.tasks.artefacts import COMPARISONS
from binas.tasks.compare import tuned_outcomes
from binas.training.judgement import Accuracy

FOUND, RANDOM, HAND = "found by binas", "best of the random ones", "best one scaled by hand"


@dataclass(frozen=True)
class Shown:
    """A fine-tuned network under a limit: what it is, its cost by the table, that measured where it was, test accuracy.

    ``lead``: how far the found network is ahead of it on the same images; None for the found one.
    """

    kind: str
    question: str
    architecture: str
    cost: float
    unit: str
    measured: float | None
    accuracy: Accuracy
    lead: Difference | None = None


def tuned_networks(study: Study) -> list[Shown]:
    """Found networks and the best rivals of each limit; rivals that are not fine-tuned yet are now, as the found ones."""
    comparisons = COMPARISONS.read(study.run)
    if not comparisons:
        folder = study.run.folder
        raise FileError(f"{folder} has no comparison of its networks yet. `binas compare {folder}` makes it.")
    counts = [item.tuned.count if item.tuned else 0 for item in comparisons]  # random ones that the run tuned
    both = list(zip(comparisons, counts, strict=True))
    names = list(dict.fromkeys(name for item, count in both for name in item.to_tune(count)))
    outcomes = tuned_outcomes(study.run, names, study.progress.part(0, 1))
    tuned = [item.with_tuned(outcomes, count) for item, count in both]
    images = len(next(iter(outcomes.values())).correct)
    answers = {answer.question: answer for answer in study.run.answers}
    return [shown for item in tuned for shown in _of_limit(item, answers[item.question], images)]


def _of_limit(item: Comparison, answer: AnswerRecord, images: int) -> Iterator[Shown]:
    """The found network, the random one that is best after tuning, by validation images, and the hand-scaled one."""
    leads = item.tuned
    if leads is None:
        return
    best = next((rival for rival in item.random if rival.architecture == leads.best), None)
    rivals = (
        (FOUND, item.found, None),
        (RANDOM, best, leads.over_best),
        (HAND, item.hand_scaled, leads.over_hand_scaled),
    )
    for kind, rival, lead in rivals:
        if rival is not None and rival.tuned is not None:
            reading = answer.measured(item.cost) if rival.architecture == answer.architecture else None
            yield Shown(
                kind,
                item.question,
                rival.architecture,
                rival.cost,
                item.unit,
                None if reading is None else reading.measured,
                Accuracy(rival.tuned.test, images),
                lead,
            )
