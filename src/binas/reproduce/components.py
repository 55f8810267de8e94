"""The appendix's figure over k, the number of principal components of Algorithm 2."""

from __future__ import annotations

from binas.estimators.closed_form import BilinearPredictor, ClosedFormPredictor, QuadraticPredictor
from binas.estimators.judging import Judgement, judge
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, half_length
from binas.reproduce.ranking import row_of

KINDS: tuple[type[ClosedFormPredictor], ...] = (QuadraticPredictor, BilinearPredictor)
HELD_OUT = 0.25  # of the networks to learn from: the validation set that chooses k


def make(study: Study) -> Finding:
    """Fit with k components, on the paper's scale (accuracy itself), and judge on two sets of networks."""
    learned, test = study.learned(), study.judged()
    validation, train = learned.split(max(2, int(HELD_OUT * len(learned))), seed=0)
    able = [k for k in study.preset.components if k < len(train)]
    rows: list[Row] = []
    found: dict[tuple[str, str], list[tuple[int, Judgement]]] = {}
    for kind in KINDS:
        for k in able:
            fitted = kind(link="identity", solver="svd", components=k).fit(train)
            for name, samples in (("validation", validation), ("test", test)):
                predicted = fitted.predict(samples.architectures)
                item = judge(kind.kind, predicted, samples.accuracy, resamples=study.preset.resamples)
                rows.append(row_of(item, set=name, components=k))
                found.setdefault((kind.kind, name), []).append((k, item))
    panels = tuple(
        Panel(
            title="",
            x="number of principal components",
            y=label,
            log=True,
            series=tuple(
                Series(
                    name=f"{kind}, {name}",
                    x=tuple(k for k, _ in items),
                    y=tuple(getattr(item, metric).value for _, item in items),
                    error=tuple(half_length(getattr(item, metric)) for _, item in items),
                )
                for (kind, name), items in found.items()
            ),
        )
        for metric, label in (("kendall", "Kendall's tau"), ("mse", "MSE (squared points)"))
    )
    return Finding(sentence=_sentence(found, len(train)), rows=tuple(rows), panels=panels)


def _sentence(found: dict[tuple[str, str], list[tuple[int, Judgement]]], learned_from: int) -> str:
    parts = []
    for kind in dict.fromkeys(kind for kind, _ in found):
        chosen, _ = max(found[kind, "validation"], key=lambda pair: pair[1].kendall.value)
        best, most = max(found[kind, "test"], key=lambda pair: pair[1].kendall.value)
        there = dict(found[kind, "test"])[chosen].kendall.value
        parts.append(
            f"{kind}: k = {chosen} chosen by validation ranks the test networks with {there:.2f}, the best k = {best} with "
            f"{most.kendall.value:.2f}"
        )
    return f"Learned from {learned_from} networks, Kendall's tau: {'; '.join(parts)}."


EXPERIMENT = Experiment(
    "components",
    "appendix, closed form of the predictors",
    "A quadratic predictor ranks best with about 1,500 components; above 2,500 it fits the noise, on validation and "
    "test networks "
    "alike.",
    make,
    ("samples.json",),
    "Validation networks are of the half of the images that is learned from, test networks of the other half, and taught "
    "nobody. Ranges are 95 % bootstrap intervals over networks.",
)
