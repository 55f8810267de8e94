"""Tables of contributions and costs: plain values with schema and provenance, no measuring."""

from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.entries import Column, Provenance
from binas.tables.schema import schema
from binas.tables.units import Unit, convert, format_quantity, parse_quantity, parse_unit
from binas.tables.verification import Calibration, Interval, NetworkCheck, Verification

__all__ = [
    "Calibration",
    "Column",
    "Contributions",
    "Cost",
    "CostTable",
    "Interval",
    "NetworkCheck",
    "Provenance",
    "Unit",
    "Verification",
    "convert",
    "format_quantity",
    "load_contributions",
    "load_costs",
    "parse_quantity",
    "parse_unit",
    "schema",
]
