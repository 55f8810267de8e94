"""The bilinear design is the sum formula; its contrasts are what data can tell."""

import numpy as np
import pytest

from binas.base.errors import ArchitectureError
from binas.contributions import TableEvaluator
from binas.contributions.design import Design, sparse_rows
from binas.contributions.outcomes import LEAST_ERROR, LOWEST_LOG, Outcomes, log_error, outcome_values
from binas.estimators.objective import column_total
from binas.space import Config, SearchSpace, Stage, load_space, sample_many
from binas.tables import Column
from binas.testing import make_space
from binas.testing.evaluators import known_contributions

UNLIKE = SearchSpace(
    "unlike",
    (
        Stage("a", (0, 2), ((Config("x", (("kernel", 3),)), Config("y", (("kernel", 5),))), (Config("z"),))),
        Stage("b", (1,), ((Config("p"), Config("q"), Config("r")),)),
    ),
)
SPACES = [load_space("small-28"), load_space("imagenet-mbconv"), UNLIKE]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_a_row_adds_up_the_contributions_of_a_path(space):
    design, architectures = Design(space), sample_many(space, 30, 0)
    theta = np.random.default_rng(0).normal(size=design.size)
    totals = sparse_rows(space, *space.to_indices(architectures)) @ theta
    column = Column.from_flat(space, theta)
    assert (column.flat() == theta).all()
    assert totals == pytest.approx([column_total(space, column, a) for a in architectures])


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_contrasts_average_to_zero_and_are_all_that_data_tell(space):
    design = Design(space)
    assert design.contrasts.T @ design.contrasts == pytest.approx(np.eye(design.contrasts.shape[1]))
    theta = design.contrasts @ np.random.default_rng(1).normal(size=design.contrasts.shape[1])
    for where in space.layout.slices:
        assert theta[where].sum() == pytest.approx(0)
    rows = sparse_rows(space, *space.to_indices(sample_many(space, 4 * design.size, 2))).toarray()
    rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(rows)), rows]))
    assert rank == 1 + design.contrasts.shape[1]


def test_similarities_share_what_option_values_have_in_common():
    space = load_space("small-28")
    design = Design(space)
    assert set(design.similarities) == {"depth", "shared", "factor", "deviation"}
    full = {name: design.contrasts @ part @ design.contrasts.T for name, part in design.similarities.items()}
    same, other = space.layout.config_slices[0][0], space.layout.config_slices[2][1]
    names = [config.name for config in space.stages[0].blocks[0]]
    wide, narrow = names.index("e4k3"), names.index("e2k3")
    assert full["shared"][same.start + wide, other.start + wide] > 0
    assert full["shared"][same.start + wide, other.start + narrow] < full["shared"][same.start, other.start]
    assert full["factor"][same.start + wide, other.start + wide] == pytest.approx(0)
    assert full["factor"][same.start + wide, same.start + names.index("e4k5")] > 0
    assert full["deviation"][same.start, same.start] == pytest.approx(1 - 1 / len(names))
    for part in design.similarities.values():
        assert np.linalg.eigvalsh(part).min() > -1e-9


def test_a_space_without_options_has_only_deviations():
    space = SearchSpace("plain", (Stage("s", (1, 2), ((Config("a"), Config("b")),) * 2),))
    assert set(Design(space).similarities) == {"depth", "deviation"}


def test_outcomes_as_numbers():
    some = Outcomes(np.array([True, False]), np.log(np.array([0.5, 1e-6])).astype(np.float32))
    assert outcome_values(some, "correct").tolist() == [1, 0]
    assert outcome_values(some, "probability") == pytest.approx([0.5, 1e-6], rel=1e-5)
    assert outcome_values(some, "log-probability") == pytest.approx([np.log(0.5), LOWEST_LOG], rel=1e-5)


def test_errors_are_told_apart_by_their_logarithm():
    found = log_error(np.array([0.0, 0.9, 0.95, 1 - LEAST_ERROR, 1.0]))
    assert found[[0, 3, 4]] == pytest.approx([LOWEST_LOG, 0, 0])
    halved = (
        log_error(np.array([0.5])) - LOWEST_LOG
    )  # half of the errors are worth as much wherever one starts
    assert found[2] - found[1] == pytest.approx(float(halved[0]))


def test_a_table_answers_as_an_evaluator():
    space = make_space(2, 2, 3)
    truth = known_contributions(space, 0)

    def accuracy(architecture):
        return truth.base + column_total(space, truth.values, architecture)

    table = TableEvaluator(space, accuracy, images=20_000)
    depths, configs = space.to_indices(sample_many(space, 1, 1) * table.images)
    found = table.outcomes(np.arange(table.images), depths, configs)
    expected = accuracy(space.from_indices(depths[0], configs[0])) / 100
    assert found.log_probability == pytest.approx(float(log_error(np.array(expected))), rel=1e-5)
    assert found.correct.mean() == pytest.approx(expected, abs=0.015)
    wrong = TableEvaluator(space, lambda architecture: 0.0, images=1)
    with pytest.raises(ArchitectureError, match="in percent, above 0 and at most 100"):
        wrong.outcomes(np.arange(1), depths[:1], configs[:1])
