from __future__ import annotations

import json

import pytest

from binas.base.errors import BinasError
from binas.space import load_space, to_block_string
from binas.space.reading import read_architecture


def test_every_form_of_one_architecture() -> None:
    space = load_space("demo")
    architecture = space.parse("e2k3_e3k5se-e4k3_e2k5")
    forms = [str(architecture), json.dumps(architecture.to_json()), to_block_string(space, architecture)]
    assert [read_architecture(space, f" {text}\n") for text in forms] == [architecture] * 3


@pytest.mark.parametrize("text", ["", "[", "{", "[]", "{}", "e9_e9_e9", "e2k3_e2k3"])
def test_bad_text(text: str) -> None:
    with pytest.raises(BinasError):
        read_architecture(load_space("demo"), text)


def test_json_of_another_space() -> None:
    foreign = json.dumps(load_space("nas-bench-macro").parse("id_id_id").to_json())
    with pytest.raises(BinasError, match="unknown config 'id'; allowed are e2k3, "):
        read_architecture(load_space("demo"), foreign)
