"""Networks chosen without the search, at the same cost, measured on the same images."""

import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV

from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.limits import Limit
from binas.search.rivals import Comparison
from binas.space import load_space
from binas.supernet import Supernet
from binas.tables import Column
from binas.tasks.compare import Bench, compare_with_rivals
from binas.training import evaluate_architecture

DEMO = load_space("demo")


def problem(space, *limits):
    objective = BilinearObjective(50.0, Column.full(space, 0.0))
    return SearchProblem.build(objective, analytic_costs(space), limits, space)


def test_all_are_measured_in_the_same_way():
    torch.manual_seed(0)
    supernet, data = Supernet(MBCONV).eval(), bar_data()
    asked = problem(MBCONV)
    found = MBCONV.extreme()
    asked = asked.with_limits([Limit("macs", asked.cost("macs", found))])
    compared = compare_with_rivals(Bench(supernet, data, asked, asked.limits[0], 64), found, 3)
    again = evaluate_architecture(supernet, found, data, data.test, 64)
    assert compared.found.accuracy == pytest.approx(again.percent)
    assert len(compared.random) <= 3
    assert compared.hand_scaled is not None
    assert (compared.images, compared.cost, compared.unit) == (len(data.test), "macs", "MACs")
    assert compared.limit == compared.found.cost == asked.cost("macs", found)
    one, two = compared.found.accuracy, compared.hand_scaled.accuracy
    assert compared.over_hand_scaled[0] == pytest.approx(one - two)
    assert 0 <= compared.beaten <= len(compared.random)
    assert Comparison.model_validate_json(compared.model_dump_json()) == compared
