"""Section 2's rivals: every search method of ``binas methods`` beside the exact answer, on one supernet for one budget.

Each (method, seed) searches in a process of its own of one thread; its records are kept in the run, as those of
``binas methods`` are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from binas.base.interval import Z
from binas.reproduce._base import (
    Experiment,
    Finding,
    Panel,
    Row,
    Series,
    Study,
    accuracy_error,
    counted,
    rounded,
    seed_error,
)
from binas.run.workers import map_shared
from binas.search.methods import METHODS, MethodRecord, MethodSummary, summarise
from binas.space.relaxed import Gradient
from binas.tasks.methods import OURS, answering, run_method
from binas.tasks.oracle import USUAL

COMPARED: tuple[tuple[str, Gradient], ...] = (
    *((name, USUAL) for name in (OURS, *METHODS)),
    ("hardcore", "straight-through"),  # as its authors have it
)


def make(study: Study) -> Finding:
    """Let every method search, then compare one-shot accuracy, limits, image evaluations and seconds."""
    records = _records(study)
    questions = list(dict.fromkeys(record.question for record in records))
    limit, names = records[0].limits[0], list(dict.fromkeys(record.name for record in records))
    panels = (
        Panel(
            title="one-shot accuracy",
            x=f"limit on {limit.cost} (%)",
            y="accuracy (%)",
            series=tuple(_accuracies(study, name, records) for name in names),
        ),
        Panel(
            title="the limit broken",
            x=f"limit on {limit.cost} (%)",
            y="over the limit (%)",
            series=tuple(_violations(study, name, records) for name in names),
        ),
    )
    return Finding(
        sentence=_sentence(records, len(questions)), rows=tuple(map(row_of, records)), panels=panels
    )


def _records(study: Study) -> list[MethodRecord]:
    """Of every method, limit and seed, of those that the budget is enough for; the others are said."""
    questions = [f"{study.cost}={percent}%" for percent in study.preset.rival_limits]
    seeds = range(study.preset.rival_seeds)
    asked = [(name, seed, gradient) for name, gradient in COMPARED for seed in seeds]
    work, part = [[questions, *item] for item in asked], study.progress.part(0, 1)
    problems = map_shared(study.run, answering, (None,), work, part, "search")
    found = list[MethodRecord]()
    for (name, seed, gradient), problem in zip(asked, problems, strict=True):
        if problem:
            study.progress.say(f"{name}, seed {seed}: {problem}")
        else:
            found += [run_method(study.run, item, name, seed, gradient=gradient) for item in questions]
    return found


def row_of(record: MethodRecord) -> Row:
    """What one method found under one limit with one seed."""
    return {
        "method": record.name,
        "limit": record.question,
        "seed": record.seed,
        "one-shot": rounded(record.accuracy, 2),
        "one-shot error": rounded(record.error, 2),
        "kept": record.kept,
        "over the limit (%)": rounded(record.violation, 2),
        "image evaluations": record.evaluations,
        "with gradient": record.gradients,
        "serves all limits": record.shared,
        "seconds": rounded(record.seconds, 2),
        "architecture": record.architecture,
    }


def _of(study: Study, name: str, records: Sequence[MethodRecord]) -> dict[int, list[MethodRecord]]:
    """The records of a method that found a network, by limit in percent."""
    found: dict[int, list[MethodRecord]] = {}
    for percent in study.preset.rival_limits:
        own = [r for r in records if r.name == name and r.question == f"{study.cost}={percent}%"]
        if any(r.accuracy is not None for r in own):
            found[percent] = [r for r in own if r.accuracy is not None]
    return found


def _accuracies(study: Study, name: str, records: Sequence[MethodRecord]) -> Series:
    """Means over seeds with 95 % intervals over seeds and images; the exact answer is the line."""
    groups = {at: [float(r.accuracy or 0.0) for r in own] for at, own in _of(study, name, records).items()}
    images = max((record.images for record in records), default=1)
    return Series(
        name=name,
        x=tuple(groups),
        y=tuple(float(np.mean(values)) for values in groups.values()),
        error=tuple(Z * accuracy_error(values, images) for values in groups.values()),
        kind="line" if name == OURS else "points",
    )


def _violations(study: Study, name: str, records: Sequence[MethodRecord]) -> Series:
    groups = {at: [r.violation for r in own] for at, own in _of(study, name, records).items()}
    errors = [seed_error(values) for values in groups.values()]
    return Series(
        name=name,
        x=tuple(groups),
        y=tuple(float(np.mean(values)) for values in groups.values()),
        error=tuple(None if error is None else Z * error for error in errors),
        kind="points",
    )


def _sentence(records: Sequence[MethodRecord], limits: int) -> str:
    """Every method over limits and seeds."""
    one_limit = [record.model_copy(update={"question": ""}) for record in records]
    images = max(record.images for record in records)
    errors = {
        name: accuracy_error([r.accuracy for r in records if r.name == name and r.accuracy], images)
        for name in dict.fromkeys(r.name for r in records if r.accuracy)
    }
    parts = [_said(item, errors.get(item.method)) for item in summarise(one_limit)]
    seeds = len({record.seed for record in records})
    over = f"{counted(limits, 'limit')} and {counted(seeds, 'seed')}"
    few = " One limit says nothing of others." if limits == 1 else ""
    return f"One-shot accuracy on test images, mean over {over}: {'; '.join(parts)}.{few}"


def _said(item: MethodSummary, error: float | None) -> str:
    if item.accuracy is None or error is None:
        return f"{item.method} found nothing"
    kept = "limits kept" if item.kept == item.found else f"limits broken by up to {item.violation:.0f} %"
    spent = f"{item.evaluations:,} image evaluations, {item.seconds:.0f} s"
    return f"{item.method} {item.accuracy:.2f} ± {error:.2f} % ({kept}, {spent})"


EXPERIMENT = Experiment(
    "methods",
    "sections 2, 4 and 5.4: the search methods it compares with",
    "Hard limits are kept where soft penalties are not; solving the program is at least as good as searching the supernet "
    "by gradients or by evolution over an MLP, and costs little for each further limit.",
    make,
    ("contributions.json", "samples.json", "costs.json", "estimator.json", "results/*.json"),
    "All search on validation images, for the image evaluations that the run's contributions and samples cost, and are "
    "judged on test images, which chose nothing. Error columns are standard errors over these images; bars and ± are over "
    "seeds and images together (bars 1.96 standard errors, ± one; over limits too, where there are several). Seconds are of "
    "one thread; those of binas are of measuring its tables, seed 0 as the run did it, and serve all limits.",
)
