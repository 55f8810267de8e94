"""``binas predictors`` and ``binas evaluate-estimator``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binas.cli.output import Json, examples, print_json, say, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from binas.estimators import CostLimit, Judgement, NoiseCeiling, RankingReport
    from binas.estimators.metrics import Interval
    from binas.space import SearchSpace
    from binas.tables import Contributions, Cost, Samples

PREDICTORS_FOLDER = "predictors"


class Link(StrEnum):
    """Scales on which contributions add up."""

    identity = "identity"
    log = "log"
    logit = "logit"


class How(StrEnum):
    """Ways to fit in closed form."""

    svd = "svd"
    ridge = "ridge"


RunFolder = Annotated[
    Path, typer.Argument(help="Folder with space.yaml and samples.json (docs/estimators.md).", metavar="RUN")
]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", "-l", help="Also show the regret under COST=QUANTITY, e.g. macs=3M. Repeatable."),
]
Resamples = Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind the intervals.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of splits, fits and resamples.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "predictors",
        epilog=examples(
            "binas predictors runs/first --fit bilinear,quadratic,within-stage --samples 100,200,400",
            "binas predictors runs/first --fit mlp --link log --test 500 --json",
        ),
    )(predictors)
    app.command(
        "evaluate-estimator",
        epilog=examples(
            "binas evaluate-estimator runs/first",
            "binas evaluate-estimator runs/first --link log --limit macs=3M --limit macs=5M",
        ),
    )(evaluate_estimator)


def predictors(
    run: RunFolder,
    fit: Annotated[
        str, typer.Option("--fit", help="Of additive, bilinear, within-stage, quadratic, mlp; with commas.")
    ] = "additive,bilinear,within-stage,quadratic",
    samples: Annotated[
        str | None,
        typer.Option("--samples", help="Numbers of samples to learn from, e.g. 256,1280; default: all."),
    ] = None,
    test: Annotated[
        int | None, typer.Option(min=2, help="Samples held out to judge by; default: a fifth.")
    ] = None,
    link: Annotated[Link, typer.Option(help="Scale to learn on.")] = Link.identity,
    solver: Annotated[
        How | None, typer.Option(help="svd (the paper's) or ridge; default: svd for bilinear and quadratic.")
    ] = None,
    limit: Limits = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn predictors from measured architectures, judge them on others, and save them in RUN/predictors."""
    from binas.estimators import report
    from binas.estimators.predictors import learning_curve

    bench = _bench(run)
    held = len(bench.samples) // 5 if test is None else test
    fresh, known = bench.samples.split(held, seed)
    counts = _numbers(samples) if samples else [len(known)]
    fits = learning_curve(
        known, fit.split(","), counts, link.value, None if solver is None else solver.value, seed
    )
    learned = []
    for item in fits:  # saved as they come, so that an interrupted run keeps what it has
        if item.count == max(counts):
            item.predictor.save(run / PREDICTORS_FOLDER / item.file)
        learned.append(item)
    found = report(
        {item.name: item.predictor.predict(fresh.architectures) for item in learned},
        fresh,
        bench.macs(fresh),
        bench.limits(fresh, limit or []),
        resamples,
        seed,
    )
    if as_json:
        seconds = {item.name: item.seconds for item in learned}
        print_json({"link": link.value, "learned_from": counts, "seconds": seconds, **found.to_json()})
        return
    _show(found, f"{len(fresh)} held-out samples, link {link.value}")
    say(f"Saved in {run / PREDICTORS_FOLDER}: {', '.join(dict.fromkeys(item.file for item in learned))}.")


def evaluate_estimator(
    run: RunFolder,
    link: Annotated[
        list[Link] | None, typer.Option(help="Scale of the sum; repeatable. Default: all.")
    ] = None,
    limit: Limits = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Judge the estimator made of RUN's contributions on its samples: ranking, values, what each part is worth."""
    from binas.estimators import BilinearEstimator, ablation, report

    bench = _bench(run)
    samples = bench.samples
    estimators = {item.value: BilinearEstimator(bench.contributions, item.value) for item in link or Link}
    predictions = {
        f"estimator, link {name}": e.predict(samples.architectures) for name, e in estimators.items()
    }
    first = next(iter(estimators.values()))
    parts = ablation(first, samples.architectures)
    limits = bench.limits(samples, limit or [])
    found = report({**predictions, **parts}, samples, bench.macs(samples), limits, resamples, seed)
    if as_json:
        print_json({"links": list(estimators), "ablation": list(parts), **found.to_json()})
        return
    _show(found, f"{len(samples)} samples")
    missing = [name for name in ("q_beta = 0", "Q = 0") if name not in parts]
    if missing:
        say(f"Not shown: {' and '.join(missing)}; this space does not let depths and configs be told apart.")


@dataclass(frozen=True, eq=False)
class Bench:
    """What a run's folder holds to judge with."""

    run: Path
    space: SearchSpace
    samples: Samples

    @cached_property
    def contributions(self) -> Contributions:
        """RUN/contributions.json or .csv."""
        from binas.base.errors import FileError
        from binas.tables import load_contributions

        path = _existing(self.run, "contributions")
        if path is None:
            raise FileError(
                f"{self.run} has no contributions yet. `binas estimate {self.run}` measures them."
            )
        return load_contributions(path, self.space)

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """Counted from the space where it can be, and those of RUN/costs.json or .csv."""
        from binas.base.errors import SpaceError
        from binas.costs import analytic_costs
        from binas.tables import load_costs

        try:
            found = dict(analytic_costs(self.space).costs)
        except SpaceError:  # a space of names only: nothing to count
            found = {}
        path = _existing(self.run, "costs")
        return found if path is None else {**found, **load_costs(path, self.space).costs}

    def macs(self, samples: Samples) -> NDArray[np.float64] | None:
        """MACs of every sample, the baseline; None where they are not known."""
        return self._cost("macs", samples) if "macs" in self.costs else None

    def limits(self, samples: Samples, texts: Sequence[str]) -> list[CostLimit]:
        """Limits for the regret."""
        from binas.estimators import CostLimit
        from binas.search import parse_limit

        parsed = [parse_limit(text, self.costs) for text in texts]
        return [
            CostLimit(text, limit.sign * self._cost(limit.cost, samples), limit.sign * limit.value)
            for text, limit in zip(texts, parsed, strict=True)
        ]

    def _cost(self, name: str, samples: Samples) -> NDArray[np.float64]:
        import numpy as np

        from binas.estimators.objective import BilinearObjective
        from binas.search import SearchProblem

        cost = self.costs[name]
        problem = SearchProblem(self.space, BilinearObjective.negative_cost(cost), {name: cost})
        return np.array([problem.cost(name, item) for item in samples.architectures])


def _bench(run: Path) -> Bench:
    from binas.base.errors import FileError
    from binas.base.files import exists
    from binas.space import load_space
    from binas.tables import load_samples
    from binas.tables.samples import FILE

    for name, advice in (
        ("space.yaml", f"`binas train --out {run}` makes it"),
        (FILE, f"`binas sample {run}` measures it"),
    ):
        if not exists(run / name):
            raise FileError(f"{run} has no {name}; {advice}.")
    space = load_space(run / "space.yaml")
    return Bench(run, space, load_samples(run / FILE, space))


def _existing(run: Path, stem: str) -> Path | None:
    from binas.base.files import exists

    return next((run / (stem + end) for end in (".json", ".csv") if exists(run / (stem + end))), None)


def _numbers(text: str) -> list[int]:
    from binas.base.errors import EstimatorError

    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise EstimatorError(
            f"cannot read --samples {text[:60]!r}; write numbers with commas, e.g. 256,1280,2560."
        )
    return [int(part) for part in text.split(",")]


def _show(found: RankingReport, title: str) -> None:
    """A row per set of predictions; the two that everything must be held against come last."""
    rows = [_row(item) for item in (*found.judgements, *([found.macs] if found.macs else []))]
    limits = [f"regret {label}" for label in found.judgements[0].regret] if found.judgements else []
    table(("predictions", "Kendall tau-b", "Spearman", "Pearson", "MSE", "R2", *limits), rows, title=title)
    if found.macs is None:
        say("MACs only: not known; the space does not say channels and the folder has no cost 'macs'.")
    say(_ceiling(found.ceiling))


def _ceiling(ceiling: NoiseCeiling | None) -> str:
    if ceiling is None:
        return "Noise ceiling: not known; the samples carry neither errors nor halves."
    split = f"from two halves of the images, whose tau is {ceiling.half:.3f}"
    how = split if ceiling.how == "split-half" else "simulated from the samples' errors"
    return f"Noise ceiling: a perfect predictor would reach Kendall {ceiling.kendall:.3f} ({how})."


def _row(item: Judgement) -> tuple[str, ...]:
    plain = [_number(value) for value in (item.spearman, item.pearson, item.mse, item.r2)]
    return item.name, _interval(item.kendall), *plain, *(_interval(value) for value in item.regret.values())


def _number(interval: Interval | None) -> str:
    return "-" if interval is None or math.isnan(interval.value) else f"{interval.value:.3f}"


def _interval(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "-"
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
