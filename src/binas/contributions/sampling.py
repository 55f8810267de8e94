"""Ground truth: architectures measured one by one with the supernet's weights, each as a network of its own.

What contributions predict is judged against these, and predictors learn from them. Whole batches go through the
extracted network, which is the fastest way to measure one architecture; accuracies on two fixed halves of the images
are kept, because they tell how much of a ranking is noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import CheckpointError
from binas.base.identity import changes
from binas.base.progress import Progress
from binas.contributions.strata import cost_strata, drawn_architectures, odds_around, uniform_architectures
from binas.costs.analytic import analytic_costs
from binas.data.dataset import ImageData
from binas.data.images import Images, IndexedImages
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet
from binas.tables.entries import Provenance
from binas.tables.samples import Sample, Samples, pack
from binas.training.evaluation import Correct, correct, device_of, one_shot_network

Strata = Literal["uniform", "cost"]
Rows = NDArray[np.int64]


def architectures_to_measure(
    space: SearchSpace, count: int, strata: Strata, seed: int, around: Sequence[float] = ()
) -> list[Architecture]:
    """Uniform over decisions, spread evenly over the range of MACs, or drawn ``around`` shares of it."""
    if around:
        return drawn_architectures(space, odds_around(space, around), count, seed)
    if strata == "uniform":
        return uniform_architectures(space, count, seed)
    return cost_strata(space, analytic_costs(space)["macs"], count, seed)


def measure_samples(
    supernet: Supernet,
    data: ImageData,
    images: IndexedImages,
    architectures: Sequence[Architecture],
    recalibration: int = 0,
    known: Samples | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    outcomes: Callable[[Sequence[Architecture]], Iterable[Correct]] | None = None,
) -> Iterator[Samples]:
    """Measure architectures one by one, giving all rows so far after each new one; rows of ``known`` stay.

    With ``recalibration`` > 0 each network's BatchNorm is first re-estimated on that many training images.
    ``about`` says in the provenance what was measured; ``known`` must say the same. ``outcomes`` says which images each of
    some architectures classifies rightly, in other processes perhaps.
    """
    facts = {"images": len(images), "recalibrated_on": recalibration, **(about or {})}
    provenance = Provenance.made("measured", **facts)
    if known is not None:
        _check_known(known, facts)
    rows = {} if known is None else {row.architecture: row for row in known.rows}
    halves, progress, total = image_halves(len(images)), progress or Progress(), len(architectures)
    missing = [item for item in architectures if item not in rows]
    if not missing:
        yield Samples(supernet.space, tuple(rows.values()), provenance)
    measured = (
        (correct_images(supernet, item, data, [images], recalibration)[0] for item in missing)
        if outcomes is None
        else outcomes(missing)
    )
    pairs = zip(missing, measured, strict=True)
    for number, (architecture, right) in enumerate(pairs, total - len(missing) + 1):
        rows[architecture] = sample_of(architecture, right, halves)
        progress.show(number / total, f"architecture {number} of {total}")
        yield Samples(supernet.space, tuple(rows.values()), provenance)


def correct_images(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    sets: Sequence[Images],
    recalibration: int = 0,
) -> list[Correct]:
    """Which images of each set one architecture classifies rightly, (n,) each; BatchNorm re-estimated before."""
    network = one_shot_network(supernet, architecture, data, recalibration)
    return [correct(network, data, images, device_of(supernet)) for images in sets]


def image_halves(count: int, seed: int = 0) -> tuple[Rows, Rows]:
    """Two random halves of ``count`` images, each sorted."""
    order = np.random.default_rng([seed, count]).permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])


def sample_of(architecture: Architecture, correct: Correct, halves: tuple[Rows, Rows]) -> Sample:
    """The row of one architecture: accuracy, standard error sqrt(p (1 - p) / n), accuracy on each half, and the outcomes."""
    share = float(correct.mean())
    error = 100 * math.sqrt(share * (1 - share) / len(correct))
    first, second = (100 * float(correct[half].mean()) for half in halves)
    return Sample(architecture, 100 * share, error, len(correct), (first, second), pack(correct))


def _check_known(known: Samples, facts: Mapping[str, Any]) -> None:
    """Refuse samples that were measured in another way."""
    stored = known.provenance.to_data()
    changed = changes({name: stored.get(name) for name in facts}, facts)
    if changed:
        raise CheckpointError(
            f"the samples already there were measured in another way: {'; '.join(changed)}. Ask for the same again, "
            "give another --out, or measure again with --redo. They were left as they are."
        )
