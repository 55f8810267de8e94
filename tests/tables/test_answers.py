"""What tables answer about architectures: costs, their range, predicted accuracies with standard errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.search.objective import LARGEST, BilinearObjective, architecture_cost, column_total
from binas.space import SearchSpace, enumerate_all, sample_many
from binas.tables import Column, Contributions, Cost, CostTable, parse_unit
from binas.testing import make_space
from strategies import cost_tables, spaces

SPACE = make_space(2, 3, 3, 1)
EVERY = sample_many(SPACE, 600, 0)


def column(seed: int) -> Column:
    rng = np.random.default_rng(seed)
    return Column.build(SPACE, lambda s, i: rng.normal(), lambda s, b, c: rng.normal())


def contributions(**known: object) -> Contributions:
    return Contributions(SPACE, 70.0, column(0), **known)  # type: ignore[arg-type]


def covariance(seed: int) -> np.ndarray:
    size = 1 + SPACE.layout.size
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T


def test_a_column_from_its_flat_vector() -> None:
    vector = np.random.default_rng(0).normal(size=SPACE.layout.size)
    assert (Column.from_flat(SPACE, vector).flat() == vector).all()
    assert Column.from_flat(SPACE, column(1).flat()).equals(column(1))


class TestCosts:
    @settings(max_examples=25)
    @given(
        spaces(max_stages=2, max_blocks=2).flatmap(
            lambda space: st.tuples(st.just(space), cost_tables(space))
        )
    )
    def test_the_cheapest_is_cheapest_and_the_range_is_reached(
        self, drawn: tuple[SearchSpace, CostTable]
    ) -> None:
        space, table = drawn
        everything = enumerate_all(space)
        for name, cost in table.costs.items():
            if not np.abs(cost.values.flat()).max(initial=abs(cost.fixed)) <= LARGEST:
                continue  # totals would overflow; a search refuses such a cost
            slow = [architecture_cost(space, cost, item) for item in everything]
            near = {"rel": 1e-9, "abs": 1e-6 * max(map(abs, slow))}
            assert table.of(everything, name) == pytest.approx(slow, **near)
            assert table.range(name) == pytest.approx((min(slow), max(slow)), **near)
            assert architecture_cost(space, cost, table.cheapest(name)) == pytest.approx(min(slow), **near)
            assert architecture_cost(space, cost, cost.dearest(space)) == pytest.approx(max(slow), **near)

    @pytest.mark.parametrize("combine", ["sum", "max"])
    def test_both_ways_of_combining(self, combine: str) -> None:
        cost = Cost("peak", parse_unit("MiB"), 0.5, column(2), combine=combine)  # type: ignore[arg-type]
        table, everything = CostTable(SPACE, {"peak": cost}), enumerate_all(SPACE)
        slow = [architecture_cost(SPACE, cost, item) for item in everything]
        assert table.of(everything, "peak") == pytest.approx(slow)
        assert table.range("peak") == pytest.approx((min(slow), max(slow)))
        assert architecture_cost(SPACE, cost, table.cheapest("peak")) == pytest.approx(min(slow))

    def test_no_architectures(self) -> None:
        cost = Cost("latency", parse_unit("ms"), 0.5, column(2))
        assert cost.of(SPACE, []).shape == (0,)


class TestPredictions:
    def test_values_are_the_sum_formula(self) -> None:
        values, errors = contributions().predict(EVERY)
        assert values == pytest.approx([70.0 + column_total(SPACE, column(0), item) for item in EVERY])
        assert np.isnan(errors).all()

    def test_errors_are_a_quadratic_form_of_the_covariance(self) -> None:
        known = covariance(1)
        _, errors = contributions(covariance=known).predict(EVERY)  # more than are in memory at once
        for architecture, error in zip(EVERY, errors, strict=True):
            names = architecture.stages
            z = Column.build(
                SPACE,
                lambda s, i, names=names: SPACE.stages[s].depths[i] == len(names[s]),  # type: ignore[misc]
                lambda s, b, c, names=names: (  # type: ignore[misc]
                    b < len(names[s]) and SPACE.stages[s].blocks[b][c].name == names[s][b]
                ),
            )
            weights = np.append(1.0, z.flat())
            assert error == pytest.approx(math.sqrt(weights @ known @ weights))

    def test_without_a_covariance_errors_are_independent(self) -> None:
        single = column(3).map(np.abs)
        squares = [column_total(SPACE, single.map(np.square), item) for item in EVERY]
        _, errors = contributions(stderr=single, base_stderr=0.2).predict(EVERY)
        assert errors == pytest.approx(np.sqrt(np.array(squares) + 0.04))
        _, exact_base = contributions(stderr=single).predict(EVERY)
        assert exact_base == pytest.approx(np.sqrt(squares))

    def test_an_unknown_error_counts_only_where_it_is_used(self) -> None:
        single = np.full(SPACE.layout.size, 0.1)
        single[0] = math.nan
        _, errors = contributions(stderr=Column.from_flat(SPACE, single)).predict(EVERY)
        assert np.isnan(errors).tolist() == (SPACE.layout.rows(EVERY)[:, 0] == 1).tolist()

    @pytest.mark.parametrize("known", [{"covariance": covariance(2)}, {"stderr": column(4).map(np.abs)}, {}])
    def test_the_objective_of_a_search_says_the_same(self, known: dict[str, object]) -> None:
        table = replace(contributions(**known), base_stderr=0.3)
        objective = BilinearObjective.from_contributions(table)
        values, errors = table.predict(EVERY[:20])
        assert [objective.value(SPACE, item) for item in EVERY[:20]] == pytest.approx(values)
        alone = [objective.standard_error(SPACE, item) for item in EVERY[:20]]
        assert alone == [None] * 20 if not known else alone == pytest.approx(errors)

    def test_a_difference_of_equals_is_exact(self) -> None:
        rows = np.column_stack([np.ones(2), SPACE.layout.rows(EVERY[:1] * 2)])
        assert contributions(covariance=covariance(3)).errors(rows[:1] - rows[1:]).tolist() == [0.0]

    def test_no_architectures(self) -> None:
        assert [part.shape for part in contributions(covariance=covariance(4)).predict([])] == [(0,), (0,)]


def test_extremes_are_the_best_and_the_worst_choice_of_every_decision() -> None:
    table = contributions(stderr=Column.full(SPACE, 0.5))
    known = {name: (best, worst) for name, best, worst in table.extremes()}
    assert len(known) == len(SPACE.stages) + sum(len(stage.blocks) for stage in SPACE.stages)
    stage, values = SPACE.stages[0], table.values.configs[0][0]
    best, worst = known[f"{stage.name} block 1"]
    assert (best.points, worst.points) == (values.max(), values.min())
    assert best.choice == stage.blocks[0][int(values.argmax())].name
    assert best.error == 0.5
    assert all(math.isnan(worst.error) for _, _, worst in contributions().extremes())
