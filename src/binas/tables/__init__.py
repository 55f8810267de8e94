"""Tables of contributions, costs and measured architectures: plain values with schema and provenance, no measuring."""

from binas.tables.conditions import check_conditions, conditions
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.diff import CostDiff, TableDiff, diff
from binas.tables.entries import Column, Provenance
from binas.tables.merge import merge, rename_cost, rename_costs
from binas.tables.samples import Sample, Samples, load_samples
from binas.tables.schema import schema
from binas.tables.units import Unit, convert, format_quantity, parse_quantity, parse_unit
from binas.tables.verification import Calibration, NetworkCheck, Verification

__all__ = [
    "Calibration",
    "Column",
    "Contributions",
    "Cost",
    "CostDiff",
    "CostTable",
    "NetworkCheck",
    "Provenance",
    "Sample",
    "Samples",
    "TableDiff",
    "Unit",
    "Verification",
    "check_conditions",
    "conditions",
    "convert",
    "diff",
    "format_quantity",
    "load_contributions",
    "load_costs",
    "load_samples",
    "merge",
    "parse_quantity",
    "parse_unit",
    "rename_cost",
    "rename_costs",
    "schema",
]
