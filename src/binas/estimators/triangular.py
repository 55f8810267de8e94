"""Cholesky factors and triangular systems by blocks, so that nearly all of the work is products of matrices.

numpy has neither a triangular solve nor a factorisation in place; scipy, which has both, is three times the size of
all else that the predictors need.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 64  # up to this size a system is solved as if it were full
PANEL = 256  # columns factorised at once


def solve_lower(lower: Array, right: Array) -> Array:
    """x with L x = right, for a lower triangular L; ``right`` is (n,) or (n, k). Above its diagonal nothing is read."""
    if (size := len(lower)) <= BLOCK:
        return np.asarray(np.linalg.solve(np.tril(lower), right), dtype=np.float64)
    half = size // 2
    first = solve_lower(lower[:half, :half], right[:half])
    rest = solve_lower(lower[half:, half:], right[half:] - lower[half:, :half] @ first)
    return np.concatenate([first, rest])


def solve_lower_transposed(lower: Array, right: Array) -> Array:
    """x with L' x = right, for a lower triangular L."""
    if (size := len(lower)) <= BLOCK:
        return np.asarray(np.linalg.solve(np.tril(lower).T, right), dtype=np.float64)
    half = size // 2
    rest = solve_lower_transposed(lower[half:, half:], right[half:])
    first = solve_lower_transposed(lower[:half, :half], right[:half] - lower[half:, :half].T @ rest)
    return np.concatenate([first, rest])


def invert_lower(lower: Array) -> Array:
    """L^-1 of a lower triangular L. Above the diagonal nothing is read."""
    if (size := len(lower)) <= BLOCK:
        return np.tril(np.linalg.inv(np.tril(lower)))
    half, result = size // 2, np.zeros((size, size))
    result[:half, :half] = first = invert_lower(lower[:half, :half])
    result[half:, half:] = rest = invert_lower(lower[half:, half:])
    result[half:, :half] = -rest @ (lower[half:, :half] @ first)
    return result


def factorise(matrix: Array) -> Array:
    """L with L L' = a symmetric positive definite matrix, in its place; above the diagonal stays what was there."""
    for start in range(0, len(matrix), PANEL):
        end = start + PANEL
        panel = matrix[start:, start:end]
        panel -= matrix[start:, :start] @ matrix[start:end, :start].T
        panel[:PANEL] = np.linalg.cholesky(panel[:PANEL])
        panel[PANEL:] = solve_lower(panel[:PANEL], panel[PANEL:].T).T
    return matrix
