"""Table 1: model, latency, accuracy and total cost. Our networks are trained here, others' architectures measured here.

Others' accuracies are the published ones, of ImageNet; ours are of the run's own images, so the two are never ranked against
each other. What is compared is the latency, measured in one session on this machine beside the published one.
"""

from __future__ import annotations

from binas.costs.published.settings import PublishedSettings
from binas.report.published import measure_published
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded
from binas.reproduce.costs import shared_and_each
from binas.reproduce.networks import FOUND, Shown, tuned_networks
from binas.space.published import QuotedRow, published_networks, quoted_rows

HOURS = 3600.0


def make(study: Study) -> Finding:
    """Published networks and ours."""
    settings = PublishedSettings(seconds=study.preset.published)
    measured = measure_published(settings, None, study.progress.part(0, 1))
    rows = [_others(row.name, row.latency.value, row.top1) for row in measured]
    rows += [_quoted(row) for row in quoted_rows()]
    parts, each = shared_and_each(study)
    cost = f"{sum(parts.values()) / HOURS:.2f} + {each / HOURS:.3f} N h of this CPU"
    ours = [item for item in tuned_networks(study) if item.kind == FOUND]
    rows += [_ours(item, study.run.data.name, cost) for item in ours]
    both = [
        (row.latency.value, xeon)
        for row in measured
        if (xeon := published_networks()[row.name].xeon_ms) is not None
    ]
    series = Series(
        name="published networks", x=tuple(y for _, y in both), y=tuple(x for x, _ in both), kind="points"
    )
    panel = Panel(title="", x="published latency (ms, Xeon)", y="latency here (ms)", series=(series,))
    sentence = (
        f"{len(measured)} published architectures measured here at 224 x 224 pixels, batch 1; {len(quoted_rows())} "
        f"rows only quoted; {len(ours)} networks found and trained here for {cost}. Accuracies of others are "
        f"published ones of ImageNet, ours are of {study.run.data.name}: do not compare them across."
    )
    return Finding(sentence=sentence, rows=tuple(rows), panels=(panel,))


def _others(name: str, latency: float, top1: float) -> Row:
    network = published_networks()[name]
    return {
        "model": name,
        "latency (ms)": rounded(latency, 2),
        "published latency (ms)": network.xeon_ms,
        "accuracy (%)": top1,
        "accuracy from": network.top1_source,
        "images": "ImageNet, published",
        "total cost": network.cost,
    }


def _quoted(row: QuotedRow) -> Row:
    return {
        "model": row.name,
        "latency (ms)": None,
        "published latency (ms)": row.xeon_ms,
        "accuracy (%)": row.top1,
        "accuracy from": "as the paper prints it",
        "images": "ImageNet, published",
        "total cost": row.cost,
        "not measured here, as": row.reason,
    }


def _ours(item: Shown, images: str, spent: str) -> Row:
    cost = item.cost if item.measured is None else item.measured
    return {
        "model": f"found within {item.question}",
        "latency (ms)": rounded(cost, 4) if item.unit == "ms" else f"{cost:.4g} {item.unit}",
        "published latency (ms)": None,
        "accuracy (%)": rounded(item.accuracy.percent, 2),
        "accuracy from": "trained here",
        "error": rounded(item.accuracy.error, 2),
        "images": images,
        "total cost": spent,
    }


EXPERIMENT = Experiment(
    "main-table",
    "table 1",
    "At 40, 45, 50, 55 and 59 ms on a Xeon BINAS reaches 76.1, 76.5, 76.8, 77.7 and 77.8 % on ImageNet for 435 + 8 N GPU "
    "hours: more than the others printed beside it, but for HardCoRe-NAS at 50 ms (77.1 %) and 61 ms (78.0 %). For "
    "435 + 15 N it reaches 76.5, 77.0, 77.6, 77.8 and 78.0 %, in no case less than HardCoRe-NAS, which costs 400 + 15 N. "
    "On a P100 GPU HardCoRe-NAS is ahead of both at 32 and 41 ms.",
    make,
    ("results/*.json", "rivals/*.json", "steps/*.json"),
    "Accuracies of ours are of test images, which chose nothing, with their standard error over images; those of others "
    "are as published, without one.",
)
