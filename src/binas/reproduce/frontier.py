"""Figure 6: accuracy against latency of found, fine-tuned networks and of those that others would have taken."""

from __future__ import annotations

from collections.abc import Sequence

from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, Z, rounded
from binas.reproduce.networks import FOUND, HAND, RANDOM, Shown, tuned_networks


def make(study: Study) -> Finding:
    """Test accuracy against cost, after the same fine-tuning."""
    shown = tuned_networks(study)
    series = tuple(
        _series(kind, [item for item in shown if item.kind == kind]) for kind in (FOUND, RANDOM, HAND)
    )
    panel = Panel(title="", x=f"{study.cost} ({shown[0].unit})", y="test accuracy (%)", series=series)
    return Finding(sentence=_sentence(shown), rows=tuple(map(row_of, shown)), panels=(panel,))


def row_of(item: Shown) -> Row:
    """One network."""
    return {
        "network": item.kind,
        "limit": item.question,
        "cost": rounded(item.cost, 5),
        "unit": item.unit,
        "measured": item.measured,
        "accuracy": rounded(item.accuracy.percent, 2),
        "error": rounded(item.accuracy.error, 2),
        "architecture": item.architecture,
    }


def _series(kind: str, items: Sequence[Shown]) -> Series:
    return Series(
        name=kind,
        x=tuple(item.cost for item in items),
        y=tuple(item.accuracy.percent for item in items),
        error=tuple(Z * item.accuracy.error for item in items),
        kind="line" if kind == FOUND else "points",
    )


def _sentence(shown: Sequence[Shown]) -> str:
    best: dict[str, float] = {}
    for item in shown:
        if item.kind != FOUND:
            best[item.question] = max(best.get(item.question, 0.0), item.accuracy.percent)
    found = [item for item in shown if item.kind == FOUND]
    ahead = sum(item.accuracy.percent > best.get(item.question, 0.0) for item in found)
    accuracies = ", ".join(f"{item.accuracy.percent:.1f}" for item in found)
    return (
        f"Fine-tuned networks reach {accuracies} % of {found[0].accuracy.images:,} test images; at {ahead} of {len(found)} "
        "limits the found one is above both rivals (intervals in the table)."
    )


EXPERIMENT = Experiment(
    "frontier",
    "figure 6",
    "At every latency the networks found by BINAS are more accurate than those of other methods.",
    make,
    ("results/*.json", "rivals/*.json", "steps/finetune.json"),
    "Accuracies are of test images, which chose nothing; validation images chose the best of the random networks and of "
    "those scaled by hand. Errors are standard errors over test images, bars 1.96 of them; each network was tuned once.",
)
