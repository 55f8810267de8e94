"""The best sums of two sets of labels, against all sums."""

import tracemalloc
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.search import merging
from binas.search.deadline import Deadline
from binas.search.labels import Labels
from binas.search.merging import best_sums, sums_above


def labels(rng, size, whole=True):
    data = rng.integers(0, 9, (2, size)).astype(float)
    return Labels(data if whole else data + rng.uniform(0, 1, (2, size)), None)


def proportional(rng, size):
    cost = rng.uniform(0, 1, size)
    return Labels(np.stack([cost, cost]), None)


@given(seed=st.integers(0, 2**32 - 1), sizes=st.tuples(*2 * [st.integers(0, 12)]), rank=st.integers(1, 20))
@settings(max_examples=150, deadline=None)
def test_the_best_sums_are_the_best_of_all(seed, sizes, rank):
    rng = np.random.default_rng(seed)
    left, right = (labels(rng, size, whole=seed % 2 == 0) for size in sizes)
    cap = float(rng.integers(0, 18))
    found = best_sums(left, right, cap, rank)
    value, cost = (np.add.outer(a, b).ravel() for a, b in zip(left.data, right.data, strict=True))
    np.testing.assert_array_equal(found.data[0], np.sort(value[cost <= cap])[::-1][:rank])
    i, j = found.source.i, found.source.j
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == len(i)
    np.testing.assert_array_equal(found.data, left.data[:, i] + right.data[:, j])
    assert (found.data[1] <= cap).all()


@pytest.mark.parametrize("chunk", [1, 10, 1000])
def test_the_same_when_the_floor_rises_often(chunk, monkeypatch):
    rng = np.random.default_rng(chunk)
    left, right = proportional(rng, 50), proportional(rng, 70)
    wanted = best_sums(left, right, 0.9, 40).data
    monkeypatch.setattr(merging, "CHUNK", chunk)
    np.testing.assert_array_equal(best_sums(left, right, 0.9, 40).data, wanted)
    value = np.add.outer(left.data[0], right.data[0])
    np.testing.assert_array_equal(wanted[0], np.sort(value[value <= 0.9])[::-1][:40])


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 18])
@pytest.mark.parametrize("rank", [1, 3, None])
def test_sums_above_a_floor_whatever_the_chunks(chunk, rank, monkeypatch):
    rng = np.random.default_rng(3)
    left, right = labels(rng, 30, whole=False), labels(rng, 20, whole=False)
    price, caps = np.array([0.7]), np.array([14.0])
    wanted = sums_above(left, right, price, 3.0, 600, caps=caps, rank=rank)
    monkeypatch.setattr(merging, "CHUNK", chunk)
    found = sums_above(left, right, price, 3.0, 600, caps=caps, rank=rank)
    np.testing.assert_array_equal(found.data, left.data[:, found.source.i] + right.data[:, found.source.j])
    np.testing.assert_array_equal(np.sort(found.data, axis=1), np.sort(wanted.data, axis=1))
    value, cost = (np.add.outer(a, b).ravel() for a, b in zip(left.data, right.data, strict=True))
    inside = (value - 0.7 * cost >= 3.0) & (cost <= 14.0)
    assert len(found) <= inside.sum()
    if rank is None:
        assert len(found) == inside.sum()


def test_sums_beyond_the_cap_are_never_made():
    """A thousand lefts of which each has 20,000 partners by value alone: the memory of some of them, the clock for each."""
    rng, ticks = np.random.default_rng(0), count()
    left, right = proportional(rng, 1000), proportional(rng, 20_000)
    tracemalloc.start()
    found = best_sums(left, right, 1.0, 1001, Deadline(1e9, ticks.__next__))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 1001
    assert found.data[0, -1] > 0.999
    assert peak < 32 * 2**20
    assert next(ticks) >= 900
