"""The appendix on the transitivity of ranking correlations, with networks really trained from scratch.

Given Cor(predicted, one-shot) and Cor(one-shot, standalone), the correlation of predicted with standalone accuracy, the one
that matters, is bounded (:func:`binas.estimators.metrics.transitivity`); here it is also measured.
"""

from __future__ import annotations

import numpy as np

from binas.base.statistics import bootstrap, kendall, pearson, spearman
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.metrics import transitivity
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded
from binas.tasks.finetune import run_to_tune, tune_all


def make(study: Study) -> Finding:
    """Train networks spread evenly over the one-shot accuracies, and correlate all three accuracies."""
    samples = study.judged()
    order = np.argsort(samples.accuracy, kind="stable")
    count = min(study.preset.standalone, len(order))
    chosen = order[np.linspace(0, len(order) - 1, count).round().astype(int)]
    architectures = [samples.architectures[k] for k in chosen]
    changes = [("finetune.from_scratch", True), ("finetune.epochs", study.preset.standalone_epochs)]
    run = run_to_tune(study.run.folder, changes)
    records = tune_all(run, architectures, study.progress.part(0, 1))
    standalone = np.array([records[item].judgement.tuned.test.percent for item in architectures])
    predicted = BilinearEstimator(study.run.tables.contributions).predict(architectures)
    one_shot = samples.accuracy[chosen]
    pairs = {
        "predicted to one-shot": (predicted, one_shot),
        "one-shot to standalone": (one_shot, standalone),
        "predicted to standalone": (predicted, standalone),
    }
    rows: list[Row] = []
    for name, (first, second) in pairs.items():
        row: Row = {"between": name, "networks": count}
        for metric in (pearson, spearman, kendall):
            interval = bootstrap(metric, first, second, resamples=study.preset.resamples)
            row |= {metric.__name__: rounded(interval.value)}
            row |= {
                f"{metric.__name__} low": rounded(interval.low),
                f"{metric.__name__} high": rounded(interval.high),
            }
        rows.append(row)
    low, high = transitivity(*(_clipped(pearson(*pairs[name])) for name in list(pairs)[:2]))
    rows.append(
        {
            "between": "bound on predicted to standalone",
            "pearson low": rounded(low),
            "pearson high": rounded(high),
        }
    )
    series = (
        Series(name="one-shot", x=tuple(standalone.tolist()), y=tuple(one_shot.tolist()), kind="points"),
        Series(name="predicted", x=tuple(standalone.tolist()), y=tuple(predicted.tolist()), kind="points"),
    )
    panel = Panel(
        title="", x="trained from scratch: test accuracy (%)", y="accuracy (%)", series=series, equal=True
    )
    sentence = (
        f"Of {count} networks trained from scratch for {study.preset.standalone_epochs} epochs: correlation (Pearson) "
        f"of predicted "
        f"with one-shot accuracy {rows[0]['pearson']:.2f}, of one-shot with standalone {rows[1]['pearson']:.2f}; so "
        f"that of predicted "
        f"with standalone is from {low:.2f} to {high:.2f}. Measured: {rows[2]['pearson']:.2f}. Each was trained once, "
        f"so the noise of training lowers these figures."
    )
    return Finding(sentence=sentence, rows=tuple(rows), panels=(panel,))


def _clipped(value: float) -> float:
    return 0.0 if value != value else min(1.0, max(-1.0, value))


EXPERIMENT = Experiment(
    "transitivity",
    "appendix on the transitivity of ranking correlations",
    "High correlations of predicted with one-shot accuracy and of one-shot with standalone accuracy bound that of "
    "predicted with "
    "standalone accuracy from below.",
    make,
    ("contributions.json", "samples.json"),
    "One-shot accuracies are of the half of the validation images that contributions did not see, standalone ones of test "
    "images; neither chose anything. Ranges are 95 % bootstrap intervals over networks.",
)
