"""Relaxed decisions: samples of the right probabilities, a gradient without bias, and the straight-through one."""

import itertools

import numpy as np
import pytest
from small_networks import MBCONV

from binas.search.matrices import bilinear_part
from binas.space import Config, SearchSpace, Stage
from binas.space.relaxed import gumbel_paths, score_gradient, straight_through
from binas.tables import Column

BLOCK = tuple(Config(name) for name in "abc")
SPACE = SearchSpace("two", (Stage("s1", (1, 2), (BLOCK,) * 2), Stage("s2", (0, 1, 3), (BLOCK,) * 3)))


def random_point(space, seed):
    rng, z = np.random.default_rng(seed), np.empty(space.layout.size)
    for where in space.layout.slices:
        draws = rng.exponential(size=where.stop - where.start) + 0.1
        z[where] = draws / draws.sum()
    return space.layout.split(z)


def centred(space, alpha, beta):
    """Without the constant of each decision, which no point on the simplices can tell."""
    z = np.concatenate([alpha, beta])
    for where in space.layout.slices:
        z[where] -= z[where].mean()
    return z


def test_paths_have_the_probabilities_they_were_drawn_with():
    alpha, beta = random_point(MBCONV, 0)
    count = 40_000
    depths, configs = gumbel_paths(MBCONV, alpha, beta, count, np.random.default_rng(0)).paths
    drawn = np.bincount(MBCONV.layout.positions(depths, configs).ravel(), minlength=MBCONV.layout.size + 1)
    runs = bilinear_part(MBCONV, Column.full(MBCONV, 1.0), 0.0).matrix @ beta
    expected = np.concatenate([alpha * runs, beta])
    np.testing.assert_allclose(drawn[:-1] / count, expected, atol=5 * 0.5 / np.sqrt(count))


def test_a_choice_without_probability_is_never_drawn():
    alpha, beta = MBCONV.layout.encode(MBCONV.extreme())
    depths, configs = gumbel_paths(MBCONV, alpha - 1e-18, beta, 500, np.random.default_rng(0)).paths
    assert {MBCONV.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)} == {
        MBCONV.extreme()
    }


def test_soft_weights_are_those_of_a_softmax_whose_largest_entry_was_drawn():
    alpha, beta = random_point(SPACE, 1)
    warm, cold = (gumbel_paths(SPACE, alpha, beta, 50, np.random.default_rng(2), t) for t in (1.0, 0.01))
    taken = SPACE.layout.positions(*warm.paths)
    for d, where in enumerate(SPACE.layout.slices):
        np.testing.assert_allclose(warm.soft[:, where].sum(axis=1), 1.0)
        counts = taken[:, d] < SPACE.layout.size
        largest = where.start + warm.soft[:, where].argmax(axis=1)
        assert (largest[counts] == taken[counts, d]).all()
        assert (cold.soft[:, where].max(axis=1) >= warm.soft[:, where].max(axis=1) - 1e-12).all()


def losses_of(depths, configs, difficulty):
    """A loss with interactions: no sum of parts, and images that differ far more than paths do."""
    z = np.zeros((len(depths), SPACE.layout.size + 1))
    np.put_along_axis(z, SPACE.layout.positions(depths, configs), 1.0, axis=1)
    weights = np.random.default_rng(3).normal(size=(SPACE.layout.size, 4))
    return np.tanh(z[:, :-1] @ weights).prod(axis=1) + np.tanh(z[:, :-1] @ weights).sum(axis=1) + difficulty


def exact_gradient(alpha, beta):
    """Mean loss of all paths with one decision fixed, the others drawn: by enumeration."""
    layout, z = SPACE.layout, np.concatenate([alpha, beta])
    choices = list(itertools.product(*(range(where.stop - where.start) for where in layout.slices)))
    hard = np.array(choices)
    entries = hard + np.array([where.start for where in layout.slices])
    odds = z[entries].prod(axis=1)
    depths = np.column_stack([np.array(s.depths)[hard[:, 5 + i]] for i, s in enumerate(SPACE.stages)])
    configs = np.full((len(hard), 2, 3), -1)
    configs[:, 0, :2], configs[:, 1, :3] = hard[:, :2], hard[:, 2:5]
    configs = np.where(np.arange(3) < depths[:, :, None], configs, -1)
    losses = losses_of(depths, configs, 0.0)
    found = [(odds * losses * (entries == k).any(axis=1)).sum() / z[k] for k in range(layout.size)]
    return layout.split(np.array(found))


def test_the_score_function_has_no_bias_whatever_the_loss():
    alpha, beta = random_point(SPACE, 4)
    rng, images, each = np.random.default_rng(5), 50_000, 4
    paths = gumbel_paths(SPACE, alpha, beta, images * each, rng).paths
    difficulty = np.repeat(10 * rng.normal(size=images), each)
    found = score_gradient(SPACE, alpha, beta, paths, losses_of(*paths, difficulty), each)
    exact = exact_gradient(alpha, beta)
    np.testing.assert_allclose(centred(SPACE, *found), centred(SPACE, *exact), atol=0.06)


def test_several_paths_of_an_image_take_its_difficulty_out():
    alpha, beta = random_point(SPACE, 6)
    rng = np.random.default_rng(7)
    paths = gumbel_paths(SPACE, alpha, beta, 80, rng).paths
    easy, hard = (losses_of(*paths, np.repeat(scale * rng.normal(size=20), 4)) for scale in (0.0, 10.0))
    one, other = (score_gradient(SPACE, alpha, beta, paths, losses, 4) for losses in (easy, hard))
    np.testing.assert_allclose(np.concatenate(one), np.concatenate(other), atol=1e-9)


def test_the_straight_through_gradient_is_that_of_its_gates():
    """Against automatic differentiation of sum (g_i - g) * gate, the gate through the softmax of log p + noise."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    layout, (alpha, beta), count = SPACE.layout, random_point(SPACE, 8), 40
    drawn = gumbel_paths(SPACE, alpha, beta, count, np.random.default_rng(9), temperature=0.7)
    slopes = np.random.default_rng(10).normal(size=(count, 2, 3))
    found = straight_through(SPACE, alpha, beta, drawn, slopes, temperature=0.7)
    z = torch.tensor(np.concatenate([alpha, beta]), requires_grad=True)
    noise = 0.7 * np.log(drawn.soft) - np.log(
        np.concatenate([alpha, beta])
    )  # up to a constant of each decision
    noisy, depths, total = torch.log(z) + torch.tensor(noise), drawn.paths[0], 0.0
    taken = layout.positions(*drawn.paths)
    running = np.where(np.arange(3) < depths[:, :, None], slopes, 0.0)
    values = [
        running[:, 0, 0],
        running[:, 0, 1],
        *running[:, 1].T,
        running[:, 0, 1:].sum(1),
        running[:, 1].sum(1),
    ]
    for d, where in enumerate(layout.slices):
        soft = torch.softmax(noisy[:, where] / 0.7, dim=1)
        rows = np.flatnonzero(taken[:, d] < layout.size)
        gates = soft[rows, taken[rows, d] - where.start]
        total = total + (torch.tensor(values[d][rows] - values[d][rows].mean()) * gates).sum() / count
    (expected,) = torch.autograd.grad(total, z)
    np.testing.assert_allclose(np.concatenate(found), expected.numpy(), atol=1e-9)
