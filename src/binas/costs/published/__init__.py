"""Published networks as references: block strings and figures as data, built and counted here."""

from binas.costs.published.data import PublishedNetwork, published_networks

__all__ = ["PublishedNetwork", "published_networks"]
