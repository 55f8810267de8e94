"""The supernet of a run for methods that search it themselves: on the images that contributions are measured on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from binas.search.methods import schedule
from binas.search.solvers import solver_class
from binas.space.architecture import Architecture
from binas.space.relaxed import Gradient
from binas.tasks.estimate import EstimateSettings, validation_images
from binas.tasks.outcomes import correct_outcomes
from binas.tasks.sample import SampleSettings
from binas.training.config import FinetuneSettings

if TYPE_CHECKING:
    from binas.contributions.relaxed_loss import SupernetOracle
    from binas.run.run import Run
    from binas.training.evaluation import Correct

USUAL: Gradient = "score"
GradientSetting = Annotated[
    Gradient,
    Field(
        description="what hardcore, soft-penalty and darts follow: score, the score function's gradient, which has no bias; "
        "straight-through, that of the Gumbel-softmax, as HardCoRe-NAS has it"
    ),
]


def oracle_of(run: Run, gradient: Gradient = USUAL) -> SupernetOracle:
    """The trained supernet on the images of ``estimate``; networks are measured as those of ``sample``, on these images."""
    from binas.contributions.relaxed_loss import SupernetOracle

    settings = run.settings(EstimateSettings)
    recalibration = (
        run.settings(FinetuneSettings).recalibration if run.settings(SampleSettings).recalibrate else 0
    )

    def outcomes(architectures: Sequence[Architecture]) -> Iterator[Correct]:
        found = correct_outcomes(run, architectures, [settings.half], recalibration, most=settings.images)
        return (correct for (correct,) in found)

    images = validation_images(run, settings.half, settings.images)
    return SupernetOracle(run.supernet(), run.data, images, recalibration, outcomes, gradient)


def supernet_of(run: Run, solver: str, gradient: Gradient) -> dict[str, Any]:
    """Settings of a solver that searches the supernet itself: the run's, and steps that cost what ``estimate`` costs.

    Empty for any other solver.
    """
    if not solver_class(solver).capabilities.supernet:
        return {}
    oracle = oracle_of(run, gradient)
    return {"oracle": oracle, **schedule(estimate_evaluations(run, oracle.images), oracle.images)}


def estimate_evaluations(run: Run, images: int) -> int:
    """Image evaluations that the run's contributions cost, or will."""
    settings = run.settings(EstimateSettings)
    known = run.tables.contributions.provenance.to_data().get("evaluations")
    return int(known or settings.budget or settings.passes * images)
