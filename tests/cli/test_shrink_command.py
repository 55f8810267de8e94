"""``binas shrink``: from a file that builds a model to an answer, and on from where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from calling import answer
from foreign_networks import trained
from safetensors.torch import save_file
from small_data import bars

import binas
from binas.run.shrinking import shrink

SETS = {
    "train.processes": 1,
    "train.device": "cpu",
    "train.supernet.epochs": 1,
    "train.supernet.batch_size": 32,
    "train.supernet.recalibration": 64,
    "finetune.epochs": 1,
    "finetune.batch_size": 32,
    "finetune.recalibration": 64,
    "measure.backend": "torch",
    "measure.seconds": 2,
    "measure.samples": 12,
    "estimate.passes": 4,
    "sample.count": 8,
    "check.resamples": 5,
    "search.candidates": 1,
    "search.closed_loop": False,
    "compare.random": 1,
    "export.formats": "[safetensors]",
}


@pytest.mark.slow
def test_the_command_goes_on_where_it_was(tmp_path: Path) -> None:
    script, out, images = tmp_path / "model.py", tmp_path / "run", tmp_path / "bars.npz"
    np.savez(images, **bars(200))
    models = Path(__file__).parent.parent / "supernet"
    lines = ["import sys", f"sys.path.insert(0, {str(models)!r})", "from own_models import own_model"]
    script.write_text("\n".join([*lines, "def build():", "    return own_model('resnet')", ""]))
    sets = [part for name, value in SETS.items() for part in ("--set", f"{name}={value}")]
    given = ["shrink", f"{script}:build", "--data", images, "--out", out, "-l", "latency=90%", *sets]
    first = answer(*given)
    assert first["story"][1].startswith("latency=0.9x: stage s1")
    assert "train.supernet" in first["done"]
    assert answer(*given)["done"] == []
    assert binas.shrink is shrink


@pytest.mark.slow
def test_a_known_network_with_recorded_logits(tmp_path: Path) -> None:
    """``--network``: compared first, then an ordinary run that says what was removed; frontier and explain work on it."""
    out, images, weights = tmp_path / "run", tmp_path / "bars.npz", tmp_path / "w.safetensors"
    np.savez(images, **bars(200))
    source, shown = trained("torchvision/mobilenet_v3_small", 5), torch.rand(2, 3, 32, 32)
    save_file({name: value.contiguous() for name, value in source.state_dict().items()}, weights)
    with torch.no_grad():
        logits = source.eval()(shown)
    np.savez(tmp_path / "pairs.npz", images=shown.numpy(), logits=logits.numpy())
    sets = [part for name, value in SETS.items() for part in ("--set", f"{name}={value}")]
    given = ["shrink", "--network", "torchvision/mobilenet_v3_small", "--weights", weights, "--data", images]
    given += ["--out", out, "--pairs", tmp_path / "pairs.npz", "-l", "latency=90%", *sets]
    first = answer(*given)
    assert first["story"][1].startswith("latency=0.9x: stage s1")
    assert "train.supernet" in first["done"]
    assert answer("frontier", out)["points"]
    (found,) = binas.open_run(out).answers
    assert answer("explain", out, found.architecture)
