"""The interface of backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Protocol

from binas.base.packages import installed_version, missing

if TYPE_CHECKING:
    from torch import nn

    from binas.costs.settings import Settings

Shape = tuple[int, ...]


class Runner(Protocol):
    """A prepared network: each call is one inference."""

    def __call__(self) -> None: ...


class Backend(ABC):
    """Prepares modules for one setting.

    Class attributes say what a backend is without importing it: the package it ``requires``, the devices and number
    types it takes, and whether a call on a GPU returns before the run is over (``asynchronous``).
    """

    name: ClassVar[str]
    requires: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    asynchronous: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @classmethod
    def version(cls) -> str | None:
        """Version of the package, None when it is not installed; imports nothing."""
        return installed_version(cls.requires)

    @classmethod
    def unavailable(cls, settings: Settings) -> str | None:
        """Why the setting cannot run here, or None; looks at the device only if the rest fits."""
        pip = missing((cls.requires, "torch"))  # every backend is given a torch module
        if pip is not None:
            return (
                f"the package {cls.requires if cls.version() is None else 'torch'} is not installed ({pip})"
            )
        if settings.device not in cls.devices:
            return f"it runs on {' and '.join(cls.devices)}, not on {settings.device}"
        if settings.dtype not in cls.dtypes:
            return f"it is measured in {' and '.join(cls.dtypes)}, not in {settings.dtype}"
        return cls._no_gpu() if settings.device == "cuda" else None

    @classmethod
    def _no_gpu(cls) -> str | None:
        """Why there is no CUDA device for this backend, or None."""
        return f"{cls.requires} has no CUDA support here"

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Hold what is global in a process at the setting, then put it back: here the threads of torch.

        Backends that do not run torch still prepare modules with it, and its threads must not get in their way.
        """
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @abstractmethod
    def prepare(self, module: nn.Module, shapes: Sequence[Shape]) -> Runner:
        """Make a module ready to run on inputs of these shapes (without the batch dimension)."""
