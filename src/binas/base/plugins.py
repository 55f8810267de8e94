"""Things that other installed packages add to binas: families, backends, solvers, data sets, estimators, tasks.

A package declares them as entry points, in its ``pyproject.toml``::

    [project.entry-points."binas.solvers"]
    tabu = "my_package.tabu:TabuSolver"

Installing the package is what allows its code to run: names in a configuration or in a table only ever choose among
what is installed. Nothing of a plugin is imported before it is used.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from binas.base.errors import BinasError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = (
    "binas.families",
    "binas.backends",
    "binas.solvers",
    "binas.datasets",
    "binas.estimators",
    "binas.tasks",
)
LOG = logging.getLogger("binas")
Thing = TypeVar("Thing")


def installed(group: str) -> dict[str, Callable[[], Any]]:
    """What installed packages add to a group such as ``binas.solvers``: names, and what imports each.

    An import that fails is a :class:`PluginError` that names plugin and package. Where two packages use a name, the
    first in the order of package names has it.
    """
    return dict(_installed(group, tuple(sys.path)))


@cache
def _installed(group: str, path: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """``path`` is there for the cache: another ``sys.path`` may hold other packages."""
    from importlib.metadata import entry_points  # slow to import, and only plugins need it

    loaders: dict[str, Callable[[], Any]] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (_package(entry), entry.name)):
        if entry.name in loaders:
            LOG.warning("%s is ignored: another package has the name.", _describe(entry))
        else:
            loaders[entry.name] = _Loader(entry)
    return loaders


@dataclass(frozen=True)
class _Loader:
    """Imports one plugin."""

    entry: EntryPoint

    def __call__(self) -> Any:
        try:
            return self.entry.load()
        except Exception as error:  # the code of others: whatever goes wrong there is told in one sentence
            raise PluginError(
                f"{_describe(self.entry)} cannot be loaded ({type(error).__name__}: {error}); repair the package or "
                "uninstall it."
            ) from error


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _describe(entry: EntryPoint) -> str:
    return f"the plugin {entry.name!r} ({entry.group}) of the package {_package(entry)!r}"


@dataclass(frozen=True)
class Registry:
    """Things of one kind by name: those of binas as ``module:attribute``, then those of installed packages.

    ``check`` looks at a plugin after it is loaded and gives what is wrong with it ("is not a Solver"), or None.
    ``error`` is raised for unknown names. A plugin cannot take the name of something that binas has.
    """

    kind: str
    group: str
    builtin: Mapping[str, str]
    check: Callable[[Any], str | None]
    error: type[BinasError]

    def __iter__(self) -> Iterator[str]:
        """All names, our own first; imports nothing."""
        yield from self.builtin
        yield from (name for name in installed(self.group) if name not in self.builtin)

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in installed(self.group)

    def load(self, name: str) -> Any:
        """The thing of a name; imports only its own module."""
        if name in self.builtin:
            return import_name(self.builtin[name])
        loaders = installed(self.group)
        if name not in loaders:
            choices = ", ".join(self)
            raise self.error(f"there is no {self.kind} {str(name)[:40]!r}; choose one of {choices}.")
        thing = loaders[name]()
        wrong = self.check(thing)
        if wrong is not None:
            raise PluginError(
                f"the plugin {name!r} ({self.group}) {wrong}; repair the package or uninstall it."
            )
        return thing

    def load_all(self) -> Iterator[tuple[str, Any]]:
        """Everything that can be loaded, by name; a broken plugin is logged in one sentence and left out."""
        for name in self:
            try:
                yield name, self.load(name)
            except PluginError as error:
                LOG.warning("%s", error)


def subclass_of(parent: type) -> Callable[[Any], str | None]:
    """The check that a plugin is a class derived from ``parent``."""
    return lambda thing: (
        None if isinstance(thing, type) and issubclass(thing, parent) else f"is no {parent.__name__} class"
    )


def import_name(text: str) -> Any:
    """The thing that ``package.module:name`` names. For text in code of binas and its plugins, never in files."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def load_plugins(group: str, kind: type[Thing]) -> dict[str, Thing]:
    """All that installed packages add to a group, by name; what is broken or no ``kind`` is logged and left out."""
    loaded: dict[str, Thing] = {}
    for name, load in installed(group).items():
        try:
            thing = load()
        except PluginError as error:
            LOG.warning("%s", error)
            continue
        if isinstance(thing, kind):
            loaded[name] = thing
        else:
            LOG.warning(
                "the plugin %r (%s) is no %s; repair the package or uninstall it.", name, group, kind.__name__
            )
    return loaded
