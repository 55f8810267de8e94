"""A whole run in seconds: a tiny space, a few images, one epoch each, costs from a table.

Latency cannot be measured twice with the same result, so the table is made of MACs: then a run ends the same each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from small_data import bars
from small_networks import make, stage
from typer.main import get_command
from typer.testing import CliRunner

from binas.base.errors import BinasError
from binas.cli.main import app
from binas.costs import analytic_costs
from binas.space import save_space
from binas.tables import Column, Cost, CostTable, parse_unit
from binas.training.team import one_thread

SPACE = make(
    "tiny",
    [
        stage("s1", [1, 2], 8, {"expansion": [1, 2], "kernel": [3, 5]}, stride=2, activation="re"),
        stage("s2", [1, 2], 12, {"expansion": [2, 3], "se": [False, True]}, stride=2, activation="hs"),
    ],
)
PHASE = {"epochs": 1, "batch_size": 32, "learning_rate": 0.01}
TAUGHT = {**PHASE, "distillation": {"share": 0.5}, "recalibration": 64}
NETWORKS = ["finetune", "compare", "export", "report"]
TRAIN = ["train.data", "train.heaviest", "train.supernet"]
STEPS = [*TRAIN, "measure", "estimate", "sample", "check", "search", *NETWORKS]


def write_config(folder: Path, **changes: Any) -> Path:
    """A configuration in ``folder``, with the space and the cost tables it names."""
    folder.mkdir(parents=True, exist_ok=True)
    save_space(SPACE, folder / "tiny.yaml")
    np.savez(folder / "bars.npz", **bars(160))
    made_table(1e-4).save(folder / "device.json")
    made_table(3e-4).save(folder / "other.json")
    content = {
        "space": "tiny.yaml",
        "data": {"kind": "arrays", "path": "bars.npz"},
        "train": {"device": "cpu", "processes": 1, "heaviest": PHASE, "supernet": {**TAUGHT, "groups": 2}},
        "finetune": TAUGHT,
        "measure": {"table": "device.json"},
        "estimate": {"passes": 4},
        "sample": {"count": 6},
        "check": {"resamples": 10},
        "search": {"limits": ["latency=30%", "latency=70%"], "candidates": 1},
        "compare": {"random": 2},
        "export": {"formats": ["safetensors"]},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps({**content, **changes}))
    return path


def made_table(per_mac: float) -> CostTable:
    """A latency in ms that grows with MACs, with a turn per config so that it is not the same as MACs."""
    macs = analytic_costs(SPACE)["macs"]
    turned = [
        [block * (1 + 0.1 * np.arange(len(block))) for block in blocks] for blocks in macs.values.configs
    ]
    values = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: per_mac * turned[s][b][c])
    return CostTable(SPACE, {"latency": Cost("latency", parse_unit("ms"), per_mac * macs.fixed, values)})


# The commands of an app: typer makes all of them anew at every call, which takes as long as most calls.
built_once = cache(get_command)


@contextmanager
def small_pages() -> Iterator[None]:
    """Reports with few runners-up and short intervals: their numbers are the business of the tests of the report."""
    with (
        mock.patch("binas.report.frontier_numbers.RUNNER_LIMITS", 4),
        mock.patch("binas.report.numbers.RESAMPLES", 10),
    ):
        yield


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command in this process; errors become 2 as in the real one."""
    with one_thread(), mock.patch("typer.testing._get_command", built_once):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BinasError):
        return 2, str(result.exception)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.exit_code, result.stdout


def run_json(*arguments: object) -> dict[str, Any]:
    """What ``binas run --json`` prints."""
    code, said = call("run", *arguments, "--json")
    assert code == 0, said
    return json.loads(said)


def final(folder: Path) -> dict[str, Any]:
    """Tables, answers and weights of a run, without times and dates."""
    names = ["costs", "contributions", "samples", "estimator"]
    found = {name: _timeless(json.loads((folder / f"{name}.json").read_text())) for name in names}
    for path in sorted([*(folder / "results").iterdir(), *(folder / "rivals").iterdir()]):
        found[f"{path.parent.name}/{path.name}"] = _timeless(json.loads(path.read_text()))
    found["frontier"] = (folder / "frontier.csv").read_text()
    found["metrics"] = sorted((folder / "metrics.jsonl").read_text().splitlines())
    found["networks"] = [
        _timeless(json.loads(path.read_text())) for path in sorted(folder.glob("networks/*/network.json"))
    ]
    weights = [*folder.glob("*/weights-*"), *folder.glob("networks/*/finetune/weights-*")]
    found["weights"] = sorted(path.relative_to(folder).as_posix() for path in weights)
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in ("seconds", "date")}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
