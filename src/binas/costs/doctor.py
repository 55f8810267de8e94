"""What can be measured here, and how quiet the machine is."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass
from typing import Any

from binas.base.cores import no_bf16, usable_cores
from binas.base.packages import installed_version
from binas.costs.backends import BACKENDS, Backend, make_backend
from binas.costs.machine import cpu_name
from binas.costs.meters import energy_zones
from binas.costs.session import CONTROL, Plan
from binas.costs.settings import DEVICES, Settings
from binas.costs.statistics import Estimate, estimate
from binas.tables.conditions import NOISY
from binas.version import __version__

PACKAGES = ("torch", "onnx", "onnxruntime", "openvino", "numpy", "scipy", "highspy", "pyscipopt")
NOISE_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A backend on a device: its version, and the reason why it cannot be used (None when it can)."""

    backend: str
    device: str
    version: str | None
    reason: str | None


@dataclass(frozen=True)
class Diagnosis:
    """Everything ``binas doctor`` prints. ``noise`` is the control's time in seconds; None when nothing runs it.

    ``bf16`` says why nothing can compute in bfloat16 on this CPU.
    """

    versions: dict[str, str | None]
    cpu: str
    cpus: int
    load: float | None
    backends: tuple[Finding, ...]
    energy: str | None
    noise: Estimate | None
    bf16: str | None = None

    def verdict(self) -> str:
        """How quiet the machine is, for people."""
        if self.noise is None:
            return "no backend can run here, so noise is not known"
        word = "noisy" if self.noise.spread > NOISY else "quiet"
        return (
            f"{word}: a quarter of the control's samples took over {self.noise.spread:.1%} longer than its fastest "
            f"tenth ({self.noise.value * 1e6:.0f} us, known to {self.noise.uncertainty:.1%})"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas doctor --json`` prints."""
        noise = self.noise
        return {
            "versions": self.versions,
            "cpu": self.cpu,
            "cpus": self.cpus,
            "load": self.load,
            "backends": [
                {"backend": f.backend, "device": f.device, "version": f.version, "missing": f.reason}
                for f in self.backends
            ],
            "energy_missing": self.energy,
            "bfloat16_missing": self.bf16,
            "noise": None
            if noise is None
            else {"control_seconds": noise.value, "spread": noise.spread, "uncertainty": noise.uncertainty},
        }


def diagnose() -> Diagnosis:
    """Look at packages, backends and counters, and time the control for about a second."""
    findings = tuple(_finding(backend, device) for _, backend in BACKENDS.load_all() for device in DEVICES)
    usable = [f.backend for f in findings if f.device == "cpu" and f.reason is None]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    energy = None if energy_zones() else "no readable counters in /sys/class/powercap; import energy instead"
    noise = noise_of(Settings(backend=usable[0])) if usable else None
    bf16 = no_bf16() if installed_version("torch") else None
    return Diagnosis(_versions(), cpu_name(), usable_cores(), load, findings, energy, noise, bf16)


def noise_of(settings: Settings, samples: int = NOISE_SAMPLES) -> Estimate:
    """The control's time under a setting, from samples of a millisecond each."""
    from binas.costs.device import BackendDevice  # these load torch, which may be what is missing
    from binas.costs.workloads import control_workload

    backend = make_backend(settings)
    with backend.pinned():
        device = BackendDevice(backend, lambda _: control_workload())
        repeats = math.ceil(Plan().sample_seconds / device.warm_up(CONTROL))
        return estimate([device.sample(CONTROL, repeats) for _ in range(samples)], Plan().quantile)


def _finding(backend: type[Backend], device: str) -> Finding:
    reason = backend.unavailable(Settings(backend=backend.name, device=device))
    return Finding(backend.name, device, backend.version(), reason)


def _versions() -> dict[str, str | None]:
    installed = {name: installed_version(name) for name in PACKAGES}
    return {"binas": __version__, "python": platform.python_version(), **installed}
