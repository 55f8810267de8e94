"""The relaxed loss of a supernet: paths of the right probabilities, and gradients that are right where they can be."""

import itertools

import numpy as np
import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV, fresh, images, scrambled

from binas.contributions.relaxed_loss import SupernetOracle
from binas.contributions.sampling import correct_images
from binas.search.matrices import bilinear_part
from binas.space import Config, SearchSpace, Stage, sample_many
from binas.space.relaxed import draw_paths, straight_through
from binas.supernet import paths_of
from binas.tables import Column


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


@pytest.mark.parametrize("name", ["small", "some-squeeze", "mixed"])
def test_scores_of_one_change_nothing(name):
    net = scrambled(name)
    space = net.space
    paths, batch = paths_of(space, sample_many(space, 9, 0)), images(space, 9)
    assert torch.equal(net(batch, paths, torch.ones(paths[1].shape)), net(batch, paths))


def test_slopes_in_scores_are_those_of_the_mixture():
    """What :meth:`Supernet.relaxed`, which runs every config, gives for the drawn entries of one-hot rows.

    In the first block of a stage with a stride; elsewhere what enters the block is left out.
    """
    net = fresh(MBCONV).eval().double()
    architectures, batch = sample_many(MBCONV, 6, 1), images(MBCONV, 6).double()
    paths = paths_of(MBCONV, architectures)
    scores = torch.ones(paths[1].shape, dtype=torch.float64, requires_grad=True)
    (slopes,) = torch.autograd.grad(net(batch, paths, scores).logsumexp(1).sum(), scores)
    vectors = [MBCONV.layout.encode(item) for item in architectures]
    alpha, beta = (torch.tensor(np.stack(part), requires_grad=True) for part in zip(*vectors, strict=True))
    (mixed,) = torch.autograd.grad(net.relaxed(batch, alpha, beta).logsumexp(1).sum(), alpha)
    drawn = torch.tensor(MBCONV.layout.positions(*(item.numpy() for item in paths)))
    second = len(MBCONV.stages[0].blocks)  # the column of the first block of the second stage
    torch.testing.assert_close(slopes[:, 1, 0], mixed.gather(1, drawn[:, second : second + 1])[:, 0])


def test_slopes_in_scores_are_finite_differences():
    net = fresh(MBCONV).eval().double()
    paths, batch = paths_of(MBCONV, sample_many(MBCONV, 4, 2)), images(MBCONV, 4).double()

    def loss(scores):
        return net(batch, paths, scores).logsumexp(1).sum()

    scores = torch.ones(paths[1].shape, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(loss(scores), scores)
    for index in itertools.product(*map(range, scores.shape)):
        step = torch.zeros_like(scores)
        step[index] = 1e-6
        with torch.no_grad():
            slope = float(loss(scores + step) - loss(scores - step)) / 2e-6
        assert slope == pytest.approx(float(found[index]), abs=1e-5)


def test_paths_have_the_probabilities_they_were_drawn_with():
    alpha, beta = random_point(MBCONV, 0)
    count = 40_000
    depths, configs = draw_paths(MBCONV, alpha, beta, count, np.random.default_rng(0))
    drawn = np.bincount(MBCONV.layout.positions(depths, configs).ravel(), minlength=MBCONV.layout.size + 1)
    runs = bilinear_part(MBCONV, Column.full(MBCONV, 1.0), 0.0).matrix @ beta
    expected = np.concatenate([alpha * runs, beta])
    np.testing.assert_allclose(drawn[:-1] / count, expected, atol=5 * 0.5 / np.sqrt(count))


def test_a_choice_without_probability_is_never_drawn():
    alpha, beta = MBCONV.layout.encode(MBCONV.extreme())
    depths, configs = draw_paths(MBCONV, alpha, beta, 500, np.random.default_rng(0))
    assert {MBCONV.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)} == {
        MBCONV.extreme()
    }


def test_the_gradient_is_exact_where_the_loss_is_linear():
    """A loss that is a sum of what blocks add: slopes are these parts, and the expected loss is alpha'Q beta."""
    block = tuple(Config(name) for name in "abc")
    space = SearchSpace("linear", (Stage("s1", (1, 2), (block,) * 2), Stage("s2", (0, 1, 3), (block,) * 3)))
    rng, count = np.random.default_rng(3), 200_000
    parts = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(rng.normal()))
    alpha, beta = random_point(space, 4)
    depths, configs = draw_paths(space, alpha, beta, count, rng)
    slopes = np.full((count, 2, 3), 99.0)  # past a depth they may be anything
    for s, stage in enumerate(space.stages):
        for b in range(len(stage.blocks)):
            runs = depths[:, s] > b
            slopes[runs, s, b] = parts.configs[s][b][configs[runs, s, b]]
    found = straight_through(space, alpha, beta, (depths, configs), slopes)
    matrix = bilinear_part(space, parts, 0.0).matrix
    exact = matrix @ beta, alpha @ matrix
    np.testing.assert_allclose(centred(space, *found), centred(space, *exact), atol=0.04)


@pytest.fixture(scope="module")
def oracle():
    torch.manual_seed(0)
    data = bar_data(400)
    return SupernetOracle(fresh(MBCONV).eval(), data, data.validation, 32)


def test_the_oracle_counts_what_it_was_asked(oracle):
    alpha, beta = MBCONV.layout.uniform()
    before = oracle.evaluations, oracle.gradients
    loss, d_alpha, d_beta = oracle.loss_gradient(alpha, beta, 16, np.random.default_rng(0))
    again = oracle.loss_gradient(alpha, beta, 16, np.random.default_rng(0))
    assert loss == again[0] > 0
    np.testing.assert_array_equal(d_alpha, again[1])
    assert (d_alpha.shape, d_beta.shape) == (alpha.shape, beta.shape)
    assert np.abs(d_alpha).max() > 0 < np.abs(d_beta).max()
    assert (oracle.evaluations, oracle.gradients) == (before[0] + 32, before[1] + 32)


def test_accuracies_are_those_of_networks_of_their_own(oracle):
    architectures, before = sample_many(MBCONV, 2, 5), oracle.evaluations
    found = oracle.accuracies(architectures)
    data = bar_data(400)
    right = [correct_images(oracle._supernet, x, data, [data.validation], 32)[0] for x in architectures]
    assert found.tolist() == [100 * float(item.mean()) for item in right]
    assert oracle.evaluations == before + 2 * (len(data.validation) + 32)
    assert oracle.images_per_network == oracle.images + 32
