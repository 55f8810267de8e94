"""Report: the page of a run, everything it knows in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from binas.base.files import listed
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.search.answers import AnswerRecord
from binas.search.limits import parse_limits
from binas.tasks._base import AUTO, Step, Task
from binas.tasks.artefacts import COMPARISONS, EXPORT, PAGE, network_folder
from binas.tasks.search import SearchSettings, read_answers
from binas.training.judgement import NetworkRecord

if TYPE_CHECKING:
    from binas.report.data import Chosen, Reference, ReportData, StepTime
    from binas.run.folder import Folder
    from binas.run.run import Run


class ReportSettings(Settings):
    """The page: the frontier, a slider over the limit, insights, checks."""

    cost: str | None = Field(
        None, description="the cost that gains are compared with; none = that of the first limit"
    )


def usual_cost(tables: Folder, questions: Sequence[str] = ()) -> str:
    """The cost of a run's first limit; of other folders latency, or the first there is."""
    costs = tables.costs.costs
    if questions:
        return parse_limits(questions[0], tables.space, costs)[0].cost
    return "latency" if "latency" in costs else next(iter(costs))


def table_report(
    tables: Folder, cost: str, limits: Iterable[str], commands: Sequence[str], estimator: str = AUTO
) -> ReportData:
    """All that the report of a folder of tables shows, with the best network under each of ``limits``."""
    from binas.report.assemble import gather

    predictor = tables.estimator(estimator)
    data = gather(tables.contributions, tables.costs, cost, tables.path, limits, commands, predictor)
    name = tables.estimator_name(estimator)
    return replace(data, choice=tables.choice if estimator == AUTO else None, estimator_name=name)


def run_report(run: Run, cost: str | None = None) -> ReportData:
    """All that the report of a run shows; ``cost`` is the one of the first limit where none is given."""
    from binas.tasks.export import run_command

    tables, curve = run.tables, run.frontier
    cost = cost or run.settings(ReportSettings).cost or usual_cost(tables, run.questions)
    return replace(
        table_report(tables, cost, (), [run_command(run)], run.settings(SearchSettings).estimator),
        frontier=curve if curve.cost == cost else None,
        title=run.folder.name,
        chosen=tuple(_chosen(run, cost)),
        references=tuple(_references(run, cost)),
        times=tuple(_times(run)),
        story=tuple(run.story),
    )


def report_of(
    tables: Folder, run: Run | None, cost: str | None, limits: Sequence[str], command: str
) -> ReportData:
    """A page of one's own: all that a run knows, or what a folder of tables holds, and the networks under ``limits``."""
    cost = cost or usual_cost(tables, () if run is None else run.questions)
    asked = table_report(tables, cost, limits, [command])
    if run is None or not run.networks:
        return asked
    data = run_report(run, cost)
    return replace(data, chosen=(*data.chosen, *asked.chosen), commands=(*data.commands, command))


def _chosen(run: Run, cost: str) -> Iterator[Chosen]:
    networks = run.networks
    for answer in read_answers(run):
        if answer.question in networks:
            yield _chosen_network(run, answer, networks[answer.question], cost)


def _chosen_network(run: Run, answer: AnswerRecord, record: NetworkRecord, cost: str) -> Chosen:
    from binas.report.data import Chosen

    reading, compared = answer.measured(cost), COMPARISONS.find(run, answer.question)
    folder = network_folder(run.folder, record.name) / EXPORT
    files = listed(folder, "model.*")
    assert answer.architecture is not None  # it has a network
    assert answer.accuracy is not None
    return Chosen(
        answer.limits_text,
        run.space.parse(answer.architecture),
        answer.accuracy,
        answer.accuracy_stderr,
        answer.costs[cost].value,
        None if reading is None else reading.interval,
        record.judgement.one_shot.test.percent,
        record.judgement.tuned.test.percent,
        record.parameters,
        tuple(path.relative_to(run.folder).as_posix() for path in files),
        "" if compared is None else compared.verdict.sentence(),
        answer.confirmed,
        " ".join(answer.remarks),
    )


def _references(run: Run, cost: str) -> Iterator[Reference]:
    """Rivals with their one-shot accuracy, where they were measured."""
    from binas.report.data import Reference

    for item in COMPARISONS.read(run):
        if item.cost != cost:
            continue
        for number, rival in enumerate(item.random, 1):
            yield Reference(f"random {number}", "random, one-shot", rival.one_shot.test, rival.cost)
        if item.hand_scaled:
            best = item.hand_scaled
            yield Reference(best.architecture, "hand-scaled, one-shot", best.one_shot.test, best.cost)


def _times(run: Run) -> Iterator[StepTime]:
    """How long each finished step took, in the order they were finished."""
    from binas.report.data import StepTime
    from binas.run.records import read_record
    from binas.tasks import all_steps

    records = [read_record(run.folder, step.name) for step in all_steps()]
    finished = [record for record in records if record is not None and record.state == "finished"]
    for record in sorted(finished, key=lambda item: item.time):
        yield StepTime(record.step, record.seconds)


def _work(run: Run, progress: Progress) -> None:
    _ask(run, run.folder / PAGE, progress)


def _ask(run: Run, out: Path, progress: Progress) -> Path:
    from binas.report.page import write_report

    write_report(run_report(run), out)
    progress.say(str(out))
    return out


REPORT = Task(
    "report",
    ReportSettings,
    (
        Step(
            "report",
            "write the page",
            _work,
            (PAGE,),
            ("search.limits", "report"),
            seconds=lambda _: Seconds(1.0),
            after=(
                "train.heaviest",
                "train.supernet",
                "measure",
                "estimate",
                "sample",
                "search",
                "finetune",
                "compare",
                "export",
            ),
        ),
    ),
    ask=_ask,
    examples=(
        "binas report runs/first",
        "binas report example -l latency=45ms --out report.html --png figures",
    ),
)
