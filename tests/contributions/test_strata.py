"""Distributions of architectures tilted by a cost."""

from __future__ import annotations

import numpy as np
import pytest

from binas.contributions.strata import Tilted, drawn_architectures, odds_around, share_of_macs
from binas.costs.analytic import analytic_costs
from tiny_run import SPACE


def test_a_share_of_macs_is_itself() -> None:
    macs = analytic_costs(SPACE)["macs"]
    least, most = macs.range(SPACE)
    for share in (0.2, 0.5, 0.9):
        assert share_of_macs(SPACE, macs, least + share * (most - least)) == pytest.approx(share, abs=0.01)


def test_networks_near_another_cost_have_that_share_of_macs() -> None:
    """Parameters lie elsewhere than MACs, so half of the range of the one is not half of that of the other."""
    costs = analytic_costs(SPACE)
    params, macs = costs["params"], costs["macs"]
    value = sum(params.range(SPACE)) / 2
    share = share_of_macs(SPACE, params, value)
    drawn = drawn_architectures(SPACE, odds_around(SPACE, [share]), 200, seed=0)
    least, most = macs.range(SPACE)
    found = np.mean([(value - least) / (most - least) for value in macs.of(SPACE, drawn)])
    assert found == pytest.approx(share, abs=0.1)
    assert share_of_macs(SPACE, params, params.range(SPACE)[1]) == pytest.approx(1.0, abs=0.01)


def test_the_mean_of_a_tilted_distribution_is_that_of_its_draws() -> None:
    macs = analytic_costs(SPACE)["macs"].values
    tilted = Tilted(SPACE, macs.map(lambda values: values / 1e6), -0.5)
    rng = np.random.default_rng(0)
    drawn = [tilted.draw(rng)[1] for _ in range(2000)]
    assert tilted.mean == pytest.approx(np.mean(drawn), rel=0.05)
    assert tilted.mean_of(macs) == pytest.approx(1e6 * tilted.mean)
