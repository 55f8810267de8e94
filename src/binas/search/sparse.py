"""A matrix with few entries, as numpy arrays: all that the linear programs of the search need of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int32]  # as solvers take them


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows one after the other: row i has ``values[k]`` in ``columns[k]`` for starts[i] <= k < starts[i + 1]."""

    starts: Ints
    columns: Ints
    values: Array
    width: int

    @classmethod
    def from_entries(
        cls, rows: ArrayLike, columns: ArrayLike, values: ArrayLike, shape: tuple[int, int]
    ) -> Self:
        """The matrix with values[k] at (rows[k], columns[k]), each place at most once, and zeros elsewhere."""
        height, width = shape
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(np.asarray(rows, dtype=np.int64), minlength=height)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        column, value = np.asarray(columns, dtype=np.int32), np.asarray(values, dtype=np.float64)
        return cls(starts, column[order], value[order], width)

    @classmethod
    def from_dense(cls, matrix: Array) -> Self:
        """The non-zeros of a matrix."""
        rows, columns = np.nonzero(matrix)
        return cls.from_entries(rows, columns, matrix[rows, columns], (matrix.shape[0], matrix.shape[1]))

    @classmethod
    def stack(cls, *parts: Sparse) -> Self:
        """Matrices of one width on top of each other."""
        counts = np.concatenate([np.diff(part.starts) for part in parts])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        columns, values = (
            np.concatenate([getattr(part, key) for part in parts]) for key in ("columns", "values")
        )
        return cls(starts, columns, values, parts[0].width)

    def with_column(self, column: Array) -> Sparse:
        """The matrix with one more column at its right."""
        used = column != 0
        ends = self.starts[1:][used]
        return Sparse(
            self.starts + np.concatenate([[0], np.cumsum(used)]).astype(np.int32),
            np.insert(self.columns, ends, self.width),
            np.insert(self.values, ends, column[used]),
            self.width + 1,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.starts) - 1, self.width

    def rows(self) -> Iterator[tuple[list[int], list[float]]]:
        """Columns and values of one row after the other."""
        for start, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield self.columns[start:end].tolist(), self.values[start:end].tolist()

    def to_dense(self) -> Array:
        """The matrix with its zeros."""
        matrix = np.zeros(self.shape)
        matrix[self._row_of_each, self.columns] = self.values
        return matrix

    def __matmul__(self, x: Array) -> Array:
        sums = np.bincount(self._row_of_each, self.values * x[self.columns], minlength=self.shape[0])
        return sums.astype(np.float64)

    @property
    def _row_of_each(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))
