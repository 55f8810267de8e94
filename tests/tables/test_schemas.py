"""The published JSON Schemas accept every file we write and refuse what the loaders refuse."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator, ValidationError
from test_table_files import COST_BREAKAGES, SPACE, changed, example_contributions, example_costs

from binas.base.errors import SpaceError, TableError
from binas.base.files import dump_json
from binas.space import SearchSpace, builtin_names, load_space, space_from_data, space_to_data
from binas.tables import schema
from binas.tables.contributions import contributions_from_data
from binas.tables.costs import costs_from_data
from strategies import contributions, cost_tables, spaces

KINDS = ["space", "contributions", "costs"]


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema(kind))


def as_json(data: Any) -> Any:
    return json.loads(dump_json(data))


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_valid_and_plain_json(kind: str) -> None:
    body = schema(kind)
    Draft202012Validator.check_schema(body)
    assert as_json(body) == body
    assert body["$id"] == f"binas/{kind}/1"
    assert body["properties"]["version"]["const"] == 1


def test_unknown_kind() -> None:
    with pytest.raises(TableError, match="no schema 'model'; known are space, contributions, costs"):
        schema("model")


class TestAccepts:
    @given(spaces())
    def test_spaces(self, space: SearchSpace) -> None:
        validator("space").validate(as_json(space_to_data(space)))

    @settings(max_examples=25)
    @given(spaces(max_stages=2, max_blocks=2).flatmap(lambda s: st.tuples(contributions(s), cost_tables(s))))
    def test_tables(self, tables: tuple[Any, Any]) -> None:
        validator("contributions").validate(as_json(tables[0].to_data()))
        validator("costs").validate(as_json(tables[1].to_data()))

    @pytest.mark.parametrize("name", builtin_names())
    def test_builtins(self, name: str) -> None:
        validator("space").validate(as_json(space_to_data(load_space(name))))


class TestRefuses:
    @pytest.mark.parametrize(("path", "value", "message"), COST_BREAKAGES)
    def test_costs(self, path: list[Any], value: Any, message: str) -> None:
        with pytest.raises(ValidationError):
            validator("costs").validate(changed(example_costs().to_data(), path, value))

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (["base"], "75%"),
            (["base"], None),
            (["unit"], "fraction"),
            (["depths", "s1", "2"], "deep"),
            (["depths"], []),
            (["configs", "s1", 0, "id"], {"stderr": 0.1}),
            (["configs", "s1", 0, "id"], {"value": 0.1, "error": 0.1}),
            (["more"], 1),
        ],
    )
    def test_contributions(self, path: list[Any], value: Any) -> None:
        data = changed(example_contributions().to_data(), path, value)
        with pytest.raises(ValidationError):
            validator("contributions").validate(data)
        with pytest.raises(TableError):
            contributions_from_data(data, SPACE, "file")

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (["name"], "two words"),
            (["version"], 2),
            (["channels"], "3"),
            (["channels"], 0),
            (["stages"], []),
            (["stages", 0, "depths"], []),
            (["stages", 0, "depths"], [-1]),
            (["stages", 0, "depths"], ["two"]),
            (["stages", 0, "configs"], []),
            (["stages", 0, "configs", 0, "name"], "a_b"),
            (["stages", 0, "configs", 0, "kernel"], [3]),
            (["stages", 0, "channels"], None),
            (["extra"], True),
        ],
    )
    def test_spaces(self, path: list[Any], value: Any) -> None:
        data = changed(space_to_data(load_space("small-28")), path, value)
        with pytest.raises(ValidationError):
            validator("space").validate(data)
        with pytest.raises(SpaceError):
            space_from_data(data)

    @pytest.mark.parametrize("key", ["format", "version", "costs"])
    def test_missing_keys(self, key: str) -> None:
        data = example_costs().to_data()
        del data[key]
        with pytest.raises(ValidationError):
            validator("costs").validate(data)
        with pytest.raises(TableError, match=f"{key}: Field required"):
            costs_from_data(data, SPACE, "file")
