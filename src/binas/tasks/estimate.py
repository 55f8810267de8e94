"""Estimate what each choice contributes to accuracy, on one half of the validation images.

Random architectures are measured on the other half (:mod:`binas.tasks.sample`), so that estimates are judged on images
they have not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from binas.base.errors import ConfigError, DataError
from binas.base.files import check_replaceable, copy_tree, exists, remove_tree
from binas.base.identity import identity_of
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.tables.contributions import Contributions
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import CONTRIBUTIONS, OUTCOMES, save_each
from binas.tasks.outlook import Amount, Outlook
from binas.training.config import Around

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.contributions.outcomes import Evaluator, Outcomes
    from binas.contributions.supernet_evaluator import SupernetEvaluator
    from binas.data.images import IndexedImages
    from binas.run.run import Run

Half = Literal["first", "second", "both"]
PAPER_PASSES = 256  # one for each decision of the paper's space
FITTING = 4e-5  # seconds per evaluation that the fits take
FEWEST = 10  # images of a half: as many groups as cross-validation forms


class EstimateSettings(Settings):
    """What each choice contributes to accuracy, measured on one half of the validation images."""

    protocol: Literal["factorial", "paper"] = Field("factorial", description="ours, or the paper's")
    passes: int = Field(24, ge=2, le=1_000_000, description="factorial: passes over the images, at most")
    outcome: Literal["correct", "probability", "log-probability"] = Field(
        "log-probability", description="factorial: what is fitted"
    )
    stability: float | None = Field(
        None, ge=0, le=1, description="factorial: stop at this Kendall tau between halves; none = all passes"
    )
    repeats: int = Field(10, ge=1, description="paper: passes per decision")
    reading: Literal["base", "depth"] = Field(
        "base", description="paper: a config's accuracy minus E[Acc], or minus E[Acc | depth]"
    )
    budget: int | None = Field(
        None, ge=1, description="most image evaluations to spend, instead of passes; none = no such limit"
    )
    images: int | None = Field(None, ge=2, description="only about this many images; none = the whole half")
    half: Half = Field("first", description="which half of the validation images")
    around: Around = ()
    seed: int = Field(0, ge=0, description="of the drawn paths")


def validation_images(run: Run, half: Half, count: int | None = None) -> IndexedImages:
    """The validation images of a run, one half of them or both, or about ``count`` of those; never test images."""
    from binas.contributions.sampling import image_halves
    from binas.contributions.supernet_evaluator import indexed
    from binas.data.division import stratified_sample

    images = indexed(run.data.validation, run.data.name)
    if half != "both":
        images = images.take(image_halves(len(images))[("first", "second").index(half)])
    return images if count is None else images.take(stratified_sample(images.labels, count, 0))


def estimates(run: Run, progress: Progress, recorded: Path | None = None) -> Iterator[Contributions]:
    """Better and better answers; passes recorded for the same weights, images and seed are used again.

    They are kept in the run, or in the folder ``recorded``, which begins with those of the run.
    """
    from binas.contributions.factorial import factorial
    from binas.contributions.journal import Journal
    from binas.contributions.paper import paper
    from binas.contributions.strata import odds_around

    settings, evaluator = run.settings(EstimateSettings), evaluator_of(run)
    amount = affordable_amount(settings, evaluator)
    identity: dict[str, Any] = {
        "protocol": settings.protocol,
        "evaluator": evaluator.fingerprint,
        "space": run.space.fingerprint,
        "images": evaluator.images,
        "seed": settings.seed,
        **({"around": list(settings.around)} if settings.around else {}),
    }
    folder = run.folder / OUTCOMES / f"{settings.protocol}-{identity_of(identity)[:8]}"
    if recorded is not None and exists(folder) and not exists(recorded / folder.name):
        copy_tree(folder, recorded / folder.name)
    journal = Journal(folder if recorded is None else recorded / folder.name, identity)
    passes = partial(shared_passes, run)
    if settings.protocol == "paper":
        made = paper(evaluator, journal, amount, settings.reading, settings.seed, progress, passes)
    else:
        odds = odds_around(run.space, settings.around)
        asked = settings.outcome, settings.stability, settings.seed
        made = factorial(evaluator, journal, amount, *asked, progress, passes, odds)
    return (_of_images(table, run.images) for table in made)


def _of_images(table: Contributions, images: str) -> Contributions:
    """The table with the fingerprint of the images and their split, by which a run of others refuses it."""
    return replace(table, provenance=table.provenance.model_copy(update={"data": images}))


def evaluator_of(run: Run) -> SupernetEvaluator:
    """The supernet on the images that contributions are measured on."""
    from binas.contributions.supernet_evaluator import SupernetEvaluator
    from binas.training.checkpoint import weights_digest

    settings, supernet = run.settings(EstimateSettings), run.supernet()
    images = validation_images(run, settings.half, settings.images)
    return SupernetEvaluator(supernet, run.data, images, weights_digest(supernet))


def shared_passes(run: Run, numbers: Sequence[int]) -> Iterator[Outcomes]:
    """The outcomes of passes, each measured in one process."""
    from binas.contributions.outcomes import Outcomes
    from binas.run.workers import map_shared

    for correct, log_probability in map_shared(run, passer, (), numbers):
        yield Outcomes(correct, log_probability)


def passer(run: Run) -> Work:
    """What measures one pass of the run's protocol, by its number."""
    from binas.contributions.factorial import factorial_paths
    from binas.contributions.paper import paper_paths
    from binas.contributions.passes import pass_outcomes
    from binas.contributions.strata import odds_around

    settings, evaluator = run.settings(EstimateSettings), evaluator_of(run)
    odds = odds_around(run.space, settings.around)
    paths = (
        paper_paths(run.space, settings.seed)
        if settings.protocol == "paper"
        else factorial_paths(run.space, settings.seed, odds)
    )

    def measured(number: int, progress: Progress) -> list[Any]:
        found = pass_outcomes(evaluator, number, paths)
        return [found.correct, found.log_probability]

    return measured


def affordable_amount(settings: EstimateSettings, evaluator: Evaluator) -> int:
    """Passes of the factorial protocol, or repeats of the paper's, that the budget pays for."""
    from binas.contributions.paper import paper_passes
    from binas.contributions.passes import affordable

    budget, images = settings.budget, evaluator.images
    if settings.protocol == "factorial":
        return settings.passes if budget is None else affordable(budget, images, 2, "the protocol")
    each = paper_passes(evaluator.space)
    if budget is None:
        return settings.repeats
    return min(settings.repeats, affordable(budget, images, each, "one repeat") // each)


def _work(run: Run, progress: Progress) -> None:
    """Write the table again and again, better each time; passes are kept in ``outcomes/``."""
    from binas.training.reporting import Reporter, read_metrics

    reporter = Reporter(run.folder)
    # Answers that were given before an interruption are not given again; their figures stay.
    known = CONTRIBUTIONS.read(run).provenance.to_data() if exists(run.folder / CONTRIBUTIONS.file) else {}
    reporter.start("estimate", run.settings(EstimateSettings).passes, int(known.get("evaluations", 0)))

    def recorded() -> Iterator[Contributions]:
        for answer in estimates(run, progress):
            about = answer.provenance.to_data()
            lines = [line for line in read_metrics(run.folder) if line["phase"] == "estimate"]
            number = 1 + sum(line["step"] < int(about["evaluations"]) for line in lines)
            figures = {"base": answer.base, "base_stderr": answer.base_stderr}
            figures |= {key: float(about[key]) for key in ("stability",) if key in about}
            reporter.record(number, int(about["evaluations"]), figures)
            yield answer

    answer = save_each(recorded(), run.folder / CONTRIBUTIONS.file)
    reporter.finish()
    progress.say(answer.sentence())


def _ask(run: Run, out: Path, progress: Progress) -> Contributions:
    """The same to a file outside the run, beside which passes are kept until it is done."""
    check_replaceable(out)
    recorded = out.with_name(f"{out.name}.{OUTCOMES}")
    answer = save_each(estimates(run, progress, recorded), out)
    remove_tree(recorded)
    return answer


def _check(run: Run) -> None:
    """Refuse too few validation images, and images that cannot be asked for one by one, before anything is trained."""
    if run.config.data.streaming:
        raise DataError(
            f"data.streaming is on for {run.config.data.title}, and a stream has no image to come back to, but "
            "contributions are measured on the same images again and again. Give --set data.streaming=false, so that the "
            "images are stored first. Nothing was trained or changed; only `binas train` alone can stream."
        )
    images = run.data.validation
    if len(images) // 2 < FEWEST:
        raise ConfigError(
            f"{run.data.name} has {len(images)} validation images; a run needs at least {2 * FEWEST}, one half to measure "
            "contributions, the other to check them. Give more images or a larger data.validation_share."
        )


def _seconds(outlook: Outlook) -> Seconds:
    """Passes over the images, and fits on the way."""
    settings, whole = outlook.settings(EstimateSettings), outlook.images.validation
    images = min(half_of(whole, settings.half), settings.images or whole)
    passes = settings.passes if settings.protocol == "factorial" else settings.repeats * PAPER_PASSES
    passes = min(passes, (settings.budget or passes * images) // images)
    return Seconds(outlook.spread(passes, images * outlook.rates.multipath) + passes * images * FITTING, 2.0)


def half_of(images: int, half: Half) -> int:
    """How many of the validation images there are in one half of them, or both."""
    return images if half == "both" else images // 2


ESTIMATE = Task(
    "estimate",
    EstimateSettings,
    (
        Step(
            "estimate",
            "measure what each choice contributes",
            _work,
            (CONTRIBUTIONS.file,),
            ("estimate",),
            after=("train.supernet",),
            kept=(OUTCOMES,),
            seconds=_seconds,
            amounts=(Amount("estimate.passes", "passes", 0.05, 8, 200),),
        ),
    ),
    ask=_ask,
    check=_check,
    examples=(
        "binas estimate runs/first --passes 48",
        "binas estimate runs/first --budget 75000 --half both --out all.json",
        "binas estimate runs/first --protocol paper --repeats 10 --out paper.json",
    ),
)
