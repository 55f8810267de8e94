"""Packages whose names are imported when first used, so that a command loads only what it needs.

A package lists its public names once, as imports that only a type checker executes; :func:`lazy_names` reads that list.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from binas.base.packages import explain_import


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of the package in ``file``, by the imports under its ``if TYPE_CHECKING``."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    blocks = [
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(home[name]), name)
            room = sys.modules.get(f"{package}.{name}")
            value = room if callable(room) else value  # binas.run: calls the function, and has its modules
        except ModuleNotFoundError as error:
            raise explain_import(error, f"{package}.{name}") or error from error
        setattr(sys.modules[package], name, value)
        return value

    return load, sorted(home)
