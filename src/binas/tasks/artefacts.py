"""What tasks hand to each other: typed files of a run, each registered once with its name.

RUN/config.yaml          the configuration with all its values; RUN/space.yaml the space
RUN/plan.json            what was chosen for a time that was given (binas.run.plan)
RUN/start.safetensors    weights of a model of one's own that the heaviest network starts from (binas.run.shrinking)
RUN/given-model.json     what that model gets right of the held-out images before anything is changed
RUN/data.json            what the images are: fingerprint, classes, counts
RUN/heaviest/            weights of the heaviest network; RUN/supernet/ those of the supernet
RUN/costs.json           what each choice costs, verified on whole networks
RUN/contributions.json   what each choice contributes; RUN/outcomes/ what was recorded for it, and for answers
RUN/samples.json         random architectures measured; RUN/estimator.json the estimator chosen by them
RUN/results/             the answer to each limit; RUN/frontier.csv those to all limits
RUN/networks/NAME/       a fine-tuned network: network.json, finetune/ (weights), metrics.jsonl, export/ (files for others)
RUN/methods/             what search methods of others found, a file for each limit, method and seed
RUN/rivals/              networks the search did not choose, under the same limits; RUN/report.html the page
RUN/steps/               a record of every step; RUN/old/ what was replaced
RUN/metrics.jsonl        figures; RUN/tensorboard/ the same for TensorBoard; RUN/log.jsonl what happened when
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from binas.base.errors import FileError
from binas.base.files import exists, listed
from binas.base.typed import read_typed
from binas.data.config import DataRecord
from binas.estimators.choosing import Choice, load_choice
from binas.search.answers import AnswerRecord
from binas.search.limits import question_name
from binas.search.rivals import Comparison
from binas.space.architecture import Architecture
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import CostTable, load_costs
from binas.tables.samples import FILE, Samples, load_samples
from binas.training.judgement import ModelRecord, NetworkRecord

if TYPE_CHECKING:
    from binas.run.run import Run

Value = TypeVar("Value")
Table = TypeVar("Table", Contributions, Samples)
Record = TypeVar("Record", AnswerRecord, Comparison)


@dataclass(frozen=True)
class Artefact(Generic[Value]):
    """A file of a run with what is in it; ``task`` makes it."""

    file: str
    task: str
    load: Callable[[Path, SearchSpace], Value]
    save: Callable[[Value, Path], None]

    def path(self, folder: Path) -> Path:
        """Where it is in a run's folder; an error that says who makes it where it is not there."""
        if not exists(folder / self.file):
            raise FileError(f"{folder} has no {self.file} yet. `binas {self.task} {folder}` makes it.")
        return folder / self.file

    def read(self, run: Run) -> Value:
        """What is in it, checked."""
        return self.load(self.path(run.folder), run.space)

    def write(self, run: Run, value: Value) -> None:
        """Write it, atomically."""
        self.save(value, run.folder / self.file)


@dataclass(frozen=True)
class PerQuestion(Generic[Record]):
    """A folder of a run with a file for each of ``search.limits``."""

    folder: str
    task: str
    model: type[Record]

    @property
    def files(self) -> str:
        """The pattern of its files."""
        return f"{self.folder}/*.json"

    def path(self, run: Run, question: str) -> Path:
        """Where the file of one question is."""
        return run.folder / self.folder / f"{question_name(question)}.json"

    def find(self, run: Run, question: str) -> Record | None:
        """What is known of one question; None where there is no file."""
        path = self.path(run, question)
        advice = f"Delete it; `binas {self.task} {run.folder}` makes it again."
        record = read_typed(self.model, path, advice) if exists(path) else None
        if record is not None and question_name(record.question) != question_name(question):
            raise FileError(f"{path} is of the limit {record.question[:60]!r}, not of {question!r}. {advice}")
        return record

    def read(self, run: Run) -> list[Record]:
        """What is known of every question that has a file, in the order of ``search.limits``."""
        records = (self.find(run, question) for question in run.questions)
        return [record for record in records if record is not None]

    def write(self, run: Run, question: str, record: Record) -> None:
        """Keep what is known of one question."""
        record.save(self.path(run, question))


SPACE = Artefact("space.yaml", "run", lambda path, _: load_space(path), save_space)
DATA: Artefact[DataRecord] = Artefact(
    "data.json",
    "train",
    lambda path, _: read_typed(DataRecord, path, "Delete it; `binas train` makes it again."),
    DataRecord.save,
)
MODEL: Artefact[ModelRecord] = Artefact(
    "given-model.json",
    "train",
    lambda path, _: read_typed(ModelRecord, path, "Delete it; it is only told of."),
    ModelRecord.save,
)
COSTS: Artefact[CostTable] = Artefact("costs.json", "measure", load_costs, CostTable.save)
CONTRIBUTIONS: Artefact[Contributions] = Artefact(
    "contributions.json", "estimate", load_contributions, Contributions.save
)
SAMPLES: Artefact[Samples] = Artefact(FILE, "sample", load_samples, Samples.save)
CHOICE: Artefact[Choice] = Artefact("estimator.json", "check", load_choice, Choice.save)
ANSWERS = PerQuestion("results", "search", AnswerRecord)
COMPARISONS = PerQuestion("rivals", "compare", Comparison)
FRONTIER = "frontier.csv"
PAGE = "report.html"
START = "start.safetensors"
OUTCOMES = "outcomes"
HEAVIEST, SUPERNET = "heaviest", "supernet"
NETWORKS, NETWORK, EXPORT = "networks", "network.json", "export"
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}")


def network_name(architecture: Architecture, from_scratch: bool = False) -> str:
    """The name a network has when none is given: a short hash of its architecture."""
    digest = hashlib.sha256(str(architecture).encode()).hexdigest()[:10]
    return f"{digest}-scratch" if from_scratch else digest


def network_folder(run: Path, name: str) -> Path:
    """Where the network of that name lives in the folder of a run."""
    if NAME.fullmatch(name) is None:
        raise FileError(f"{name[:100]!r} is no name of a network; use letters, digits, dots, _ and -.")
    return run / NETWORKS / name


def network_names(run: Path) -> list[str]:
    """Names of all finished networks in the folder of a run."""
    return [path.parent.name for path in listed(run / NETWORKS, f"*/{NETWORK}")]


def read_network(folder: Path) -> NetworkRecord:
    """The record of a finished network."""
    advice = "Delete it; `binas finetune` writes it again from the weights."
    return read_typed(NetworkRecord, folder / NETWORK, advice)


def read_networks(run: Run) -> dict[str, NetworkRecord]:
    """The fine-tuned network of each of ``search.limits`` that has an answer and whose network is finished."""
    found = {}
    for answer in ANSWERS.read(run):
        name = answer.architecture and run.network_name(answer.architecture)
        folder = network_folder(run.folder, name) if name else None
        if folder is not None and exists(folder / NETWORK):
            found[answer.question] = _network_of(folder, str(answer.architecture))
    return found


def _network_of(folder: Path, architecture: str) -> NetworkRecord:
    """The record of a finished network; an error where it is of another architecture than its folder."""
    record = read_network(folder)
    if record.architecture != architecture:
        raise FileError(
            f"{folder / NETWORK} is of the network {record.architecture[:200]}, not of {architecture}: folders were "
            f"exchanged, or the file was changed. Bring it back, or delete {folder}; `binas finetune` makes it again."
        )
    return record


def save_each(tables: Iterable[Table], path: Path) -> Table:
    """Keep each table in the place of the one before, so that an interruption leaves the last; that last one."""
    last: Table | None = None
    for last in tables:
        last.save(path)
    assert last is not None  # whatever makes tables makes at least one
    return last
