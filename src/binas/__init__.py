"""binas: the most accurate network within your limits, proven, and explained.

Names are imported when first used, so that ``import binas`` and the command line start quickly and
searching given tables never loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names
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

__getattr__, _public = lazy_names(__name__, __file__)
__all__ = [*_public, "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
