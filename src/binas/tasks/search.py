"""Search: the proven best architecture for each limit, kept on the device where it was measured, and the frontier."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from binas.base.errors import BinasError, ConfigError, FileError, ProblemError
from binas.base.files import exists, read_text, write_text
from binas.base.identity import file_digest, identity_of
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.costs.table import MeasureSettings, known_costs, measure_on_device
from binas.estimators.registry import candidates, find_candidate
from binas.search.answers import AnswerRecord
from binas.search.deadline import Deadline, TimeLimit
from binas.search.frontier import Frontier, frontier
from binas.search.infeasible import why_no_answer
from binas.search.limits import check_form, parse_limits, parts_of, question_name
from binas.search.on_device import REST, MeasureCost, first_kept, keep_limits
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import SearchResult
from binas.search.solve import solve
from binas.search.solvers import SOLVERS
from binas.search.verify import TOLERANCE
from binas.tasks._base import AUTO, Step, Task
from binas.tasks.artefacts import ANSWERS, CHOICE, FRONTIER, SAMPLES
from binas.tasks.confirming import NETWORKS, can_confirm, confirm
from binas.tasks.estimate import half_of
from binas.tasks.oracle import USUAL, GradientSetting, supernet_of
from binas.tasks.outlook import Amount, Outlook
from binas.tasks.sample import SampleSettings

if TYPE_CHECKING:
    from binas.run.run import Run

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SearchSettings(Settings):
    """The questions to answer, each exactly."""

    limits: tuple[Question, ...] = Field(
        ("latency=50%",),
        min_length=1,
        description="one search each: COST=QUANTITY with a unit (latency=0.2ms, params=300k), or in percent of the "
        "way from the least to the greatest cost a network of the space has by the table (latency=40%); several "
        "limits at once are joined by 'and'",
    )
    estimator: str = Field(
        AUTO, description="what predicts accuracy; auto = the one that the check chose, or a name it judged"
    )
    solver: str = Field("auto", description="a solver of `binas solvers`; auto is exact")
    gradient: GradientSetting = USUAL
    time_limit: float | None = Field(
        None,
        gt=0,
        description="seconds an answer may take, with the list of --top and --within; none = unlimited",
    )
    closed_loop: bool | None = Field(
        None,
        description="build and measure each answer, and search again with tighter limits until the measured one keeps "
        "them; none = where this run measured the table",
    )
    candidates: int = Field(
        16,
        ge=1,
        le=1000,
        description="so many near-optimal networks are measured on the images of the samples, half of them those that are "
        "predicted best, half those that look best after that, and the best of them is the answer; 1 = the one that is "
        "predicted best",
    )
    seconds_per_network: float = Field(
        30.0,
        gt=0,
        description="time of one session of measuring an answer, at most; a busy machine is given six",
    )
    seed: int = Field(0, ge=0, description="of randomised solvers")

    @field_validator("limits")
    @classmethod
    def _readable(cls, limits: tuple[str, ...]) -> tuple[str, ...]:
        try:
            for limit in limits:
                check_form(limit)
        except BinasError as error:
            raise ValueError(str(error)) from error
        if len(set(limits)) < len(limits):
            raise ValueError("the same limit stands there twice")
        return limits

    @field_validator("solver")
    @classmethod
    def _known_solver(cls, solver: str) -> str:
        if solver not in SOLVERS:
            raise ValueError(f"must be one of {', '.join(SOLVERS)}")
        return solver

    @field_validator("estimator")
    @classmethod
    def _known_estimator(cls, name: str) -> str:
        if name not in (AUTO, *candidates()):
            raise ValueError(f"must be {AUTO} or one of {', '.join(candidates())}")
        return name


def check_questions(run: Run) -> None:
    """Raise an error for a limit that the search would refuse after hours of training: its cost, unit or percentage."""
    costs, names = known_costs(run.settings(MeasureSettings), run.space), dict[str, str]()
    for question in run.questions:
        for part in parts_of(question):
            parse_limits(part.partition("@")[0], run.space, costs)  # conditions wait until the table is there
        other = names.setdefault(question_name(question), question)
        if other != question:
            raise ConfigError(f"search.limits: {question!r} and {other!r} say the same; keep one of them.")


def open_problem(run: Run) -> SearchProblem:
    """The search problem of a run's tables, without limits."""
    return run.tables.problem(estimator=run.settings(SearchSettings).estimator)


def _work(run: Run, progress: Progress) -> None:
    """Write the answer to each limit, and the frontier for the cost of the first."""
    problem, questions = open_problem(run), run.questions
    resolved = {text: parse_limits(text, run.space, problem.costs, problem.variants) for text in questions}
    time_limit = run.settings(SearchSettings).time_limit
    traced = frontier(problem, resolved[questions[0]][0].cost, time_limit=time_limit)
    write_text(run.folder / FRONTIER, traced.to_csv())
    for number, (text, limits) in enumerate(resolved.items()):
        if ANSWERS.find(run, text) is None:  # else answered before an interruption
            part = progress.part(number, len(questions), text)
            ANSWERS.write(run, text, answer(run, text, problem.with_limits(limits), part))
    if not any(item.architecture for item in run.answers):
        raise ProblemError(f"no limit has an answer: {' '.join(item.why for item in run.answers)}")


def answer(run: Run, question: str, problem: SearchProblem, progress: Progress) -> AnswerRecord:
    """The answer to one question, confirmed where the run has weights; and why there is none where there is none."""
    settings, name = (
        run.settings(SearchSettings),
        run.tables.estimator_name(run.settings(SearchSettings).estimator),
    )
    loop = run.settings(MeasureSettings).measures if settings.closed_loop is None else settings.closed_loop
    on_device, confirmed = loop and _is_measured(problem), None
    result, why = search_for(problem, settings, on_device, progress, run)
    if can_confirm(run):

        def keep(found: SearchResult, preferred: Sequence[Evaluation]) -> SearchResult:
            return kept_of(problem, settings, on_device, found, preferred, progress)

        given = settings.candidates, settings.time_limit
        result, confirmed = confirm(run, result, *given, name, keep, progress)
    record = AnswerRecord.of(question, problem, result, why, name, confirmed)
    for said in (why, confirmed and confirmed.sentence(), *record.remarks):
        if said:
            progress.say(said)
    return record


def search_for(
    problem: SearchProblem,
    settings: SearchSettings,
    on_device: bool,
    progress: Progress,
    run: Run | None = None,
) -> tuple[SearchResult, str]:
    """The best architecture, built and measured where ``on_device``; and why there is none, empty where there is one.

    A solver that searches the supernet itself gets that of the ``run``.
    """
    given = {} if run is None else supernet_of(run, settings.solver, settings.gradient)
    deadline = Deadline.after(settings.time_limit)

    def search(tightened: SearchProblem, limit: TimeLimit = settings.time_limit) -> SearchResult:
        return solve(tightened, settings.solver, time_limit=limit, seed=settings.seed, **given)

    if not on_device:
        result = search(problem, deadline)
        return result, why_no_answer(result, deadline)
    done = keep_limits(problem, *_device(problem, settings, progress), search, rest=lambda: time.sleep(REST))
    if done.result.architecture:
        return done.result, ""
    return done.result, done.sentence() if done.steps else why_no_answer(done.result, deadline)


def kept_of(
    problem: SearchProblem,
    settings: SearchSettings,
    on_device: bool,
    result: SearchResult,
    preferred: Sequence[Evaluation],
    progress: Progress,
) -> SearchResult:
    """The result with the first of ``preferred`` networks, where ``on_device`` the first that keeps the limits there."""
    if not on_device or preferred[0].architecture == result.architecture:
        return replace(result, evaluation=preferred[0])
    return first_kept(problem, *_device(problem, settings, progress), result, preferred)


def _device(
    problem: SearchProblem, settings: SearchSettings, progress: Progress
) -> tuple[list[str], MeasureCost]:
    """The costs that can be measured here, and how."""
    from binas.costs.measure import measurable
    from binas.costs.session import Plan

    plan = Plan(budget=settings.seconds_per_network)
    return list(measurable(problem.costs)), measure_on_device(problem.space, plan, progress)


def _is_measured(problem: SearchProblem) -> bool:
    """Whether an upper limit is on a cost whose table says how it was measured."""
    from binas.costs.measure import measurable

    return any(not limit.lower and limit.cost in measurable(problem.costs) for limit in problem.limits)


def read_answers(run: Run, problem: SearchProblem | None = None) -> list[AnswerRecord]:
    """The answers as the search wrote them; one that is not what the tables say is refused, like points of the frontier.

    What follows would be made for a network nobody found. ``problem`` is that of the run, opened unless given.
    """
    tables, answers = problem or open_problem(run), ANSWERS.read(run)
    for answer in answers:
        wrong = _differs(tables, answer) if answer.architecture else ""
        if wrong:
            path, what = ANSWERS.path(run, answer.question), str(answer.architecture)[:200]
            raise FileError(
                f"{path} is not what the tables say of {what} ({wrong}): it is of other tables, or was "
                f"changed. Delete it; `binas search {run.folder}` makes it again."
            )
    return answers


def _differs(problem: SearchProblem, answer: AnswerRecord) -> str:
    """What is told of an answer and not so by the tables; empty where all is right."""
    if answer.variant is not None and answer.variant not in problem.variants:
        return f"there is no variant {answer.variant[:60]!r}"
    try:
        architecture = problem.space.parse(str(answer.architecture))
    except BinasError as error:
        return str(error)
    known = evaluate(problem.of_variant(answer.variant), architecture)
    told = {"accuracy": answer.accuracy} | {name: cost.value for name, cost in answer.costs.items()}
    wrong = (
        f"{name} {told.get(name)} instead of {value:.9g}"
        for name, value in {"accuracy": known.accuracy, **known.costs}.items()
        if not math.isclose(told.get(name) or 0.0, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    )
    return next(wrong, "")


def read_frontier(run: Run) -> Frontier:
    """The frontier as the search wrote it."""
    path = run.folder / FRONTIER
    return Frontier.from_csv(read_text(path), open_problem(run), str(path))


def _check(run: Run) -> None:
    """Refuse an estimator that no frontier can be traced with, before anything is trained."""
    name = run.settings(SearchSettings).estimator
    if name != AUTO and not find_candidate(name).automatic:
        raise ConfigError(
            f"search.estimator {name!r} is no sum over stages, so a run cannot trace its frontier. Choose another, and ask "
            f"with it afterwards: `binas search {run.folder} -l LIMIT --estimator {name}`, with `--solver evolution` where "
            "nothing can be proven (gaussian-process, mlp)."
        )


def _estimator(run: Run) -> dict[str, Any]:
    """The estimator, how its predictions are shown, and the samples where answers are held against them.

    Other figures of the check do not matter.
    """
    name, samples = run.settings(SearchSettings).estimator, run.folder / SAMPLES.file
    if name == AUTO and not exists(run.folder / CHOICE.file):
        return {"estimator": None}
    name = run.tables.estimator_name(name)
    judged = None if run.tables.choice is None else run.tables.choice.judgement(name)
    shown = judged and judged.calibration and judged.calibration.model_dump(mode="json")
    used = exists(samples) and (find_candidate(name).learns or can_confirm(run))
    known = {"samples": file_digest(samples)[:16]} if used else {}
    return {"estimator": name, "shown": identity_of(shown)[:16] if shown else None, **known}


def _seconds(outlook: Outlook) -> Seconds:
    """Answers take moments; candidates are evaluated, answers built and measured in half the time they may take."""
    settings = outlook.settings(SearchSettings)
    seen = half_of(outlook.images.validation, outlook.settings(SampleSettings).half)
    evaluating = outlook.spread(outlook.questions * settings.candidates, outlook.evaluated(seen))
    each = outlook.rates.prepare if outlook.settings(MeasureSettings).measures else 0.0
    measuring = 0.5 * settings.seconds_per_network if each and settings.closed_loop is not False else 0.0
    return Seconds(evaluating + outlook.questions * each, 0.5 + outlook.questions * measuring)


SEARCH = Task(
    "search",
    SearchSettings,
    (
        Step(
            "search",
            "find the best architecture for each limit",
            _work,
            (ANSWERS.files, FRONTIER),
            ("search", "finetune.recalibration"),
            after=("measure", "estimate"),
            order=("check",),
            facts=_estimator,
            seconds=_seconds,
            amounts=(Amount("search.seconds_per_network", "seconds at most for an answer", 0.01, 3, 30),),
            kept=(NETWORKS,),
        ),
    ),
    check=_check,
    examples=(
        "binas search runs/first",
        "binas search example -l latency=45ms -l params=5M --top 5",
        "binas search runs/first -l 'latency=25% and params<=300k' --json",
        "binas search example -l latency=45ms --solver evolution --seed 3",
        "binas search measured -l latency=0.2ms --on-device",
    ),
)
