"""The exact search of a run: one answer for each limit, kept on the device where it was measured, and the frontier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import FileError, ProblemError
from binas.base.files import dump_json, exists, read_json, write_text
from binas.costs.measure import measurable, measure_architecture, measuring_again
from binas.costs.statistics import Estimate
from binas.run.costs_step import COSTS
from binas.run.estimator_steps import CONTRIBUTIONS
from binas.run.progress import measuring_progress
from binas.run.teller import Share, Teller
from binas.search.frontier import frontier
from binas.search.infeasible import why_no_answer
from binas.search.limits import Limit, parse_limits, question_name
from binas.search.on_device import MeasureCost, keep_limits
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult
from binas.search.solve import solve
from binas.space.architecture import Architecture
from binas.tables.contributions import load_contributions
from binas.tables.costs import Cost, load_costs

if TYPE_CHECKING:
    from binas.run.run import Run

RESULTS, FRONTIER = "results", "frontier.csv"
KEYS = {"question", "architecture", "accuracy", "accuracy_stderr", "why", "limits", "costs", "details"}


def search_step(run: Run, teller: Teller) -> None:
    """Write ``results/LIMIT.json`` for each limit and ``frontier.csv`` for the cost of the first."""
    questions, problem = run.config.search.limits, open_problem(run)
    resolved = {text: parse_limits(text, run.space, problem.costs) for text in questions}
    _write_frontier(run, problem, resolved[questions[0]][0].cost)
    for number, (text, limits) in enumerate(resolved.items()):
        path = result_file(run, text)
        if not exists(path):  # else answered before an interruption
            told = Share(teller, number, len(questions), text)
            write_text(path, dump_json(_answer(run, text, problem.with_limits(limits), told)))
    found = read_results(run)
    if not any(item["architecture"] for item in found):
        raise ProblemError(f"no limit has an answer: {' '.join(item['why'] for item in found)}")


def result_file(run: Run, question: str) -> Path:
    """Where the answer to one of ``search.limits`` is."""
    return run.folder / RESULTS / f"{question_name(question)}.json"


def open_problem(run: Run) -> SearchProblem:
    """The search problem of a run's tables, without limits."""
    contributions = load_contributions(run.folder / CONTRIBUTIONS, run.space)
    return SearchProblem.build(contributions, load_costs(run.folder / COSTS, run.space))


def read_results(run: Run) -> list[dict[str, Any]]:
    """The answers of a run in the order of ``search.limits``; those without an architecture say ``why``."""
    found = []
    for path in (result_file(run, question) for question in run.config.search.limits):
        data = read_json(path)
        if not isinstance(data, dict) or not set(data) >= KEYS:
            raise FileError(
                f"{path} is not the result of a search. Delete it; the search is then done again."
            )
        found.append(data)
    return found


def _write_frontier(run: Run, problem: SearchProblem, cost: str) -> None:
    write_text(run.folder / FRONTIER, frontier(problem, cost).to_csv())


def _answer(run: Run, text: str, problem: SearchProblem, teller: Teller) -> dict[str, Any]:
    """The answer to one question, and why there is none where there is none."""
    config = run.config.search

    def search(tightened: SearchProblem) -> SearchResult:
        return solve(tightened, config.solver, time_limit=config.time_limit)

    why = ""
    if _on_device(run, problem):
        done = keep_limits(problem, measurable(problem.costs), _device(run, problem, teller), search)
        result = done.result
        why = done.sentence() if done.steps and not done.kept else ""
    else:
        result = search(problem)
    why = why or why_no_answer(result)
    if why:
        teller.say(why)
    limits = [_limit_json(problem, limit) for limit in problem.limits]
    return {"question": text, "limits": limits, "why": why, **result.to_json()}


def _on_device(run: Run, problem: SearchProblem) -> bool:
    """Whether answers are built and measured: as configured, else where this run measured what is limited."""
    wanted = run.config.search.closed_loop
    known = measurable(problem.costs)
    limited = any(limit.cost in known and not limit.lower for limit in problem.limits)
    return limited and (run.config.measuring.measures if wanted is None else wanted)


def _device(run: Run, problem: SearchProblem, teller: Teller) -> MeasureCost:
    """A function that measures one cost of an architecture, built whole, as its table was measured."""
    plan = replace(run.config.measuring.plan, budget=run.config.search.seconds_per_network)

    def measure(cost: Cost, architecture: Architecture) -> Estimate:
        how = replace(measuring_again(cost, plan), progress=measuring_progress(teller))
        return measure_architecture(problem.space, architecture, how)

    return measure


def _limit_json(problem: SearchProblem, limit: Limit) -> dict[str, Any]:
    unit = problem.costs[limit.cost].unit.name
    return {"cost": limit.cost, "value": limit.value, "unit": unit, "lower": limit.lower}
