"""Factors and triangular systems against LAPACK, at sizes around the blocks."""

import numpy as np
import pytest
from scipy import linalg

from binas.estimators.triangular import (
    BLOCK,
    PANEL,
    factorise,
    invert_lower,
    solve_lower,
    solve_lower_transposed,
)

SIZES = [1, 2, BLOCK, BLOCK + 1, PANEL - 1, PANEL, 2 * PANEL + 3]


def positive(size):
    rows = np.random.default_rng(size).normal(size=(size, size + 10))
    return rows @ rows.T


@pytest.mark.parametrize("size", SIZES)
def test_factors_are_those_of_cholesky_and_take_the_place_of_the_matrix(size):
    matrix = positive(size)
    expected = linalg.cholesky(matrix, lower=True)
    factor = factorise(matrix)
    assert factor is matrix
    assert np.allclose(np.tril(factor), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [(), (5,)], ids=["vector", "matrix"])
def test_systems_are_solved_without_a_look_above_the_diagonal(size, columns):
    factor, right = factorise(positive(size)), np.random.default_rng(0).normal(size=(size, *columns))
    factor[np.triu_indices(size, 1)] = np.nan
    lower = np.tril(np.nan_to_num(factor))
    assert np.allclose(solve_lower(factor, right), linalg.solve_triangular(lower, right, lower=True))
    expected = linalg.solve_triangular(lower, right, lower=True, trans="T")
    assert np.allclose(solve_lower_transposed(factor, right), expected)


@pytest.mark.parametrize("size", SIZES)
def test_an_inverse_is_lower_triangular_too(size):
    factor = factorise(positive(size))
    lower = np.tril(factor)
    factor[np.triu_indices(size, 1)] = np.nan
    inverse = invert_lower(factor)
    assert np.allclose(inverse @ lower, np.eye(size), atol=1e-8)
    assert not np.triu(inverse, 1).any()


def test_what_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        factorise(-np.eye(3))
