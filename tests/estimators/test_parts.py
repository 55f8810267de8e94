"""Depths and configs told apart, and the ablation of table 2."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, random_contributions, space_of

from binas.estimators import BilinearEstimator, ablation
from binas.estimators.bilinear import separated
from binas.estimators.links import LINKS, LinkName
from binas.estimators.objective import BilinearObjective
from binas.space import enumerate_all, sample_many
from binas.tables import Column

EVERY = enumerate_all(UNEVEN)


def test_separating_changes_no_prediction() -> None:
    table = random_contributions(UNEVEN)
    base, values = separated(UNEVEN, table.base, table.values)
    before, after = BilinearObjective(table.base, table.values), BilinearObjective(base, values)
    for item in EVERY:
        assert after.value(UNEVEN, item) == pytest.approx(before.value(UNEVEN, item))
    for array in values.arrays():
        assert array.mean() == pytest.approx(0.0, abs=1e-12)


def test_the_base_is_the_average_architecture() -> None:
    table = random_contributions(UNEVEN)
    base, _ = separated(UNEVEN, table.base, table.values)
    drawn = BilinearEstimator(table).predict(sample_many(UNEVEN, 4000, 0))
    assert base == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 60)


@pytest.mark.parametrize("link", LINKS)
def test_ablation_does_not_depend_on_how_contributions_are_split(link: LinkName) -> None:
    table = random_contributions(UNEVEN)
    estimator = BilinearEstimator(table, link)
    base, values = separated(UNEVEN, estimator.base, estimator.values)
    shifted = BilinearEstimator(table, link)
    moved = [d + 0.01 * np.array(stage.depths) for d, stage in zip(values.depths, UNEVEN.stages, strict=True)]
    configs = tuple(tuple(block - 0.01 for block in row) for row in values.configs)
    shifted.base, shifted.values = base, Column(tuple(moved), configs)
    assert shifted.predict(EVERY) == pytest.approx(estimator.predict(EVERY))
    one, two = ablation(estimator, EVERY), ablation(shifted, EVERY)
    assert one.keys() == two.keys() == {"q_beta = 0", "Q = 0"}
    for name in one:
        assert one[name] == pytest.approx(two[name])


def test_each_part_says_nothing_about_the_other() -> None:
    found = ablation(BilinearEstimator(random_contributions(UNEVEN)), EVERY)
    by_depth = {item.depths: value for item, value in zip(EVERY, found["Q = 0"].tolist(), strict=True)}
    assert [by_depth[item.depths] for item in EVERY] == pytest.approx(found["Q = 0"].tolist())
    by_configs = [
        value for item, value in zip(EVERY, found["q_beta = 0"], strict=True) if item.depths[0] == 0
    ]
    assert len(set(np.round(by_configs, 9))) > 1


def test_parts_that_cannot_be_told_apart_are_left_out() -> None:
    one_depth, one_config = space_of(((2,), (2, 3))), space_of(((1, 2), (1, 1)))
    for space, name in ((one_depth, "Q = 0"), (one_config, "q_beta = 0")):
        found = ablation(BilinearEstimator(random_contributions(space)), enumerate_all(space))
        assert found.keys() == {name}
