"""Networks of other libraries that can be read: described networks under a library's names and rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from binas.base.errors import ModelError
from binas.space.described import NetworkDescription
from binas.space.published import described_networks
from binas.space.rules import NetworkRules
from binas.supernet.weights.names import NameLayout, layouts


@dataclass(frozen=True)
class KnownNetwork:
    """A network as a library has it: ``name`` is ``library/name``."""

    name: str
    description: NetworkDescription
    layout: str

    @property
    def names(self) -> NameLayout:
        """What the library calls its weights."""
        return layouts()[self.layout]

    def called(self, name: str) -> bool:
        """Whether the library calls it so, with or without the library's own name."""
        return _plain(name) in (_plain(self.name), _plain(self.name.partition("/")[2]))


@cache
def known_networks() -> dict[str, KnownNetwork]:
    """All networks of other libraries whose weights can be read, by ``library/name``."""
    return {
        known.name: known
        for key, layout in layouts().items()
        for name in layout.networks
        for library in layout.libraries
        for known in [_known(key, layout, library, name)]
    }


def _known(key: str, layout: NameLayout, library: str, name: str) -> KnownNetwork:
    variant = layout.networks[name]
    base = described_networks()[variant.network]
    rules = NetworkRules.model_validate(
        {**base.rules.to_data(), **layout.rules.to_data(), **variant.rules.to_data()}
    )
    fields = {key: getattr(base, key) for key in NetworkDescription.model_fields}
    return KnownNetwork(
        f"{library}/{name}",
        NetworkDescription.model_validate({**fields, "name": name, "rules": rules}),
        key,
    )


def networks_called(name: str) -> list[KnownNetwork]:
    """The networks a user may mean: those a library calls so, and those made as the described network of that name."""
    known = known_networks().values()
    found = [one for one in known if one.called(name) or _plain(name) == _plain(_described(one))]
    if not found:
        raise ModelError(
            f"there is no known network {name[:80]!r}; known are {', '.join(known_networks())}. Any other can be given as a "
            "module of its own (FILE.py:FUNCTION) with its weights."
        )
    return found


def _described(known: KnownNetwork) -> str:
    return known.names.networks[known.name.partition("/")[2]].network


def _plain(name: str) -> str:
    """Capitals, dashes and underscores do not matter."""
    return name.lower().replace("_", "").replace("-", "")
