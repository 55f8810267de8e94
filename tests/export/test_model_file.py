"""Weights and description: what is written is built again, what is damaged is refused."""

import hashlib
import json
from contextlib import suppress

import pytest
import torch
from exported import network_and_facts
from hypothesis import given, strategies as st
from safetensors.torch import load, save
from small_networks import SPACES, images

import binas
from binas.base.errors import BinasError, ModelError
from binas.export import export_network, load_model, read_model_file

ONLY_WEIGHTS = ("safetensors",)


@pytest.fixture
def folder(tmp_path):
    network, facts = network_and_facts()
    return export_network(network, facts, tmp_path / "x", ONLY_WEIGHTS).folder


@pytest.mark.parametrize("name", SPACES)
def test_the_same_network_comes_back(tmp_path, name):
    network, facts = network_and_facts(name, seed=3)
    done = export_network(network, facts, tmp_path, ONLY_WEIGHTS)
    batch = images(facts.space, 4)
    again = load_model(tmp_path)
    assert torch.equal(again(batch), network(batch))
    assert not again.training
    assert all(parameter.requires_grad for parameter in again.parameters())
    assert {path.name for path in done.files} == {path.name for path in tmp_path.iterdir()}
    assert done.model.parameters == sum(parameter.numel() for parameter in network.parameters())


def test_a_path_may_name_the_folder_or_a_file_of_it(folder):
    batch = torch.ones(1, 3, 12, 12)
    found = [binas.load_model(path)(batch) for path in (folder, str(folder / "model.json"))]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], binas.load_model(folder / "model.safetensors")(batch))


def test_the_description_says_what_goes_in_and_how_good_it_is(folder):
    model = read_model_file(folder / "model.json")
    assert model.input.shape == (3, 12, 12)
    assert (model.input.mean, model.input.std) == ((0.3, 0.4, 0.5), (0.2, 0.25, 0.3))
    assert model.classes[2] == "a_b"
    assert (model.limits, model.accuracy[0].percent, model.latency[0].ms) == (("latency=2ms",), 81.25, 1.9)
    assert model.weights.sha256 == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def replace_weights(folder, change):
    """Other tensors with a digest that fits, as someone who means harm would make them."""
    path = folder / "model.safetensors"
    tensors = load(path.read_bytes())
    change(tensors)
    data = save(tensors)
    path.write_bytes(data)
    edit(folder, weights={"sha256": hashlib.sha256(data).hexdigest(), "byte_count": len(data)})


def edit(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def cut(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-10])


def flip(folder):
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-5] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(data))


def not_tensors(folder):
    data = b"\xff" * 100
    (folder / "model.safetensors").write_bytes(data)
    edit(folder, weights={"sha256": hashlib.sha256(data).hexdigest(), "byte_count": 100})


def half(tensors):
    tensors["head.classifier.weight"] = tensors["head.classifier.weight"].half()


def whole_numbers(tensors):
    tensors["head.classifier.weight"] = tensors["head.classifier.weight"].long()


def narrow(tensors):
    tensors["head.classifier.weight"] = tensors["head.classifier.weight"][:3].contiguous()


def larger(folder, **sizes):
    space = json.loads((folder / "model.json").read_text())["space"]
    edit(folder, space={**space, **sizes})


DAMAGE = {
    "cut off": (cut, "SHA-256"),
    "one bit": (flip, "SHA-256"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "cannot read"),
    "no tensors": (not_tensors, "not a safetensors file"),
    "other number type": (lambda f: replace_weights(f, half), "float16"),
    "whole numbers": (lambda f: replace_weights(f, whole_numbers), "int64 instead of"),
    "other shape": (lambda f: replace_weights(f, narrow), "do not fit"),
    "tensor missing": (lambda f: replace_weights(f, lambda t: t.pop("head.classifier.bias")), "missing"),
    "other version": (lambda f: edit(f, version=2), "version"),
    "other architecture": (lambda f: edit(f, architecture="e9k9"), "does not describe"),
    "no space": (lambda f: edit(f, space={"name": "x"}), "does not describe"),
    "key too many": (lambda f: edit(f, code="import os"), "damaged: code"),
    "layers no memory holds": (
        lambda f: larger(f, head=["cn_r1_k1_s1_c1000000"], features=10**6),
        "do not fit",
    ),
    "more than can be counted": (lambda f: larger(f, channels=10**17), "can be built"),
    "no JSON": (lambda f: (f / "model.json").write_text('{"format": '), "not complete JSON"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_and_named(folder, name):
    damage, said = DAMAGE[name]
    damage(folder)
    with pytest.raises(BinasError, match=said):
        load_model(folder)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match="no exported model"):
        load_model(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    network, facts = network_and_facts()
    folder = export_network(network, facts, tmp_path_factory.mktemp("written") / "x", ONLY_WEIGHTS).folder
    return folder, (folder / "model.json").read_text()


@given(data=st.data())
def test_a_changed_description_is_refused_or_harmless(written, data):
    """Any value of the JSON replaced by any other: an error of ours, or a network of the same form."""
    folder, text = written
    content = json.loads(text)
    place, parts = content, []
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        parts.append((place, data.draw(st.sampled_from(list(keys)))))
        place = parts[-1][0][parts[-1][1]]
    where, key = data.draw(st.sampled_from(parts))
    where[key] = data.draw(st.none() | st.integers() | st.text(max_size=5) | st.just({}) | st.just([1]))
    (folder / "model.json").write_text(json.dumps(content))
    with suppress(BinasError):
        assert load_model(folder)(torch.ones(1, 3, 12, 12)).shape == (1, 5)
