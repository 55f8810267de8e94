"""How many image evaluations do contributions take? The paper's protocol against ours on a small supernet.

    python benchmarks/contributions.py            # about an hour on one core
    python benchmarks/contributions.py --quick    # within 10 minutes: fewer images, repeats and architectures

Contributions are measured on validation images, by the paper's protocol (sections 3.2 and 3.3, both readings) and by the
factorial one with each kind of outcome, several seeds. They are judged on networks and images they have not seen:
architectures drawn uniformly and evenly over the range of MACs, each extracted, with BatchNorm re-estimated as one would
use it, and measured on test images. Kendall's tau-b is shown with MACs alone and the noise ceiling (what a perfect
predictor would reach, from two halves of the test images). The supernet is trained once and kept, like everything
measured: a killed run resumes.

"Default" is what `binas run` would do: contributions from one half of the validation images, samples from the other, by the
default settings of both tasks, and the estimator that the check chooses by them. All candidates are listed beside it.

"Times fewer" is the number of evaluations at which the mean curve of the paper's protocol, as printed, has its best
Kendall, divided by the number at which the mean curve of the factorial protocol first reaches the same (interpolated on a
logarithmic scale). Targets, on uniform architectures: at least 20 times with 0/1 outcomes, 50 with the default soft one,
log-probability; with at most 75,000 evaluations Kendall of log-probability at least 0.5 on uniform and 0.75 on stratified
architectures, above MACs alone; of the default at least 0.70 and 0.78; nothing above the ceiling by more than two standard
errors of the difference (bootstrap over architectures, which both hang on). Quick runs stop the paper's protocol early,
where its curve still rises: their ratios are not comparable and only the targets on Kendall are checked.

The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from binas.base.files import exists
from binas.base.progress import Terminal
from binas.base.statistics import bootstrap, kendall
from binas.contributions import (
    Journal,
    OutcomeKind,
    Recorded,
    SupernetEvaluator,
    architectures_to_measure,
    factorial_contributions,
    measure_samples,
    paper_contributions,
    paper_passes,
)
from binas.contributions.design import Design
from binas.contributions.factorial import factorial_paths, kinds_of
from binas.contributions.paper import Reading, paper_paths
from binas.contributions.passes import measure
from binas.contributions.supernet_evaluator import indexed
from binas.costs import analytic_costs
from binas.data.division import stratified_sample
from binas.data.images import IndexedImages
from binas.estimators import (
    BilinearEstimator,
    Estimator,
    choose_estimator,
    make_estimator,
    noise_ceiling,
)
from binas.estimators.judging import ceiling_from_halves
from binas.run.config import load_config
from binas.run.engine import advance
from binas.run.run import Run
from binas.run.start import create_run
from binas.supernet import Supernet
from binas.tables import Contributions, Samples, load_samples
from binas.tasks.estimate import EstimateSettings, validation_images
from binas.tasks.sample import SampleSettings
from binas.tasks.train import TRAIN, TrainSettings
from binas.training.checkpoint import weights_digest

CACHE = Path(__file__).parent / ".cache"
Strata = Literal["uniform", "cost"]
STRATA: tuple[Strata, ...] = get_args(Strata)
READINGS: tuple[Reading, ...] = get_args(Reading)
KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)
BUDGET = 75_000
RECALIBRATION = 1024  # training images that re-estimate BatchNorm of a judged network
USUAL: OutcomeKind = "log-probability"  # the default, which the targets are about
TARGETS = {"correct": 20.0, "soft": 50.0, "uniform": 0.5, "cost": 0.75}
DEFAULT = {"uniform": 0.70, "cost": 0.78}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    images: int | None
    repeats: int
    paper_seeds: int
    factorial_seeds: int
    passes: tuple[int, ...]
    judged: int
    test_images: int | None


FULL = Size(None, 10, 2, 6, (2, 4, 8, 12, 16, 23, 32, 48, 96), 300, None)
QUICK = Size(1600, 2, 1, 3, (2, 4, 8, 16, 32, 46), 80, 2000)
Curve = dict[int, float]  # Kendall by image evaluations, mean over seeds


@dataclass(frozen=True, eq=False)
class Bench:
    """The trained supernet, the images to measure on, what to judge by, and a folder for what is measured."""

    run: Run
    supernet: Supernet
    size: Size
    images: IndexedImages
    truth: dict[Strata, Samples]
    folder: Path

    def evaluator(self) -> SupernetEvaluator:
        return SupernetEvaluator(self.supernet, self.run.data, self.images, weights_digest(self.supernet))

    def taus(self, found: Contributions) -> dict[Strata, float]:
        """Kendall of the predictions against each set of measured architectures."""
        estimator = BilinearEstimator(found)
        return {k: kendall(estimator.predict(t.architectures), t.accuracy) for k, t in self.truth.items()}

    def journal(self, name: str) -> Journal:
        evaluator = self.evaluator()
        identity = {"name": name, "evaluator": evaluator.fingerprint, "images": evaluator.images}
        return Journal(self.folder / name, identity)


def trained() -> tuple[Run, Supernet]:
    """The supernet of small-28, trained by the default recipe and kept."""
    run = create_run(CACHE / "training", load_config(None, ["space=small-28"]))
    advance(run, TRAIN.steps, Terminal())
    return run, run.supernet()


def some(images: IndexedImages, count: int | None) -> IndexedImages:
    return images if count is None else images.take(stratified_sample(images.labels, count, 0))


def judged(run: Run, supernet: Supernet, size: Size, strata: Strata, folder: Path) -> Samples:
    """Architectures measured on test images, each as a network of its own."""
    images = some(indexed(run.data.test, run.data.name), size.test_images)
    path = folder / f"{strata}-recalibrated.json"
    drawn = architectures_to_measure(run.space, size.judged, strata, 1)
    known = load_samples(path, run.space) if exists(path) else None
    about = {"weights": weights_digest(supernet), "image_set": images.fingerprint}
    with Terminal().during(f"{strata} architectures") as progress:
        for found in measure_samples(
            supernet, run.data, images, drawn, RECALIBRATION, known, about, progress
        ):
            found.save(path)
    return found


def paper_curves(bench: Bench) -> dict[Reading, dict[Strata, Curve]]:
    """Kendall after each repeat, for both readings."""
    evaluator, size = bench.evaluator(), bench.size
    each, space = paper_passes(bench.run.space), bench.run.space
    rows: dict[tuple[Reading, Strata, int], list[float]] = {}
    for seed in range(size.paper_seeds):
        journal = bench.journal(f"paper-{seed}")
        with Terminal().during(f"paper, seed {seed}") as progress:
            measure(evaluator, journal, each * size.repeats, paper_paths(space, seed), progress)
        for repeats in range(1, size.repeats + 1):
            for reading in READINGS:
                found = paper_contributions(space, journal, repeats, reading, {})
                for strata, value in bench.taus(found).items():
                    rows.setdefault((reading, strata, repeats * each * evaluator.images), []).append(value)
    return {r: {s: _curve(rows, r, s) for s in STRATA} for r in READINGS}


def factorial_curves(bench: Bench) -> dict[OutcomeKind, dict[Strata, Curve]]:
    """Kendall after growing numbers of passes, for each kind of outcome."""
    evaluator, size, design = bench.evaluator(), bench.size, Design(bench.run.space)
    rows: dict[tuple[OutcomeKind, Strata, int], list[float]] = {}
    for seed in range(size.factorial_seeds):
        journal = bench.journal(f"factorial-{seed}")
        with Terminal().during(f"factorial, seed {seed}") as progress:
            measure(evaluator, journal, max(size.passes), factorial_paths(bench.run.space, seed), progress)
        for passes in size.passes:
            for kind in KINDS:
                found, _ = factorial_contributions(Recorded(design, journal, passes, seed, kinds_of(kind)))
                for strata, value in bench.taus(found).items():
                    rows.setdefault((kind, strata, passes * evaluator.images), []).append(value)
    return {k: {s: _curve(rows, k, s) for s in STRATA} for k in KINDS}


def default_estimators(bench: Bench) -> tuple[str, dict[str, Estimator]]:
    """What a run would choose, and all candidates by name, fitted as in a run."""
    run, asked, drawn = bench.run, EstimateSettings(), SampleSettings()
    weights, first = weights_digest(bench.supernet), validation_images(run, asked.half)
    evaluator = SupernetEvaluator(bench.supernet, run.data, first, weights)
    journal = Journal(bench.folder / "default", {"evaluator": evaluator.fingerprint, "images": len(first)})
    with Terminal().during("default, contributions") as progress:
        measure(evaluator, journal, asked.passes, factorial_paths(run.space, asked.seed), progress)
    recorded = Recorded(Design(run.space), journal, asked.passes, asked.seed, kinds_of(asked.outcome))
    contributions, _ = factorial_contributions(recorded)
    samples = default_samples(bench, drawn)
    macs = analytic_costs(run.space).of(samples.architectures, "macs")
    choice = choose_estimator(contributions, samples, macs)
    names = [item.name for item in choice.estimators]
    return choice.chosen, {name: make_estimator(name, contributions, samples) for name in names}


def default_samples(bench: Bench, drawn: SampleSettings) -> Samples:
    """The samples of a run, measured once."""
    run, images = bench.run, validation_images(bench.run, drawn.half)
    recalibration = run.settings(TrainSettings).supernet.recalibration if drawn.recalibrate else 0
    path, about = bench.folder / "default-samples.json", {"image_set": images.fingerprint}
    known = load_samples(path, run.space) if exists(path) else None
    asked = architectures_to_measure(run.space, drawn.count, drawn.strata, drawn.seed)
    with Terminal().during("default, samples") as progress:
        for samples in measure_samples(
            bench.supernet, run.data, images, asked, recalibration, known, about, progress
        ):
            samples.save(path)
    return samples


def default_table(bench: Bench) -> dict[str, dict[str, float]]:
    """Print Kendall of all candidates, the chosen one marked; the chosen one's figures for each set."""
    chosen, estimators = default_estimators(bench)
    print(f"\nWhat a run would use: {chosen}. Kendall with 95 % intervals over architectures")
    found: dict[str, dict[str, float]] = {}
    for name, estimator in estimators.items():
        cells = []
        for strata, truth in bench.truth.items():
            tau = bootstrap(kendall, estimator.predict(truth.architectures), truth.accuracy)
            cells.append(f"{strata} {tau.value:.3f} ({tau.low:.3f} to {tau.high:.3f})")
            if name == chosen:
                excess, error = above_ceiling(estimator.predict(truth.architectures), truth)
                found[strata] = {"kendall": tau.value, "above ceiling": excess, "error": error}
        print(f"{'*' if name == chosen else ' '} {name:24} " + "   ".join(cells))
    return found


def above_ceiling(predicted: np.ndarray, truth: Samples) -> tuple[float, float]:
    """Kendall minus the noise ceiling, and the standard error of that difference by bootstrap over architectures."""
    assert truth.halves is not None
    rng, halves = np.random.default_rng(0), truth.halves

    def excess(i: np.ndarray) -> float:
        ceiling = ceiling_from_halves(kendall(halves[i, 0], halves[i, 1]))
        return kendall(predicted[i], truth.accuracy[i]) - ceiling

    drawn = [excess(rng.integers(len(truth), size=len(truth))) for _ in range(500)]
    return excess(np.arange(len(truth))), float(np.std(drawn))


def _curve(rows: Mapping[tuple[Any, Strata, int], list[float]], name: str, strata: Strata) -> Curve:
    return {n: float(np.mean(v)) for (row, s, n), v in rows.items() if (row, s) == (name, strata)}


def reached(curve: Curve, wanted: float) -> float:
    """Evaluations at which the curve first reaches ``wanted``, interpolated over their logarithm; inf if never."""
    before: tuple[int, float] | None = None
    for evaluations, value in sorted(curve.items()):
        if value >= wanted:
            if before is None:
                return float(evaluations)
            share = (wanted - before[1]) / (value - before[1])
            return math.exp((1 - share) * math.log(before[0]) + share * math.log(evaluations))
        before = evaluations, value
    return math.inf


def best(curve: Curve) -> tuple[int, float]:
    """Evaluations and Kendall of the highest point."""
    return max(curve.items(), key=lambda item: item[1])


def within(curve: Curve, budget: int) -> float:
    """Kendall of the last point within a budget."""
    return curve[max(n for n in curve if n <= budget)]


def table(title: str, names: Sequence[str], curves: Sequence[Curve]) -> Iterator[str]:
    yield f"\n{title}\n{'evaluations':>12} " + " ".join(f"{name:>16}" for name in names)
    for count in sorted({n for curve in curves for n in curve}):
        cells = [f"{curve[count]:16.3f}" if count in curve else " " * 16 for curve in curves]
        yield f"{count:12,} " + " ".join(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer images, repeats and architectures")
    quick = parser.parse_args().quick
    size, folder = QUICK if quick else FULL, CACHE / ("contributions-quick" if quick else "contributions")
    run, supernet = trained()
    truth = {strata: judged(run, supernet, size, strata, folder) for strata in STRATA}
    images = some(indexed(run.data.validation, run.data.name), size.images)
    bench = Bench(run, supernet, size, images, truth, folder)
    ours, papers = factorial_curves(bench), paper_curves(bench)
    figures = compared(bench, ours, papers)
    for strata, of_default in default_table(bench).items():
        figures[strata] |= {f"default {name}": value for name, value in of_default.items()}
    missed = misses(figures, quick)
    print("\n".join(f"MISSED: {text}" for text in missed) or "\nAll targets met.")
    print(json.dumps({"quick": quick, "met": not missed, **figures}))
    return 1 if missed else 0


def compared(
    bench: Bench, ours: dict[OutcomeKind, dict[Strata, Curve]], papers: dict[Reading, dict[Strata, Curve]]
) -> dict[str, dict[str, float]]:
    """Print the curves and the comparison for both sets of architectures; the figures."""
    figures: dict[str, dict[str, float]] = {}
    costs = analytic_costs(bench.run.space)
    for strata, truth in bench.truth.items():
        ceiling = noise_ceiling(truth)
        assert ceiling is not None
        alone = kendall(costs.of(truth.architectures, "macs"), truth.accuracy)
        names = [*KINDS, *(f"paper, {reading}" for reading in READINGS)]
        curves = [*(ours[k][strata] for k in KINDS), *(papers[r][strata] for r in READINGS)]
        print("\n".join(table(f"Kendall, {len(truth)} {strata} architectures", names, curves)))
        print(f"MACs only {alone:.3f}; noise ceiling {ceiling.kendall:.3f} (halves {ceiling.half:.3f})")
        found = {"macs": alone, "ceiling": ceiling.kendall, "highest": max(best(c)[1] for c in curves)}
        for kind in KINDS:
            found[f"{kind} at {BUDGET}"] = within(ours[kind][strata], BUDGET)
        for reading in READINGS:
            curve = papers[reading][strata]
            count, value = best(curve)
            found[f"paper {reading}"] = value
            for kind in KINDS:
                fewer = count / reached(ours[kind][strata], value)
                nearly = reached(curve, 0.97 * value) / reached(ours[kind][strata], 0.97 * value)
                found[f"{kind} fewer than {reading}"] = fewer
                print(
                    f"paper ({reading}) {value:.3f} with {count:,}: {kind} needs {fewer:.1f} times fewer, "
                    f"and {nearly:.1f} times fewer for 97 % of it"
                )
        figures[strata] = found
    return figures


def misses(figures: dict[str, dict[str, float]], quick: bool) -> list[str]:
    """Targets that were not reached, in words."""
    missed = []
    for strata, found in figures.items():
        usual = found[f"{USUAL} at {BUDGET}"]
        if usual < max(TARGETS[strata], found["macs"]):
            missed.append(f"Kendall {usual:.3f} on {strata} architectures at {BUDGET:,} evaluations")
        usual = found["default kendall"]
        if usual < DEFAULT[strata]:
            missed.append(
                f"Kendall {usual:.3f} of the default on {strata} architectures, not {DEFAULT[strata]}"
            )
        if found["default above ceiling"] > 2 * found["default error"]:
            missed.append(f"Kendall {usual:.3f} on {strata} architectures is above the ceiling: a mistake")
    if quick:
        return missed
    uniform = figures["uniform"]
    for name, kind in (("correct", "correct"), ("soft", USUAL)):
        value = uniform[f"{kind} fewer than base"]
        if value < TARGETS[name]:
            missed.append(f"{name}: {value:.1f} times fewer evaluations, not {TARGETS[name]:g}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
