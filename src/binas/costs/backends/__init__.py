"""Backends: what runs a network while it is measured. One file each, one interface."""

from __future__ import annotations

from binas.base.errors import MeasureError
from binas.costs.backends._base import Backend, Runner, Shape, installed_version
from binas.costs.backends.onnxruntime import OnnxRuntimeBackend
from binas.costs.backends.openvino import OpenVinoBackend
from binas.costs.backends.torch import TorchBackend
from binas.costs.settings import Settings

BACKENDS: dict[str, type[Backend]] = {
    backend.name: backend for backend in (TorchBackend, OnnxRuntimeBackend, OpenVinoBackend)
}

__all__ = ["BACKENDS", "Backend", "Runner", "Shape", "installed_version", "make_backend"]


def make_backend(settings: Settings) -> Backend:
    """The backend a setting names; an error that says why when it cannot run here."""
    if settings.backend not in BACKENDS:
        raise MeasureError(f"unknown backend {settings.backend[:40]!r}; known are {', '.join(BACKENDS)}.")
    backend = BACKENDS[settings.backend]
    reason = backend.unavailable(settings)
    if reason is not None:
        raise MeasureError(
            f"the backend {backend.name} cannot measure {settings.describe()}: {reason}. `binas doctor` lists "
            "what can be measured here."
        )
    return backend(settings)
