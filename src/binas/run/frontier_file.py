"""The frontier as a CSV file."""

from __future__ import annotations

import csv
import io

from binas.search.frontier import Frontier


def frontier_csv(found: Frontier) -> str:
    """A line per point: cost with its unit in the name of the column, accuracy in percent, architecture."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([f"{found.cost}_{found.unit.name}", "accuracy_percent", "architecture"])
    writer.writerows([repr(point.cost), repr(point.accuracy), str(point.architecture)] for point in found)
    return buffer.getvalue()
