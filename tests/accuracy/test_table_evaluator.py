"""Contributions from a table of trained networks: NAS-Bench-Macro through the same protocols as a supernet."""

import numpy as np
import pytest

from binas.accuracy import TableEvaluator, factorial_contributions, paper
from binas.errors import ArchitectureError
from binas.estimators import BilinearEstimator, kendall
from binas.space import Architecture, Config, SearchSpace, Stage
from binas.testing import make_space
from binas.testing.tables import read_nas_bench_macro

LAYERS = SearchSpace(
    "nas-bench-macro-layers",
    tuple(Stage(f"layer{i}", (1,), (tuple(Config(f"op{o}") for o in range(3)),)) for i in range(1, 9)),
)


@pytest.fixture(scope="module")
def accuracies(nas_bench_macro_path):
    return {
        Architecture.of([f"op{digit}"] for digit in text): record.accuracy
        for record in read_nas_bench_macro(nas_bench_macro_path).values()
        for text in record.strings
    }


def tau(answer, accuracies):
    estimator = BilinearEstimator(answer)
    return kendall(estimator.predict(accuracies), np.array(list(accuracies.values())))


def test_marginal_means_of_the_whole_table_are_reached(record, accuracies):
    """Exact accuracies as outcomes: 60 passes over 100 'images' see 6,000 random strings. All data: 0.865."""
    table = TableEvaluator(LAYERS, accuracies.__getitem__, images=100)
    answer, stable = factorial_contributions(record(table, 60, "probability"))
    assert tau(answer, accuracies) == pytest.approx(0.865, abs=0.01)
    assert stable > 0.9


def test_a_hundred_strings_rank_better_than_least_squares_on_a_hundred(record, accuracies):
    """2 passes over 50 'images' see 100 strings; additive least squares reaches 0.825 with 100."""
    found = []
    for seed in range(8):
        table = TableEvaluator(LAYERS, accuracies.__getitem__, images=50, seed=seed)
        answer, _ = factorial_contributions(record(table, 2, "probability", seed))
        found.append(tau(answer, accuracies))
    assert np.mean(found) > 0.825


def test_the_paper_protocol_on_drawn_outcomes_ranks_worse_at_equal_evaluations(
    record, memory_journal, accuracies
):
    """0/1 outcomes of 100 images: 25 passes per repeat for the paper, 50 in all for both."""
    table = TableEvaluator(LAYERS, accuracies.__getitem__, images=100)
    *_, theirs = paper(table, memory_journal(100), 2, "depth")
    ours, _ = factorial_contributions(record(table, 2 * 33, "correct"))
    assert tau(ours, accuracies) > tau(theirs, accuracies) + 0.05


def test_accuracies_must_be_percentages():
    space = make_space(1, 2, 3, 1)
    table = TableEvaluator(space, lambda a: 120.0, images=4)
    depths, configs = space.to_indices([space.extreme()] * 2)
    with pytest.raises(ArchitectureError, match="an accuracy of 120; it must be in percent"):
        table.outcomes(np.array([0, 1]), depths, configs)
