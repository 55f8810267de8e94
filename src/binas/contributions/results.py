"""From a fitted vector to a table of contributions in percent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from binas.contributions.outcomes import Array
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance, today
from binas.version import __version__


def table_of(
    space: SearchSpace,
    vector: Array,
    covariance: Array,
    counts: Array,
    about: Mapping[str, Any],
    repeats: int | None = None,
) -> Contributions:
    """Contributions from shares (base, configs, depths), their covariance and numbers of evaluations."""
    stderr = 100 * np.sqrt(np.maximum(0.0, np.diag(covariance)))
    provenance = Provenance(
        source="measured", date=today(), tool=f"binas {__version__}", repeats=repeats, **about
    )
    return Contributions(
        space,
        base=100 * float(vector[0]),
        values=Column.from_flat(space, 100 * vector[1:]),
        base_stderr=float(stderr[0]),
        stderr=Column.from_flat(space, stderr[1:]),
        count=Column.from_flat(space, counts[1:]),
        provenance=provenance,
        base_count=float(counts[0]),
        covariance=1e4 * covariance,
    )
