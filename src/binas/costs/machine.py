"""What this machine is: names and versions for tables, for the records of a run and for ``binas doctor``."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from binas.base.cores import CPU_INFO
from binas.base.packages import installed_version
from binas.costs.backends import backend_class
from binas.costs.settings import Settings
from binas.version import __version__


def cpu_name(cpu_info: Path = CPU_INFO) -> str:
    """The model of the CPU as the system names it."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next((name for name in names if name), platform.processor() or platform.machine())


def device_name(settings: Settings) -> str:
    """The model of the CPU or GPU that a setting runs on."""
    if settings.device == "cpu":
        return cpu_name()
    import torch

    return str(torch.cuda.get_device_name())


def runtime_name(settings: Settings) -> str:
    """The backend with its version."""
    return f"{settings.backend} {backend_class(settings.backend).version()}"


def describe_machine() -> dict[str, str]:
    """What a step was done with: versions of what matters, the CPU, and the GPU where torch has found one."""
    about = {"python": platform.python_version(), "binas": __version__}
    about |= {name: installed_version(name) or "missing" for name in ("torch", "onnxruntime")}
    about["cpu"] = cpu_name()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        about["gpu"] = str(torch.cuda.get_device_name())
    return about
