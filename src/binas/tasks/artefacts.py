"""What tasks hand to each other: typed files of a run, each registered once with its name.

RUN/config.yaml          the configuration with all its values; RUN/space.yaml the space
RUN/data.json            what the images are: fingerprint, classes, counts
RUN/heaviest/            weights of the heaviest network; RUN/supernet/ those of the supernet
RUN/costs.json           what each choice costs, verified on whole networks
RUN/contributions.json   what each choice contributes; RUN/outcomes/ what was recorded for it
RUN/samples.json         random architectures measured; RUN/estimator.json the estimator chosen by them
RUN/results/             the answer to each limit; RUN/frontier.csv those to all limits
RUN/networks/NAME/       a fine-tuned network: network.json, finetune/ (weights), metrics.jsonl, export/ (files for others)
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
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from binas.base.errors import FileError
from binas.base.files import dump_json, exists, write_text
from binas.base.interval import Interval
from binas.base.typed import read_typed
from binas.estimators.choosing import Choice, load_choice
from binas.search.limits import Limit, question_name
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult
from binas.space.architecture import Architecture
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import CostTable, load_costs
from binas.tables.samples import Samples, load_samples
from binas.tables.units import format_quantity, parse_unit
from binas.training.judgement import Judgement

if TYPE_CHECKING:
    from binas.run.run import Run

Value = TypeVar("Value")
Record = TypeVar("Record", bound="FileRecord")


class FileRecord(BaseModel):
    """Base of what is kept as a JSON object of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
        return read_typed(self.model, path, advice) if exists(path) else None

    def read(self, run: Run) -> list[Record]:
        """What is known of every question that has a file, in the order of ``search.limits``."""
        records = (self.find(run, question) for question in run.questions)
        return [record for record in records if record is not None]

    def write(self, run: Run, question: str, record: Record) -> None:
        """Keep what is known of one question."""
        write_text(self.path(run, question), dump_json(record.model_dump(mode="json")))


class DataRecord(FileRecord):
    """What the images of a run are."""

    fingerprint: str
    images: dict[str, int]
    classes: tuple[str, ...]
    channels: int
    height: int
    width: int


class LimitRecord(FileRecord):
    """A limit in the unit of its cost."""

    cost: str
    value: float
    unit: str
    lower: bool

    def __str__(self) -> str:
        sign = ">=" if self.lower else "<="
        return f"{self.cost} {sign} {format_quantity(self.value, parse_unit(self.unit))}"


class CostRecord(FileRecord):
    """What an architecture costs by the table, the limits it was searched with, and what it was measured on."""

    value: float
    unit: str
    limit: float | None = None
    lower_limit: float | None = None
    conditions: dict[str, Any] | None = None


class Reading(FileRecord):
    """One network built and measured: ``asked`` is the limit wanted, ``limit`` the one searched with."""

    architecture: str
    cost: str
    unit: str
    asked: float
    limit: float
    predicted: float
    measured: float
    low: float
    high: float
    kept: bool
    variant: str | None = None

    @property
    def interval(self) -> Interval:
        """What was measured, with its confidence interval."""
        return Interval(self.measured, self.low, self.high)


class Answer(FileRecord):
    """The answer to one question; without an architecture it says ``why``. Accuracies in percent."""

    question: str
    limits: tuple[LimitRecord, ...]
    why: str = ""
    estimator: str = ""
    status: str
    architecture: str | None
    accuracy: float | None
    accuracy_stderr: float | None
    costs: dict[str, CostRecord]
    bound: float | None
    gap: float | None
    seconds: float
    solver: str
    variant: str | None = None
    alternatives: tuple[dict[str, Any], ...] = ()
    details: dict[str, Any] = {}
    on_device: tuple[Reading, ...] = ()

    @classmethod
    def of(
        cls, question: str, problem: SearchProblem, result: SearchResult, why: str, estimator: str
    ) -> Answer:
        """A verified result as it is kept; ``problem`` has the limits that were asked for."""
        known = result.to_json()
        readings = known["details"].pop("on_device", ())
        limits = [_limit_record(problem, limit) for limit in problem.limits]
        return cls.model_validate(
            {
                "question": question,
                "limits": limits,
                "why": why,
                "estimator": estimator,
                "on_device": readings,
                **known,
            }
        )

    @property
    def limits_text(self) -> str:
        """The limits in absolute units: ``latency <= 0.2 ms and macs <= 3 MMACs``, and the variant that keeps them."""
        return " and ".join(map(str, self.limits)) + (f" with {self.variant}" if self.variant else "")

    @property
    def searched_limits(self) -> list[Limit]:
        """The limits that the search kept: on a device upper ones may be tighter than those asked for."""
        return [Limit(limit.cost, self._searched(limit), limit.lower) for limit in self.limits]

    def _searched(self, limit: LimitRecord) -> float:
        tightened = self.costs[limit.cost].limit if limit.cost in self.costs else None
        return limit.value if limit.lower or tightened is None else tightened

    def measured(self, cost: str) -> Reading | None:
        """The last time the answer was built and measured within its limits; None where it was not measured."""
        kept = [item for item in self.on_device if item.architecture == self.architecture and item.kept]
        return next((item for item in reversed(kept) if item.cost == cost), None)


def _limit_record(problem: SearchProblem, limit: Limit) -> dict[str, Any]:
    unit = problem.costs[limit.cost].unit.name
    return {"cost": limit.cost, "value": limit.value, "unit": unit, "lower": limit.lower}


class NetworkRecord(FileRecord):
    """A fine-tuned network of a run.

    ``judgement`` holds the accuracies with the supernet's weights and after fine-tuning; ``seconds`` is the time of
    the call that finished it. ``settings`` are those of ``finetune``, one level of dotted names. ``weights`` is
    a short hash of what the figures belong to.
    """

    format: Literal["binas/network"] = "binas/network"
    version: Literal[1] = 1
    name: str
    architecture: str
    from_scratch: bool
    settings: dict[str, Any]
    weights: str
    judgement: Judgement
    parameters: int
    macs: int
    seconds: float


class Rival(FileRecord):
    """A network under a limit: its cost by the table, accuracy in percent of the test images, and after tuning."""

    architecture: str
    cost: float
    accuracy: float
    tuned: float | None = None


class Comparison(FileRecord):
    """The network found under a limit compared with rivals on the same test images.

    ``over_random`` and ``over_hand_scaled`` are points ahead with the standard error over images.
    """

    question: str
    identity: str
    cost: str
    limit: float
    unit: str
    images: int
    found: Rival
    random: tuple[Rival, ...]
    hand_scaled: Rival | None
    over_random: tuple[float, float] | None
    over_hand_scaled: tuple[float, float] | None

    @property
    def beaten(self) -> int:
        """How many of the random rivals are less accurate."""
        return sum(rival.accuracy < self.found.accuracy for rival in self.random)

    def sentence(self) -> str:
        """Who is ahead, in words, with the standard error over images; no more than the numbers support."""
        parts = []
        if self.over_random is not None:
            parts.append(
                f"{_ahead(*self.over_random)} the mean of {len(self.random)} random networks under the same limit, better "
                f"than {self.beaten} of them"
            )
        if self.over_hand_scaled is not None:
            parts.append(f"{_ahead(*self.over_hand_scaled)} the best hand-scaled one")
        own = f"{self.found.accuracy:.2f} % one-shot on test images"
        return f"{own}; {'; '.join(parts) or 'no network to compare with'}"


def _ahead(points: float, error: float) -> str:
    if abs(points) <= 2 * error:
        return f"no clear difference ({points:+.2f} ± {error:.2f} points) to"
    return f"{abs(points):.2f} ± {error:.2f} points {'above' if points > 0 else 'below'}"


def _typed(file: str, task: str, model: type[Record]) -> Artefact[Record]:
    advice = f"Delete it; `binas {task}` makes it again."
    return Artefact(
        file,
        task,
        lambda path, _: read_typed(model, path, advice),
        lambda record, path: write_text(path, dump_json(record.model_dump(mode="json"))),
    )


SPACE = Artefact("space.yaml", "run", lambda path, _: load_space(path), save_space)
DATA = _typed("data.json", "train", DataRecord)
COSTS: Artefact[CostTable] = Artefact("costs.json", "measure", load_costs, CostTable.save)
CONTRIBUTIONS: Artefact[Contributions] = Artefact(
    "contributions.json", "estimate", load_contributions, Contributions.save
)
SAMPLES: Artefact[Samples] = Artefact("samples.json", "sample", load_samples, Samples.save)
CHOICE: Artefact[Choice] = Artefact("estimator.json", "check", load_choice, Choice.save)
ANSWERS = PerQuestion("results", "search", Answer)
COMPARISONS = PerQuestion("rivals", "compare", Comparison)
FRONTIER = "frontier.csv"
PAGE = "report.html"
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
    return sorted(path.parent.name for path in (run / NETWORKS).glob(f"*/{NETWORK}"))


def read_network(folder: Path) -> NetworkRecord:
    """The record of a finished network."""
    advice = "Delete it; `binas finetune` writes it again from the weights."
    return read_typed(NetworkRecord, folder / NETWORK, advice)


def read_networks(run: Run) -> dict[str, NetworkRecord]:
    """The fine-tuned network of each of ``search.limits`` that has an answer and whose network is finished."""
    folders = {
        answer.question: network_folder(run.folder, run.network_name(answer.architecture))
        for answer in ANSWERS.read(run)
        if answer.architecture
    }
    return {
        question: read_network(folder) for question, folder in folders.items() if exists(folder / NETWORK)
    }


def write_each(artefact: Artefact[Value], run: Run, values: Iterable[Value]) -> Value:
    """Keep each value in the place of the one before, so that an interruption leaves the last; that last one."""
    last: Value | None = None
    for last in values:
        artefact.write(run, last)
    assert last is not None  # whatever makes artefacts makes at least one
    return last
