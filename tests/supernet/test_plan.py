"""The plan of a mixed batch puts every image where its path says, and back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import numpy as np  # noqa: E402
from hypothesis import given, strategies as st  # noqa: E402

from binas.supernet.plan import plan_batch  # noqa: E402
from binas.supernet.rows import as_images, as_rows, take  # noqa: E402

RANKS = [[np.array([2, 0, 1]), np.array([0, 1])], [np.array([1, 0])]]


def path() -> st.SearchStrategy[tuple[list[int], list[list[int]]]]:
    """Depths (0 to 2, 0 to 1) and configs; what lies past a depth may be anything."""
    rubbish = st.sampled_from([-1, 0, 99])
    first = st.one_of(
        st.tuples(st.just(0), st.tuples(rubbish, rubbish)),
        st.tuples(st.just(1), st.tuples(st.integers(0, 2), rubbish)),
        st.tuples(st.just(2), st.tuples(st.integers(0, 2), st.integers(0, 1))),
    )
    second = st.one_of(
        st.tuples(st.just(0), st.tuples(rubbish, rubbish)),
        st.tuples(st.just(1), st.tuples(st.integers(0, 1), rubbish)),
    )
    return st.tuples(first, second).map(lambda p: ([p[0][0], p[1][0]], [list(p[0][1]), list(p[1][1])]))


@given(st.lists(path(), min_size=1, max_size=12))
def test_every_image_takes_its_path_and_comes_back(paths: list[tuple[list[int], list[list[int]]]]) -> None:
    depths, configs = np.array([p[0] for p in paths]), np.array([p[1] for p in paths])
    plan = plan_batch(RANKS, (depths, configs))
    order = np.arange(len(paths)) if plan.first is None else plan.first
    taken: list[list[list[int]]] = [[[], []] for _ in paths]
    for s, blocks in enumerate(plan.stages):
        aside = []
        for block, rank in zip(blocks, RANKS[s], strict=False):
            order = order if block.rows is None else order[block.rows]
            aside.append(order[: block.stopped])
            order = order[block.stopped :]
            places = [rank[config] for config, _ in block.groups]
            assert places == sorted(set(places))
            assert sum(rows.stop - rows.start for _, rows in block.groups) == len(order)
            for config, rows in block.groups:
                for image in order[rows]:
                    taken[image][s].append(config)
        order = np.concatenate([*aside, order])
    expected = [[row[:depth] for depth, row in zip(*p, strict=True)] for p in paths]
    assert taken == expected
    back = np.arange(len(paths)) if plan.back is None else plan.back
    assert order[back].tolist() == list(range(len(paths)))


def test_the_first_block_moves_nothing() -> None:
    """Images are put in its order before the stem."""
    generator = np.random.default_rng(0)
    depths, configs = np.full((9, 2), 1), generator.integers(0, 2, (9, 2, 2))
    plan = plan_batch(RANKS, (depths, configs))
    assert plan.first is not None
    assert plan.stages[0][0].rows is None


def test_one_architecture_moves_nothing_at_all() -> None:
    plan = plan_batch(RANKS, (np.full((5, 2), 1), np.full((5, 2, 2), 1)))
    assert plan.first is None
    assert plan.back is None
    assert [block.rows for blocks in plan.stages for block in blocks] == [None] * 3
    assert plan.stages[0][1].stopped == 5


class TestRows:
    def test_layouts(self) -> None:
        x = torch.randn(3, 4, 2, 5).contiguous(memory_format=torch.channels_last)
        assert as_rows(x).data_ptr() == x.data_ptr()
        assert torch.equal(as_images(as_rows(x), 3, 2, 5), x)
        moved = take(x, np.array([2, 0, 1]))
        assert torch.equal(moved, x[[2, 0, 1]])
        assert moved.is_contiguous(memory_format=torch.channels_last)
        assert take(x, None) is x

    def test_gradients_keep_the_layout(self) -> None:
        x = torch.randn(3, 4, 2, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
        (gradient,) = torch.autograd.grad(take(x, np.array([2, 0, 1])).square().sum(), x)
        torch.testing.assert_close(gradient, 2 * x.detach())
        assert gradient.is_contiguous(memory_format=torch.channels_last)

    def test_gradients_of_gradients(self) -> None:
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(lambda x: take(x, np.array([3, 1, 0, 2])).pow(3), (x,))
