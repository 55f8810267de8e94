"""The relaxed loss of a supernet: slopes in how much blocks count, and what an oracle of networks answers and counts."""

import itertools

import numpy as np
import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV, fresh, images, scrambled

from binas.contributions.relaxed_loss import SupernetOracle
from binas.contributions.sampling import correct_images
from binas.space import sample_many
from binas.supernet import paths_of


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


def make_oracle(gradient="score"):
    torch.manual_seed(0)
    data = bar_data(400)
    return SupernetOracle(fresh(MBCONV).eval(), data, data.validation, 32, gradient=gradient)


@pytest.fixture(scope="module")
def oracle():
    return make_oracle()


@pytest.mark.parametrize(("gradient", "differentiated"), [("score", 0), ("straight-through", 32)])
def test_the_oracle_counts_what_it_was_asked(gradient, differentiated):
    oracle, (alpha, beta) = make_oracle(gradient), MBCONV.layout.uniform()
    loss, d_alpha, d_beta = oracle.loss_gradient(alpha, beta, 16, np.random.default_rng(0))
    again = oracle.loss_gradient(alpha, beta, 16, np.random.default_rng(0))
    assert loss == again[0] > 0
    np.testing.assert_array_equal(d_alpha, again[1])
    assert (d_alpha.shape, d_beta.shape) == (alpha.shape, beta.shape)
    assert np.abs(d_alpha).max() > 0 < np.abs(d_beta).max()
    assert (oracle.evaluations, oracle.gradients) == (32, differentiated)


def test_accuracies_are_those_of_networks_of_their_own(oracle):
    architectures, before = sample_many(MBCONV, 2, 5), oracle.evaluations
    found = oracle.accuracies(architectures)
    data = bar_data(400)
    right = [correct_images(oracle._supernet, x, data, [data.validation], 32)[0] for x in architectures]
    assert found.tolist() == [100 * float(item.mean()) for item in right]
    assert oracle.evaluations == before + 2 * (len(data.validation) + 32)
    assert oracle.images_per_network == oracle.images + 32
