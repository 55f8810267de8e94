"""Search methods of others on the supernet of a run, under the same limits and for the same budget as ours.

Every one searches on the images that contributions are measured on, and its answer is judged, one-shot with BatchNorm
re-estimated, on the test images: both halves of the validation images have a part in our own choice, so only these chose
nothing in any method. A record of each (method, question, seed) is kept in ``RUN/methods/``: what is interrupted goes on.

Ours is ``binas``: the contributions, the samples, the estimator that the check chose, and the exact search. Its seed 0 is
the run's own tables; for others contributions and samples are measured anew with other paths and architectures, so that
its spread is that of the whole method. A name of ``binas solvers`` is ours with that solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, field_validator

from binas.base.errors import FileError, ProblemError
from binas.base.files import exists
from binas.base.identity import file_digest, identity_of
from binas.base.progress import Progress
from binas.base.settings import FileRecord, Settings
from binas.base.typed import read_typed
from binas.search.limits import question_name
from binas.search.methods import BY_GRADIENT, METHODS, Contest, MethodRecord, limit_uses
from binas.search.problem import SearchProblem
from binas.search.solve import solve
from binas.search.solvers import SOLVERS
from binas.space.architecture import Architecture
from binas.space.relaxed import Gradient
from binas.tasks.artefacts import CHOICE, CONTRIBUTIONS, COSTS, OUTCOMES, SAMPLES, SUPERNET, save_each
from binas.tasks.check import CheckSettings, check
from binas.tasks.confirming import measured_outcomes
from binas.tasks.estimate import EstimateSettings, estimates
from binas.tasks.oracle import USUAL, GradientSetting, oracle_of
from binas.tasks.sample import SampleSettings, sample
from binas.tasks.search import SearchSettings
from binas.training.config import FinetuneSettings, TrainSettings

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.run.folder import Folder
    from binas.run.run import Run

Seeded = TypeVar("Seeded", EstimateSettings, SampleSettings)

OURS = "binas"
FOLDER = "methods"
TOOK = "took.json"
LONGEST = 1e12  # seconds that any search can have taken


class MethodSettings(Settings):
    """Which search methods are compared, how often, and what each may spend."""

    method: tuple[str, ...] = Field(
        (OURS, *METHODS), min_length=1, description=f"of {OURS}, {', '.join(METHODS)}, or a solver of ours"
    )
    seeds: int = Field(3, ge=1, description="times that each one searches, with seeds 0, 1, ...")
    budget: int | None = Field(
        None,
        ge=1,
        description="image evaluations of each; none = what the run's contributions and samples cost",
    )
    gradient: GradientSetting = USUAL

    @field_validator("method")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        known = [OURS, *METHODS, *(name for name in SOLVERS if name not in METHODS)]
        if wrong := [name for name in methods if name not in known]:
            raise ValueError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return methods


@dataclass(frozen=True)
class Asked:
    """What one method is asked, with one seed, and the image evaluations it may spend."""

    question: str
    method: str
    seed: int
    budget: int
    gradient: Gradient


def contest(
    run: Run, questions: Sequence[str], settings: MethodSettings, progress: Progress
) -> Iterator[MethodRecord]:
    """The record of every question, method and seed, as they come; what is known already is not done again."""
    asked = [(q, m, s) for q in questions for m in settings.method for s in range(settings.seeds)]
    for number, (question, method, seed) in enumerate(asked):
        part = progress.part(number, len(asked), f"{method}, {question}, seed {seed}")
        yield run_method(run, question, method, seed, settings.budget, part, settings.gradient)


def run_method(
    run: Run,
    question: str,
    method: str,
    seed: int = 0,
    budget: int | None = None,
    progress: Progress | None = None,
    gradient: Gradient = USUAL,
) -> MethodRecord:
    """What one method finds under the limits of ``question``; read where it was found before with the same of everything.

    ``budget`` are image evaluations; None is what our own tables cost, and ours always costs that. ``gradient`` is that of
    the methods that follow one.
    """
    progress = progress or Progress()
    if not exists(run.folder / SUPERNET / "weights.json"):
        run.supernet()  # says that there is none yet, and who trains it
    if budget is None or method not in METHODS:
        budget = evaluations_of(run.tables)
    asked = Asked(question, method, seed, budget, gradient if method in BY_GRADIENT else USUAL)
    identity = _identity(run, asked)
    path = run.folder / FOLDER / question_name(question) / f"{method}-{seed}-{identity[:8]}.json"
    if exists(path):
        known = read_method(path)
        if known.identity == identity:
            return known
    record = _record(run, asked, identity, progress)
    record.save(path)
    return record


def read_method(path: Path) -> MethodRecord:
    """What a method found, as it was kept."""
    advice = "Delete it; `binas methods` makes it again."
    found = read_typed(MethodRecord, path, advice)
    if not (0 <= (found.accuracy or 0) <= 100 and 0 <= found.seconds <= LONGEST):
        raise FileError(f"{path} is damaged: accuracy {found.accuracy} % after {found.seconds:g} s. {advice}")
    return found


def answering(run: Run, budget: int | None) -> Work:
    """What lets a method answer (questions, method, seed, gradient); records are kept, where :func:`run_method` reads them.

    The answer is why it cannot, or nothing. All questions of a method and seed are one piece of work: ours measures its
    tables for all of them once. Nothing of a piece is shared out again.
    """
    train = run.settings(TrainSettings).model_copy(update={"processes": 1})
    alone = run.changed(run.config.model_copy(update={"train": train}))

    def answer(asked: tuple[Sequence[str], str, int, Gradient], progress: Progress) -> str | None:
        questions, method, seed, gradient = asked
        try:
            for question in questions:
                run_method(alone, question, method, seed, budget, progress, gradient)
        except ProblemError as error:
            return str(error)
        return None

    return answer


def _record(run: Run, asked: Asked, identity: str, progress: Progress) -> MethodRecord:
    """Search, and judge the answer."""
    problem = run.tables.problem([asked.question], run.settings(SearchSettings).estimator)
    search = _others if asked.method in METHODS else _ours
    found = search(run, problem, asked, progress)
    architecture, correct = found.architecture, None
    if architecture is not None:
        correct = measured_outcomes(run, [architecture], "test", progress)[architecture]
    share = None if correct is None else float(correct.mean())
    return MethodRecord(
        **asdict(asked),
        identity=identity,
        architecture=None if architecture is None else str(architecture),
        limits=limit_uses(problem, architecture),
        accuracy=None if share is None else 100 * share,
        error=None if share is None or correct is None else 100 * (share * (1 - share) / len(correct)) ** 0.5,
        images=0 if correct is None else len(correct),
        evaluations=found.evaluations,
        gradients=found.gradients,
        shared=asked.method not in METHODS,
        seconds=found.seconds,
    )


@dataclass(frozen=True)
class Found:
    """An architecture, or none, and what it took to find it."""

    architecture: Architecture | None
    seconds: float
    evaluations: int
    gradients: int = 0


def _others(run: Run, problem: SearchProblem, asked: Asked, _: Progress) -> Found:
    from binas.training.team import one_thread

    start = time.perf_counter()
    with one_thread():
        oracle = oracle_of(run, asked.gradient)
        architecture = METHODS[asked.method](Contest(problem, oracle, asked.budget, asked.seed))
    return Found(architecture, time.perf_counter() - start, oracle.evaluations, oracle.gradients)


def _ours(run: Run, problem: SearchProblem, asked: Asked, progress: Progress) -> Found:
    tables, start = tables_of(run, asked.seed, progress), time.perf_counter()
    estimator = tables.estimator(run.settings(SearchSettings).estimator)
    own = SearchProblem.build(estimator, run.tables.costs, problem.limits)
    found = solve(own, "auto" if asked.method == OURS else asked.method, seed=asked.seed)
    seconds = measuring_seconds(tables) + time.perf_counter() - start
    return Found(found.architecture, seconds, evaluations_of(tables))


def evaluations_of(tables: Folder) -> int:
    """Image evaluations behind contributions and samples, images that BatchNorm is re-estimated on included."""
    about, samples = tables.contributions.provenance.to_data(), tables.samples
    spent = int(about.get("evaluations", 0))
    if samples is not None:
        known = samples.provenance.to_data()
        spent += len(samples) * (int(known.get("images", 0)) + int(known.get("recalibrated_on", 0)))
    if not spent:
        raise ProblemError(
            f"{tables.path} does not say how many images its contributions were measured on, so there is no budget to "
            "hold methods to. Give one with --budget."
        )
    return spent


def tables_of(run: Run, seed: int, progress: Progress) -> Folder:
    """Contributions, samples and the estimator they lead to, measured with another seed; of 0 the run's own."""
    from binas.run.folder import Folder

    if seed == 0:
        return run.tables
    changed = run.changed(
        run.config.model_copy(
            update={
                "estimate": _reseeded(run.settings(EstimateSettings), seed),
                "sample": _reseeded(run.settings(SampleSettings), seed),
            }
        )
    )
    folder = run.folder / FOLDER / f"tables-{_tables_identity(changed)[:8]}"
    if not exists(folder / TOOK):  # written last
        start = time.perf_counter()
        save_each(estimates(changed, progress, folder / OUTCOMES), folder / CONTRIBUTIONS.file)
        save_each(sample(changed, folder / SAMPLES.file, progress), folder / SAMPLES.file)
        check(Folder(folder, run.space), run.settings(CheckSettings)).save(folder / CHOICE.file)
        Took(seconds=time.perf_counter() - start).save(folder / TOOK)
    return Folder(folder, run.space)


class Took(FileRecord):
    """Seconds that tables took to measure, in the session that finished them."""

    seconds: float


def measuring_seconds(tables: Folder) -> float:
    """Seconds that contributions, samples and the choice of the estimator took: of a run by its records."""
    from binas.run.records import read_record

    if exists(tables.path / TOOK):
        return read_typed(
            Took, tables.path / TOOK, "Delete its folder; the tables are then measured again."
        ).seconds
    records = (read_record(tables.path, name) for name in ("estimate", "sample", "check"))
    return sum(record.seconds for record in records if record is not None)


def _reseeded(settings: Seeded, seed: int) -> Seeded:
    return settings.model_copy(update={"seed": settings.seed + seed})


def _tables_identity(run: Run) -> str:
    """What contributions and samples of a run's weights depend on."""
    kinds: dict[str, type[Settings]] = {
        "estimate": EstimateSettings,
        "sample": SampleSettings,
        "check": CheckSettings,
    }
    settings = {name: run.settings(kind).model_dump(mode="json") for name, kind in kinds.items()}
    return identity_of({**settings, **_weights(run)})


def _weights(run: Run) -> dict[str, Any]:
    """What every accuracy depends on."""
    return {
        "weights": file_digest(run.folder / SUPERNET / "weights.json"),
        "images": run.images,
        "recalibration": run.settings(FinetuneSettings).recalibration,
    }


def _identity(run: Run, asked: Asked) -> str:
    """What a record depends on: for the methods of others no tables but that of costs."""
    known = {**asdict(asked), **_weights(run), "costs": file_digest(run.folder / COSTS.file)}
    if asked.method in METHODS:
        estimate = run.settings(EstimateSettings).model_dump(mode="json", include={"half", "images"})
        return identity_of({**known, **estimate, "measured": run.settings(SampleSettings).recalibrate})
    del known["gradient"]
    own = {name: file_digest(run.folder / name) for name in (CONTRIBUTIONS.file, SAMPLES.file)}
    estimator = run.settings(SearchSettings).estimator
    return identity_of({**known, **own, "estimator": estimator, "tables": _tables_identity(run)})
