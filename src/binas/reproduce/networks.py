"""The networks of a run that experiments show: found ones and their rivals, all after the same fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binas.base.errors import FileError
from binas.reproduce._base import Study
from binas.search.answers import AnswerRecord
from binas.search.rivals import Comparison, Rival
from binas.tasks.artefacts import COMPARISONS
from binas.tasks.compare import tuned_outcomes
from binas.training.judgement import Accuracy

FOUND, RANDOM, HAND = "found by binas", "best of the random ones", "best one scaled by hand"


@dataclass(frozen=True)
class Shown:
    """A fine-tuned network under a limit: what it is, its cost, measured where it was, and its test accuracy."""

    kind: str
    question: str
    architecture: str
    cost: float
    unit: str
    measured: bool
    accuracy: Accuracy


def tuned_networks(study: Study) -> list[Shown]:
    """Found networks and the best rivals of each limit; rivals that are not fine-tuned yet are now, as the found ones."""
    comparisons = COMPARISONS.read(study.run)
    if not comparisons:
        folder = study.run.folder
        raise FileError(f"{folder} has no comparison of its networks yet. `binas compare {folder}` makes it.")
    names = list(dict.fromkeys(name for item in comparisons for name in item.to_tune(0)))
    outcomes = tuned_outcomes(study.run, names, study.progress.part(0, 1))
    tuned = [item.with_tuned(outcomes, 0) for item in comparisons]
    images = len(next(iter(outcomes.values())).correct)
    answers = {answer.question: answer for answer in study.run.answers}
    return [shown for item in tuned for shown in _of_limit(item, answers[item.question], images)]


def _of_limit(item: Comparison, answer: AnswerRecord, images: int) -> Iterator[Shown]:
    best = next((rival for rival in item.random if rival.architecture == item.one_shot.best), None)
    for kind, rival in ((FOUND, item.found), (RANDOM, best), (HAND, item.hand_scaled)):
        if rival is not None and rival.tuned is not None:
            cost, measured = _cost(rival, answer, item.cost)
            accuracy = Accuracy(rival.tuned.test, images)
            yield Shown(kind, item.question, rival.architecture, cost, item.unit, measured, accuracy)


def _cost(rival: Rival, answer: AnswerRecord, cost: str) -> tuple[float, bool]:
    """What a network costs, and whether that was measured on the whole network rather than added up."""
    reading = answer.measured(cost) if rival.architecture == answer.architecture else None
    return (rival.cost, False) if reading is None else (reading.measured, True)
