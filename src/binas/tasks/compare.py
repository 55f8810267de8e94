"""Compare: what did the search buy? Networks that cost the same, chosen without it, measured in the same way.

Each found network is compared with two kinds of rivals: random architectures whose cost lies just below the limit, and
the best hand-scaled one: one config and one depth for the whole network, as people scale networks. Hand-scaled
candidates are chosen by validation accuracy; every accuracy that is reported is of test images, with the supernet's
weights and BatchNorm re-estimated. All see the same images, so differences are paired: their standard error is
sd(correct_1 - correct_2) / sqrt(images).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from binas.base.identity import file_digest, identity_of
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.search.answers import AnswerRecord
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.rivals import CANDIDATES, Comparison, Rival, difference, hand_scaled_rivals, random_rivals
from binas.space.architecture import Architecture
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import ANSWERS, COMPARISONS, SUPERNET
from binas.tasks.outlook import Amount, Outlook
from binas.training.config import FinetuneSettings

if TYPE_CHECKING:
    from binas.data.dataset import ImageData
    from binas.run.run import Run
    from binas.supernet.network import Supernet


class CompareSettings(Settings):
    """What the search bought: rivals of the same cost, chosen without it, measured on the same test images."""

    random: int = Field(
        20, ge=0, description="random networks to compare each found one with; also the best hand-scaled one"
    )
    tune: int = Field(
        0, ge=0, description="that many of them, and the hand-scaled one, are fine-tuned as well"
    )
    seed: int = Field(0, ge=0, description="of the drawn networks")


@dataclass(frozen=True, eq=False)
class Bench:
    """Where networks are compared: images and weights, the problem with its limits, and the limit to come near to."""

    supernet: Supernet
    data: ImageData
    problem: SearchProblem
    limit: Limit
    recalibration: int

    def correct(self, architecture: Architecture, *parts: str) -> list[NDArray[np.bool_]]:
        """Which images of each part a network classifies rightly."""
        from binas.contributions.sampling import correct_images

        sets = [getattr(self.data, part) for part in parts]
        return correct_images(self.supernet, architecture, self.data, sets, self.recalibration)

    def rival(self, architecture: Architecture, correct: NDArray[Any]) -> Rival:
        """A measured network as it is kept."""
        return Rival(
            architecture=str(architecture),
            cost=self.problem.cost(self.limit.cost, architecture),
            accuracy=100 * float(correct.mean()),
        )

    def best_hand_scaled(self) -> tuple[Architecture, NDArray[np.bool_]] | None:
        """The hand-scaled network with the best validation accuracy, and its outcomes on test images."""
        best: tuple[float, Architecture, NDArray[np.bool_]] | None = None
        for item in hand_scaled_rivals(self.problem, self.limit):
            chosen_by, correct = self.correct(item, "validation", "test")
            if best is None or chosen_by.mean() > best[0]:
                best = float(chosen_by.mean()), item, correct
        return best and best[1:]


def compare_with_rivals(
    bench: Bench,
    architecture: Architecture,
    count: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
    question: str = "",
    identity: str = "",
) -> Comparison:
    """Measure ``architecture``, ``count`` random rivals and the best hand-scaled one under the same limit."""
    drawn, outcomes = random_rivals(bench.problem, bench.limit, count, seed), []
    for number, item in enumerate([architecture, *drawn]):
        (progress or Progress()).show(number / (1 + len(drawn) + CANDIDATES), "measuring rivals")
        outcomes += bench.correct(item, "test")
    own, others, best = outcomes[0], outcomes[1:], bench.best_hand_scaled()
    return Comparison(
        question=question,
        identity=identity,
        cost=bench.limit.cost,
        limit=bench.limit.value,
        unit=bench.problem.costs[bench.limit.cost].unit.name,
        images=len(own),
        found=bench.rival(architecture, own),
        random=tuple(bench.rival(item, correct) for item, correct in zip(drawn, others, strict=True)),
        hand_scaled=None if best is None else bench.rival(*best),
        over_random=difference(own, np.mean(others, axis=0)) if others else None,
        over_hand_scaled=None if best is None else difference(own, best[1]),
    )


def _work(run: Run, progress: Progress) -> None:
    """Compare every limit that was not compared already, and fine-tune rivals where that is asked for."""
    answers = [answer for answer in ANSWERS.read(run) if answer.architecture]
    for number, answer in enumerate(answers):
        known, identity = COMPARISONS.find(run, answer.question), _identity(run, answer)
        if known is None or known.identity != identity:
            _compare(run, answer, identity, progress.part(number, len(answers), answer.question))
    if run.settings(CompareSettings).tune:
        _tune_rivals(run, progress)


def _compare(run: Run, answer: AnswerRecord, identity: str, progress: Progress) -> None:
    """One comparison, under the limits that were searched with."""
    from binas.tasks.search import open_problem

    settings, problem = run.settings(CompareSettings), open_problem(run).of_variant(answer.variant)
    limits = answer.searched_limits
    traced = next((x for x in limits if not x.lower and problem.costs[x.cost].combine == "sum"), None)
    if traced is None:
        progress.say("no upper limit on a sum to draw rivals at")
        return
    recalibration = run.settings(FinetuneSettings).recalibration
    bench = Bench(run.supernet(), run.data, problem.with_limits(limits), traced, recalibration)
    own = run.space.parse(str(answer.architecture))
    result = compare_with_rivals(
        bench, own, settings.random, settings.seed, progress, answer.question, identity
    )
    COMPARISONS.write(run, answer.question, result)
    progress.say(result.sentence())


def _identity(run: Run, answer: AnswerRecord) -> str:
    """What a comparison depends on."""
    settings = run.settings(CompareSettings).model_dump(mode="json", exclude={"tune"})
    known = answer.model_dump(mode="json", include={"architecture", "limits", "costs"})
    weights = file_digest(run.folder / SUPERNET / "weights.json")
    recalibration = run.settings(FinetuneSettings).recalibration
    return identity_of({**settings, **known, "weights": weights, "recalibration": recalibration})


def _tune_rivals(run: Run, progress: Progress) -> None:
    """Add the test accuracy after fine-tuning to the first random rivals and the hand-scaled ones."""
    from binas.tasks.finetune import tune_all

    comparisons, count = COMPARISONS.read(run), run.settings(CompareSettings).tune
    chosen = [rival.architecture for item in comparisons for rival in item.to_tune(count)]
    networks = {text: run.space.parse(text) for text in dict.fromkeys(chosen)}
    records = tune_all(run, list(networks.values()), progress)
    accuracy = {text: records[item].judgement.tuned.test.percent for text, item in networks.items()}
    for item in comparisons:
        COMPARISONS.write(run, item.question, item.with_tuned(accuracy, count))


def _tuning(run: Run) -> dict[str, Any]:
    """How rivals are fine-tuned, where they are."""
    tunes = run.settings(CompareSettings).tune
    return run.settings(FinetuneSettings).model_dump(mode="json") if tunes else {}


def _seconds(outlook: Outlook) -> Seconds:
    """Found, random and hand-scaled networks on test images, hand-scaled ones on validation images too; then tuning."""
    from binas.tasks.finetune import tuning_seconds

    settings, rates, images = outlook.settings(CompareSettings), outlook.rates, outlook.images
    recalibration = min(outlook.settings(FinetuneSettings).recalibration, images.train) * rates.recalibrate
    each = images.test * rates.forward + recalibration
    networks = outlook.questions * (1 + settings.random + CANDIDATES)
    work = outlook.spread(networks, each)
    work += outlook.spread(outlook.questions * CANDIDATES, images.validation * rates.forward)
    tuned = outlook.questions * (settings.tune + 1) if settings.tune else 0
    tuning = tuning_seconds(outlook, tuned)
    return Seconds(work + tuning.work, tuning.fixed)


COMPARE = Task(
    "compare",
    CompareSettings,
    (
        Step(
            "compare",
            "measure random and hand-scaled networks of the same cost",
            _work,
            (COMPARISONS.files,),
            ("compare", "finetune.recalibration"),
            after=("train.supernet", "search"),
            facts=_tuning,
            sorts=True,
            seconds=_seconds,
            amounts=(Amount("compare.random", "random networks for each limit", 0.04, 5, 20),),
        ),
    ),
    examples=("binas compare runs/first", "binas compare runs/first --random 50 --tune 8"),
)
