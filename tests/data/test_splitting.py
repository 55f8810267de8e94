import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.base.errors import DataError
from binas.data import stratified_sample, stratified_split
from binas.data.division import check_classes

COUNTS = st.lists(st.integers(2, 30), min_size=1, max_size=6)


def shuffled(counts, seed=0):
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


@given(counts=COUNTS, share=st.floats(0.01, 0.99), seed=st.integers(0, 2**32))
def test_parts_share_nothing_and_keep_the_classes(counts, share, seed):
    labels = shuffled(counts)
    rest, apart = stratified_split(labels, share, seed)
    assert sorted([*rest, *apart]) == list(range(len(labels)))
    assert np.all(np.diff(rest) > 0)
    assert np.all(np.diff(apart) > 0)
    for number, count in enumerate(counts):
        taken = int((labels[apart] == number).sum())
        assert 1 <= taken <= count - 1
        assert abs(taken - share * count) <= 1 or taken in (1, count - 1)


def test_the_seed_decides():
    labels = shuffled([50, 50])
    again = [stratified_split(labels, 0.2, seed)[1].tolist() for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]
    assert len(again[0]) == 20


def test_more_images_of_one_class_leave_the_others_where_they_are():
    few, many = np.repeat([0, 1], [10, 10]), np.repeat([0, 1], [10, 30])
    first, second = (stratified_split(labels, 0.3, 5)[1] for labels in (few, many))
    assert first[first < 10].tolist() == second[second < 10].tolist()


@given(counts=COUNTS, wanted=st.integers(1, 200))
def test_a_sample_keeps_the_proportions(counts, wanted):
    labels = shuffled(counts)
    rows = stratified_sample(labels, wanted, 3)
    assert len(set(rows.tolist())) == len(rows)
    for number, count in enumerate(counts):
        taken = int((labels[rows] == number).sum())
        assert 1 <= taken <= count
        assert abs(taken - min(wanted / len(labels), 1) * count) <= 1


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_impossible_shares_are_refused(share):
    with pytest.raises(DataError, match="between 0 and 1"):
        stratified_split([0, 0], share, 0)


def test_a_class_of_one_image_is_refused():
    with pytest.raises(DataError, match="class 7 has one image"):
        stratified_split([3, 3, 7], 0.5, 0)


def test_empty_classes_are_named():
    with pytest.raises(DataError, match=r"at least 2 images.*'b' has 0; 'c' has 1"):
        check_classes([0, 0, 2], ("a", "b", "c"), 2, "the data")
