"""Tables of contributions, costs and measured architectures: plain values with schema and provenance, no measuring."""

from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.entries import Column, Provenance
from binas.tables.samples import Sample, Samples, load_samples
from binas.tables.schema import schema
from binas.tables.units import Unit, convert, format_quantity, parse_quantity, parse_unit

__all__ = [
    "Column",
    "Contributions",
    "Cost",
    "CostTable",
    "Provenance",
    "Sample",
    "Samples",
    "Unit",
    "convert",
    "format_quantity",
    "load_contributions",
    "load_costs",
    "load_samples",
    "parse_quantity",
    "parse_unit",
    "schema",
]
