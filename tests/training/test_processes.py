"""Mixed precision, in a process of its own (accelerate keeps global state)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_data import bars
from small_networks import MBCONV

from binas.space import save_space
from binas.training.checkpoint import load_checkpoint


def config(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    save_space(MBCONV, folder / "small.yaml")
    np.savez(folder / "bars.npz", **bars(200))
    phase = {"epochs": 1, "batch_size": 32, "learning_rate": 0.01}
    multi = {**phase, "distillation": {"share": 0.5}, "recalibration": 64}
    train = {"device": "cpu", "processes": 1, "heaviest": phase, "supernet": {**multi, "groups": 2}}
    data = {"kind": "arrays", "path": "bars.npz"}
    path = folder / "config.yaml"
    path.write_text(json.dumps({"space": "small.yaml", "data": data, "train": train}))
    return path


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.slow
def test_mixed_precision_trains(tmp_path):
    made = config(tmp_path)
    out = tmp_path / "run"
    done = run(
        *("-m", "binas.cli.main", "train", str(out), "--config", str(made), "--json"),
        *("--mixed-precision", "bf16"),
    )
    assert done.returncode == 0, done.stderr
    assert 0 <= json.loads(done.stdout)["validation"]["heaviest"] <= 100
    weights = load_checkpoint(out / "heaviest", "weights").tensors
    plain = run("-m", "binas.cli.main", "train", str(tmp_path / "plain"), "--config", str(made), "--quiet")
    assert plain.returncode == 0, plain.stderr
    exact = load_checkpoint(tmp_path / "plain" / "heaviest", "weights").tensors
    name = "head.classifier.weight"
    assert not torch.equal(weights[name], exact[name])  # the arithmetic was another
    assert torch.allclose(weights[name], exact[name], atol=0.1)
    assert all(value.dtype.is_floating_point is False or value.itemsize == 4 for value in weights.values())
