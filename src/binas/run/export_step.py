"""The networks of a run as files for others: each exported with what was asked, predicted and measured."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from binas.base.progress import Progress
from binas.export import LatencyFact
from binas.export.exporting import Format
from binas.run.finetune_step import read_networks
from binas.run.networks import export_tuned, open_tuned
from binas.run.search_step import open_problem, read_results
from binas.search.problem import SearchProblem
from binas.tables.units import format_quantity, parse_unit

if TYPE_CHECKING:
    from binas.run.run import Run

TO_MS = {"ms": 1.0, "s": 1e3, "us": 1e-3}


def export_step(run: Run, progress: Progress) -> None:
    """Export the network of every limit; limits with the same answer share its folder and its card."""
    networks, problem = read_networks(run), open_problem(run)
    answers = {item["question"]: item for item in read_results(run)}
    for name in dict.fromkeys(record.name for record in networks.values()):
        asked = [question for question, record in networks.items() if record.name == name]
        formats: tuple[Format, ...] = run.config.export.formats
        made = export_tuned(
            run,
            open_tuned(run, name),
            formats=formats,
            int8=run.config.export.int8,
            limits=[limits_text(answers[question]) for question in asked],
            latency=_latency(answers[asked[0]], problem),
            command=run_command(run),
        )
        progress.say(f"networks/{name}/export: {', '.join(path.name for path in made.files)}")


def run_command(run: Run) -> str:
    """The command that makes a run again from its own configuration."""
    folder = run.folder.absolute()
    return shlex.join(["binas", "run", f"{folder.name}/config.yaml", "--out", f"{folder.name}-again"])


def limits_text(answer: dict[str, Any]) -> str:
    """The limits of an answer in absolute units: ``latency <= 0.2 ms and macs <= 3 MMACs``."""
    return " and ".join(
        f"{limit['cost']} {'>=' if limit['lower'] else '<='} "
        f"{format_quantity(limit['value'], parse_unit(limit['unit']))}"
        for limit in answer["limits"]
    )


def on_device(answer: dict[str, Any], cost: str | None = None) -> dict[str, Any] | None:
    """The last time the answer was built and measured within its limits; None where it was not measured."""
    kept = [
        step
        for step in answer["details"].get("on_device", [])
        if step["architecture"] == answer["architecture"] and step["kept"] and cost in (None, step["cost"])
    ]
    return kept[-1] if kept else None


def _latency(answer: dict[str, Any], problem: SearchProblem) -> list[LatencyFact]:
    """Predicted and measured latency in ms, where the table is one of time."""
    cost = problem.costs.get("latency")
    if cost is None or cost.unit.name not in TO_MS:
        return []
    scale, about = TO_MS[cost.unit.name], cost.provenance
    where = about.device or "unknown device", about.runtime or "unknown runtime"
    facts = [LatencyFact("predicted", scale * answer["costs"]["latency"]["value"], *where)]
    step = on_device(answer, "latency")
    return facts if step is None else [*facts, LatencyFact("measured", scale * step["measured"], *where)]
