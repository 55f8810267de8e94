"""A space derived from a network: its heaviest member is the network, everything else is smaller."""

from __future__ import annotations

import pytest

from binas.base.errors import SpaceError
from binas.space import (
    NetworkDescription,
    parse_network,
    sample_many,
    space_from_network,
    space_from_yaml,
    space_to_yaml,
)
from binas.space.blockstrings import format_network, to_blocks
from binas.space.published import described_networks

NETWORKS = described_networks()


def described(blocks: str, **fields: object) -> NetworkDescription:
    return NetworkDescription.model_validate(
        {"name": "mine", "blocks": blocks, "resolution": 32, "classes": 7, **fields}
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_the_heaviest_member_is_the_network(name: str) -> None:
    network = NETWORKS[name]
    space = space_from_network(network)
    found = [code for stage in to_blocks(space, space.extreme()) for code in stage]
    wanted = [code for stage in network.stages for code in stage]
    assert [str(code).removesuffix("_noskip") for code in found] == [
        str(code).removesuffix("_noskip") for code in wanted
    ]
    assert (space.features, space.classes, space.rules) == (network.features, network.classes, network.rules)
    assert all(stage.depths == tuple(range(1, len(stage.blocks) + 1)) for stage in space.stages)
    assert space_from_yaml(space_to_yaml(space)) == space


def test_no_member_is_larger_in_anything() -> None:
    space = space_from_network(NETWORKS["MobileNetV3-Large"])
    own = to_blocks(space, space.extreme())
    for architecture in sample_many(space, 20, seed=1):
        for stage, full in zip(to_blocks(space, architecture), own, strict=True):
            for code, whole in zip(stage, full, strict=False):
                assert code.kernel <= whole.kernel
                assert code.se <= whole.se
                assert code.expansion <= whole.expansion


def test_blocks_of_a_stage_keep_their_own_largest_config() -> None:
    space = space_from_network(described("[['ir_k5_s2_e6_c24_se0.25_nre', 'ir_k3_e3_c24_nre']]"))
    (stage,) = space.stages
    names = [[config.name for config in block] for block in stage.blocks]
    assert names[1] == ["e1k3", "e2k3", "e3k3"]
    assert names[0][0] == "e2k3"
    assert names[0][-1] == "e6k5se"
    assert len(names[0]) == 3 * 2 * 2


def test_classes_resolution_and_shares_of_ones_own() -> None:
    space = space_from_network(
        described("[['ir_k3_e4_c32']]"), name="small", classes=3, resolution=64, shares=[0.5]
    )
    assert (space.name, space.classes, space.resolution) == ("small", 3, 64)
    assert [config.name for config in space.stages[0].blocks[0]] == ["e2k3", "e4k3"]


def test_a_stage_is_divided_where_its_shape_changes() -> None:
    space = space_from_network(
        described("[['ir_k3_e2_c32', 'ir_k3_s2_e2_c32', 'ir_k3_e2_c48', 'ir_k3_e2_c48_nre']]")
    )
    assert [stage.depths for stage in space.stages] == [(1,), (1,), (1,), (1,)]
    assert [stage.get("activation") for stage in space.stages] == ["hs", "hs", "hs", "re"]


def test_what_cannot_shrink_goes_to_stem_and_head() -> None:
    space = space_from_network(
        described("[['ds_k3_c16'], ['ir_k3_s2_e2_c24'], ['dsa_k3_c24'], ['cn_k1_c64']]")
    )
    assert space.stem == ("cn_k3_s2_c32_nre", "ds_r1_k3_s1_e1_c16")
    assert space.head == ("dsa_r1_k3_s1_e1_c24", "cn_r1_k1_s1_c64")
    assert len(space.stages) == 1


def test_fused_blocks_shrink_too() -> None:
    space = space_from_network(described("[['er_k3_s2_e4_c24', 'er_k5_e4_c24'], ['ir_k3_s2_e2_c32']]"))
    assert [stage.get("fused", False) for stage in space.stages] == [True, False]
    assert space.parse("e2.667k3-e2.667k5_e2k3")
    assert [config.name for config in space.stages[0].blocks[1]][-2:] == ["e4k3", "e4k5"]


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ("[['ds_k3_c16'], ['cn_k1_c64']]", "no block of mine can be made smaller"),
        ("[['ir_k3_c24'], ['dsa_k3_c24'], ['ir_k3_c24']]", "'dsa_r1_k3_s1_e1_c24' between blocks"),
        ("[['ir_k3_e2_c32_noskip']]", "would become"),
    ],
)
def test_networks_that_give_no_space(blocks: str, says: str) -> None:
    with pytest.raises(SpaceError, match=says):
        space_from_network(described(blocks))


@pytest.mark.parametrize("shares", [[], [0.0], [1.5]])
def test_bad_shares(shares: list[float]) -> None:
    with pytest.raises(SpaceError, match="shares must be above 0"):
        space_from_network(described("[['ir_k3_c24']]"), shares=shares)


def test_descriptions_are_the_strings_they_were_made_of() -> None:
    network = NETWORKS["EfficientNet-Lite0"]
    assert parse_network(format_network(network.stages)) == network.stages
