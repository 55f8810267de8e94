"""Interval, identity and typed files."""

import json
import math
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from binas.base.errors import FileError, TableError
from binas.base.identity import changes, file_digest, flattened, identity_of
from binas.base.interval import Interval
from binas.base.typed import read_typed


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    tau: Interval


@dataclass(frozen=True)
class Record:
    step: str
    count: int = 0


class TestInterval:
    def test_for_people_and_files(self):
        assert f"{Interval(0.9061, 0.88, 0.93):.2f}" == "0.91 (0.88 to 0.93)"
        assert Interval(1.0, 0.5, math.nan).to_json() == {"value": 1.0, "low": 0.5, "high": None}
        assert Interval(2.0, 1.0, 4.0).scaled(1e3) == Interval(2000.0, 1000.0, 4000.0)

    def test_as_part_of_a_typed_file(self):
        stored = Strict(tau=Interval(1.0, 0.5, 1.5)).model_dump(mode="json")
        assert stored == {"tau": {"value": 1.0, "low": 0.5, "high": 1.5}}
        assert Strict.model_validate(stored).tau == Interval(1.0, 0.5, 1.5)

    @pytest.mark.parametrize("wrong", [{"high": math.nan}, {"other": 1.0}, {"low": "x"}])
    def test_a_typed_file_refuses_what_is_none(self, wrong):
        with pytest.raises(ValidationError):
            Strict.model_validate({"tau": {"value": 1.0, "low": 0.5, "high": 1.5, **wrong}})


class TestIdentity:
    def test_the_order_of_names_does_not_matter(self):
        assert identity_of({"a": 1, "b": [2]}) == identity_of({"b": [2], "a": 1})
        assert identity_of({"a": 1}) != identity_of({"a": 2})

    def test_the_digest_of_a_file(self, tmp_path):
        (tmp_path / "empty").write_bytes(b"")
        assert file_digest(tmp_path / "empty").startswith("e3b0c442")
        with pytest.raises(FileError, match="cannot read"):
            file_digest(tmp_path / "none")

    def test_nested_settings_as_one_level(self):
        assert flattened({"a": {"b": 1, "c": {"d": 2}}, "e": []}) == {"a.b": 1, "a.c.d": 2, "e": []}

    def test_changes_are_named(self):
        assert changes({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": "x"}) == [
            "b was 2, now 5",
            "c was 3, now None",
            "d was None, now 'x'",
        ]
        assert len(changes({"a": "x" * 1000}, {})[0]) == 300


class TestTypedFiles:
    def test_models_and_dataclasses(self, tmp_path):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"step": "costs", "count": 2}))
        assert read_typed(Record, path, "Delete it.") == Record("costs", 2)

    def test_damage_is_named_with_advice(self, tmp_path):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"step": "costs", "count": "many"}))
        with pytest.raises(FileError, match=r"x\.json is damaged: count: .* Delete it\."):
            read_typed(Record, path, "Delete it.")
        path.write_text("[]")
        with pytest.raises(TableError, match=r"damaged: the whole file: .* Delete it"):
            read_typed(Strict, path, "Delete it.", TableError)
