"""The paper's matrices and the tight form give the same objective and the same feasible set (section 3.4)."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.base.errors import ProblemError
from binas.search.matrices import paper_form, tight_form
from binas.search.problem import evaluate
from binas.space import enumerate_all, load_space
from binas.testing import make_problem, make_space, stagewise_cases


@given(problem=problems())
@settings(max_examples=30, deadline=None)
def test_same_objective_and_same_feasible_set_on_all_architectures(problem):
    paper, tight, layout = paper_form(problem), tight_form(problem), problem.space.layout
    for architecture in enumerate_all(problem.space)[:300]:
        judged = evaluate(problem, architecture)
        alpha, beta = layout.encode(architecture, inactive="first")
        x = np.concatenate(layout.encode(architecture, inactive="zero"))
        assert paper.objective.value(alpha, beta) == pytest.approx(judged.accuracy, abs=1e-9)
        assert tight.constant + tight.objective @ x == pytest.approx(judged.accuracy, abs=1e-9)
        assert paper.holds(alpha, beta) == judged.feasible == tight.feasible(x)


@given(problem=problems(limits=1))
@settings(max_examples=30, deadline=None)
def test_the_config_of_an_inactive_block_does_not_matter(problem):
    paper, layout = paper_form(problem), problem.space.layout
    for architecture in enumerate_all(problem.space)[:50]:
        alpha, beta = layout.encode(architecture, inactive="first")
        other, _ = layout.encode(architecture, inactive="uniform")
        assert paper.objective.value(alpha, beta) == pytest.approx(
            paper.objective.value(other, beta), abs=1e-9
        )


def test_points_that_are_no_architecture_are_outside_both_forms():
    problem = make_problem(make_space(2, 2, 3), 0)
    paper, tight, layout = paper_form(problem), tight_form(problem), problem.space.layout
    alpha, beta = layout.encode(problem.space.extreme())
    assert paper.holds(alpha, beta)
    for broken in (alpha * 2, alpha * 0, -alpha):
        assert not paper.holds(broken, beta)
        assert not tight.feasible(np.concatenate([broken, beta]))
    assert not paper.holds(alpha, beta * 0)


def test_sizes_of_the_paper():
    from binas.search.problem import SearchProblem
    from binas.testing.paper_example import paper_contributions, paper_costs

    space = load_space("imagenet-mbconv")
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=45ms"])
    form = paper_form(problem)
    assert form.objective.matrix.shape == form.rows[0].matrix.shape == (240, 15)
    assert form.alpha_constraints[0].shape == (2 * 20 + 240, 240)
    assert form.beta_constraints[0].shape == (2 * 5 + 15, 15)
    assert len(tight_form(problem).objective) == 255


def test_other_objectives_are_refused():
    with pytest.raises(ProblemError, match="stagewise"):
        tight_form(stagewise_cases()[0].problem)
