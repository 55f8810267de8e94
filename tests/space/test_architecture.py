from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given

from binas.base.errors import ArchitectureError, BinasError, ProblemError
from binas.space import Architecture, Config, SearchSpace, Stage, enumerate_all, load_space, space_from_yaml
from strategies import plain_spaces, spaces_with_architecture

Pair = tuple[SearchSpace, Architecture]


class TestCompactString:
    @given(spaces_with_architecture())
    def test_round_trip(self, pair: Pair) -> None:
        space, architecture = pair
        assert Architecture.parse(str(architecture)) == architecture
        assert space.parse(f"  {architecture}\n") == architecture

    def test_grammar(self) -> None:
        architecture = Architecture.parse("e3k5-e3k3se_0_e6k3")
        assert architecture.stages == (("e3k5", "e3k3se"), (), ("e6k3",))
        assert architecture.depths == (2, 0, 1)
        assert str(architecture) == "e3k5-e3k3se_0_e6k3"

    @pytest.mark.parametrize(
        "text", ["", "  ", "a--b", "a__b", "-a", "a_", "a-0", "a b", "a,b", "ä", "a" * 61]
    )
    def test_bad_text(self, text: str) -> None:
        with pytest.raises(ArchitectureError, match=r"write e\.g\.|not a config name"):
            Architecture.parse(text)

    def test_endless_text(self) -> None:
        with pytest.raises(ArchitectureError, match="too long"):
            Architecture.parse("a-" * 100_000)

    def test_error_names_stage_and_block(self) -> None:
        with pytest.raises(ArchitectureError, match=r"stage 2 of .* has the block 'b!'"):
            Architecture.parse("a_a-b!")


class TestJson:
    @given(spaces_with_architecture())
    def test_round_trip(self, pair: Pair) -> None:
        _, architecture = pair
        data = architecture.to_json()
        assert Architecture.from_json(data) == architecture
        assert Architecture.from_json(json.dumps(data)) == architecture

    @pytest.mark.parametrize(
        "data",
        [
            None,
            [],
            "{",
            {},
            {"format": "binas/space", "version": 1, "stages": []},
            {"format": "binas/architecture", "version": 2, "stages": []},
            {"format": "binas/architecture", "version": 1},
            {"format": "binas/architecture", "version": 1, "stages": ["ab"]},
            {"format": "binas/architecture", "version": 1, "stages": [[1]]},
            {"format": "binas/architecture", "version": 1, "stages": [["a-b"]]},
            '{"format": "binas/architecture", "version": 1, "stages": [[NaN]]}',
        ],
    )
    def test_bad_data(self, data: object) -> None:
        with pytest.raises(BinasError, match="architecture JSON"):
            Architecture.from_json(data)


class TestValue:
    def test_immutable_and_hashable(self) -> None:
        architecture = Architecture.of([["a"], []])
        assert {architecture: 1}[Architecture.of([("a",), ()])] == 1
        with pytest.raises(AttributeError):
            architecture.stages = ()  # type: ignore[misc]


class TestMembership:
    @given(spaces_with_architecture())
    def test_members(self, pair: Pair) -> None:
        space, architecture = pair
        space.check(architecture)
        assert architecture in space

    def test_unknown_config_lists_what_is_allowed(self) -> None:
        space = load_space("nas-bench-macro")
        with pytest.raises(ArchitectureError, match=r"block 2 of stage 's1' .* 'id'; allowed are e3k3, e6k5"):
            space.parse("id-id_id_id")
        with pytest.raises(
            ArchitectureError, match=r"block 1 of stage 's3' .* 'E3K3'; allowed are id, e3k3, e6k5"
        ):
            space.parse("id_id_E3K3")

    def test_depth_lists_what_is_allowed(self) -> None:
        with pytest.raises(ArchitectureError, match=r"stage 's1' has depth 3 .* allowed are 1, 2"):
            load_space("nas-bench-macro").parse("id-e3k3-e3k3_id_id")
        with pytest.raises(ArchitectureError, match=r"stage 's2' has depth 0 .* allowed are 1, 2, 3"):
            load_space("nas-bench-macro").parse("id_0_id")

    def test_number_of_stages(self) -> None:
        with pytest.raises(ArchitectureError, match="has 2 stages, the space 'nas-bench-macro' has 3"):
            load_space("nas-bench-macro").parse("id_id")

    def test_other_things_are_not_members(self) -> None:
        space = load_space("nas-bench-macro")
        assert Architecture.of([["id"], ["id"], ["e9"]]) not in space
        assert "id_id_id" not in space
        assert None not in space


class TestCounting:
    @given(plain_spaces(max_stages=2, max_blocks=2))
    def test_count_is_the_number_of_listed_architectures(self, space: SearchSpace) -> None:
        listed = enumerate_all(space)
        assert len(set(listed)) == len(listed) == space.count
        assert all(architecture in space for architecture in listed)

    def test_count_by_hand(self) -> None:
        a, b, c = Config("a"), Config("b"), Config("c")
        first = Stage("s1", (0, 2, 3), ((a, b), (a, b, c), (a,)))  # 1 + 2 * 3 + 2 * 3 * 1 = 13
        second = Stage("s2", (1,), ((a, b),))  # 2
        space = SearchSpace("hand", (first, second))
        assert (first.count, second.count, space.count) == (13, 2, 26)
        assert (space.max_depth, space.alpha_size, space.beta_size) == (3, 8, 4)

    def test_large_spaces_are_not_listed(self) -> None:
        with pytest.raises(ProblemError, match="5906234995112194080768 architectures; at most 2000000"):
            enumerate_all(load_space("imagenet-mbconv"))

    def test_order_of_listing(self) -> None:
        stage = Stage("s", (0, 2), ((Config("b"), Config("a")), (Config("c"),)))
        assert [str(a) for a in enumerate_all(SearchSpace("x", (stage,)))] == ["0", "b-c", "a-c"]


class TestIndices:
    @given(spaces_with_architecture())
    def test_round_trip(self, pair: Pair) -> None:
        space, architecture = pair
        depths, configs = space.to_indices([architecture, architecture])
        assert depths.tolist() == [list(architecture.depths)] * 2
        assert configs.shape == (2, len(space.stages), space.max_depth)
        assert int((configs[0] >= 0).sum()) == sum(architecture.depths)
        assert space.from_indices(depths[1].tolist(), configs[1].tolist()) == architecture

    def test_no_architectures(self) -> None:
        depths, configs = load_space("small-28").to_indices([])
        assert (depths.shape, configs.shape) == ((0, 3), (0, 3, 3))
        assert depths.dtype == np.int64


@given(plain_spaces())
def test_extremes(space: SearchSpace) -> None:
    deep, shallow = space.extreme(), space.extreme(heaviest=False)
    assert deep in space
    assert shallow in space
    assert deep.depths == tuple(max(stage.depths) for stage in space.stages)
    assert shallow.depths == tuple(min(stage.depths) for stage in space.stages)


def test_extremes_take_last_and_first_configs() -> None:
    space = load_space("nas-bench-macro")
    assert str(space.extreme()) == "e6k5-e6k5_e6k5-e6k5-e6k5_e6k5-e6k5-e6k5"
    assert str(space.extreme(heaviest=False)) == "id_id_id"


def test_a_space_can_key_a_dictionary() -> None:
    text = (
        "format: binas/space\nversion: 1\nname: x\nstages: [{name: s, depths: [1], configs: {k: [1, 2]}}]\n"
    )
    one, two = space_from_yaml(text), space_from_yaml(text)
    assert {one: "found"}[two] == "found"
    assert math.prod(stage.count for stage in one.stages) == 2
