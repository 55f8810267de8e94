"""Networks that others published, as data: block strings, rules and figures."""

from binas.space.published.data import PublishedNetwork, described_networks, published_networks

__all__ = ["PublishedNetwork", "described_networks", "published_networks"]
