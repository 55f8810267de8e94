"""Answers of a run: confirmed on images that chose nothing, and not measured twice."""

import json

import numpy as np
import pytest

from binas.base.progress import Progress
from binas.run.run import open_run
from binas.search.rivals import difference
from binas.tasks import confirming
from binas.tasks.artefacts import ANSWERS
from binas.tasks.sample import SAMPLE
from binas.tasks.search import SEARCH
from binas.training import evaluate_architecture
from binas.training.team import one_thread


def search_again(folder, *changes):
    """The answers of a run's search, done again with other settings."""
    run = open_run(folder, changes)
    for path in folder.glob("results/*.json"):
        path.unlink()
    with one_thread():
        SEARCH.steps[0].work(run, Progress())
    return run, ANSWERS.read(run)


def test_an_answer_is_the_best_of_candidates_and_reported_on_test_images(copied):
    run, answers = search_again(copied, "search.candidates=16")
    for answer in answers:
        held = answer.confirmed
        assert (held.images_of, held.images) == ("test", len(run.data.test))
        # six samples say too little about predictions to tell luck from lead, so it is told by test images
        samples = run.tables.samples.architectures
        others = [item for item in samples if str(item) != answer.architecture]
        winner = run.space.parse(answer.architecture)
        with one_thread():
            found = confirming.measured_outcomes(run, [winner, *others], "test", Progress(), 2000)
        shares = np.mean([found[item] for item in others], axis=0)
        assert held.lead == pytest.approx(difference(found[winner], shares))
        assert held.over == len(others)
        names = [item.architecture for item in held.candidates]
        assert len(names) == len(set(names)) == 16
        assert answer.architecture in names
        with one_thread():
            again = evaluate_architecture(
                run.supernet(), run.space.parse(answer.architecture), run.data, run.data.test, 64
            )
        assert held.accuracy == pytest.approx(again.percent)
        assert answer.status == ("optimal" if answer.architecture == names[0] else "feasible")


def test_a_single_candidate_is_confirmed_on_the_images_of_the_samples(copied):
    run, answers = search_again(copied, "search.candidates=1")
    samples = run.tables.samples
    for answer in answers:
        held = answer.confirmed
        assert (held.images_of, held.images) == ("check", samples.rows[0].images)
        assert answer.status == "optimal"
        assert held.lead[0] == pytest.approx(held.accuracy - samples.accuracy.mean())


def test_images_that_an_estimator_learned_from_are_not_taken_for_unseen(copied):
    changes = ("sample.count=12", "search.candidates=1", "search.estimator=ridge")
    with one_thread():
        SAMPLE.steps[0].work(open_run(copied, changes), Progress())
    _, answers = search_again(copied, *changes)
    assert {answer.confirmed.images_of for answer in answers} == {"test"}
    assert all(answer.confirmed.lead is not None and answer.confirmed.over >= 11 for answer in answers)


def test_what_was_measured_is_not_measured_again(copied, monkeypatch):
    run = open_run(copied)
    before = [answer.model_dump(exclude={"seconds", "details"}) for answer in ANSWERS.read(run)]

    def refuse(run, architectures, *more):
        assert not architectures
        return iter(())

    monkeypatch.setattr(confirming, "correct_outcomes", refuse)
    _, answers = search_again(copied)
    assert [answer.model_dump(exclude={"seconds", "details"}) for answer in answers] == before


def test_outcomes_of_other_weights_are_not_used(copied):
    run, answers = search_again(copied, "search.candidates=16")
    architecture = run.space.parse(answers[0].architecture)
    (path,) = (copied / confirming.NETWORKS).glob(f"{run.network_name(architecture)}-test.json")
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "identity": "other", "correct": "AA=="}))
    with one_thread():
        found = confirming.measured_outcomes(run, [architecture], "test", Progress())
    assert json.loads(path.read_text()) == kept
    assert np.array_equal(found[architecture], confirming.unpack(kept["correct"], kept["images"]))
