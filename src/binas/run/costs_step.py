"""The costs of a run: latency measured here or read from a table, MACs, parameters and memory counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from binas.base.errors import TableError
from binas.base.files import dump_json, exists, write_text
from binas.base.identity import file_digest
from binas.base.progress import Progress
from binas.costs.backends import make_backend
from binas.costs.machine import device_name, runtime_name
from binas.costs.measure import Measuring, measure_space
from binas.run.limits import counted_costs
from binas.tables.costs import Cost, CostTable, load_costs
from binas.training.reporting import keep_figures

if TYPE_CHECKING:
    from binas.run.run import Run

COSTS, VERIFICATION = "costs.json", "verification.json"
JOURNAL = "costs.json.journal"


def cost_facts(run: Run) -> dict[str, Any]:
    """What a cost table depends on: the space, and the file it is read from, or settings, device and runtime."""
    measuring, facts = run.config.measuring, {"space": run.space.fingerprint}
    if measuring.table is not None:
        found = file_digest(measuring.table) if exists(measuring.table) else "missing"
        return {**facts, "contents of measuring.table": found}
    if not measuring.measures:
        return {**facts, "measuring.backend": measuring.backend}
    settings = measuring.model_dump(mode="json", exclude={"table"})
    return {**facts, **{f"measuring.{key}": value for key, value in settings.items()}, **_device(run)}


def _device(run: Run) -> dict[str, str]:
    """The device by its model, and the version of what runs there."""
    settings = run.config.measuring.settings
    try:
        return {"device": device_name(settings), "runtime": runtime_name(settings)}
    except (RuntimeError, AssertionError):  # how torch says that there is no GPU
        return {"device": "not on this machine"}


def check_device(run: Run) -> None:
    """Raise an error if what the run is to measure with cannot run here."""
    if run.config.measuring.measures:
        make_backend(run.config.measuring.settings)


def costs_step(run: Run, progress: Progress) -> None:
    """Write ``costs.json`` and, for every cost held against whole networks, ``verification.json``."""
    table = CostTable(run.space, {**counted_costs(run.space), **_others(run, progress)})
    if not table.costs:
        raise TableError("there is no cost to limit: set measuring.backend or measuring.table.")
    checks = {
        name: cost.provenance.verification.model_dump(mode="json")
        for name, cost in table.costs.items()
        if cost.provenance.verification is not None
    }
    write_text(run.folder / VERIFICATION, dump_json(checks))
    _report(run, table, progress)
    table.save(run.folder / COSTS)
    (run.folder / JOURNAL).unlink(missing_ok=True)


def _others(run: Run, progress: Progress) -> Mapping[str, Cost]:
    """The costs of the given table, or the latency measured now."""
    measuring = run.config.measuring
    if measuring.table is not None:
        return load_costs(measuring.table, run.space).costs
    if not measuring.measures:
        return {}
    journal = run.folder / JOURNAL
    how = Measuring(measuring.settings, plan=measuring.plan, journal=journal, progress=progress)
    found = measure_space(run.space, how, measuring.samples, measuring.seed)
    for warning in found.session.warnings:
        progress.say(f"warning: {warning}")
    return {found.cost.name: found.cost}


def _report(run: Run, table: CostTable, progress: Progress) -> None:
    """Figures of the verification, to be read and to be kept."""
    for name, cost in table.costs.items():
        known = cost.provenance.verification
        if known is None:
            continue
        progress.say(f"{name} {known.sentence()}")
        errors = {"mape_percent": known.mape_percent.value, "bias_percent": known.bias_percent.value}
        keep_figures(run.folder, f"costs {name}", {**errors, "spearman": known.spearman.value})
