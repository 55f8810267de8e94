"""What was removed, and where: sums of the tables, and the modules of a model of one's own."""

from __future__ import annotations

from collections import OrderedDict
from itertools import groupby

import pytest
from own_models import Basic
from torch import nn

from binas.costs.analytic import analytic_costs
from binas.report.removal import removals
from binas.space.architecture import Architecture
from binas.space.graph_space import OFF, space_of_graph
from binas.space.space import SearchSpace
from binas.supernet.tracing import trace
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


def space_of(*blocks: nn.Module, grouped: bool = False) -> SearchSpace:
    """The space of a classifier whose blocks are one flat list, or one list for each run of the same kind."""
    runs = [nn.Sequential(*run) for _, run in groupby(blocks, key=type)] if grouped else blocks
    features = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), *runs)
    parts = OrderedDict(
        features=features, pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), last=nn.Linear(32, 5)
    )
    return space_of_graph(trace(nn.Sequential(parts), (3, 8, 8)).graph, "own")


def sentences(space: SearchSpace, off: tuple[tuple[int, int], ...] = ()) -> list[str]:
    """What is said when these blocks, by stage and number, are left out."""
    names = [list(stage) for stage in space.extreme().stages]
    for s, b in off:
        names[s][b] = OFF
    architecture = Architecture(tuple(map(tuple, names)))
    parts = removals(space, known_contributions(space, 0), analytic_costs(space)["macs"], architecture)
    return [part.sentence("MACs").rpartition(": ")[0] or part.sentence("MACs") for part in parts]


def small(count: int) -> list[nn.Module]:
    return [Basic(16, 16, 1) for _ in range(count)]


def test_stages_of_one_flat_list_are_told_apart() -> None:
    space = space_of(*small(3), Basic(16, 32, 2), Basic(32, 32, 1))
    said = sentences(space, ((0, 1),))
    assert said[0] == "stage s1 (features.1 to features.3): 1 of 3 blocks removed (features.2)"
    assert said[1].startswith("stage s2 (features.4 to features.5)")


def test_a_stage_that_is_a_module_is_named_by_it() -> None:
    class Wide(Basic):
        """Of another kind, so that it begins another list."""

    space = space_of(*small(5), Wide(16, 32, 2), grouped=True)
    said = sentences(space, ((0, 0), (0, 4)))
    assert said[0] == "stage s1 (features.1): 2 of 5 blocks removed (features.1.0, features.1.4)"
    assert said[1].startswith("stage s2 (features.2)")


def test_many_removed_blocks_are_counted_and_not_listed() -> None:
    space = space_of(*small(5), Basic(16, 32, 2))
    said = sentences(space, tuple((0, b) for b in range(4)))
    assert said[0] == "stage s1 (features.1 to features.5): 4 of 5 blocks removed"
    assert sentences(space, tuple((0, b) for b in range(5)))[0].endswith("5 of 5 blocks removed")


def test_layers_without_a_module_around_them_are_named_from_the_first_to_the_last() -> None:
    def layer(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, 1, 1), nn.ReLU()]

    space = space_of(*layer(16, 24), *layer(24, 16), nn.MaxPool2d(2), *layer(16, 40), *layer(40, 32))
    assert [said.partition(")")[0] for said in sentences(space)] == [
        "stage s1 (features.1 to features.4",
        "stage s2 (features.5",
        "stage s3 (features.6 to features.9",
    ]
