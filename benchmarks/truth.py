"""Are the accuracies that binas reports true, and do their intervals hold what they promise?

    python benchmarks/truth.py             # several minutes
    python benchmarks/truth.py --quick     # within 60 seconds of one idle core

Simulated supernets whose every network has a known accuracy, with and without interactions between choices (a standard
deviation of 0.6 points over networks). Each repetition draws contributions, images to measure them on, images for the
samples of the check, and test images, and goes the way of a run: factorial passes (which see the supernet's own statistics:
accuracies 1 point lower, effects 15 % larger), samples, recalibration, an exact search under two limits, candidates, and
the confirmed answer. Everything that is told is then compared with the truth.

* contributions: each one's 95 % interval, against what the passes' population says;
* random networks: what is shown for networks that nobody measured;
* differences: of pairs of such networks;
* selected: the confirmed accuracy of the answers, on images that chose nothing;
* lead: of the answers over the check's random networks.

Limits (targets): |bias| of what is reported at most 0.1 points, 95 % intervals cover 93 to 97 %. Both are judged with the
Monte-Carlo error of so many repetitions (two standard errors over repetitions, printed beside; how much easier the images
drawn happen to be is known here, 0 on average, and taken out of biases of accuracies, so that they are known better). The
peer is what was printed before: the sum of contributions and its standard error, without samples.

With BINAS_TABLES: NAS-Bench-Macro, real accuracies, contributions from 300 networks, 100 others as samples, the estimator
that ``binas check`` chooses; how far its predictions of the networks found under limits, and one training of these, lie
above two trainings that nobody saw.

The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.contributions import Journal, TableEvaluator, factorial
from binas.contributions.sampling import image_halves, sample_of
from binas.estimators import BilinearEstimator, choose_estimator, make_estimator
from binas.estimators.calibration import CalibratedEstimator, calibrate, mean_gradient, own_errors
from binas.search import Limit, SearchProblem, solve
from binas.search.alternatives import best_architectures
from binas.search.confirming import POOL, Confirmed, measure_candidates
from binas.space import Architecture, SearchSpace, load_space, sample_many
from binas.tables import Column, Contributions, Cost, Sample, Samples
from binas.tables.units import parse_unit
from binas.testing import make_space
from binas.testing.evaluators import Interactions, PopulationEvaluator, known_contributions
from binas.testing.tables import read_nas_bench_macro

Array = NDArray[np.float64]

SPACE = make_space(3, 3, 5, 1)
BASE, POINTS = 82.0, 1.0
SHIFT, SCALE = -1.0, 1.15  # what the supernet's own statistics do to accuracies and effects
INTERACTIONS = (0.0, 0.6)
PASSES, SAMPLED, PAIRS = 24, 100, 30
LIMITS = (0.3, 0.6)
CANDIDATES = 16  # the default of search.candidates
TRIED = (4, 8, 16, 32, 64)  # others, for what they gain
BIAS, COVERAGE = 0.1, (0.93, 0.97)
TABLE = "nas_bench_macro_cifar10.json"


@dataclass(frozen=True)
class Size:
    """How much is tried; images of each half and of the test set."""

    repetitions: int
    images: int
    test: int
    seeds: int


FULL = Size(60, 1000, 4000, 10)
QUICK = Size(8, 1000, 2000, 2)


@dataclass
class Tally:
    """Errors and standard errors of one kind of number, a list per repetition."""

    errors: list[list[float]] = field(default_factory=list)
    told: list[list[float]] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)

    def add(self, errors: Sequence[float], told: Sequence[float], drawn: float = 0.0) -> None:
        """The numbers of one repetition; ``drawn`` points of their mean error are because of the images that were drawn."""
        self.errors.append(list(errors))
        self.told.append(list(told))
        self.drawn.append(drawn)

    def bias(self) -> tuple[float, float]:
        """Mean error in points, with its standard error over repetitions.

        What is known to come from the images drawn is 0 on average, so it is taken out: the mean stays, its error shrinks.
        """
        return _mean(
            [float(np.mean(row)) - drawn for row, drawn in zip(self.errors, self.drawn, strict=True)]
        )

    def coverage(self) -> tuple[float, float]:
        """Share of 95 % intervals that hold the truth, with its standard error over repetitions."""
        pairs = zip(self.errors, self.told, strict=True)
        shares = [float(np.mean(np.abs(error) <= 1.96 * np.array(told))) for error, told in pairs]
        share, error = _mean(shares)
        return share, max(error, math.sqrt(0.05 * 0.95 / sum(map(len, self.errors))))


def _mean(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


@dataclass(frozen=True)
class World:
    """One repetition: contributions, interactions, and three sets of images."""

    seed: int
    size: Size
    points: float

    def __post_init__(self) -> None:
        truth = known_contributions(SPACE, self.seed, POINTS, BASE)
        pairs = Interactions(SPACE, self.points, self.seed) if self.points else None

        def images(count: int, part: int, **bias: float) -> PopulationEvaluator:
            return PopulationEvaluator(truth, count, 10 * self.seed + part, pairs, **bias)

        parts = {
            "passes": images(self.size.images, 1, shift=SHIFT, scale=SCALE),
            "check": images(self.size.images, 2),
            "tests": [images(self.size.test, 3 + k) for k in range(len(LIMITS))],
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    passes: PopulationEvaluator = field(init=False)
    check: PopulationEvaluator = field(init=False)
    tests: list[PopulationEvaluator] = field(init=False)  # for each limit, so that repetitions tell more

    def contributions(self) -> Contributions:
        """As ``binas estimate`` measures them."""
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder), {"images": self.passes.images})
            *_, answer = factorial(self.passes, journal, PASSES, seed=self.seed)
        return answer

    def samples(self) -> Samples:
        """As ``binas sample`` measures them."""
        halves, drawn = image_halves(self.check.images), sample_many(SPACE, 2 * SAMPLED, self.seed)
        chosen = list(dict.fromkeys(drawn))[:SAMPLED]
        return Samples(SPACE, tuple(sample_of(item, self.check.correct(item), halves) for item in chosen))


def calibrated(contributions: Contributions, samples: Samples) -> CalibratedEstimator:
    """The plain sum of contributions with what ``binas check`` says about it."""
    plain, drawn = BilinearEstimator(contributions), samples.architectures
    own = own_errors(plain, drawn, mean_gradient(plain, drawn))
    return CalibratedEstimator(plain, calibrate(plain.predict(drawn), samples, own), drawn)


def made_cost() -> Cost:
    """A cost that grows with the number of the config."""
    values = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: 1.0 + 0.7 * c)
    return Cost("macs", parse_unit("MACs"), 0.0, values)


def repeat(world: World, tallies: Mapping[str, Tally]) -> None:
    """One repetition, counted."""
    contributions, samples = world.contributions(), world.samples()
    shown = calibrated(contributions, samples)
    plain = shown.estimator
    assert isinstance(plain, BilinearEstimator)
    assert contributions.stderr is not None
    wanted = SCALE * world.passes.truth.values.flat()
    tallies["contributions"].add(contributions.values.flat() - wanted, contributions.stderr.flat())
    drawn = sample_many(SPACE, 2 * PAIRS, 7919 + world.seed)
    truth = world.check.accuracy(drawn)
    easier = float(world.check.easier(samples.architectures).mean())
    for name, estimator, known in (
        ("random networks", shown, easier),
        ("random networks, plain", plain, 0.0),
    ):
        tallies[name].add(estimator.predict(drawn) - truth, estimator.standard_error(drawn), known)
    pairs = list(zip(drawn[:PAIRS], drawn[PAIRS:], truth[:PAIRS] - truth[PAIRS:], strict=True))
    for name, estimator in (("differences", shown), ("differences, plain", plain)):
        found = [(estimator.compare(one, two), gap) for one, two, gap in pairs]
        tallies[name].add([got - gap for (got, _), gap in found], [error for (_, error), _ in found])
    answers(world, shown, samples, tallies)


def answers(world: World, shown: CalibratedEstimator, samples: Samples, tallies: Mapping[str, Tally]) -> None:
    """The answers under each limit: predicted, confirmed, and what candidates gained."""
    cost, rows = made_cost(), defaultdict[str, list[tuple[float, float]]](list)
    easier: list[float] = []
    low, high = cost.range(SPACE)
    mean = float(world.check.accuracy(samples.architectures).mean())
    for share, test in zip(LIMITS, world.tests, strict=True):
        limit = Limit("macs", low + share * (high - low))
        problem = SearchProblem.build(shown, {"macs": cost}, [limit])
        items = best_architectures(problem, POOL * max(TRIED)).items
        pool = [item.architecture for item in items]
        best, lead = confirm(world, shown, samples, pool, CANDIDATES)
        optimum, truth = (float(x) for x in world.check.accuracy([items[0].architecture, best]))
        confirmed = Confirmed.of("test", test.correct(best), lead, len(samples), ())
        rows["selected"].append((confirmed.accuracy - truth, confirmed.error))
        easier.append(float(test.easier([best])[0]))
        rows["lead"].append((lead[0] - (truth - mean), lead[1]))
        rows["predicted"].append((items[0].accuracy - optimum, items[0].accuracy_stderr or 0.0))
        own = (
            shown.estimator.predict([items[0].architecture]),
            shown.estimator.standard_error([items[0].architecture]),
        )
        rows["predicted, plain"].append((float(own[0][0]) - optimum, float(own[1][0])))
        for count in TRIED:
            other, _ = confirm(world, shown, samples, pool, count)
            gain = float(world.check.accuracy([other])[0]) - optimum
            rows[f"gained by {count} candidates"].append((gain, 0.0))
    for name, found in rows.items():
        known = float(np.mean(easier)) if name == "selected" else 0.0
        tallies[name].add([error for error, _ in found], [told for _, told in found], known)


def confirm(
    world: World, shown: CalibratedEstimator, samples: Samples, pool: Sequence[Architecture], count: int
) -> tuple[Architecture, tuple[float, float]]:
    """The best of so many candidates, and its lead on the check's images; ``pool`` are the networks by prediction."""
    assert samples.outcomes is not None
    near = pool[: POOL * count]
    candidates = measure_candidates(
        count,
        shown.predict(near),
        samples.outcomes.mean(axis=0),
        shown.doubt(near),
        lambda places: np.stack([world.check.correct(near[k]) for k in places]),
    )
    winner = candidates.order()[0]
    lead = candidates.lead(winner)
    assert lead is not None
    return near[winner], lead


REPORTED = ("random networks", "selected", "lead")
COVERED = ("contributions", "random networks", "differences", "selected", "lead")


def judge(points: float, tallies: Mapping[str, Tally]) -> Iterator[dict[str, Any]]:
    """A row for each kind of number, with its targets."""
    for name, tally in tallies.items():
        (bias, bias_error), (share, share_error) = tally.bias(), tally.coverage()
        met = name not in REPORTED or abs(bias) <= BIAS + 2 * bias_error
        low, high = COVERAGE[0] - 2 * share_error, COVERAGE[1] + 2 * share_error
        covers = name not in COVERED or low <= share <= high
        yield {
            "interactions": points,
            "what": name,
            "bias": bias,
            "bias_error": bias_error,
            "coverage": None if name.startswith("gained") else share,
            "coverage_error": share_error,
            "met": met and covers,
        }


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The table for people."""
    print(f"{'interactions':>12}  {'what':<24} {'bias, points':>18} {'95 % covers':>18}  target")
    for row in rows:
        cover = (
            ""
            if row["coverage"] is None
            else f"{100 * row['coverage']:.1f} ± {100 * row['coverage_error']:.1f} %"
        )
        bias = f"{row['bias']:+.3f} ± {row['bias_error']:.3f}"
        target = "met" if row["met"] else "MISSED"
        judged = row["what"] in COVERED
        print(
            f"{row['interactions']:>12}  {row['what']:<24} {bias:>18} {cover:>18}  {target if judged else ''}"
        )


def simulate(size: Size, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """All repetitions."""
    rows: list[dict[str, Any]] = []
    for points in INTERACTIONS:
        tallies = defaultdict[str, Tally](Tally)
        for seed in range(size.repetitions):
            repeat(World(1000 * (1 + int(10 * points)) + seed, size, points), tallies)
            say(f"interactions {points}: {seed + 1} of {size.repetitions}")
        rows += judge(points, tallies)
    return rows


def macro(path: Path, seeds: int) -> dict[str, tuple[float, float]]:
    """NAS-Bench-Macro: points by which predictions of found networks lie above a training that nobody saw."""
    records, space = read_nas_bench_macro(path), load_space("nas-bench-macro")
    found: dict[str, list[float]] = {"predicted, plain": [], "predicted, recalibrated": [], "confirmed": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        drawn = [list(records)[i] for i in rng.permutation(len(records))[:SAMPLED]]
        samples = Samples(space, tuple(Sample(item, records[item].runs[0]) for item in drawn))
        table = TableEvaluator(space, lambda item: records[item].runs[0], 10)
        with tempfile.TemporaryDirectory() as folder:
            *_, contributions = factorial(
                table, Journal(Path(folder), {"images": 10}), 30, "correct", seed=seed
            )
        choice = choose_estimator(contributions, samples, resamples=100)
        shown = choice.calibrated(
            choice.chosen, make_estimator(choice.chosen, contributions, samples), samples
        )
        for limit in macro_limits(space, records):
            best = solve(SearchProblem.build(shown, {limit[0].name: limit[0]}, [limit[1]])).evaluation
            if best is None:
                continue
            truth = float(np.mean(records[best.architecture].runs[1:]))
            found["predicted, plain"].append((best.raw or 0.0) - truth)
            found["predicted, recalibrated"].append(best.accuracy - truth)
            found["confirmed"].append(records[best.architecture].runs[0] - truth)
    return {name: _mean(values) for name, values in found.items()}


def macro_limits(space: SearchSpace, records: Mapping[Architecture, Any]) -> Iterator[tuple[Cost, Limit]]:
    """Limits on FLOPs that a quarter, half and three quarters of the networks keep; FLOPs add up by least squares."""
    rows = space.layout.rows(records)
    flops = np.array([float(record.flops) for record in records.values()])
    design = np.column_stack([np.ones(len(rows)), rows])
    weights = np.linalg.lstsq(design, flops, rcond=None)[0]
    cost = Cost("flops", parse_unit("FLOPs"), float(weights[0]), Column.from_flat(space, weights[1:]))
    for share in (0.25, 0.5, 0.75):
        yield cost, Limit("flops", float(np.quantile(design @ weights, share)))


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repetitions", type=int)
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else FULL
    if arguments.repetitions:
        size = Size(arguments.repetitions, size.images, size.test, size.seeds)
    rows = simulate(size, lambda text: print(text, end="\r", file=sys.stderr))
    print(
        f"{size.repetitions} repetitions, {size.images} images to measure on and to check, {size.test} test images"
    )
    show(rows)
    tables, real = os.environ.get("BINAS_TABLES"), {}
    if tables and (Path(tables) / TABLE).exists():
        real = macro(Path(tables) / TABLE, size.seeds)
        for name, (bias, error) in real.items():
            print(
                f"NAS-Bench-Macro, found networks, {name}: {bias:+.3f} ± {error:.3f} points above the truth"
            )
    met = all(row["met"] for row in rows)
    print(json.dumps({"repetitions": size.repetitions, "rows": rows, "nas_bench_macro": real, "met": met}))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
