"""Networks chosen without the search, at the same cost, measured on the same images."""

import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV

from binas.base.progress import Progress
from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.limits import Limit
from binas.search.rivals import Comparison, hand_scaled_rivals
from binas.space import load_space
from binas.supernet import Supernet
from binas.tables import Column
from binas.tasks.compare import Bench, best_hand_scaled, compare_with_rivals
from binas.tasks.outcomes import at_most
from binas.training import evaluate_architecture

DEMO = load_space("small-28")


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
    assert compared.found.one_shot.test == pytest.approx(again.percent)
    chosen = evaluate_architecture(supernet, found, data, data.validation, 64)
    assert compared.found.one_shot.validation == pytest.approx(chosen.percent)
    assert len(compared.random) <= 3
    assert compared.hand_scaled is not None
    assert (compared.images, compared.cost, compared.unit) == (len(data.test), "macs", "MACs")
    assert compared.limit == compared.found.cost == asked.cost("macs", found)
    verdict = compared.verdict
    assert verdict.leads.over_hand_scaled[0] == pytest.approx(verdict.found - verdict.hand_scaled)
    assert Comparison.model_validate_json(compared.model_dump_json()) == compared


def test_fewer_images_are_the_same_ones_of_every_class():
    torch.manual_seed(0)
    supernet, data = Supernet(MBCONV).eval(), bar_data()
    some = at_most(data.test, 20)
    assert len(some) == 20 < len(data.test)
    assert some.labels.bincount().tolist() == [4] * 5
    assert at_most(data.test, 20).fingerprint == some.fingerprint
    assert at_most(data.test, None) is data.test
    asked = problem(MBCONV)
    asked = asked.with_limits([Limit("macs", asked.cost("macs", MBCONV.extreme()))])
    bench = Bench(supernet, data, asked, asked.limits[0], 64, images=20)
    assert compare_with_rivals(bench, MBCONV.extreme(), 1).images == 20


def test_validation_images_choose_the_hand_scaled_network():
    torch.manual_seed(0)
    supernet, data = Supernet(MBCONV).eval(), bar_data()
    asked = problem(MBCONV)
    limit = Limit("macs", asked.cost("macs", MBCONV.extreme()))
    bench = Bench(supernet, data, asked.with_limits([limit]), limit, 64)
    best = best_hand_scaled(bench, Progress())
    reached = {
        item: evaluate_architecture(supernet, item, data, data.validation, 64).percent
        for item in hand_scaled_rivals(bench.problem, limit)
    }
    assert len(reached) > 1
    assert reached[best] == max(reached.values())
