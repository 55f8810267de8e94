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


@cache
def known_networks() -> dict[str, KnownNetwork]:
    """All networks of other libraries whose weights can be read, by ``library/name``."""
    return {
        known.name: known
        for key, layout in layouts().items()
        for name in layout.networks
        for known in [_known(key, layout, name)]
    }


def _known(key: str, layout: NameLayout, name: str) -> KnownNetwork:
    variant = layout.networks[name]
    base = described_networks()[variant.network]
    rules = NetworkRules.model_validate(
        {**base.rules.to_data(), **layout.rules.to_data(), **variant.rules.to_data()}
    )
    fields = {key: getattr(base, key) for key in NetworkDescription.model_fields}
    return KnownNetwork(
        f"{layout.library}/{name}",
        NetworkDescription.model_validate({**fields, "name": name, "rules": rules}),
        key,
    )


def networks_called(name: str) -> list[KnownNetwork]:
    """The networks a user may mean: by library and name, by name, or by the name of the described network."""
    wanted = _plain(name)
    found = [known for known in known_networks().values() if wanted in _names(known)]
    if not found:
        raise ModelError(f"there is no known network {name[:80]!r}; known are {', '.join(known_networks())}.")
    return found


def _names(known: KnownNetwork) -> set[str]:
    name = known.name.partition("/")[2]
    described = known.names.networks[name].network
    return {_plain(text) for text in (known.name, name, described)}


def _plain(name: str) -> str:
    """Capitals, dashes and underscores do not matter."""
    return name.lower().replace("_", "").replace("-", "")
