"""The page of a run: everything it knows, in one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from binas.base.files import exists
from binas.report.assemble import gather
from binas.report.data import Chosen, Reference, ReportData, StepTime
from binas.report.page import write_report
from binas.run.compare_step import read_rivals
from binas.run.costs_step import COSTS
from binas.run.estimator_steps import CONTRIBUTIONS
from binas.run.export_step import limits_text, on_device, run_command
from binas.run.finetune_step import read_networks
from binas.run.network_record import EXPORT, NetworkRecord, network_folder
from binas.run.search_step import read_results
from binas.run.step import FOLDER, read_record
from binas.run.teller import Teller
from binas.search.limits import parse_limits
from binas.tables.contributions import load_contributions
from binas.tables.costs import load_costs
from binas.tables.verification import Interval

if TYPE_CHECKING:
    from binas.run.run import Run

REPORT = "report.html"


def report_step(run: Run, teller: Teller) -> None:
    """Write ``report.html``."""
    write_report(run_report(run), run.folder / REPORT)
    teller.say(f"{run.folder / REPORT}")


def run_report(run: Run, cost: str | None = None) -> ReportData:
    """All that the report of a run shows; ``cost`` is the one of the first limit where none is given."""
    contributions = load_contributions(run.folder / CONTRIBUTIONS, run.space)
    costs = load_costs(run.folder / COSTS, run.space)
    cost = cost or parse_limits(run.config.search.limits[0], run.space, costs.costs)[0].cost
    return replace(
        gather(contributions, costs, cost, run.folder, commands=[run_command(run)]),
        title=run.folder.name,
        chosen=tuple(_chosen(run, cost)),
        references=tuple(_references(run, cost)),
        times=tuple(_times(run)),
    )


def _chosen(run: Run, cost: str) -> Iterator[Chosen]:
    networks = read_networks(run)
    for answer in read_results(run):
        if answer["question"] in networks:
            yield _chosen_network(run, answer, networks[answer["question"]], cost)


def _chosen_network(run: Run, answer: dict[str, Any], record: NetworkRecord, cost: str) -> Chosen:
    step = on_device(answer, cost)
    folder = network_folder(run.folder, record.name) / EXPORT
    files = sorted(folder.glob("model.*")) if exists(folder) else []
    return Chosen(
        limits_text(answer),
        run.space.parse(answer["architecture"]),
        answer["accuracy"],
        answer["accuracy_stderr"],
        answer["costs"][cost]["value"],
        None if step is None else Interval(value=step["measured"], low=step["low"], high=step["high"]),
        record.judgement.one_shot.test.percent,
        record.judgement.tuned.test.percent,
        record.parameters,
        tuple(path.relative_to(run.folder).as_posix() for path in files),
    )


def _references(run: Run, cost: str) -> Iterator[Reference]:
    """Rivals with their one-shot accuracy, where they were measured."""
    for item in read_rivals(run):
        if item["cost"] != cost:
            continue
        for number, rival in enumerate(item["random"], 1):
            yield Reference(f"random {number}", "random, one-shot", rival["accuracy"], rival["cost"])
        if item["hand_scaled"]:
            best = item["hand_scaled"]
            yield Reference(best["architecture"], "hand-scaled, one-shot", best["accuracy"], best["cost"])


def _times(run: Run) -> Iterator[StepTime]:
    """How long each finished step took, in the order they were finished."""
    names = [path.stem for path in (run.folder / FOLDER).glob("*.json")]
    records = [record for record in (read_record(run.folder, name) for name in names) if record]
    for record in sorted(records, key=lambda item: item.time):
        if record.state == "finished":
            yield StepTime(record.step, record.seconds)
