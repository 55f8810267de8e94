"""Contributions as conditional means over samples."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, distinct, samples_of, space_of

from binas.base.errors import EstimatorError
from binas.estimators import AdditivePredictor, BilinearEstimator, marginal_means
from binas.estimators.links import LINKS, LinkName, get_link
from binas.space import Architecture, enumerate_all
from binas.tables import Provenance, Samples

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
    fitted = AdditivePredictor("identity", ridge=1e-9).fit(samples)
    means = BilinearEstimator(marginal_means(samples))
    np.testing.assert_allclose(means.predict(every), fitted.predict(every), rtol=1e-6)


def test_every_choice_must_occur() -> None:
    few = samples_of(UNEVEN, [50.0, 60.0], distinct(UNEVEN, 2))
    with pytest.raises(EstimatorError, match=r"no sample has: .* in block .* of stage .*Measure more"):
        marginal_means(few)
    with pytest.raises(EstimatorError, match="no sample has"):
        marginal_means(Samples(UNEVEN, ()))


WIDE = space_of(((1, 2, 3), (12,) * 3), ((1, 2, 3), (12,) * 3))


def drawn(together: bool, count: int = 150) -> Samples:
    """Architectures with independent decisions, or all of them large or small together, as strata of a cost have them."""
    rng, items = np.random.default_rng(0), dict[Architecture, None]()
    while len(items) < count:
        size = rng.integers(3)
        low, high = (4 * size, 4 * size + 4) if together else (0, 12)
        stages = [
            [f"c{rng.integers(low, high)}" for _ in range(depth)] for depth in 1 + rng.integers(3, size=2)
        ]
        items[Architecture.of(stages)] = None
    return samples_of(WIDE, (70 + rng.normal(size=count)).tolist(), list(items))


def test_samples_whose_decisions_hang_together_are_refused() -> None:
    marginal_means(drawn(together=False))
    with pytest.raises(EstimatorError, match=r"150 samples depend on each other .*--fit additive"):
        marginal_means(drawn(together=True))


def test_provenance_that_names_strata_is_believed() -> None:
    samples = drawn(together=False)
    strata = Samples(samples.space, samples.rows, Provenance(strata="cost"))
    with pytest.raises(EstimatorError, match=r"drawn by strata of cost, not uniformly.*AdditivePredictor"):
        marginal_means(strata)
    marginal_means(Samples(samples.space, samples.rows, Provenance(strata="uniform")))
