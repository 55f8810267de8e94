"""Contributions from a table of trained networks: NAS-Bench-Macro through the same protocols as a supernet."""

from itertools import islice

import numpy as np
import pytest

from binas.base.errors import ArchitectureError
from binas.base.statistics import kendall
from binas.contributions import TableEvaluator, factorial_contributions, paper
from binas.estimators import BilinearEstimator
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


@pytest.fixture(scope="module")
def every_third(accuracies):
    """2,187 of the 6,561 strings, which is enough to compare rankings."""
    return dict(islice(accuracies.items(), 0, None, 3))


def tau(answer, accuracies):
    estimator = BilinearEstimator(answer)
    return kendall(estimator.predict(accuracies), np.array(list(accuracies.values())))


def test_marginal_means_of_the_whole_table_are_reached(record, accuracies):
    """Exact accuracies as outcomes: 60 passes over 100 'images' see 6,000 random strings. All data: 0.865."""
    table = TableEvaluator(LAYERS, accuracies.__getitem__, images=100)
    answer, stable = factorial_contributions(record(table, 60))
    assert tau(answer, accuracies) == pytest.approx(0.865, abs=0.01)
    assert stable > 0.9


def test_shrinkage_helps_when_few_strings_are_looked_up(record, accuracies, every_third):
    """4 passes over 10 'images' look up 40 strings, for 24 contributions."""
    table, plain, shrunken = TableEvaluator(LAYERS, accuracies.__getitem__, images=10), [], []
    for seed in range(10):
        recorded = record(table, 4, seed=seed)
        plain.append(tau(factorial_contributions(recorded, shrink=False)[0], every_third))
        shrunken.append(tau(factorial_contributions(recorded)[0], every_third))
    assert np.mean(shrunken) > np.mean(plain) + 0.01


def test_as_many_lookups_tell_less_in_the_paper_protocol(record, memory_journal, accuracies, every_third):
    """33 passes over 10 'images', 330 strings, for both."""
    table, ours, theirs = TableEvaluator(LAYERS, accuracies.__getitem__, images=10), [], []
    for seed in range(6):
        *_, answer = paper(table, memory_journal(10), 1, "depth", seed)
        theirs.append(tau(answer, every_third))
        ours.append(tau(factorial_contributions(record(table, 33, seed=seed))[0], every_third))
    assert np.mean(ours) > np.mean(theirs) + 0.05


def test_samples_are_networks_looked_up_once_each(accuracies):
    table = TableEvaluator(LAYERS, accuracies.__getitem__, images=10, name="macro")
    samples = table.samples(100, seed=3)
    assert len(set(samples.architectures)) == 100
    assert samples.accuracy.tolist() == [accuracies[item] for item in samples.architectures]
    assert table.samples(20, seed=3).rows == samples.rows[:20]
    assert samples.provenance.source == "macro/10"


def test_accuracies_must_be_percentages():
    space = make_space(1, 2, 3, 1)
    table = TableEvaluator(space, lambda a: 120.0, images=4)
    depths, configs = space.to_indices([space.extreme()] * 2)
    with pytest.raises(ArchitectureError, match="an accuracy of 120; it must be in percent"):
        table.outcomes(np.array([0, 1]), depths, configs)
