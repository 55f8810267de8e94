"""A folder with a space and its tables, as other tools or ``binas example`` leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from binas.base.errors import FileError
from binas.base.files import exists
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.space.files import load_space
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import CostTable, load_costs


@dataclass(frozen=True, eq=False)
class Folder:
    """Space, contributions and costs read from one folder."""

    path: Path
    space: SearchSpace
    contributions: Contributions
    costs: CostTable

    def problem(self, limits: Iterable[str | Limit] = ()) -> SearchProblem:
        """The search problem under limits such as ``latency=45ms``."""
        return SearchProblem.build(self.contributions, self.costs, limits)


def load(path: str | Path) -> Folder:
    """Read ``space.yaml``, ``contributions.json|csv`` and ``costs.json|csv`` and check them together."""
    folder = Path(path)
    if not exists(folder) or not folder.is_dir():
        raise FileError(f"there is no folder {folder}. `binas example paper {folder}` makes one to try.")
    space = load_space(_find(folder, "space", (".yaml", ".yml", ".json")))
    contributions = load_contributions(_find(folder, "contributions", (".json", ".csv")), space)
    costs = load_costs(_find(folder, "costs", (".json", ".csv")), space)
    return Folder(folder, space, contributions, costs)


def _find(folder: Path, stem: str, endings: tuple[str, ...]) -> Path:
    found = [folder / (stem + ending) for ending in endings if exists(folder / (stem + ending))]
    if not found:
        raise FileError(f"{folder} has no {stem}{endings[0]}. See `binas schema {stem}` for its form.")
    if len(found) > 1:
        raise FileError(f"{folder} has both {found[0].name} and {found[1].name}; keep one of them.")
    return found[0]
