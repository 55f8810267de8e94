"""What a block family is, and the register of those that are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from binas.base.errors import PluginError, SpaceError
from binas.base.plugins import LOG, import_name, installed
from binas.space.codes import BlockCode
from binas.space.families.layers import Layer
from binas.space.rules import NetworkRules
from binas.space.space import Config, Stage

if TYPE_CHECKING:
    from torch import nn

    from binas.supernet.families import ElasticBlock

FIELDS = {"r": "repeats", "k": "kernel", "s": "stride", "e": "expansion", "c": "channels", "se": "se"}
DEFAULT_FAMILY = "mbconv"
GROUP = "binas.families"


@dataclass(frozen=True, slots=True)
class Family:
    """Everything binas needs to know about one kind of block.

    ``code(stage, block, config)`` is the block of a config (0-based block) as a block string; ``kinds`` are the
    words its strings start with, ``fields`` the number fields it adds to the grammar (``g`` for ``g4``).
    ``describe(code, inputs, rules)`` gives the layers of a block on ``inputs`` channels: its costs derive from it.
    ``elastic(codes, inputs, rules)`` builds the shared weights of all configs of a block. ``plain(code, inputs,
    rules)`` builds the block alone with fresh weights; left out, it is built from the description.

    Both builders need torch, which this room does not load: give a function, or text ``package.module:function``
    that is imported when a network is built. For the families of binas that text is the one place where a room names
    a later one (``space`` names ``supernet``): a family is declared in one piece, and nothing of ``supernet`` is
    imported before somebody builds a network. ``tests/test_imports.py`` allows this edge and no other.

    Another installed package adds a family with an entry point of the family's name in the group ``binas.families``.
    """

    name: str
    kinds: tuple[str, ...]
    code: Callable[[Stage, int, Config], BlockCode]
    describe: Callable[[BlockCode, int, NetworkRules], Layer]
    elastic: Callable[[Sequence[BlockCode], int, NetworkRules], ElasticBlock] | str
    plain: Callable[[BlockCode, int, NetworkRules], nn.Module] | str = "binas.supernet.plain:described_block"
    fields: tuple[str, ...] = ()

    def build_elastic(self, codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> ElasticBlock:
        """Shared weights of all configs of one block. Loads torch."""
        block: ElasticBlock = _resolve(self.elastic)(codes, inputs, rules)
        return block

    def build_plain(self, code: BlockCode, inputs: int, rules: NetworkRules) -> nn.Module:
        """One block with fresh weights. Loads torch."""
        block: nn.Module = _resolve(self.plain)(code, inputs, rules)
        return block


def _resolve(builder: Callable[..., Any] | str) -> Callable[..., Any]:
    function: Callable[..., Any] = import_name(builder) if isinstance(builder, str) else builder
    return function


_FAMILIES: dict[str, Family] = {}


def register(family: Family) -> None:
    """Make a family known; one whose name, kinds or fields are taken or cannot be read back is refused."""
    if family.name in _FAMILIES:
        raise SpaceError(f"a block family called {family.name!r} is registered already.")
    for kind in family.kinds:
        if kind in known_kinds() or not re.fullmatch("[a-z]+", kind):
            raise SpaceError(f"the kind {kind!r} of family {family.name!r} is taken or not small letters.")
    for field in family.fields:
        taken = field in FIELDS or field in BlockCode.__dataclass_fields__
        if taken or not re.fullmatch("[a-mo-z][a-z]*", field):
            raise SpaceError(
                f"the field {field!r} of family {family.name!r} is taken, or not small letters that do not start "
                "with n."
            )
    _FAMILIES[family.name] = family


def family_names() -> tuple[str, ...]:
    """Names of the known families, with those of installed packages."""
    return tuple(sorted({*_FAMILIES, *installed(GROUP)}))


def known_kinds() -> tuple[str, ...]:
    """Words that block strings may start with, of the families registered so far."""
    return tuple(kind for family in _FAMILIES.values() for kind in family.kinds)


def family_of(stage: Stage) -> Family:
    """The family a stage names; MBConv when it names none."""
    name = str(stage.get("family", DEFAULT_FAMILY))
    if name not in _FAMILIES and name in installed(GROUP):
        _register_plugin(name)
    if name not in _FAMILIES:
        known = ", ".join(family_names())
        raise SpaceError(f"stage {stage.name!r} has the unknown block family {name!r}; known are {known}.")
    return _FAMILIES[name]


def family_of_kind(kind: str) -> Family:
    """The family whose block strings start with ``kind``."""
    if kind not in known_kinds():
        _register_plugins()
    for family in _FAMILIES.values():
        if kind in family.kinds:
            return family
    raise SpaceError(f"no block family has the kind {kind!r}; known are {', '.join(known_kinds())}.")


def _register_plugin(name: str) -> None:
    """Register the family of an installed package."""
    family = installed(GROUP)[name]()
    if not isinstance(family, Family) or family.name != name:
        raise PluginError(f"the plugin {name!r} ({GROUP}) is no Family of this name; repair or uninstall it.")
    try:
        register(family)
    except SpaceError as error:
        raise PluginError(f"the plugin {name!r} ({GROUP}) cannot be used: {error}") from error


def _register_plugins() -> None:
    """Register the families of all installed packages, as any may have the kind; broken ones are logged."""
    for name in installed(GROUP):
        try:
            if name not in _FAMILIES:
                _register_plugin(name)
        except PluginError as error:
            LOG.warning("%s", error)


def describe(code: BlockCode, inputs: int, rules: NetworkRules) -> Layer:
    """The layers of a block of any family on ``inputs`` channels."""
    return family_of_kind(code.kind).describe(code, inputs, rules)
