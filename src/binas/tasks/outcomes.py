"""Which images architectures of a run classify rightly with the supernet's weights: each measured in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from binas.base.progress import Progress
from binas.space.architecture import Architecture
from binas.tasks.estimate import Half, validation_images

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.contributions.sampling import Correct
    from binas.run.run import Run


def correct_outcomes(
    run: Run,
    architectures: Sequence[Architecture],
    sets: Sequence[str],
    recalibration: int = 0,
    progress: Progress | None = None,
) -> Iterator[list[Correct]]:
    """For each architecture, which images of each set it classifies rightly, (n,) each.

    A set is ``test``, ``validation``, or a half of the validation images (``first``, ``second``). With ``recalibration`` > 0
    each network's BatchNorm is first re-estimated on that many training images.
    """
    from binas.run.workers import map_shared

    names = [str(item) for item in architectures]
    return map_shared(run, judge, [list(sets), recalibration], names, progress, "architecture")


def judge(run: Run, sets: Sequence[str], recalibration: int) -> Work:
    """What measures one architecture on some sets of images."""
    from binas.contributions.sampling import correct_images

    supernet = run.supernet()
    images = [
        getattr(run.data, name)
        if name in ("test", "validation")
        else validation_images(run, cast(Half, name))
        for name in sets
    ]

    def correct(architecture: str, progress: Progress) -> list[Correct]:
        return correct_images(supernet, run.space.parse(architecture), run.data, images, recalibration)

    return correct
