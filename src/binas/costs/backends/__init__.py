"""Backends: what runs a network while it is measured. One file each, one interface, imported only when used.

Another installed package adds one with an entry point in the group ``binas.backends`` that names a :class:`Backend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.errors import MeasureError
from binas.base.plugins import Registry, subclass_of
from binas.costs.backends._base import Backend, Runner, Shape

if TYPE_CHECKING:
    from binas.costs.settings import Settings  # which takes its default from here

DEFAULT_BACKEND = "onnxruntime"
BACKENDS = Registry(
    "backend",
    "binas.backends",
    {
        "onnxruntime": "binas.costs.backends.onnxruntime:OnnxRuntimeBackend",
        "torch": "binas.costs.backends.torch:TorchBackend",
        "openvino": "binas.costs.backends.openvino:OpenVinoBackend",
    },
    subclass_of(Backend),
    MeasureError,
)

__all__ = [
    "BACKENDS",
    "DEFAULT_BACKEND",
    "Backend",
    "Runner",
    "Shape",
    "backend_class",
    "make_backend",
]


def backend_class(name: str) -> type[Backend]:
    """The class of a backend by name; imports only its own file."""
    backend: type[Backend] = BACKENDS.load(name)
    return backend


def make_backend(settings: Settings) -> Backend:
    """The backend a setting names; an error that says why when it cannot run here."""
    backend = backend_class(settings.backend)
    reason = backend.unavailable(settings)
    if reason is not None:
        raise MeasureError(
            f"the backend {backend.name} cannot measure {settings.describe()}: {reason}. `binas doctor` lists "
            "what can be measured here."
        )
    return backend(settings)
