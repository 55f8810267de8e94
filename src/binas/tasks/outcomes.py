"""Which images architectures of a run classify rightly with the supernet's weights: each measured in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from binas.base.progress import Progress
from binas.space.architecture import Architecture
from binas.tasks.estimate import Half, validation_images

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.data.images import Images, IndexedImages
    from binas.run.run import Run
    from binas.training.evaluation import Correct


def correct_outcomes(
    run: Run,
    architectures: Sequence[Architecture],
    sets: Sequence[str],
    recalibration: int = 0,
    progress: Progress | None = None,
    most: int | None = None,
) -> Iterator[list[Correct]]:
    """For each architecture, which images of each set it classifies rightly, (n,) each.

    A set is ``test``, ``validation``, or a half of the validation images (``first``, ``second``). With ``recalibration`` > 0
    each network's BatchNorm is first re-estimated on that many training images. ``most`` is how many images of a set are
    used at most, always the same ones, of all classes alike.
    """
    from binas.run.workers import map_shared

    names = [str(item) for item in architectures]
    return map_shared(run, judge, [list(sets), recalibration, most], names, progress, "architecture")


def judge(run: Run, sets: Sequence[str], recalibration: int, most: int | None) -> Work:
    """What measures one architecture on some sets of images."""
    from binas.contributions.sampling import correct_images

    supernet = run.supernet()
    images = [at_most(_images(run, name), most) for name in sets]

    def correct(architecture: str, progress: Progress) -> list[Correct]:
        return correct_images(supernet, run.space.parse(architecture), run.data, images, recalibration)

    return correct


def _images(run: Run, name: str) -> Images:
    if name in ("test", "validation"):
        return cast("Images", getattr(run.data, name))
    return validation_images(run, cast(Half, name))


def at_most(images: Images, most: int | None) -> Images:
    """``images``, or ``most`` of them, of all classes alike, always the same ones; a stream stays whole."""
    from binas.data.division import stratified_sample

    if most is None or not images.indexed or len(images) <= most:
        return images
    all_of_them = cast("IndexedImages", images)
    return all_of_them.take(stratified_sample(all_of_them.labels, most, 0))
