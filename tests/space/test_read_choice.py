"""An architecture as a user names it."""

import json

import pytest
from small_networks import MBCONV

from binas.base.errors import BinasError
from binas.space.blockstrings import read_choice

LIGHTEST, HEAVIEST = MBCONV.extreme(heaviest=False), MBCONV.extreme()


def test_choices_are_read_in_every_form(tmp_path):
    assert read_choice(MBCONV, "lightest") == LIGHTEST
    assert read_choice(MBCONV, str(HEAVIEST)) == HEAVIEST
    forms = {
        "search.json": json.dumps({"status": "optimal", "architecture": str(LIGHTEST)}),
        "architecture.json": json.dumps(LIGHTEST.to_json()),
        "plain.txt": f"{LIGHTEST}\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        assert read_choice(MBCONV, str(tmp_path / name)) == LIGHTEST
    (tmp_path / "none.json").write_text(json.dumps({"status": "infeasible", "architecture": None}))
    for bad in (tmp_path / "none.json", tmp_path, "e9k9", tmp_path / "nowhere.json"):
        with pytest.raises(BinasError):
            read_choice(MBCONV, str(bad))
