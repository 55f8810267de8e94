"""Gathers what a folder holds for a report. A run adds what it knows with ``dataclasses.replace``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from binas.base.errors import ProblemError
from binas.base.files import exists, read_text
from binas.estimators._base import Estimator
from binas.report.data import Chosen, ReportData
from binas.search.infeasible import explain_infeasible
from binas.search.problem import SearchProblem
from binas.search.solve import solve
from binas.tables.contributions import Contributions
from binas.tables.costs import CostTable
from binas.tables.samples import FILE as SAMPLES, load_samples
from binas.training.reporting import LINES, read_metrics

CONFIG = "config.yaml"
MAX_CONFIG_BYTES = 2**20


def gather(
    contributions: Contributions,
    costs: CostTable,
    cost: str,
    folder: Path,
    limits: Iterable[str] = (),
    commands: Iterable[str] = (),
    estimator: Estimator | None = None,
) -> ReportData:
    """The report of a folder's tables: a network for each limit, and whatever else lies in the folder.

    That is ``samples.json``, ``metrics.jsonl`` and ``config.yaml``, each optional; how well the cost was verified is in
    its table.
    """
    space = contributions.space
    return ReportData(
        space,
        contributions,
        costs,
        cost,
        chosen=tuple(choose(estimator or contributions, costs, cost, limit) for limit in limits),
        verification=costs[cost].provenance.verification,
        samples=load_samples(folder / SAMPLES, space) if exists(folder / SAMPLES) else None,
        metrics=_metrics(folder),
        config=read_text(folder / CONFIG, MAX_CONFIG_BYTES) if exists(folder / CONFIG) else "",
        commands=tuple(commands),
        estimator=estimator,
    )


def choose(accuracy: Contributions | Estimator, costs: CostTable, cost: str, limit: str) -> Chosen:
    """The proven best network under one limit such as ``latency=45ms``, with its standard error."""
    problem = SearchProblem.build(accuracy, costs, [limit])
    best = solve(problem).evaluation
    if best is None:
        raise ProblemError(explain_infeasible(problem).sentence())
    return Chosen(
        problem.describe_limits(),
        best.architecture,
        best.accuracy,
        best.accuracy_stderr,
        best.costs[cost],
        parameters=best.costs.get("params"),
    )


def _metrics(folder: Path) -> tuple[Mapping[str, Any], ...]:
    if not exists(folder / LINES):
        return ()
    return tuple(row for row in read_metrics(folder) if "loss" in row)  # of training, not of measuring
