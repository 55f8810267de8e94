from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from binas.base.errors import BinasError, FileError, SpaceError
from binas.space import (
    Config,
    SearchSpace,
    Stage,
    load_space,
    save_space,
    space_from_data,
    space_from_yaml,
    space_to_data,
    space_to_yaml,
)
from strategies import spaces

GOOD = """\
format: binas/space
version: 1
name: small
channels: 3
stem: [cn_r1_k3_s2_c16]
stages:
  - name: s1
    depths: [0, 2]
    channels: 16
    configs: {kernel: [3, 5], se: [off, on]}
  - name: s2
    depths: [1, 2]
    blocks:
      - configs: [{name: a, width: 1.5}, {name: b, kind: wide}]
      - configs: [{name: a, width: 2}]
head: []
"""


CONTROL = [
    "\x85",
    "a\u2028b",
    "\u2029",
    "\ufeff",
    "\x00",
    "\x7f",
    "a\nb \n",
    " lead",
    "tail ",
    "\t",
    "\r\n",
    "'\"\\",
]
WORDS_WITH_A_MEANING = ["yes", "1e3", "0o7", "~", "# no", "*a", "!tag", "2024-01-01", "1:30", "<<", "="]


def exact(space: SearchSpace) -> str:
    """Everything in a space, with types: Python takes 1, 1.0 and True for equal."""
    return repr(space)


class TestRoundTrip:
    @given(spaces())
    def test_yaml(self, space: SearchSpace) -> None:
        again = space_from_yaml(space_to_yaml(space))
        assert again == space
        assert exact(again) == exact(space)
        assert again.fingerprint == space.fingerprint

    @pytest.mark.parametrize("text", [*CONTROL, *WORDS_WITH_A_MEANING, "\U0001f600", "", "x " * 99])
    def test_any_text(self, text: str) -> None:
        block = (Config("a", ((text, text), ("option", text))),)
        space = SearchSpace("text", (Stage("s", (1,), (block,), (("y", text),)),), description=text)
        assert exact(space_from_yaml(space_to_yaml(space))) == exact(space)

    @given(spaces())
    def test_plain_data_and_json(self, space: SearchSpace) -> None:
        data = space_to_data(space)
        assert exact(space_from_data(data)) == exact(space)
        assert exact(space_from_data(json.loads(json.dumps(data)))) == exact(space)

    @pytest.mark.parametrize("name", ["space.yaml", "space.json"])
    def test_files(self, tmp_path: Path, name: str) -> None:
        space = space_from_yaml(GOOD)
        save_space(space, tmp_path / name)
        assert exact(load_space(tmp_path / name)) == exact(space)
        assert exact(load_space(str(tmp_path / name))) == exact(space)

    def test_json_space_may_be_indented_with_tabs(self, tmp_path: Path) -> None:
        space = space_from_yaml(GOOD)
        (tmp_path / "space.json").write_text(json.dumps(space_to_data(space), indent="\t"))
        assert load_space(tmp_path / "space.json") == space

    def test_blocks_that_python_takes_for_equal_stay_apart(self) -> None:
        blocks = tuple((Config("a", (("x", value),)),) for value in (1, True, 1.0))
        space = SearchSpace("types", (Stage("s", (3,), blocks),))
        assert exact(space_from_yaml(space_to_yaml(space))) == exact(space)

    def test_options_keep_their_order_per_block(self) -> None:
        blocks = ((Config("a", (("x", 1), ("y", 2))),), (Config("a", (("y", 2), ("x", 1))),))
        space = SearchSpace("order", (Stage("s", (2,), blocks),))
        assert exact(space_from_yaml(space_to_yaml(space))) == exact(space)


class TestFromYamlToPython:
    def test_what_the_file_says(self) -> None:
        space = space_from_yaml(GOOD)
        names = ["k3", "k3se", "k5", "k5se"]
        assert [[c.name for c in block] for block in space.stages[0].blocks] == [names, names]
        assert space.stages[0].blocks[0][1].options == (("kernel", 3), ("se", True))
        assert space.stages[0].get("channels") == 16
        assert space.stages[1].blocks[0][0] == Config("a", (("width", 1.5),))
        assert space.stages[1].blocks[0][1].get("kind") == "wide"
        assert (space.channels, space.resolution, space.stem) == (3, None, ("cn_r1_k3_s2_c16",))
        assert [stage.depths for stage in space.stages] == [(0, 2), (1, 2)]

    def test_names_made_from_any_keys(self) -> None:
        text = GOOD.replace(
            "kernel: [3, 5], se: [off, on]", "se_ratio: [0.25], use-it: [on], activation: [re]"
        )
        assert [c.name for c in space_from_yaml(text).stages[0].blocks[0]] == ["seratio0.25useitre"]

    def test_no_options_at_all(self) -> None:
        text = GOOD.replace("kernel: [3, 5], se: [off, on]", "se: [off]")
        assert [c.name for c in space_from_yaml(text).stages[0].blocks[0]] == ["plain"]

    def test_name_and_description_are_not_the_meaning(self) -> None:
        space = space_from_yaml(GOOD)
        renamed = space_from_yaml(GOOD.replace("name: small", "name: other\ndescription: words"))
        wider = space_from_yaml(GOOD.replace("width: 2", "width: 3"))
        assert space.fingerprint == renamed.fingerprint != wider.fingerprint


def broken(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (broken("version: 1", "version: 2"), r"version \(line 2\): Input should be 1"),
        (broken("name: small", "name: sm all"), r"name \(line 3\): .*pattern"),
        (broken("name: small\n", ""), r"name \(line 1\): Field required"),
        (broken("channels: 3", "channels: '3'"), r"channels \(line 4\): .*integer"),
        (broken("channels: 3", "chanels: 3"), r"chanels \(line 4\): Extra inputs"),
        (
            broken("depths: [0, 2]", "depths: [2, 0]"),
            r"stages\.0 \(line 7\): depths must increase .* \[2, 0\]",
        ),
        (broken("depths: [0, 2]", "depths: [1, 1, 2]"), r"stages\.0 \(line 7\): depths must increase"),
        (broken("depths: [0, 2]", "depths: []"), r"stages\.0\.depths \(line 8\): .*at least 1"),
        (broken("depths: [0, 2]", "depths: [-1, 2]"), r"stages\.0\.depths\.0 \(line 8\): .*greater than"),
        (broken("depths: [0, 2]", "depths: [1.0]"), r"stages\.0\.depths\.0 \(line 8\): .*integer"),
        (broken("depths: [0, 2]", "depths: [100000]"), r"stages\.0\.depths\.0 \(line 8\): .*1000"),
        (
            broken("depths: [1, 2]", "depths: [1, 3]"),
            r"stages\.1 \(line 11\): the largest depth is 3 but 2 blocks",
        ),
        (
            broken("    channels: 16\n", "    channels: [16]\n"),
            r"stages\.0\.channels \(line 9\): must be .*\[16\]",
        ),
        (broken("kernel: [3, 5]", "kernel: []"), r"stages\.0\.configs\.kernel \(line 10\): .*at least 1"),
        (broken("kernel: [3, 5]", "kernel: 3"), r"stages\.0\.configs\.kernel \(line 10\): .*list"),
        (
            broken("kernel: [3, 5]", "kernel: [.nan]"),
            r"stages\.0\.configs\.kernel\.0 \(line 10\): must be .*nan",
        ),
        (broken("name: a, width: 1.5", "name: a_b"), r"stages\.1\.blocks\.0\.configs\.0\.name \(line 14\)"),
        (
            broken("width: 1.5", "width: .inf"),
            r"stages\.1\.blocks\.0\.configs\.0\.width \(line 14\): must be",
        ),
        (
            broken("    blocks:", "    configs: {kernel: [3]}\n    blocks:"),
            r"stages\.1 \(line 11\): give either",
        ),
        (broken("stem: [cn_r1_k3_s2_c16]", "stem: [xx_r1_k3]"), r"stem\.0 \(line 5\): .*starts with 'xx'"),
        (broken("head: []", "head: [cn_r1_k1_c8, cn_q1]"), r"head\.1 \(line 16\): .*unknown part 'q1'"),
        (broken("kernel: [3, 5]", "kernel: [3, -3]"), r"stage 's1': block 1: 'k-3' cannot name a config"),
        (broken("kernel: [3, 5]", "kernel: [3, 3]"), r"stage 's1': block 1: two configs are called 'k3'"),
        (broken("name: b, kind", "name: a, kind"), r"stage 's2': block 1: two configs are called 'a'"),
        (broken("name: b, kind", "name: '0', kind"), r"stage 's2': block 1: .*means an empty stage"),
        (broken("- name: s2", "- name: s1"), r"two stages are called 's1'"),
        ("", "the whole file: must be a mapping"),
        ("just text", r"the whole file \(line 1\): must be a mapping"),
    ],
)
def test_errors_name_line_and_key(text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        space_from_yaml(text)


def test_all_problems_at_once() -> None:
    text = broken("version: 1", "version: 3").replace("[0, 2]", "[2, 0]").replace("width: 1.5", "width: [1]")
    with pytest.raises(SpaceError) as caught:
        space_from_yaml(text)
    assert [
        part in str(caught.value) for part in ("version (line 2)", "stages.0 (line 7)", "width (line 14)")
    ] == [True] * 3
    assert str(caught.value).count("(line") == 3


def test_too_many_configs_are_not_expanded() -> None:
    lists = ", ".join(f"o{i}: [{', '.join(map(str, range(100)))}]" for i in range(20))
    with pytest.raises(SpaceError, match="at most 250000 can be searched"):
        space_from_yaml(broken("kernel: [3, 5], se: [off, on]", lists))


def test_yaml_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(FileError, match="line 2: YAML aliases"):
        space_from_yaml("\n".join(lines))


class TestLoading:
    def test_unknown_name_lists_the_built_ins(self) -> None:
        with pytest.raises(SpaceError, match=r"'imagenet' is neither a built-in space \(demo, fused-28, "):
            load_space("imagenet")

    @pytest.mark.parametrize("name", ["x" * 10_000, "a\0b", ""])
    def test_names_that_cannot_be(self, name: str) -> None:
        with pytest.raises(BinasError):
            load_space(name)

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileError, match="No such file"):
            load_space(tmp_path / "space.yaml")

    def test_error_names_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "mine.yaml").write_text("a: 1")
        with pytest.raises(SpaceError, match=r"mine\.yaml is not a valid search space"):
            load_space(tmp_path / "mine.yaml")

    def test_failed_save_keeps_the_old_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("old")
        with pytest.raises(FileError):
            save_space(space_from_yaml(GOOD), tmp_path / "file" / "space.yaml")
        assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "its name"),
        ({"stages": ()}, "no stages"),
        ({"channels": 0}, "channels must be"),
        ({"classes": True}, "classes must be"),
        ({"stages": (Stage("s", (2, 1), ((Config("a"),),) * 2),)}, "stage 's': depths must increase"),
        ({"stages": (Stage("s", (), ()),)}, "stage 's': depths must be"),
        ({"stages": (Stage("s", (1.0,), ((Config("a"),),)),)}, "stage 's': depths must be"),
        ({"stages": (Stage("s", (1, 3), ((Config("a"),),) * 2),)}, "largest depth is 3 but 2 blocks"),
        ({"stages": (Stage("s", (1,), ((Config("a"),),) * 2),)}, "largest depth is 1 but 2 blocks"),
        ({"stages": (Stage("s", (1,), ((),)),)}, "block 1: a block has 1 to"),
        ({"stages": (Stage("s", (1,), ((Config("a"), Config("a")),)),)}, "two configs are called 'a'"),
        ({"stages": (Stage("s", (1,), ((Config("a-b"),),)),)}, "'a-b' cannot name a config"),
        ({"stages": (Stage("s", (1,), ((Config("0"),),)),)}, "means an empty stage"),
        ({"stages": (Stage("s", (1,), ((Config("a", (("name", 1),)),),)),)}, "'name' cannot be the key"),
        ({"stages": (Stage("s", (1,), ((Config("a", (("x", None),)),),)),)}, "x must be a finite number"),
        ({"stages": (Stage("s", (1,), ((Config("a", (("x", float("nan")),)),),)),)}, "x must be a finite"),
        ({"stages": (Stage("s", (1,), ((Config("a"),),), (("blocks", 1),)),)}, "'blocks' cannot be the key"),
        ({"stages": (Stage("s t", (1,), ((Config("a"),),)),)}, "stage 's t': its name"),
        ({"stages": (Stage("s", (1,), ((Config("a"),),)),) * 2}, "two stages are called 's'"),
    ],
)
def test_spaces_made_in_python_are_checked_too(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "good", "stages": (Stage("s", (1,), ((Config("a"),),)),)}
    SearchSpace(**good)
    with pytest.raises(SpaceError, match=message):
        SearchSpace(**{**good, **changes})


def test_yaml_we_write_is_plain() -> None:
    data = yaml.safe_load(space_to_yaml(space_from_yaml(GOOD)))
    assert data["stages"][0]["configs"][0] == {"name": "k3", "kernel": 3, "se": False}
