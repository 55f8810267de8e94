"""Figure 6: accuracy against latency of found, fine-tuned networks and of those that others would have taken."""

from __future__ import annotations

from collections.abc import Sequence

from binas.base.interval import Z
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, counted, rounded
from binas.reproduce.networks import FOUND, HAND, RANDOM, Shown, tuned_networks
from binas.search.rivals import is_clear


def make(study: Study) -> Finding:
    """Test accuracy against cost, after the same fine-tuning."""
    shown = tuned_networks(study)
    series = tuple(
        _series(kind, [item for item in shown if item.kind == kind]) for kind in (FOUND, RANDOM, HAND)
    )
    panel = Panel(
        title="", x=f"{study.cost} by the table ({shown[0].unit})", y="test accuracy (%)", series=series
    )
    return Finding(sentence=_sentence(shown), rows=tuple(map(row_of, shown)), panels=(panel,))


def row_of(item: Shown) -> Row:
    """One network; ``found ahead`` is the lead of the found one over it."""
    lead = (None, None) if item.lead is None else item.lead
    return {
        "network": item.kind,
        "limit": item.question,
        "cost by the table": rounded(item.cost, 5),
        "cost measured": rounded(item.measured, 5),
        "unit": item.unit,
        "accuracy": rounded(item.accuracy.percent, 2),
        "error": rounded(item.accuracy.error, 2),
        "found ahead": rounded(lead[0], 2),
        "found ahead error": rounded(lead[1], 2),
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
    found = [item for item in shown if item.kind == FOUND]
    accuracies = ", ".join(f"{item.accuracy.percent:.1f}" for item in found)
    against = [_against(kind, shown) for kind in (RANDOM, HAND) if any(item.kind == kind for item in shown)]
    return (
        f"Fine-tuned networks reach {accuracies} % of {found[0].accuracy.images:,} test images. They are "
        f"{'; '.join(against) or 'without rivals'}. Clear is what is beyond two standard errors of the difference."
    )


def _against(kind: str, shown: Sequence[Shown]) -> str:
    """At how many limits the found network is clearly ahead of a kind of rivals, or behind, with every difference."""
    leads = [item.lead for item in shown if item.kind == kind and item.lead is not None]
    above, below = sum(map(is_clear, leads)), sum(is_clear((-points, error)) for points, error in leads)
    points = ", ".join(f"{value:+.2f} ± {error:.2f}" for value, error in leads)
    behind = f", clearly below at {below}" if below else ""
    return f"clearly above the {kind} at {above} of {counted(len(leads), 'limit')}{behind} ({points} points)"


EXPERIMENT = Experiment(
    "frontier",
    "figure 6",
    "All models trained from scratch on ImageNet, the networks found by BINAS are at every latency more accurate than "
    "MobileNetV3, MnasNet, SPNASNet, FBNet, TF-NAS and FairNAS. HardCoRe-NAS is not in the figure.",
    make,
    ("results/*.json", "rivals/*.json", "steps/finetune.json"),
    "Compared are networks of this run's own space, all fine-tuned alike from the supernet's weights, none trained from "
    "scratch: those found, and under the same limit the best of random ones and the best one scaled by hand. Costs are "
    "drawn as the table predicts them, for all; those of found networks were measured too, of rivals they were not. "
    "Accuracies are of test images, which chose nothing; validation images chose the best of the random networks, after "
    "tuning, and of those scaled by hand. Errors are standard errors over test images (of a lead: of the paired "
    "difference), bars 1.96 of them; each network was tuned once.",
)
