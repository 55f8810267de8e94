"""Sample: random architectures measured one by one, on images that contributions were not measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from binas.base.files import check_replaceable, exists
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.space.architecture import Architecture
from binas.tables.samples import Samples, load_samples
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import SAMPLES, save_each
from binas.tasks.estimate import Half, half_of, validation_images
from binas.tasks.outcomes import correct_outcomes
from binas.tasks.outlook import Amount, Outlook
from binas.training.config import Around, FinetuneSettings
from binas.training.judgement import guesses

if TYPE_CHECKING:
    from binas.run.run import Run
    from binas.training.evaluation import Correct


class SampleSettings(Settings):
    """Random architectures measured one by one on the other half of the images: estimates are judged by them."""

    count: int = Field(100, ge=2, le=1_000_000, description="architectures to measure")
    strata: Literal["uniform", "cost"] = Field(
        "uniform", description="uniform over decisions, or evenly over the range of MACs"
    )
    around: Around = ()
    recalibrate: bool = Field(
        True, description="re-estimate each one's BatchNorm first, on finetune.recalibration training images"
    )
    half: Half = Field("second", description="which half of the validation images")
    seed: int = Field(0, ge=0, description="of the drawn architectures")


def sample(run: Run, known_at: Path, progress: Progress) -> Iterator[Samples]:
    """All samples so far, after each new one; those already at ``known_at`` that were measured in the same way stay."""
    from binas.contributions.sampling import architectures_to_measure, measure_samples
    from binas.training.checkpoint import weights_digest

    settings, supernet = run.settings(SampleSettings), run.supernet()
    images = validation_images(run, settings.half)
    recalibration = run.settings(FinetuneSettings).recalibration if settings.recalibrate else 0
    about = {
        "images": len(images),
        "recalibrated_on": recalibration,
        "strata": list(settings.around) if settings.around else settings.strata,
        "seed": settings.seed,
        "weights": weights_digest(supernet),
        "image_set": images.fingerprint,
        "data": run.images,
    }
    asked = architectures_to_measure(
        run.space, settings.count, settings.strata, settings.seed, settings.around
    )
    known = _known(run, known_at, about, asked, progress)

    def outcomes(architectures: Sequence[Architecture]) -> Iterator[Correct]:
        return (
            correct for (correct,) in correct_outcomes(run, architectures, [settings.half], recalibration)
        )

    return measure_samples(supernet, run.data, images, asked, recalibration, known, about, progress, outcomes)


def _known(
    run: Run, path: Path, about: Mapping[str, Any], asked: Sequence[Architecture], progress: Progress
) -> Samples | None:
    """Of the samples there, those that are asked for and were measured in the same way; the run's others are set aside.

    Where the run has none, those in its ``old/`` are used.
    """
    from binas.run.old import keep_old, places

    earlier = [place / path.name for place in places(run.folder, "sample")]
    loaded = {file: load_samples(file, run.space) for file in (path, *earlier) if exists(file)}
    alike = [file for file, samples in loaded.items() if _measured_so(samples, about)]
    names = set(asked)
    if path in alike and names.issuperset(loaded[path].architectures):
        return loaded[path]
    if path in loaded and path.parent == run.folder:
        place = keep_old(run.folder, "sample", [path.name])
        progress.say(f"{path.name} of before moved to {place.relative_to(run.folder)}")
    kept = [row for row in loaded[alike[0]].rows if row.architecture in names] if alike else []
    return Samples(run.space, tuple(kept), loaded[alike[0]].provenance) if kept else None


def _measured_so(samples: Samples, about: Mapping[str, Any]) -> bool:
    was = samples.provenance.to_data()
    return all(was.get(key) == value for key, value in about.items())


def _work(run: Run, progress: Progress) -> None:
    found = _ask(run, run.folder / SAMPLES.file, progress)
    for text in (found.sentence(), untrained(found)):
        if text:
            progress.say(text)


def untrained(samples: Samples) -> str:
    """What to do where networks know next to nothing on average."""
    classes, mean = samples.space.classes, float(samples.accuracy.mean())
    if classes is None or not guesses(mean, classes):
        return ""
    return (
        f"warning: on average they are right on {mean:.1f} % of the images, and guessing would be on {100 / classes:.1f} %: "
        "the supernet has not learned to be smaller yet, so what is estimated and found means little. Train it for longer: "
        "train.supernet.epochs, or --time"
    )


def _ask(run: Run, out: Path, progress: Progress) -> Samples:
    """The same to a file, which is written anew after each network."""
    check_replaceable(out)
    return save_each(sample(run, out, progress), out)


def _seconds(outlook: Outlook) -> Seconds:
    """Each network on its half of the images."""
    settings = outlook.settings(SampleSettings)
    images = half_of(outlook.images.validation, settings.half)
    each = outlook.evaluated(images) if settings.recalibrate else images * outlook.rates.forward
    return Seconds(outlook.spread(settings.count, each), 1.0)


SAMPLE = Task(
    "sample",
    SampleSettings,
    (
        Step(
            "sample",
            "measure random architectures on other images",
            _work,
            (SAMPLES.file,),
            ("sample", "finetune.recalibration"),
            after=("train.supernet",),
            sorts=True,
            seconds=_seconds,
            amounts=(Amount("sample.count", "networks", 0.05, 20, 500, 5),),
        ),
    ),
    ask=_ask,
    examples=(
        "binas sample runs/first --count 500",
        "binas sample runs/first --count 500 --strata cost --out samples-cost.json",
    ),
)
