"""Architectures that are the same network under several names."""

import pytest

from binas.costs.analytic import analytic_costs
from binas.search import Limit, SearchProblem, best_architectures, solve
from binas.search.rivals import random_rivals
from binas.space import builtin_names, load_space
from binas.space.twins import distinct, first_twins, plainest
from binas.tasks.confirming import near_optimal
from binas.testing import make_space
from binas.testing.evaluators import known_contributions

NARROW = """
format: binas/space
version: 1
name: narrow
channels: 1
resolution: 16
classes: 3
stem: [cn_r1_k3_s1_c8_nre]
stages:
  - name: s1
    depths: [1, 2]
    channels: 16
    stride: 2
    activation: re
    configs: {expansion: [0.25, 0.5, 1, 2], kernel: [3]}
head: [cn_r1_k1_s1_c16_nre]
"""


@pytest.fixture
def narrow(tmp_path):
    path = tmp_path / "narrow.yaml"
    path.write_text(NARROW)
    return load_space(path)


def test_widths_that_are_rounded_to_the_same_are_twins(narrow):
    """8 channels enter the first block and 16 the second: both are rounded to multiples of 8, to 8 at least."""
    first, second = first_twins(narrow)[0]
    assert first == {"e0.25k3": "e0.25k3", "e0.5k3": "e0.25k3", "e1k3": "e0.25k3", "e2k3": "e2k3"}
    assert second == {"e0.25k3": "e0.25k3", "e0.5k3": "e0.25k3", "e1k3": "e1k3", "e2k3": "e2k3"}


def test_twins_are_right_on_the_same_images(narrow):
    torch = pytest.importorskip("torch")
    from binas.supernet import Supernet

    torch.manual_seed(0)
    supernet, images = Supernet(narrow).eval(), torch.randn(4, 1, 16, 16)
    one, two, other = (narrow.parse(text) for text in ("e1k3-e0.5k3", "e0.25k3-e0.25k3", "e2k3-e0.25k3"))
    assert plainest(narrow, one) == plainest(narrow, two) == two != plainest(narrow, other)
    with torch.no_grad():
        said = [supernet(images, item) for item in (one, two, other)]
    assert torch.equal(said[0], said[1])
    assert not torch.allclose(said[0], said[2])


def test_of_each_network_the_first_is_left(narrow):
    items = [narrow.parse(text) for text in ("e1k3", "e2k3", "e0.5k3", "e2k3-e1k3", "e2k3-e1k3")]
    assert list(distinct(narrow, items, lambda item: item)) == [items[0], items[1], items[3]]


def test_configs_that_are_no_blocks_are_each_their_own():
    first = first_twins(make_space(2, 2, 3, 1))
    assert all(name == twin for stage in first for block in stage for name, twin in block.items())


@pytest.mark.parametrize("name", builtin_names())
def test_no_builtin_space_offers_one_network_twice(name):
    first = first_twins(load_space(name))
    assert all(known == twin for stage in first for block in stage for known, twin in block.items())


def narrow_problem(space, limit):
    contributions = known_contributions(space, 0, 1.0, 80.0)
    return SearchProblem.build(contributions, {"macs": analytic_costs(space)["macs"]}, [Limit("macs", limit)])


def test_rivals_and_candidates_are_different_networks(narrow):
    """All names of one network cost the same, so many come within a limit."""
    cost = analytic_costs(narrow)["macs"]
    limit = cost.of(narrow, [narrow.parse("e1k3-e1k3")])[0]
    problem = narrow_problem(narrow, float(limit))
    rivals = random_rivals(problem, problem.limits[0], 20)
    near = [item.architecture for item in near_optimal(solve(problem), 20)]
    for found in (rivals, near):
        assert len({plainest(narrow, item) for item in found}) == len(found) > 0
    assert len(near) < len(best_architectures(problem, 20).items)
    assert sum(plainest(narrow, item) == narrow.parse("e0.25k3-e1k3") for item in rivals) == 1
