"""A trained run of a small space on bars, made in about two seconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from small_data import bars
from small_networks import MBCONV

from binas.run.config import load_config
from binas.run.engine import advance
from binas.run.start import create_run
from binas.space import save_space
from binas.tasks.train import TRAIN
from binas.training.team import one_thread

PHASE = {"epochs": 1, "batch_size": 32, "learning_rate": 0.01}
MULTI = {**PHASE, "distillation": {"share": 0.5}, "recalibration": 64}


def small_run(folder: Path) -> Path:
    save_space(MBCONV, folder / "small.yaml")
    np.savez(folder / "bars.npz", **bars(200))
    content = {
        "space": "small.yaml",
        "data": {"kind": "arrays", "path": "bars.npz"},
        "train": {"device": "cpu", "processes": 1, "heaviest": PHASE, "supernet": {**MULTI, "groups": 2}},
        "finetune": {**MULTI, "epochs": 2},
    }
    # JSON is YAML, and unlike PyYAML it repeats what appears twice
    (folder / "config.yaml").write_text(json.dumps(content))
    with one_thread():
        advance(create_run(folder / "run", load_config(folder / "config.yaml")), TRAIN.steps)
    return folder / "run"
