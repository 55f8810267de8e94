import pytest

from binas.base.errors import SpaceError
from binas.costs import analytic_costs
from binas.run.folder import space_of_table
from binas.space import load_space, save_space
from binas.space.files import space_from_data, space_to_data


@pytest.mark.parametrize("name", ["costs.json", "costs.csv"])
def test_a_table_of_a_built_in_space_knows_it(tmp_path, name):
    space = load_space("small-28")
    analytic_costs(space).save(tmp_path / name)
    assert space_of_table(tmp_path / name) == space


def test_the_space_beside_a_table_comes_first(tmp_path):
    analytic_costs(load_space("small-28")).save(tmp_path / "costs.json")
    other = space_from_data({**space_to_data(load_space("small-28")), "name": "mine"})
    save_space(other, tmp_path / "space.yaml")
    assert space_of_table(tmp_path / "costs.json").name == "mine"
    assert space_of_table(tmp_path / "costs.json", "demo").name == "demo"


def test_a_table_of_an_unknown_space_says_to_name_it(tmp_path):
    other = space_from_data({**space_to_data(load_space("small-28")), "name": "mine"})
    analytic_costs(other).save(tmp_path / "costs.json")
    with pytest.raises(SpaceError, match="--space"):
        space_of_table(tmp_path / "costs.json")
