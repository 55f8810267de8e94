"""binas: the most accurate network within your limits, proven, and explained.

Names are imported when first used, so that ``import binas`` and the command line start quickly and
searching given tables never loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names
from binas.version import __version__

if TYPE_CHECKING:
    from binas.export.model_file import load_model as load_model
    from binas.run.folder import Folder as Folder, load as load
    from binas.run.run import Run as Run, open_run as open_run
    from binas.run.shrinking import shrink as shrink
    from binas.run.start import run as run
    from binas.search import (
        Evaluation as Evaluation,
        Frontier as Frontier,
        Limit as Limit,
        SearchProblem as SearchProblem,
        SearchResult as SearchResult,
        Status as Status,
        best_architectures as best_architectures,
        evaluate as evaluate,
        explain as explain,
        explain_infeasible as explain_infeasible,
        frontier as frontier,
        solve as solve,
    )
    from binas.space import Architecture as Architecture, SearchSpace as SearchSpace, load_space as load_space
    from binas.tables import (
        Contributions as Contributions,
        CostTable as CostTable,
        load_contributions as load_contributions,
        load_costs as load_costs,
    )

__getattr__, _public = lazy_names(__name__, __file__)
__all__ = [*_public, "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
