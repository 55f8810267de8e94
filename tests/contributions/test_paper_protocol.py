"""The paper's protocol: its passes, its two readings, its errors."""

import numpy as np
import pytest

from binas.base.errors import ConfigError
from binas.contributions import TableEvaluator, paper, paper_contributions, paper_passes
from binas.contributions.paper import Condition, conditions, contrasts, depths_of_block
from binas.estimators.objective import column_total
from binas.space import load_space
from binas.tables import Column, Contributions
from binas.testing import make_space
from binas.testing.evaluators import KnownEvaluator, known_contributions

SPACE = make_space(2, 3, 3, 2)  # depths 2 and 3: block 1 alone is impossible


def expected_accuracy(truth, condition):
    """E[Acc | condition] of a sum formula: means over the free decisions, in percent."""
    total = truth.base
    for s, stage in enumerate(truth.space.stages):
        own = condition is not None and condition.stage == s
        allowed = condition.depths if own else range(len(stage.depths))
        parts = []
        for i in allowed:
            blocks = [truth.values.configs[s][b].mean() for b in range(stage.depths[i])]
            if own and condition.block is not None:
                blocks[condition.block] = truth.values.configs[s][condition.block][condition.config]
            parts.append(truth.values.depths[s][i] + sum(blocks))
        total += np.mean(parts)
    return total


def test_the_papers_space_takes_255_conditional_passes_and_one():
    assert paper_passes(load_space("imagenet-mbconv")) == 256
    assert len(conditions(load_space("imagenet-mbconv"))) == 255


def test_a_block_is_measured_at_its_own_depth_or_at_all_that_contain_it():
    assert [depths_of_block(SPACE, 0, b) for b in range(3)] == [(0, 1), (0,), (1,)]
    assert Condition(1, (0,), 1, 2).allowed[1, 1].tolist() == [2]


@pytest.mark.parametrize("reading", ["base", "depth"])
def test_contributions_are_unbiased_for_what_the_paper_defines(reading, memory_journal):
    """Mean over repeated measurements against expectations worked out by hand, both readings."""
    truth = known_contributions(SPACE, 1, points=2.0)
    means = np.array([expected_accuracy(truth, c) for c in (None, *conditions(SPACE))])
    expected = contrasts(SPACE, reading) @ means
    found = []
    for seed in range(40):
        evaluator, journal = KnownEvaluator(truth, 200, seed), memory_journal(200)
        *_, answer = paper(evaluator, journal, repeats=1, reading=reading, seed=seed)
        found.append(np.append(answer.base, answer.values.flat()))
    errors = np.mean(found, axis=0) - expected
    scores = errors / (np.std(found, axis=0, ddof=1) / np.sqrt(len(found)))
    assert np.abs(scores).max() < 3.8  # the largest of 29 standard normals
    assert (scores**2).mean() < 1.8


@pytest.mark.slow
def test_standard_errors_and_covariance_match_the_scatter_of_measurements(memory_journal):
    truth, found, told = known_contributions(SPACE, 1), [], []
    for seed in range(60):
        journal = memory_journal(150)
        *_, answer = paper(KnownEvaluator(truth, 150, seed), journal, repeats=2, seed=seed)
        found.append(np.append(answer.base, answer.values.flat()))
        told.append(answer.covariance)
    scatter, mean = np.cov(np.transpose(found)), np.mean(told, axis=0)
    # Difficulties are the same in every measurement, so the base varies less than images drawn anew would.
    assert np.diag(scatter)[1:].mean() == pytest.approx(np.diag(mean)[1:].mean(), rel=0.15)
    pairs = np.tril_indices(len(mean) - 1, -1)
    assert scatter[1:, 1:][pairs].mean() == pytest.approx(mean[1:, 1:][pairs].mean(), rel=0.35)
    assert answer.stderr.flat() == pytest.approx(np.sqrt(np.diag(told[-1]))[1:])


def test_the_printed_reading_counts_depth_several_times():
    """Only depth matters, by 4 points; with exact expectations, minus E[Acc] says 6, minus E[Acc | depth] says 4."""
    space = make_space(1, 3, 2, 2)
    truth = Contributions(space, 60.0, Column.build(space, lambda s, i: 4.0 * i - 2, lambda s, b, c: 0.0))
    means = np.array([expected_accuracy(truth, c) for c in (None, *conditions(space))])
    deep, shallow = space.extreme(), space.extreme(heaviest=False)
    gaps = {}
    for reading in ("base", "depth"):
        vector = contrasts(space, reading) @ means
        column = Column.from_flat(space, vector[1:])
        gaps[reading] = column_total(space, column, deep) - column_total(space, column, shallow)
    # Block 2 is measured at depth 2 (-2 points), block 3 at depth 3 (+2), and only deep networks have block 3.
    assert gaps == pytest.approx({"base": 6.0, "depth": 4.0})


def test_an_exact_table_needs_no_repeats(memory_journal):
    """Effects on depth only: conditional passes give the accuracies of the table."""
    space = make_space(1, 2, 1, 1)
    table = TableEvaluator(space, lambda a: 50.0 + 10 * a.depths[0], images=4000)
    *_, answer = paper(table, memory_journal(4000), repeats=1)
    assert answer.base == pytest.approx(65, abs=0.3)
    assert answer.base + answer.values.depths[0] == pytest.approx([60, 70], abs=1e-4)
    assert answer.provenance.to_data()["evaluations"] == 4000 * paper_passes(space)


def test_an_interrupted_measurement_goes_on_and_ends_the_same(journal):
    truth = known_contributions(SPACE, 0)

    class Dying(KnownEvaluator):
        left = 30

        def outcomes(self, images, depths, configs):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().outcomes(images, depths, configs)

    *_, whole = paper(KnownEvaluator(truth, 50), journal(50, "whole"), repeats=2)
    answers = paper(Dying(truth, 50), journal(50), repeats=2)
    first = next(answers)
    with pytest.raises(KeyboardInterrupt):
        next(answers)
    *_, resumed = paper(KnownEvaluator(truth, 50), journal(50), repeats=2)
    assert resumed.to_data() == whole.to_data()
    again = paper_contributions(SPACE, journal(50), 1, "base", {"seed": 0})
    assert again.to_data() == first.to_data()


def test_no_repeats_are_refused(memory_journal):
    with pytest.raises(ConfigError, match="at least one repeat"):
        next(paper(KnownEvaluator(known_contributions(SPACE, 0), 10), memory_journal(10), repeats=0))
