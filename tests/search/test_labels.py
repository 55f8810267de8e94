"""Dominance: what is dropped is beaten, what is kept is not."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.search.pareto import pareto


def labels(rows: int):
    return (
        st.integers(1, 60)
        .flatmap(
            lambda n: st.lists(
                st.lists(st.integers(0, 6), min_size=n, max_size=n), min_size=rows, max_size=rows
            )
        )
        .map(lambda data: np.array(data, dtype=float))
    )


def beats(data, a, b):
    return data[0, a] >= data[0, b] and (data[1:, a] <= data[1:, b]).all()


@pytest.mark.parametrize("rows", [2, 3])
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_complete_for_one_and_two_costs(rows, data):
    matrix = data.draw(labels(rows))
    kept = pareto(matrix)
    for b in range(matrix.shape[1]):
        if b not in kept:
            assert any(beats(matrix, a, b) for a in kept)
    for a in kept:
        assert not any(beats(matrix, other, a) for other in kept if other != a)
    assert (np.diff(matrix[1, kept]) >= 0).all()


@given(matrix=labels(4))
@settings(max_examples=30, deadline=None)
def test_with_more_costs_only_beaten_labels_are_dropped(matrix):
    kept = pareto(matrix)
    assert len(set(kept.tolist())) == len(kept)
    for b in range(matrix.shape[1]):
        if b not in kept:
            assert any(beats(matrix, a, b) for a in kept)


def test_without_costs_the_best_value_stays():
    assert pareto(np.array([[1.0, 3.0, 2.0]])).tolist() == [1]
