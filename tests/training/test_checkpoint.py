import json

import pytest
import torch
from torch import nn

from binas.base.errors import BinasError, CheckpointError, FileError
from binas.training.checkpoint import (
    has_checkpoint,
    load_checkpoint,
    load_weights,
    remove_checkpoint,
    save_checkpoint,
    weights_digest,
)


def tensors(value: float = 1.0) -> dict[str, torch.Tensor]:
    return {"a": torch.full((2, 3), value), "b": torch.arange(4)}


def test_round_trip_keeps_bits_and_values(tmp_path):
    save_checkpoint(tmp_path, "x", tensors(), {"epoch": 3, "best": None})
    found = load_checkpoint(tmp_path, "x")
    assert found.values == {"epoch": 3, "best": None}
    assert all(torch.equal(found.tensors[name], value) for name, value in tensors().items())
    assert found.tensors["b"].dtype == torch.int64


def test_a_new_one_replaces_the_old_and_leaves_no_litter(tmp_path):
    save_checkpoint(tmp_path, "x", tensors(1), {})
    save_checkpoint(tmp_path, "x", tensors(2), {})
    assert float(load_checkpoint(tmp_path, "x").tensors["a"][0, 0]) == 2
    assert len(list(tmp_path.iterdir())) == 2
    remove_checkpoint(tmp_path, "x")
    assert not has_checkpoint(tmp_path, "x")
    assert not list(tmp_path.iterdir())


def test_killed_before_the_json_is_written_the_old_one_is_whole(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, "x", tensors(1), {"step": 1})

    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("binas.training.checkpoint.write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, "x", tensors(2), {"step": 2})
    found = load_checkpoint(tmp_path, "x")
    assert found.values == {"step": 1}
    assert float(found.tensors["a"][0, 0]) == 1


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "json", "format", "escape"])
def test_damage_is_named(tmp_path, damage):
    save_checkpoint(tmp_path, "x", tensors(), {})
    header = tmp_path / "x.json"
    data = next(tmp_path.glob("*.safetensors"))
    content = bytearray(data.read_bytes())
    if damage == "truncate":
        data.write_bytes(content[:-5])
    elif damage == "flip":
        content[-1] ^= 1
        data.write_bytes(content)
    elif damage == "delete":
        data.unlink()
    elif damage == "json":
        header.write_text(header.read_text()[:-20])
    elif damage == "format":
        header.write_text(json.dumps({"format": "other"}))
    else:
        header.write_text(header.read_text().replace(data.name, f"../{data.name}"))
    with pytest.raises(BinasError, match=r"x"):
        load_checkpoint(tmp_path, "x")


def test_the_digest_is_that_of_the_weights():
    one, two = nn.Linear(3, 2), nn.Linear(3, 2)
    assert weights_digest(one) != weights_digest(two)
    two.load_state_dict(one.state_dict())
    assert weights_digest(one) == weights_digest(two)


def test_a_missing_checkpoint_is_a_file_error(tmp_path):
    with pytest.raises(FileError):
        load_checkpoint(tmp_path, "x")


def test_weights_of_another_network_are_refused():
    saved = nn.Linear(3, 2).state_dict()
    for other in (nn.Linear(4, 2), nn.Linear(3, 2, bias=False), nn.Sequential(nn.Linear(3, 2))):
        before = {name: value.clone() for name, value in other.state_dict().items()}
        with pytest.raises(CheckpointError, match="do not fit"):
            load_weights(other, saved, "here")
        assert all(torch.equal(before[name], value) for name, value in other.state_dict().items())
