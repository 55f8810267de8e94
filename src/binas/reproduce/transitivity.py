"""The appendix on the transitivity of ranking correlations, with networks really trained from scratch.

Given Cor(predicted, one-shot) and Cor(one-shot, standalone), the correlation of predicted with standalone accuracy, the one
that matters, is bounded (:func:`binas.estimators.metrics.transitivity`); here it is also measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from binas.base.statistics import bootstrap, kendall, pearson, spearman
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.metrics import transitivity
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded
from binas.space.architecture import Architecture
from binas.tasks.finetune import run_to_tune, tune_all

Array = NDArray[np.float64]
Pairs = Mapping[str, tuple[Array, Array]]  # what is correlated, by name
BOUNDED = (pearson, spearman)  # the bound is of these, not of Kendall's tau


def make(study: Study) -> Finding:
    """Train the first of the judged networks, which were drawn at random, and correlate all three accuracies.

    Chosen by one of the accuracies, spread more widely than networks are, they would correlate better than networks do.
    """
    samples = study.judged()
    every = BilinearEstimator(study.run.tables.contributions).predict(samples.architectures)
    count = min(study.preset.standalone, len(samples))
    predicted, one_shot = every[:count], samples.accuracy[:count]
    standalone = _standalone(study, samples.architectures[:count])
    pairs = {
        "predicted to one-shot": (every, samples.accuracy),
        "one-shot to standalone": (one_shot, standalone),
        "predicted to standalone": (predicted, standalone),
    }
    rows = [_row(name, *pair, study.preset.resamples) for name, pair in pairs.items()]
    rows.append(_bound(pairs))
    series = tuple(
        Series(name=name, x=tuple(standalone.tolist()), y=tuple(values.tolist()), kind="points")
        for name, values in (("one-shot", one_shot), ("predicted", predicted))
    )
    panel = Panel(
        title="", x="trained from scratch: test accuracy (%)", y="accuracy (%)", series=series, equal=True
    )
    said = (
        f"Of {len(samples)} networks drawn at random, {count} of them trained from scratch for "
        f"{study.preset.standalone_epochs} epochs: {_sentence(rows)} Each was trained once, so the noise of training lowers "
        "these figures."
    )
    return Finding(sentence=said, rows=tuple(rows), panels=(panel,))


def _standalone(study: Study, architectures: list[Architecture]) -> Array:
    """Test accuracy in percent of each network, trained from scratch."""
    changes = [("finetune.from_scratch", True), ("finetune.epochs", study.preset.standalone_epochs)]
    run = run_to_tune(study.run.folder, changes)
    records = tune_all(run, architectures, study.progress.part(0, 1))
    return np.array([records[item].judgement.tuned.test.percent for item in architectures])


def _row(name: str, first: Array, second: Array, resamples: int) -> Row:
    row: Row = {"between": name, "networks": len(first)}
    for metric in (pearson, spearman, kendall):
        interval = bootstrap(metric, first, second, resamples=resamples)
        row |= {metric.__name__: rounded(interval.value)}
        row |= {
            f"{metric.__name__} low": rounded(interval.low),
            f"{metric.__name__} high": rounded(interval.high),
        }
    return row


def _bound(pairs: Pairs) -> Row:
    """What the first two correlations leave possible for the third."""
    row: Row = {"between": "bound on predicted to standalone"}
    for metric in BOUNDED:
        low, high = transitivity(*(_clipped(metric(*pair)) for pair in list(pairs.values())[:2]))
        row |= {f"{metric.__name__} low": rounded(low), f"{metric.__name__} high": rounded(high)}
    return row


def _clipped(value: float) -> float:
    return 0.0 if value != value else min(1.0, max(-1.0, value))


def _sentence(rows: list[Row]) -> str:
    """Each correlation that is bounded: the two that are given, the bound, and what was measured."""
    first, second, both, bound = rows
    said = []
    for name in (metric.__name__ for metric in BOUNDED):
        low, high = (f"{bound[f'{name} {end}'] or 0.0:.2f}" for end in ("low", "high"))
        known = [f"{row[name] or 0.0:.2f}" for row in (first, second, both)]
        said.append(
            f"{name.capitalize()}'s correlation of predicted with one-shot accuracy is {known[0]}, of one-shot with "
            f"standalone {known[1]}; so that of predicted with standalone is from {low} to {high}, measured {known[2]}."
        )
    return " ".join(said)


EXPERIMENT = Experiment(
    "transitivity",
    "appendix on the transitivity of ranking correlations",
    "Spearman's correlation of one-shot with standalone accuracy is 0.99 (as HardCoRe-NAS reports it), of predicted with "
    "one-shot accuracy 0.97; so that of predicted with standalone accuracy is at least 0.93. No network was trained for it.",
    make,
    ("contributions.json", "samples.json"),
    "One-shot accuracies are of the half of the validation images that contributions did not see, standalone ones of test "
    "images; neither chose anything, nor was a network chosen by its accuracy. Predicted and one-shot accuracy are "
    "correlated over all judged networks, standalone accuracy over those that were trained. Ranges are 95 % bootstrap "
    "intervals over networks; the bound has none.",
)
