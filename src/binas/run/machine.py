"""What a step was done with: versions and device, for its record."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from binas.costs.machine import cpu_name
from binas.training.config import TrainingConfig
from binas.version import __version__


def machine(training: TrainingConfig) -> dict[str, str]:
    """Versions of what matters, the CPU, and the GPU where one is used."""
    found = {"python": platform.python_version(), "binas": __version__}
    found |= {name: _version(name) for name in ("torch", "onnxruntime")}
    found["cpu"] = cpu_name()
    if training.device != "cpu" and torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
