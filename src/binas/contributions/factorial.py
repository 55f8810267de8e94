"""The factorial protocol: uniform passes that inform all decisions at once.

Every image takes a balanced uniform path in every pass; the outcome says something about each of the path's decisions,
where the paper's protocol (section 3.2) spends a whole pass on one. All contributions are estimated together by the
shrunken regression of :mod:`binas.contributions.shrinkage` on the bilinear design of section 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from binas.base.errors import ConfigError
from binas.base.progress import Progress
from binas.base.statistics import kendall
from binas.contributions.depth_pairs import depth_pairs
from binas.contributions.design import Design, sparse_rows, table_of
from binas.contributions.journal import Journal
from binas.contributions.normal import GROUPS, Recorded, Sums, normal_equations
from binas.contributions.outcomes import Array, Evaluator, OutcomeKind
from binas.contributions.passes import PassesOf, PathsOf, check_measurable, measure
from binas.contributions.paths import balanced_paths
from binas.contributions.shrinkage import Settings, choose_settings, covariance, fit
from binas.space.odds import Odds
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions

FIRST_LOOK = 4  # passes before the first answer
GROWTH = 1.5  # passes from one answer to the next
JUDGED = 500  # random architectures whose ranking must be stable
SPLITS = 20


def factorial(
    evaluator: Evaluator,
    journal: Journal,
    passes: int,
    outcome: OutcomeKind = "log-probability",
    target: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    outcomes: PassesOf | None = None,
    odds: tuple[Odds, ...] = (),
) -> Iterator[Contributions]:
    """Measure up to ``passes`` passes over the evaluator's images, giving better answers on the way.

    With a ``target`` it ends as soon as the stability of the ranking (:func:`stability`) reaches it. Passes that
    are recorded are not measured again, and the answer is the same as without interruption. ``outcomes`` gives those of
    passes, in other processes perhaps. With ``odds`` paths are drawn by these, in turns.
    """
    check_measurable(evaluator.space, evaluator.images, GROUPS)
    if passes < 2:
        raise ConfigError(f"the factorial protocol needs at least 2 passes over the images, got {passes}.")
    design, paths, note = Design(evaluator.space), factorial_paths(evaluator.space, seed, odds), ""
    done = journal.first_missing(passes)
    for look in looks(passes):
        if look < done and target is None:
            continue  # a poorer answer than the one that was there
        measure(evaluator, journal, look, paths, progress, passes, note, outcomes)
        answer, stable = factorial_contributions(
            Recorded(design, journal, look, seed, kinds_of(outcome), odds)
        )
        note = f", stability {stable:.3f}"
        stop = target is not None and stable >= target
        if look >= done or stop:
            yield answer
        if stop:
            break


def factorial_paths(space: SearchSpace, seed: int, odds: tuple[Odds, ...] = ()) -> PathsOf:
    """The balanced paths of each pass."""
    return lambda images, number: balanced_paths(space, images, number, seed, odds)


def looks(passes: int) -> list[int]:
    """Numbers of passes after which an answer is given: a growing distance apart, the last one at the end."""
    found, at = [], FIRST_LOOK
    while at < passes:
        found.append(at)
        at = max(at + 1, round(at * GROWTH))
    return [*found, passes]


def kinds_of(outcome: OutcomeKind) -> tuple[OutcomeKind, ...]:
    """The outcomes a fit needs: 0/1 always, as values are accuracies."""
    return ("correct",) if outcome == "correct" else ("correct", outcome)


def factorial_contributions(recorded: Recorded, shrink: bool = True) -> tuple[Contributions, float]:
    """Contributions from recorded passes, and the stability of the ranking they give.

    Without ``shrink`` it is the plain least-squares fit within images to the 0/1 outcomes. A soft outcome that does not
    go with correctness is left out; the provenance says which outcome was fitted, and why not the one asked for.
    """
    design, sums, asked = recorded.design, normal_equations(recorded), recorded.kinds[-1]
    settings, doubt = _settings(design, sums, shrink)
    if doubt:
        recorded, sums = replace(recorded, kinds=("correct",)), sums.first_kind()
    found, stable = fit(sums, design.similarities, settings), stability(design, sums, settings, recorded.seed)
    theta = design.contrasts @ found.gamma
    vector = np.append(sums.means[0] - _drawn(recorded) @ theta, theta)
    errors = covariance(recorded, sums, settings, found)
    counts = np.append(recorded.evaluations, sums.counts)
    about = _about(recorded, settings, stable)
    if doubt:
        about["left_out"] = f"{asked}: {doubt}"
    pairs = depth_pairs(recorded, found.direct[-1], settings.slope) if shrink else None
    return replace(table_of(design.space, vector, errors, counts, about), depth_pairs=pairs), stable


def _drawn(recorded: Recorded) -> Array:
    """The mean row of all paths: what is expected of them beyond an average architecture; zero effect for uniform ones."""
    space, odds = recorded.design.space, recorded.odds
    if not odds:
        return np.zeros(recorded.design.size)
    turns = [odds[number % len(odds)] for number in range(recorded.passes)]
    return np.asarray(np.mean([item.expected_row(space) for item in turns], axis=0))


def _settings(design: Design, sums: Sums, shrink: bool) -> tuple[Settings, str]:
    """How to fit, and why the soft outcome is left out of it; empty where it is not, or was not asked for."""
    if not shrink:
        return Settings({}), ""
    soft = len(sums.moments) > 1
    doubt = "it does not go with correctness within images" if soft and not sums.soft_helps else ""
    found = choose_settings(sums.first_kind() if doubt else sums, design.similarities)
    if not found.doubt:
        return found, doubt
    return choose_settings(sums.first_kind(), design.similarities), found.doubt


def stability(design: Design, sums: Sums, settings: Settings, seed: int) -> float:
    """Mean Kendall tau-b between rankings fitted to two halves of the images, over random halves.

    The rankings are those of ``JUDGED`` random architectures; halves know less than the whole, so the ranking from
    all images is more stable than this number says.
    """
    rows = sparse_rows(design.space, *design.space.to_indices(sample_many(design.space, JUDGED, seed)))
    rng, taus = np.random.default_rng([seed, 2]), []
    for _ in range(SPLITS):
        groups = rng.permutation(len(sums.grams))
        halves = np.split(groups, [len(groups) // 2])
        first, second = (fit(sums.only(half), design.similarities, settings).gamma for half in halves)
        taus.append(kendall(rows @ (design.contrasts @ first), rows @ (design.contrasts @ second)))
    return float(np.mean(np.nan_to_num(taus)))  # a ranking without any order is worth nothing


def _about(recorded: Recorded, settings: Settings, stable: float) -> dict[str, Any]:
    return {
        "protocol": "factorial",
        "outcome": recorded.kinds[-1],
        "images": recorded.journal.images,
        "passes": recorded.passes,
        "evaluations": recorded.evaluations,
        "seed": recorded.seed,
        "stability": stable,
        "shrinkage": {name: float(value) for name, value in settings.variances.items()},
        "slope": settings.slope,
    }
