"""A folder with a space and its tables, as a run, other tools or ``binas example`` leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from binas.base.errors import FileError, SpaceError, TableError
from binas.base.files import exists, is_folder, is_regular, open_regular, reading
from binas.costs.analytic import counted_costs
from binas.estimators._base import Estimator
from binas.estimators.choosing import Choice, choose_estimator
from binas.estimators.registry import make_estimator
from binas.report.assemble import CONFIG
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.space.files import builtin_names, load_space
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.reading import read_table
from binas.tables.samples import Samples, load_samples
from binas.tables.spreadsheet import costs_data_from_csv
from binas.tasks._base import AUTO
from binas.tasks.artefacts import CHOICE, CONTRIBUTIONS, COSTS, DATA, SAMPLES, SPACE, Table

RECORD_HEAD = 200  # bytes within which a record of images names their fingerprint, its first entry


@dataclass(frozen=True)
class Folder:
    """Space, contributions and costs in one folder, and samples and a chosen estimator where there are any.

    ``images`` is the fingerprint of the images of a run, where they are known: tables of others are refused. Where they are
    not, contributions and samples must at least be of the same.
    """

    path: Path
    space: SearchSpace
    images: str | None = None

    @cached_property
    def contributions(self) -> Contributions:
        """What each choice contributes."""
        path = _find(self.path, CONTRIBUTIONS.file)
        return self._of_these_images(load_contributions(path, self.space), path)

    def _of_these_images(self, table: Table, path: Path) -> Table:
        """The table, if it does not say that it was measured on other images, or on another split of them."""
        measured_on = _measured_on(table)
        if None not in (self.images, measured_on) and measured_on != self.images:
            raise TableError(
                f"{path} was measured on other images, or on another split of them (fingerprint {str(measured_on)[:40]}, "
                f"the run's is {self.images}), so that what it was measured on may have been trained on. Use the tables of "
                "this run; `binas run` measures them again with --redo."
            )
        return table

    @cached_property
    def costs(self) -> CostTable:
        """What each choice costs."""
        return load_costs(_find(self.path, COSTS.file), self.space)

    @cached_property
    def known_costs(self) -> dict[str, Cost]:
        """Costs counted from the space where they can be, and those of the table if there is one."""
        measured = self.costs.costs if _there(self.path, COSTS.file) else {}
        return {**counted_costs(self.space), **measured}

    @cached_property
    def samples(self) -> Samples | None:
        """Architectures that were measured one by one; None where there are none."""
        path = self.path / SAMPLES.file
        if not exists(path):
            return None
        found = self._of_these_images(load_samples(path, self.space), path)
        if self.images is None and _there(self.path, CONTRIBUTIONS.file):
            _check_alike(self.contributions, found, path)
        return found

    @cached_property
    def choice(self) -> Choice | None:
        """The estimator that was chosen by the samples; None where nobody chose."""
        path = self.path / CHOICE.file
        return CHOICE.load(path, self.space) if exists(path) else None

    def estimator(self, name: str = AUTO) -> Estimator:
        """The estimator called ``name``, with predictions as measured networks say where it was held against some.

        ``auto`` is the chosen one, the table's own where nobody chose.
        """
        name = self.estimator_name(name)
        made = make_estimator(name, self.contributions, self.samples)
        return made if self.choice is None else self.choice.calibrated(name, made, self.samples)

    def estimator_name(self, name: str = AUTO) -> str:
        """What ``auto`` stands for: the chosen one, else contributions added up as their table says."""
        if name != AUTO:
            return name
        return (
            choose_estimator(self.contributions, None).chosen if self.choice is None else self.choice.chosen
        )

    def problem(self, limits: Iterable[str | Limit] = (), estimator: str = AUTO) -> SearchProblem:
        """The search problem under limits such as ``latency=45ms`` or ``latency=25% and params<=300k``."""
        return SearchProblem.build(self.estimator(estimator), self.costs, limits)


def load(path: str | Path) -> Folder:
    """Read ``space.yaml``, ``contributions.json|csv`` and ``costs.json|csv`` and check them together."""
    opened = open_folder(path)
    opened.contributions, opened.costs  # noqa: B018 (read now, so that what is wrong is said now)
    return opened


def open_folder(path: str | Path) -> Folder:
    """A folder with a space; tables are read when they are asked for, those of other images than a run's are refused."""
    folder = Path(path)
    if exists(folder) and not is_folder(folder):
        raise FileError(
            f"there is no folder {folder}: it is a file. Give the folder it is in: {folder.parent}."
        )
    if not is_folder(folder):
        raise FileError(f"there is no folder {folder}. `binas example paper {folder}` makes one to try.")
    space, record = load_space(_find(folder, SPACE.file)), folder / DATA.file
    return Folder(folder, space, DATA.load(record, space).fingerprint if _is_record(record) else None)


def _is_record(path: Path) -> bool:
    """Whether there is a run's record of its images: in a run always, beside tables only a file that begins like one.

    In a folder of tables ``data.json`` may as well be a file of somebody else, which is left alone.
    """
    if exists(path.with_name(CONFIG)):
        return exists(path)
    if not is_regular(path):
        return False
    with open_regular(path) as file, reading(path):
        return b'"fingerprint"' in file.read(RECORD_HEAD)


def _measured_on(table: Contributions | Samples) -> str | None:
    """The fingerprint of the images a table was measured on, and of their split; None where it does not say."""
    named = table.provenance.to_data().get("data")
    return None if named is None else str(named)


def _check_alike(contributions: Contributions, samples: Samples, path: Path) -> None:
    """Refuse samples of other images, or of another split of them, than contributions, where both say what they are of."""
    one, other = _measured_on(contributions), _measured_on(samples)
    if None not in (one, other) and one != other:
        raise TableError(
            f"{path} was measured on other images, or on another split of them (fingerprint {str(other)[:40]}), than the "
            f"contributions beside it ({str(one)[:40]}), so that neither can judge the other. Use tables of one run."
        )


def _there(folder: Path, file: str) -> list[Path]:
    """The file, or the same table in its other form."""
    path = folder / file
    others = {".yaml": (".yaml", ".yml", ".json"), ".json": (".json", ".csv")}[path.suffix]
    return [path.with_suffix(ending) for ending in others if exists(path.with_suffix(ending))]


def _find(folder: Path, file: str) -> Path:
    there = _there(folder, file)
    if not there:
        raise FileError(f"{folder} has no {file}. See `binas schema {Path(file).stem}` for its form.")
    if len(there) > 1:
        raise FileError(f"{folder} has both {there[0].name} and {there[1].name}; keep one of them.")
    return there[0]


def space_of_table(path: Path, space: str | None = None) -> SearchSpace:
    """The space of a cost table: ``space`` if given, else ``space.yaml`` beside it or the built-in it names."""
    if space is not None:
        return load_space(space)
    beside = [item for item in _there(path.parent, SPACE.file) if item.suffix != ".json"]
    if beside:
        return load_space(beside[0])
    data = read_table(path, costs_data_from_csv)
    made_for = data.get("space") if isinstance(data, dict) else None
    name = made_for.get("name") if isinstance(made_for, dict) else None
    if name in builtin_names():
        return load_space(str(name))
    raise SpaceError(
        f"{path} does not lie beside a space.yaml and names no built-in space; say which space it is for with --space."
    )
