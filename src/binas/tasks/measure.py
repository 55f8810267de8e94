"""Measure what each choice costs: latency here or from a table; MACs, parameters and memory are counted.

Several backends or numbers of threads make variants: the search then chooses among them as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binas.base.files import exists
from binas.base.identity import file_digest
from binas.base.progress import Progress
from binas.base.times import Seconds
from binas.costs.table import JOURNAL, NONE, MeasureSettings, write_costs
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import COSTS
from binas.tasks.outlook import Amount, Outlook

if TYPE_CHECKING:
    from binas.run.run import Run


def _facts(run: Run) -> dict[str, Any]:
    """What a cost table depends on: the space, and the file it is read from, or settings, device and runtime."""
    settings, facts = run.settings(MeasureSettings), {"space": run.space.fingerprint}
    if settings.table is not None:
        digest = file_digest(settings.table) if exists(settings.table) else "missing"
        return {**facts, "contents of measure.table": digest}
    if not settings.measures:
        return {**facts, "measure.backend": NONE}
    values = settings.model_dump(mode="json", exclude={"table"})
    return {**facts, **{f"measure.{key}": value for key, value in values.items()}, **_device(settings)}


def _device(settings: MeasureSettings) -> dict[str, Any]:
    """The device by its model, and the version of what runs there."""
    from binas.costs.machine import device_name, runtime_name

    variants = list(settings.variants.values())
    try:
        names = dict.fromkeys(runtime_name(how) for how in variants)
        return {"device": device_name(variants[0]), "runtime": ", ".join(names)}
    except (RuntimeError, AssertionError):  # how torch says that there is no GPU
        return {"device": "not on this machine"}


def _check(run: Run) -> None:
    """Raise an error if what the run is to measure with cannot run here."""
    from binas.costs.backends import make_backend

    settings = run.settings(MeasureSettings)
    for how in settings.variants.values() if settings.measures else ():
        make_backend(how)


def _work(run: Run, progress: Progress) -> None:
    """Write the table, and keep how far it was off on whole networks among the figures."""
    from binas.training.reporting import keep_figures

    table = write_costs(run.space, run.settings(MeasureSettings), run.folder / COSTS.file, progress)
    for name, cost in table.costs.items():
        check = cost.provenance.verification
        if check is not None:
            errors = {"mape_percent": check.mape_percent.value, "bias_percent": check.bias_percent.value}
            keep_figures(run.folder, f"measure {name}", {**errors, "spearman": check.spearman.value})


TAKEN = 0.5  # of the seconds it may take: measuring ends when it is precise enough, after a tenth of them or with the last


def _seconds(outlook: Outlook) -> Seconds:
    """Blocks and networks are prepared, then measured for much of the time that may be taken, in every variant."""
    settings, rates = outlook.settings(MeasureSettings), outlook.rates
    if not settings.measures:
        return Seconds(fixed=0.1)
    count = len(settings.variants)
    return Seconds(count * (rates.table + settings.samples * rates.prepare), count * TAKEN * settings.seconds)


MEASURE = Task(
    "measure",
    MeasureSettings,
    (
        Step(
            "measure",
            "measure what each choice costs, and verify the formula on whole networks",
            _work,
            (COSTS.file,),
            facts=_facts,
            scratch=(f"{COSTS.file}{JOURNAL}*",),  # one for each variant
            seconds=_seconds,
            amounts=(Amount("measure.seconds", "seconds at most", 0.06, 15, 300, 5),),
        ),
    ),
    ask=lambda run, out, progress: write_costs(run.space, run.settings(MeasureSettings), out, progress),
    check=_check,
    examples=(
        "binas measure runs/first",
        "binas measure runs/first --threads 1 --threads 2",
        "binas measure --space demo --backend onnxruntime --out costs.json",
    ),
)
