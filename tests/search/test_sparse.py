"""Sparse matrices against those of scipy."""

import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from binas.search.sparse import Sparse

shapes = array_shapes(min_dims=2, max_dims=2, max_side=6)
matrices = arrays(np.float64, shapes, elements={"min_value": -2, "max_value": 2}).map(np.round)


@given(matrices)
def test_there_and_back(matrix):
    found, expected = Sparse.from_dense(matrix), sparse.csr_array(matrix)
    assert found.shape == matrix.shape
    assert (found.to_dense() == matrix).all()
    assert found.starts.tolist() == expected.indptr.tolist()
    assert found.columns.tolist() == expected.indices.tolist()
    assert found.starts.dtype == found.columns.dtype == np.int32  # what HiGHS takes without a copy
    x = np.arange(1.0, matrix.shape[1] + 1)
    assert np.allclose(found @ x, matrix @ x)
    dense = np.zeros_like(matrix)
    for i, (columns, values) in enumerate(found.rows()):
        dense[i, columns] = values
    assert (dense == matrix).all()


@given(matrices)
def test_stacked_and_widened(matrix):
    found = Sparse.from_dense(matrix)
    column = np.arange(len(matrix)) % 2 - 0.0
    assert (Sparse.stack(found, found).to_dense() == np.vstack([matrix, matrix])).all()
    assert (found.with_column(column).to_dense() == np.column_stack([matrix, column])).all()


def test_entries_may_come_in_any_order_and_rows_may_be_empty():
    found = Sparse.from_entries([3, 0, 3], [0, 1, 1], [1.0, 2.0, 3.0], (5, 2))
    assert found.to_dense().tolist() == [[0, 2], [0, 0], [0, 0], [1, 3], [0, 0]]
    assert Sparse.from_entries([], [], [], (0, 4)).shape == (0, 4)
