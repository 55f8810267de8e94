"""Check the estimators on architectures they were not made of, and choose the one the search believes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from binas.base.errors import FileError
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.estimators.choosing import Choice, choose_estimator
from binas.estimators.judging import CostLimit
from binas.search.limits import parse_limits
from binas.tables.samples import Samples
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import CHOICE, SAMPLES
from binas.tasks.outlook import Amount, Outlook

if TYPE_CHECKING:
    from binas.run.folder import Folder
    from binas.run.run import Run

RESAMPLING, PER_NETWORK = 3e-3, 4e-5  # seconds per resample, and for each network in it


class CheckSettings(Settings):
    """How estimators are judged on the samples, each on architectures it was not fitted to, and one is chosen."""

    folds: int = Field(
        5, ge=2, description="parts of the samples that estimators which learn from them are judged on"
    )
    resamples: int = Field(1000, ge=1, description="bootstrap resamples behind the intervals")
    seed: int = Field(0, ge=0, description="of folds and resamples")


def check(
    tables: Folder, settings: CheckSettings, limits: Sequence[str] = (), around: Sequence[float] = ()
) -> Choice:
    """Judge every estimator the tables allow, with MACs alone and the noise ceiling; ``limits`` ask for the regret.

    ``around`` are the shares of the range of MACs that samples were drawn around: the ranking near each is reported.
    """
    samples = samples_of(tables)
    return choose_estimator(
        tables.contributions,
        samples,
        macs_of(tables, samples),
        resamples=settings.resamples,
        folds=settings.folds,
        seed=settings.seed,
        limits=cost_limits(tables, samples, limits),
        around=_macs_around(tables, around),
    )


def _macs_around(tables: Folder, shares: Sequence[float]) -> dict[float, float]:
    """MACs of each share of their range; none for a space that only names its choices."""
    macs = tables.known_costs.get("macs")
    if macs is None:
        return {}
    least, most = macs.range(tables.space)
    return {share: least + share * (most - least) for share in shares}


def samples_of(tables: Folder) -> Samples:
    """The samples of a folder; an error where there are none."""
    if tables.samples is None:
        raise FileError(f"{tables.path} has no {SAMPLES.file}; `binas sample {tables.path}` measures it.")
    return tables.samples


def macs_of(tables: Folder, samples: Samples) -> NDArray[np.float64] | None:
    """MACs of every sample, the baseline; None for a space that only names its choices."""
    macs = tables.known_costs.get("macs")
    return None if macs is None else macs.of(tables.space, samples.architectures)


def cost_limits(tables: Folder, samples: Samples, limits: Sequence[str]) -> list[CostLimit]:
    """Limits for the regret: what every sample costs, and the most it may."""
    parsed = [
        (text, limit) for text in limits for limit in parse_limits(text, tables.space, tables.known_costs)
    ]
    costs = {limit.cost: tables.known_costs[limit.cost] for _, limit in parsed}
    values = {name: cost.of(tables.space, samples.architectures) for name, cost in costs.items()}
    return [
        CostLimit(text, limit.sign * values[limit.cost], limit.sign * limit.value) for text, limit in parsed
    ]


def _check_run(run: Run) -> Choice:
    from binas.tasks.sample import SampleSettings

    return check(run.tables, run.settings(CheckSettings), around=run.settings(SampleSettings).around)


def _work(run: Run, progress: Progress) -> None:
    from binas.training.reporting import keep_figures

    choice = _check_run(run)
    best = choice.judgement()
    if best is not None:
        keep_figures(run.folder, "check", {"kendall": best.kendall.value, "spearman": best.spearman.value})
    CHOICE.write(run, choice)
    for text in (choice.why, *(row.sentence() for row in choice.near)):
        progress.say(text)


def _ask(run: Run, out: Path, progress: Progress) -> Choice:
    choice = _check_run(run)
    choice.save(out)
    return choice


def _seconds(outlook: Outlook) -> Seconds:
    """Rankings are compared in pairs of networks, resample by resample."""
    from binas.tasks.sample import SampleSettings

    settings, networks = outlook.settings(CheckSettings), outlook.settings(SampleSettings).count
    return Seconds(0.6 + settings.resamples * (RESAMPLING + PER_NETWORK * networks))


CHECK = Task(
    "check",
    CheckSettings,
    (
        Step(
            "check",
            "judge the estimators by them, and choose one",
            _work,
            (CHOICE.file,),
            ("check",),
            after=("estimate", "sample"),
            seconds=_seconds,
            amounts=(Amount("check.resamples", "resamples", 0.01, 200, 1000, 100),),
        ),
    ),
    ask=_ask,
    examples=("binas check runs/first", "binas check runs/first --resamples 5000 --out check.json"),
)
