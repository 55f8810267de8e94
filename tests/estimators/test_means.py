"""Contributions as conditional means over samples."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, distinct, samples_of, space_of

from binas.base.errors import EstimatorError
from binas.estimators import AdditivePredictor, BilinearEstimator, marginal_means
from binas.estimators.links import LINKS, LinkName, get_link
from binas.space import enumerate_all
from binas.tables import Samples

EVERY = enumerate_all(UNEVEN)
ACCURACY = 70 + 5 * np.random.default_rng(0).normal(size=len(EVERY))


@pytest.mark.parametrize("link", LINKS)
def test_definition(link: LinkName) -> None:
    samples = samples_of(UNEVEN, ACCURACY, EVERY)
    estimator = BilinearEstimator(marginal_means(samples, link), link)
    values = get_link(link).forward(ACCURACY)
    assert estimator.base == pytest.approx(values.mean())
    deep = [len(item.stages[0]) == 3 for item in EVERY]
    assert estimator.values.depths[0][2] == pytest.approx(values[deep].mean() - values.mean())
    active = [len(item.stages[0]) >= 2 for item in EVERY]
    having = [len(item.stages[0]) >= 2 and item.stages[0][1] == "c2" for item in EVERY]
    assert estimator.values.configs[0][1][2] == pytest.approx(values[having].mean() - values[active].mean())


def test_counts_and_provenance() -> None:
    table = marginal_means(samples_of(UNEVEN, ACCURACY, EVERY), "log")
    assert table.count is not None
    assert table.count.depths[1].sum() == len(EVERY)
    assert table.count.configs[2][0].tolist() == [len(EVERY) / 2] * 2
    assert table.provenance.to_data()["link"] == "log"


def test_least_squares_on_a_whole_space_of_one_depth() -> None:
    space = space_of(((2,), (2, 3)), ((1,), (3,)))
    every = enumerate_all(space)
    samples = samples_of(space, ACCURACY[: len(every)], every)
    fitted = AdditivePredictor(ridge=1e-9).fit(samples)
    means = BilinearEstimator(marginal_means(samples))
    np.testing.assert_allclose(means.predict(every), fitted.predict(every), rtol=1e-6)


def test_every_choice_must_occur() -> None:
    few = samples_of(UNEVEN, [50.0, 60.0], distinct(UNEVEN, 2))
    with pytest.raises(EstimatorError, match=r"no sample has: .* in block .* of stage .*Measure more"):
        marginal_means(few)
    with pytest.raises(EstimatorError, match="no sample has"):
        marginal_means(Samples(UNEVEN, ()))
