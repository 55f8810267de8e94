"""Few choices tried one by one: the same answers as by folding."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import problems

from binas.search import few
from binas.search.dual import Padded, Reduced, solve_dual, totals_of
from binas.search.few import best_of_few
from binas.search.lagrangian import MAX_CANDIDATES, Neighbourhood, all_reachable, solve_exact
from binas.search.limits import Limit
from binas.search.terms import build_terms, limit_rows
from binas.testing import make_problem, make_space


def neighbourhood(problem):
    padded = Padded(build_terms(problem, limit_rows(problem)))
    return Neighbourhood(padded, solve_dual(padded).relaxed, MAX_CANDIDATES)


@pytest.mark.parametrize("stagewise", [False, True])
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_within_every_gap_what_folding_finds(stagewise, data):
    near = neighbourhood(data.draw(problems(limits=1, stagewise=stagewise)))
    gap = data.draw(st.sampled_from([0.0, 0.01, 0.3, 5.0, np.inf]))
    if not all_reachable(near.padded):
        return
    constant = float(near.padded.terms.constant[0])
    least = (
        near.at.bound + constant - gap
    )  # what is not above may be met or not: halves are within the gap each
    folded = near.read(*near.whole(gap + near.slack))
    found, count = best_of_few(near.padded, near.at, near.reduced, gap + near.slack)
    values = [
        -np.inf if folded is None else folded.value,
        -np.inf if found is None else found.totals[0] + constant,
    ]
    assert max(values) < least or values[0] == values[1]
    if found is not None:
        assert count > 0
        assert (found.totals == totals_of(near.padded, found.depth, found.configs)).all()
        assert (found.totals[1:] <= near.padded.budget).all()


def larger(seed=0):
    problem = make_problem(make_space(5, 4, 12), seed)
    return problem.with_limits([Limit("latency", 0.35 * problem.scales["latency"])])


def test_too_many_are_left_to_folding(monkeypatch):
    problem = larger()
    terms = build_terms(problem, limit_rows(problem))
    usual = solve_exact(terms)
    near = neighbourhood(problem)
    assert best_of_few(near.padded, near.at, near.reduced, np.inf) is None
    monkeypatch.setattr(few, "MOST", 0)
    assert best_of_few(near.padded, near.at, near.reduced, 0.01) is None
    folded = solve_exact(terms)
    assert (folded.best.value, folded.proven) == (usual.best.value, usual.proven) == (usual.best.value, True)


def test_the_best_config_of_every_block_costs_nothing_more():
    near = neighbourhood(larger(1))
    reduced = Reduced.at(near.padded, near.at.multipliers)
    own = np.take_along_axis(reduced.configs, reduced.best[:, :, None], axis=2)[:, :, 0]
    assert (own == reduced.configs.min(axis=2)).all()
