"""What this machine is: names and versions for tables, for the records of a run and for ``binas doctor``."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from binas.costs.backends import BACKENDS, installed_version
from binas.costs.settings import Settings
from binas.version import __version__

RECORDED = ("torch", "onnxruntime")  # packages on whose version results depend
CPU_INFO = Path("/proc/cpuinfo")


def cpu_name(cpu_info: Path = CPU_INFO) -> str:
    """The model of the CPU as the system names it."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next((name for name in names if name), platform.processor() or platform.machine())


def cpu_count() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def device_name(settings: Settings) -> str:
    """The model of the CPU or GPU that a setting runs on."""
    if settings.device == "cpu":
        return cpu_name()
    import torch

    return str(torch.cuda.get_device_name())


def runtime_name(settings: Settings) -> str:
    """The backend with its version."""
    return f"{settings.backend} {BACKENDS[settings.backend].version()}"


def describe_machine(gpu: bool = True) -> dict[str, str]:
    """What work was done with, for its record: versions of what matters, the CPU, and the GPU where one is used."""
    facts = {"python": platform.python_version(), "binas": __version__}
    facts |= {name: installed_version(name) or "missing" for name in RECORDED}
    facts["cpu"] = cpu_name()
    if gpu:
        import torch

        if torch.cuda.is_available():
            facts["gpu"] = torch.cuda.get_device_name()
    return facts
