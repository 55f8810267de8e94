"""binas: the most accurate network within your limits, proven, and explained.

Names are imported when first used, so that ``import binas`` and the command line start quickly and
searching given tables never loads torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from binas.base.packages import explain_import
from binas.version import __version__

if TYPE_CHECKING:
    from binas.export.model_file import load_model
    from binas.run.folder import Folder, load
    from binas.search import (
        Evaluation,
        Frontier,
        Limit,
        SearchProblem,
        SearchResult,
        Status,
        best_architectures,
        evaluate,
        explain,
        explain_infeasible,
        frontier,
        solve,
    )
    from binas.space import Architecture, SearchSpace, load_space
    from binas.tables import Contributions, CostTable, load_contributions, load_costs

_ROOMS = {
    "binas.export.model_file": ("load_model",),
    "binas.run.folder": ("Folder", "load"),
    "binas.search": (
        "Evaluation",
        "Frontier",
        "Limit",
        "SearchProblem",
        "SearchResult",
        "Status",
        "best_architectures",
        "evaluate",
        "explain",
        "explain_infeasible",
        "frontier",
        "solve",
    ),
    "binas.space": ("Architecture", "SearchSpace", "load_space"),
    "binas.tables": ("Contributions", "CostTable", "load_contributions", "load_costs"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Architecture",
    "Contributions",
    "CostTable",
    "Evaluation",
    "Folder",
    "Frontier",
    "Limit",
    "SearchProblem",
    "SearchResult",
    "SearchSpace",
    "Status",
    "__version__",
    "best_architectures",
    "evaluate",
    "explain",
    "explain_infeasible",
    "frontier",
    "load",
    "load_contributions",
    "load_costs",
    "load_model",
    "load_space",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'binas' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        raise explain_import(error, f"binas.{name}") or error from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
