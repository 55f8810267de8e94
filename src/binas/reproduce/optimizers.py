"""Figure 7, middle and right: solvers of the same program, and methods that search the supernet directly, over limits.

Every answer is judged one-shot on test images, which chose nothing; what was predicted is held against the proven optimum.
HardCoRe-NAS, which searches the supernet itself, may spend as many image evaluations as contributions did. On the
right of the figure the proven answers and those of HardCoRe-NAS (seed 0) are fine-tuned as the run's own networks are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from binas.base.interval import Z
from binas.reproduce._base import (
    Experiment,
    Finding,
    Panel,
    Row,
    Series,
    Study,
    accuracy_error,
    rounded,
    seed_error,
)
from binas.run.workers import map_shared
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import SearchResult
from binas.search.solve import solve
from binas.search.solvers import solver_class
from binas.space.architecture import Architecture
from binas.tasks.confirming import measured_outcomes
from binas.tasks.finetune import tune_all
from binas.tasks.methods import answering, run_method
from binas.tasks.oracle import USUAL
from binas.training.judgement import Accuracy

PROVEN = "frontier"
SEEDED = ("bcfw", "evolution")
SOLVERS = (PROVEN, "miqcp", *SEEDED)
DIRECT = "hardcore"
COMPARED = (PROVEN, DIRECT)  # the right of the figure: both fine-tuned
ONE_SHOT, TUNED = "one-shot", "fine-tuned"
CAVEAT = (
    "The row hardcore is our own implementation on weights that stay as they are (docs/explanation/search.md), not that of "
    "its authors."
)


@dataclass(frozen=True)
class Answered:
    """The answer of one method to one limit with one seed."""

    method: str
    percent: int
    limit: float
    seed: int
    architecture: Architecture
    cost: float
    predicted: float
    seconds: float


def make(study: Study) -> Finding:
    """Ask every solver, measure all answers together, and compare."""
    answers = list(_answers(study))
    asked = list(dict.fromkeys(item.architecture for item in answers))
    outcomes = measured_outcomes(study.run, asked, "test", study.progress.part(2, 4, "answers"))
    shares = {item: Accuracy(100 * float(correct.mean()), len(correct)) for item, correct in outcomes.items()}
    best = {item.percent: item.predicted for item in answers if item.method == PROVEN}
    tuned = _tuned(study, answers)
    rows = tuple(
        _row(item, shares[item.architecture], best[item.percent], tuned.get(item)) for item in answers
    )
    cost, images = study.cost, len(study.run.data.test)
    unit = study.run.tables.costs.costs[cost].unit.name
    panels = (
        Panel(
            title="one-shot accuracy",
            x=f"{cost} ({unit})",
            y="accuracy (%)",
            series=tuple(_measured(method, rows, ONE_SHOT, images) for method in _methods(answers)),
        ),
        Panel(
            title="after fine-tuning",
            x=f"{cost} ({unit})",
            y="test accuracy (%)",
            series=tuple(
                _measured(method, rows, TUNED, images) for method in _methods(answers) if method in COMPARED
            ),
        ),
        Panel(
            title="below the proven optimum",
            x=f"limit on {cost} (%)",
            y="predicted points lost",
            series=tuple(_lost(method, rows) for method in _methods(answers) if method != PROVEN),
        ),
    )
    return Finding(sentence=f"{_sentence(rows)}{_left_out()}", rows=rows, panels=panels)


def _methods(answers: Sequence[Answered]) -> list[str]:
    return list(dict.fromkeys(item.method for item in answers))


def _answers(study: Study) -> Iterator[Answered]:
    """The answers of every solver that is installed, limit by limit; the proven one first."""
    budget = study.run.tables.contributions.provenance.to_data().get("evaluations")
    _search_directly(study, budget)
    able = [name for name in SOLVERS if solver_class(name).missing() is None]
    for number, percent in enumerate(study.preset.limits):
        study.progress.show(0.25 + 0.25 * number / len(study.preset.limits), f"limit {percent} %")
        problem = study.run.tables.problem([_question(study, percent)], "additive")
        for name in able:
            for seed in range(study.preset.seeds if name in SEEDED else 1):
                result = solve(problem, name, time_limit=study.preset.time_limit, seed=seed)
                yield from _answered(name, percent, seed, problem, result)
        for seed in _seeds(study):
            yield from _direct(study, percent, seed, budget, problem)


def _question(study: Study, percent: int) -> str:
    return f"{study.cost}={percent}%"


def _seeds(study: Study) -> range:
    return range(study.preset.seeds)


def _search_directly(study: Study, budget: int | None) -> None:
    """Let HardCoRe-NAS search under every limit with every seed, in as many processes as the run may use."""
    asked = [
        [[_question(study, percent)], DIRECT, seed, USUAL]
        for percent in study.preset.limits
        for seed in _seeds(study)
    ]
    progress = study.progress.part(0, 4, DIRECT)
    deque(map_shared(study.run, answering, (budget,), asked, progress, "search"), maxlen=0)


def _direct(
    study: Study, percent: int, seed: int, budget: int | None, problem: SearchProblem
) -> Iterator[Answered]:
    """What HardCoRe-NAS finds on the supernet itself; predicted as all others, so that it can be held against them."""
    record = run_method(study.run, _question(study, percent), DIRECT, seed, budget)
    if record.architecture is not None:
        found = evaluate(problem, study.run.space.parse(record.architecture))
        limit = problem.limits[0]
        cost = found.costs[limit.cost]
        yield Answered(
            DIRECT, percent, limit.value, seed, found.architecture, cost, found.accuracy, record.seconds
        )


def _answered(
    method: str, percent: int, seed: int, problem: SearchProblem, result: SearchResult
) -> Iterator[Answered]:
    """The answer, where there is one."""
    found, limit = result.evaluation, problem.limits[0]
    if found is not None:
        cost = found.costs[limit.cost]
        yield Answered(
            method, percent, limit.value, seed, found.architecture, cost, found.accuracy, result.seconds
        )


def _tuned(study: Study, answers: Sequence[Answered]) -> dict[Answered, Accuracy]:
    """Test accuracy after the run's own fine-tuning, of the first seed of the methods of ``COMPARED``."""
    chosen = [item for item in answers if item.method in COMPARED and item.seed == 0]
    asked = list(dict.fromkeys(item.architecture for item in chosen))
    records = tune_all(study.run, asked, study.progress.part(3, 4, "fine-tuning"))
    return {item: records[item.architecture].judgement.tuned.test for item in chosen}


def _row(item: Answered, one_shot: Accuracy, best: float, tuned: Accuracy | None) -> Row:
    return {
        "method": item.method,
        "limit (%)": item.percent,
        "limit": rounded(item.limit, 5),
        "seed": item.seed,
        "cost": rounded(item.cost, 5),
        "over the limit (%)": rounded(max(0.0, 100 * (item.cost / item.limit - 1)), 2),
        "predicted": rounded(item.predicted),
        "below optimum": rounded(best - item.predicted),
        ONE_SHOT: rounded(one_shot.percent, 2),
        f"{ONE_SHOT} error": rounded(one_shot.error, 2),
        TUNED: rounded(None if tuned is None else tuned.percent, 2),
        f"{TUNED} error": rounded(None if tuned is None else tuned.error, 2),
        "seconds": rounded(item.seconds, 3),
        "architecture": str(item.architecture),
    }


def _column(rows: Sequence[Row], method: str, name: str) -> dict[float, list[float]]:
    """Values of a column by limit."""
    found: dict[float, list[float]] = {}
    for row in rows:
        value = row[name]
        if row["method"] == method and isinstance(value, int | float):
            found.setdefault(float(row["limit (%)"] or 0.0), []).append(float(value))
    return found


def _measured(method: str, rows: Sequence[Row], column: str, images: int) -> Series:
    """Means over seeds against the mean cost, with 95 % intervals: of accuracy over seeds and images, of cost over seeds.

    The proven optimum is the line.
    """
    known = [row for row in rows if row[column] is not None]
    costs, accuracies = _column(known, method, "cost"), _column(known, method, column)
    return Series(
        name=method,
        x=tuple(float(np.mean(values)) for values in costs.values()),
        y=tuple(float(np.mean(values)) for values in accuracies.values()),
        error=tuple(Z * accuracy_error(values, images) for values in accuracies.values()),
        error_x=_seed_bars(costs),
        kind="line" if method == PROVEN else "points",
    )


def _lost(method: str, rows: Sequence[Row]) -> Series:
    """Means over seeds with 95 % intervals; a solver that has no seed has none."""
    lost = _column(rows, method, "below optimum")
    return Series(
        name=method,
        x=tuple(lost),
        y=tuple(float(np.mean(values)) for values in lost.values()),
        error=_seed_bars(lost),
    )


def _seed_bars(values: Mapping[float, Sequence[float]]) -> tuple[float | None, ...]:
    """95 % intervals over seeds, by limit; None where there is one seed."""
    return tuple(None if error is None else Z * error for error in map(seed_error, values.values()))


def _left_out() -> str:
    """Which solvers of the figure are not installed, and how they would be."""
    lacking = {name: line for name in SOLVERS if (line := solver_class(name).missing()) is not None}
    return "".join(f" {name} is left out: it is not installed ({line})." for name, line in lacking.items())


def _sentence(rows: Sequence[Row]) -> str:
    parts = []
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        own = [row for row in rows if row["method"] == method]
        lost, seen = (np.mean([float(row[key] or 0.0) for row in own]) for key in ("below optimum", ONE_SHOT))
        seconds = np.median([float(row["seconds"] or 0.0) for row in own])
        parts.append(f"{method} {seen:.2f} % ({lost:.2f} points below the optimum, {seconds:.2g} s)")
    said = f"Mean one-shot accuracy over limits and seeds: {'; '.join(parts)}."
    if all(row["method"] != DIRECT for row in rows):
        return said
    ours, theirs = (
        ", ".join(f"{row[TUNED]:.1f}" for row in rows if row["method"] == method and row[TUNED] is not None)
        for method in COMPARED
    )
    return (
        f"{said} Fine-tuned alike the proven answers reach {ours} %, those of {DIRECT} {theirs} %. {CAVEAT}"
    )


EXPERIMENT = Experiment(
    "optimizers",
    "figure 7, middle and right",
    "All solvers of the program surpass searching the supernet directly (HardCoRe-NAS); BCFW is best at low latency, "
    "MIQCP at high, "
    "evolution does well overall; limits are kept up to 10 %.",
    make,
    ("contributions.json", "costs.json", "results/*.json", "steps/finetune.json"),
    "One-shot and fine-tuned accuracies are of test images, which chose nothing. Error columns are standard errors over "
    "these images; bars are 1.96 standard errors over seeds and images together, of cost and of predicted points over seeds "
    "alone (none for solvers without a seed). Costs are those of the table. The fine-tuned networks are of one seed, so "
    "their bars leave training out.",
)
