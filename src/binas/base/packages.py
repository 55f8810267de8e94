"""Packages that binas can do without: which extra brings each, and one sentence where one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from binas.base.errors import MissingPackageError

# Importable module -> extra of pyproject.toml. What is not here belongs to the core, or to somebody else's plugin.
EXTRAS: dict[str, str] = {
    "torch": "train",
    "scipy": "train",
    "safetensors": "train",
    "PIL": "train",
    "kornia": "train",
    "accelerate": "train",
    "tensorboard": "train",
    "onnx": "train",
    "onnxruntime": "train",
    "datasets": "huggingface",
    "fsspec": "huggingface",
    "openvino": "openvino",
    "matplotlib": "plot",
    "pyscipopt": "scip",
    "cplex": "cplex",
    "gurobipy": "gurobi",
}


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported; imports nothing."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a finder that refuses it, or a half-imported module
        return False


def installed_version(module: str) -> str | None:
    """Version of an importable package, None when there is none; imports nothing.

    The distribution may have another name than the package, such as onnxruntime-gpu.
    """
    import importlib.metadata  # slow to import, for something few commands ask

    if not is_installed(module):
        return None
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(module, [])
        return importlib.metadata.version(names[0]) if names else "unknown"


def pip_line(*modules: str) -> str:
    """The command that installs modules: ``pip install 'binas[train]'``, or the package itself if no extra has it."""
    parts = [f"'binas[{EXTRAS[module]}]'" if module in EXTRAS else module for module in modules]
    return f"pip install {' '.join(dict.fromkeys(parts))}"


def missing(modules: Iterable[str]) -> str | None:
    """The pip line that is needed before all ``modules`` can be imported; None if they can. Imports nothing."""
    absent = [module for module in modules if not is_installed(module)]
    return pip_line(*absent) if absent else None


def need(module: str, what: str) -> None:
    """Raise unless ``module`` can be imported; ``what`` begins the sentence, such as "a PNG file"."""
    if not is_installed(module):
        raise missing_package(module, what)


def missing_package(module: str, what: str = "this") -> MissingPackageError:
    """The error for a module that is not there."""
    return MissingPackageError(f"{what} needs {module}, which is not installed: {pip_line(module)}")


def explain_import(error: ModuleNotFoundError, what: str = "this") -> MissingPackageError | None:
    """The same for an import that failed; None where it is not for want of a package of some extra, but a bug."""
    module = (error.name or "").partition(".")[0]
    return missing_package(module, what) if module in EXTRAS and not is_installed(module) else None
