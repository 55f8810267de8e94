"""What was removed, of spaces with depths: sums of the tables."""

from __future__ import annotations

import pytest

from binas.costs.analytic import analytic_costs
from binas.report.removal import removals
from binas.space.architecture import Architecture
from binas.testing.evaluators import known_contributions
from tiny_run import SPACE


def test_points_and_costs_add_up_to_the_difference_from_the_heaviest() -> None:
    table, macs = known_contributions(SPACE, 0), analytic_costs(SPACE)["macs"]
    heaviest, lightest = SPACE.extreme(), SPACE.extreme(False)
    parts = list(removals(SPACE, table, macs, lightest))
    predicted, costs = table.predict([heaviest, lightest])[0], macs.of(SPACE, [heaviest, lightest])
    assert sum(part.points for part in parts) == pytest.approx(predicted[1] - predicted[0])
    assert sum(part.saved for part in parts) == pytest.approx(costs[0] - costs[1])
    gone = sum(len(a) - len(b) for a, b in zip(heaviest.stages, lightest.stages, strict=True))
    assert sum(part.removed for part in parts) == gone
    assert "blocks removed" in parts[0].sentence("MACs") or "made smaller" in parts[0].sentence("MACs")


def test_the_heaviest_is_kept_as_it_is() -> None:
    table, macs = known_contributions(SPACE, 0), analytic_costs(SPACE)["macs"]
    whole: Architecture = SPACE.extreme()
    assert all(
        part.sentence("MACs").endswith("kept as it is") for part in removals(SPACE, table, macs, whole)
    )
