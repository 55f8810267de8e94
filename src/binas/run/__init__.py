"""Runs: a folder, its configuration, the engine that does what is not done.

``binas.run(config, out=...)`` does a whole run from Python. The room has the same name, so it can be called: whichever of
the two an import has put in place, ``binas.run(...)`` is :func:`binas.run.start.run`.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """See :func:`binas.run.start.run`."""
        from binas.run.start import run

        return run(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
