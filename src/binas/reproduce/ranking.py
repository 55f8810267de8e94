"""Figure 1, right: predicted against measured one-shot accuracy of networks that nothing was fitted to."""

from __future__ import annotations

from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.judging import Judgement, RankingReport, describe_ceiling, report
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded
from binas.tasks.check import macs_of

# What the bilinear estimator is called, by the protocol that measured its contributions.
ESTIMATOR = "bilinear estimator"
OURS = f"{ESTIMATOR}, factorial contributions (ours)"
PAPERS = f"{ESTIMATOR}, the paper's protocol"
NAMES = {"factorial": OURS, "paper": PAPERS}
CEILING = "noise ceiling: a perfect predictor"


def make(study: Study) -> Finding:
    """Rank the judged networks by the run's contributions, by the estimator the run chose, and by MACs alone."""
    samples, tables = study.unseen(), study.run.tables
    chosen = tables.estimator_name()
    name = NAMES.get(tables.contributions.provenance.to_data().get("protocol", ""), ESTIMATOR)
    predictions = {
        name: BilinearEstimator(tables.contributions).predict(samples.architectures),
        f"chosen by the run ({chosen})": tables.estimator(chosen).predict(samples.architectures),
    }
    found = report(predictions, samples, macs_of(tables, samples), resamples=study.preset.resamples)
    judgements = [*found.judgements, *([found.macs] if found.macs else [])]
    own = Series(
        name=name,
        x=tuple(samples.accuracy.tolist()),
        y=tuple(predictions[name].tolist()),
        kind="points",
    )
    panel = Panel(title="", x="measured accuracy (%)", y="predicted accuracy (%)", series=(own,), equal=True)
    rows = [row_of(item) for item in judgements]
    if found.ceiling is not None:
        rows.append({"predictor": CEILING, "kendall": rounded(found.ceiling.kendall)})
    return Finding(sentence=_sentence(found), rows=tuple(rows), panels=(panel,))


def row_of(item: Judgement, **more: str | int) -> Row:
    """A judgement as a row: rank correlations with their 95 % intervals, and the squared error."""
    row: Row = {"predictor": item.name, **more}
    for name in ("kendall", "spearman", "pearson", "mse"):
        interval = getattr(item, name)
        if interval is not None:
            row |= {name: rounded(interval.value)}
            row |= {f"{name} low": rounded(interval.low), f"{name} high": rounded(interval.high)}
    return row


def _sentence(found: RankingReport) -> str:
    own, chosen = found.judgements
    ceiling = describe_ceiling(None if found.ceiling is None else found.ceiling.model_dump(mode="json"))
    macs = "" if found.macs is None else f", MACs alone {found.macs.kendall.value:.2f}"
    return (
        f"Over {found.count} held-out networks Kendall's tau of the {own.name} is {own.kendall.value:.2f} "
        f"({own.kendall.low:.2f} to {own.kendall.high:.2f}) and Spearman's {own.spearman.value:.2f}; the estimator "
        f"that the run chose reaches {chosen.kendall.value:.2f}{macs}. {ceiling}"
    )


EXPERIMENT = Experiment(
    "ranking",
    "figure 1, right",
    "The estimator ranks 500 sub-networks drawn at random with Kendall's tau 0.84 and Spearman's 0.97.",
    make,
    ("contributions.json", "samples.json", "estimator.json"),
    "The networks chose nothing, nor did the images, which are test images. "
    "Ranges are 95 % bootstrap intervals over networks.",
)
