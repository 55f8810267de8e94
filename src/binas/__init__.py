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
    from binas.run.folder import Folder as Folder
    from binas.run.folder import load as load
    from binas.run.run import Run as Run
    from binas.run.run import open_run as open_run
    from binas.run.start import run as run
    from binas.search import Evaluation as Evaluation
    from binas.search import Frontier as Frontier
    from binas.search import Limit as Limit
    from binas.search import SearchProblem as SearchProblem
    from binas.search import SearchResult as SearchResult
    from binas.search import Status as Status
    from binas.search import best_architectures as best_architectures
    from binas.search import evaluate as evaluate
    from binas.search import explain as explain
    from binas.search import explain_infeasible as explain_infeasible
    from binas.search import frontier as frontier
    from binas.search import solve as solve
    from binas.space import Architecture as Architecture
    from binas.space import SearchSpace as SearchSpace
    from binas.space import load_space as load_space
    from binas.tables import Contributions as Contributions
    from binas.tables import CostTable as CostTable
    from binas.tables import load_contributions as load_contributions
    from binas.tables import load_costs as load_costs

__getattr__, _public = lazy_names(__name__, __file__)
__all__ = [*_public, "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
