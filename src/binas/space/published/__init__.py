"""Networks that others published, as data: block strings, rules and figures."""

from binas.space.published.data import (
    PublishedNetwork,
    QuotedRow,
    described_networks,
    published_networks,
    quoted_rows,
)

__all__ = ["PublishedNetwork", "QuotedRow", "described_networks", "published_networks", "quoted_rows"]
