"""Compare: what did the search buy? Networks that cost the same, chosen without it, measured in the same way.

Each found network is compared with two kinds of rivals: random architectures whose cost lies just below the limit (their
mean, and the best of them), and the best hand-scaled one: one config and one depth for the whole network, as people scale
networks. Validation images choose the best; every accuracy that is reported is of test images, which choose nothing:
one-shot (the supernet's weights, BatchNorm re-estimated), and with ``compare.tune`` after the same fine-tuning. All see
the same images, so differences are paired: their standard error is sd(correct_1 - correct_2) / sqrt(images).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from binas.search.rivals import (
    CANDIDATES,
    Comparison,
    Leads,
    Outcome,
    Rival,
    hand_scaled_rivals,
    random_rivals,
)
from binas.space.architecture import Architecture
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import COMPARISONS, SUPERNET
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
        0,
        ge=0,
        description="that many of them, the best of them and the hand-scaled one are fine-tuned as the found one is",
    )
    images: int | None = Field(
        None,
        gt=0,
        description="validation images and test images that networks are compared on before tuning, at most, so many of "
        "each; none = all",
    )
    seed: int = Field(0, ge=0, description="of the drawn networks")


@dataclass(frozen=True, eq=False)
class Bench:
    """Where networks are compared: images and weights, the problem with its limits, and the limit to come near to.

    With the ``run`` that weights and images are of, networks are measured in as many processes as it may use. ``images`` is
    how many validation and test images are used at most.
    """

    supernet: Supernet
    data: ImageData
    problem: SearchProblem
    limit: Limit
    recalibration: int
    run: Run | None = None
    images: int | None = None

    def correct(
        self, architectures: Sequence[Architecture], parts: Sequence[str], progress: Progress | None = None
    ) -> list[list[NDArray[np.bool_]]]:
        """For each network, which images of each part it classifies rightly."""
        from binas.contributions.sampling import correct_images
        from binas.tasks.outcomes import at_most, correct_outcomes

        if self.run is not None:
            return list(
                correct_outcomes(self.run, architectures, parts, self.recalibration, progress, self.images)
            )
        sets = [at_most(getattr(self.data, part), self.images) for part in parts]
        return [
            correct_images(self.supernet, item, self.data, sets, self.recalibration) for item in architectures
        ]

    def outcomes(self, architectures: Sequence[Architecture], progress: Progress) -> list[Outcome]:
        """What networks get right, one-shot."""
        measured = self.correct(architectures, ("validation", "test"), progress)
        return [Outcome(100 * float(validation.mean()), test) for validation, test in measured]

    def rival(self, architecture: Architecture, outcome: Outcome) -> Rival:
        """A measured network as it is kept."""
        cost = self.problem.cost(self.limit.cost, architecture)
        return Rival(architecture=str(architecture), cost=cost, one_shot=outcome.percents)


def best_hand_scaled(bench: Bench, progress: Progress) -> Architecture | None:
    """The hand-scaled network with the best validation accuracy of those that keep the limits; None: none does."""
    able = hand_scaled_rivals(bench.problem, bench.limit)
    shares = [float(right.mean()) for (right,) in bench.correct(able, ["validation"], progress)]
    return able[int(np.argmax(shares))] if able else None


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
    progress, random = progress or Progress(), random_rivals(bench.problem, bench.limit, count, seed)
    hand = best_hand_scaled(bench, progress.part(0, 3, "choosing the hand-scaled one"))
    networks = list(dict.fromkeys([architecture, *random, *([hand] if hand else [])]))
    outcomes = dict(zip(networks, bench.outcomes(networks, progress.part(1, 2, "rivals")), strict=True))
    rivals = {item: bench.rival(item, outcome) for item, outcome in outcomes.items()}
    found, drawn = rivals[architecture], tuple(rivals[item] for item in random)
    best = None if hand is None else rivals[hand]
    by_name = {str(item): outcome for item, outcome in outcomes.items()}
    return Comparison(
        question=question,
        identity=identity,
        cost=bench.limit.cost,
        limit=bench.limit.value,
        unit=bench.problem.costs[bench.limit.cost].unit.name,
        images=len(outcomes[architecture].correct),
        found=found,
        random=drawn,
        hand_scaled=best,
        one_shot=Leads.of(found, drawn, best, by_name, len(drawn)),
    )


def _work(run: Run, progress: Progress) -> None:
    """Compare every limit that was not compared already, and fine-tune rivals where that is asked for."""
    from binas.tasks.search import read_answers

    answers = [answer for answer in read_answers(run) if answer.architecture]
    for number, answer in enumerate(answers):
        known, identity = COMPARISONS.find(run, answer.question), _identity(run, answer)
        if known is None or known.identity != identity:
            _compare(run, answer, identity, progress.part(number, len(answers), answer.question))
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
    bench = Bench(
        run.supernet(), run.data, problem.with_limits(limits), traced, recalibration, run, settings.images
    )
    own = run.space.parse(str(answer.architecture))
    result = compare_with_rivals(
        bench, own, settings.random, settings.seed, progress, answer.question, identity
    )
    COMPARISONS.write(run, answer.question, result)
    progress.say(result.verdict.sentence())


def _identity(run: Run, answer: AnswerRecord) -> str:
    """What a comparison depends on."""
    settings = run.settings(CompareSettings).model_dump(mode="json", exclude={"tune"})
    known = answer.model_dump(mode="json", include={"architecture", "limits", "costs"})
    weights = file_digest(run.folder / SUPERNET / "weights.json")
    recalibration = run.settings(FinetuneSettings).recalibration
    return identity_of({**settings, **known, "weights": weights, "recalibration": recalibration})


def _tune_rivals(run: Run, progress: Progress) -> None:
    """Add what networks get right after fine-tuning, the found ones and the rivals alike; nothing without ``tune``."""
    comparisons, count = COMPARISONS.read(run), run.settings(CompareSettings).tune
    names = [name for item in comparisons for name in item.to_tune(count)] if count else []
    outcomes = tuned_outcomes(run, list(dict.fromkeys(names)), progress)
    for item in comparisons:
        done = item.with_tuned(outcomes, count)
        if done != item:
            COMPARISONS.write(run, item.question, done)
            progress.say(f"{item.question}: {done.verdict.sentence()}")


def tuned_outcomes(run: Run, names: list[str], progress: Progress) -> dict[str, Outcome]:
    """What architectures get right after the run's fine-tuning; those that are not tuned yet are tuned now."""
    from binas.tasks.finetune import open_tuned, tune_all
    from binas.training.evaluation import correct, device_of

    records, outcomes = tune_all(run, [run.space.parse(name) for name in names], progress), {}
    for architecture, record in records.items():
        network = open_tuned(run, record.name).network
        test = correct(network, run.data, run.data.test, device_of(network))
        outcomes[str(architecture)] = Outcome(record.judgement.tuned.validation.percent, test)
    return outcomes


def _tuning(run: Run) -> dict[str, Any]:
    """How rivals are fine-tuned, where they are."""
    tunes = run.settings(CompareSettings).tune
    return run.settings(FinetuneSettings).model_dump(mode="json") if tunes else {}


def _seconds(outlook: Outlook) -> Seconds:
    """Found, random and hand-scaled networks on validation and test images, hand-scaled candidates on the former; tuning."""
    from binas.tasks.finetune import tuning_seconds

    settings, images = outlook.settings(CompareSettings), outlook.images
    validation, test = (min(n, settings.images or n) for n in (images.validation, images.test))
    work = outlook.spread(outlook.questions * (2 + settings.random), outlook.evaluated(validation + test))
    work += outlook.spread(outlook.questions * CANDIDATES, outlook.evaluated(validation))
    tuned = outlook.questions * (settings.tune + 2) if settings.tune else 0
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
            amounts=(
                Amount("compare.random", "random networks for each limit", 0.04, 5, 20),
                Amount(
                    "compare.tune",
                    "of them fine-tuned, with the best and the hand-scaled one",
                    0.08,
                    0,
                    3,
                    within=True,
                ),
            ),
        ),
    ),
    examples=("binas compare runs/first", "binas compare runs/first --random 50 --tune 8"),
)
