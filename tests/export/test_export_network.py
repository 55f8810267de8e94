"""Files for others: they compute what PyTorch computes, are made once, and overwrite nothing else."""

import io
import re
import shutil
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from exported import MEAN, STD, network_and_facts
from small_networks import SPACES

from binas.base.errors import BinasError, ModelError
from binas.base.files import write_bytes
from binas.data import normalise
from binas.export import export_network, load_model
from binas.export.card import draw
from binas.export.graph import Graph
from binas.export.graph_files import BATCHES, Parity, check_parity, onnx_file, torch_file
from binas.supernet.weights.equality import TOLERANCE


def some_bytes(count: int, seed: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count, 3, 12, 12), generator=generator, dtype=torch.uint8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One export with everything but int8."""
    network, facts = network_and_facts()
    done = export_network(network, facts, tmp_path_factory.mktemp("whole") / "x")
    return network, facts, done


@pytest.fixture
def copied(whole, tmp_path):
    network, facts, done = whole
    return network, facts, shutil.copytree(done.folder, tmp_path / "x")


@pytest.mark.parametrize("batch", [1, 3])
def test_files_take_bytes_and_give_the_logits_of_the_network(whole, batch):
    network, _, done = whole
    images = some_bytes(batch)
    with torch.inference_mode():
        wanted = network(normalise(images, MEAN, STD)).numpy()
    session = onnxruntime.InferenceSession(done.folder / "model.onnx", providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"images": images.numpy()})
    program = torch.export.load(done.folder / "model.pt2").module()
    allowed = TOLERANCE * np.abs(wanted).max()
    assert np.abs(logits - wanted).max() <= allowed
    assert np.abs(program(images).numpy(force=True) - wanted).max() <= allowed


def test_a_space_with_tensorflows_padding(tmp_path):
    network, facts = network_and_facts("tensorflow")
    done = export_network(network, facts, tmp_path / "x")
    images = torch.randint(256, (2, 3, 16, 16), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    with torch.inference_mode():
        floats = normalise(images, MEAN, STD)
        wanted = network(floats)
        assert torch.equal(load_model(done.folder)(floats), wanted)
    session = onnxruntime.InferenceSession(done.folder / "model.onnx", providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"images": images.numpy()})
    assert np.abs(logits - wanted.numpy()).max() <= TOLERANCE * np.abs(wanted.numpy()).max()


def test_the_description_holds_parity_and_the_onnx_file_says_what_it_is(whole):
    _, facts, done = whole
    assert set(done.model.graphs) == {"model.onnx", "model.pt2"}
    for entry in done.model.graphs.values():
        assert [item.batch for item in entry.parity] == [*BATCHES]
        assert all(item.holds and item.largest > 0 for item in entry.parity)
    model = onnx.load(done.folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    notes = {item.key: item.value for item in model.metadata_props}
    assert (notes["architecture"], notes["input"]) == (str(facts.architecture), "bytes")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("name", SPACES)
def test_every_family_is_exported(name):
    network, facts = network_and_facts(name, seed=1)
    graph = Graph.of(network, facts, "bytes")
    assert all(item.holds for item in onnx_file(graph)[1])


def test_files_for_images_that_are_normalised_already():
    network, facts = network_and_facts()
    graph = Graph.of(network, facts, "normalised")
    data, parity = torch_file(graph)
    assert all(item.holds for item in parity)
    images = normalise(some_bytes(4), MEAN, STD)
    program = torch.export.load(io.BytesIO(data)).module()
    assert torch.allclose(program(images), network(images), atol=1e-4)


def test_files_that_compute_something_else_are_refused():
    network, facts = network_and_facts()
    graph = Graph.of(network, facts, "bytes")
    with pytest.raises(ModelError, match=r"model\.onnx does not compute"):
        check_parity(graph, lambda images: graph.module(images) * 1.001, "model.onnx")
    assert Parity(1, 1e-4, 1.0).holds
    assert not Parity(1, 1.1e-4, 1.0).holds
    assert not Parity(1, float("nan"), 1.0).holds


def test_a_repeated_export_changes_nothing(copied):
    network, facts, folder = copied
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = export_network(network, facts, folder)
    assert not again.written
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_later_export_adds_and_repairs_what_is_missing(copied):
    network, facts, folder = copied
    (folder / "model.onnx").write_bytes(b"broken")
    again = export_network(network, facts, folder, ("onnx",))
    assert again.written
    assert set(again.model.graphs) == {"model.onnx", "model.pt2"}
    onnx.checker.check_model(onnx.load(folder / "model.onnx"))


def test_new_facts_change_only_card_and_description(copied):
    network, _, folder = copied
    before = (folder / "model.pt2").stat().st_mtime_ns
    _, other = network_and_facts(limits=("latency=3ms",))
    again = export_network(network, other, folder)
    assert again.model.limits == ("latency=3ms",)
    assert "`latency=3ms`" in (folder / "README.md").read_text()
    assert (folder / "model.pt2").stat().st_mtime_ns == before


def test_folders_of_others_are_left_alone(copied, tmp_path):
    network, facts, folder = copied
    other, other_facts = network_and_facts(seed=9)
    with pytest.raises(ModelError, match="holds another network"):
        export_network(other, other_facts, folder)
    with pytest.raises(ModelError, match="with bytes as input"):
        export_network(network, facts, folder, graph_input="normalised")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "README.md").write_text("precious")
    with pytest.raises(ModelError, match="holds other files"):
        export_network(network, facts, mine)
    with pytest.raises(ModelError, match="is a file"):
        export_network(network, facts, mine / "README.md")
    assert (mine / "README.md").read_text() == "precious"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architecture": SPACES["small"].extreme()}, "do not fit"),
        ({"mean": (0.1,)}, "mean and std have 1 and 3 values"),
        ({"classes": ("a", "b")}, "2 names are given for 5 classes"),
    ],
)
def test_facts_about_another_network_are_refused(tmp_path, changes, said):
    network, facts = network_and_facts()
    with pytest.raises(BinasError, match=said):
        export_network(network, replace(facts, **changes), tmp_path / "x")
    with pytest.raises(BinasError, match="float16 instead of"):
        export_network(network.half(), facts, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("file", ["model.onnx", "README.md", "model.json"])
def test_an_export_killed_at_any_file_is_gone_on_with(tmp_path, monkeypatch, file):
    network, facts = network_and_facts()

    def killed(path, data):
        if path.name == file:
            raise KeyboardInterrupt
        write_bytes(path, data)

    monkeypatch.setattr("binas.export.exporting.write_bytes", killed)
    with pytest.raises(KeyboardInterrupt):
        export_network(network, facts, tmp_path / "x", ("onnx",))
    with pytest.raises(ModelError):
        load_model(tmp_path / "x")
    monkeypatch.undo()
    assert export_network(network, facts, tmp_path / "x", ("onnx",)).written
    load_model(tmp_path / "x")


def test_the_card_can_be_followed(whole, monkeypatch):
    """Its three ways of loading are run as they are printed."""
    _, facts, done = whole
    monkeypatch.chdir(done.folder)
    text = (done.folder / "README.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(snippets) == 3
    for snippet in snippets:
        names: dict = {}
        exec(snippet, names)
        assert tuple(names["logits"].shape) == (1, 5)
    for part in (
        str(facts.architecture),
        "81.25 % of 400 test images",
        "`latency=2ms`",
        "1.9 ms (a CPU; onnxruntime 1, 1 thread)",
        "a\\_b",
        "licence: CC0",
        "binas run config.yaml",
        "uint8, 0 to 255",
    ):
        assert part in text


def test_a_card_without_facts_claims_nothing(tmp_path):
    network, facts = network_and_facts(limits=(), accuracy=(), latency=(), command="", data="", classes=())
    done = export_network(network, facts, tmp_path / "x", ("safetensors",))
    text = (done.folder / "README.md").read_text()
    assert "Limits asked for: none" in text
    assert not any(word in text for word in ("Accuracy", "Latency", "Made by", "Data:", "Classes", "onnx"))


def test_the_drawing_has_a_line_for_each_stage():
    _, facts = network_and_facts("mixed")
    lines = draw(facts.space, facts.space.parse("0_e2-e3se")).splitlines()
    assert [line.split()[0] for line in lines] == ["input", "stem", "s1", "s2", "head"]
    assert lines[2].endswith("(no blocks)")
    assert lines[3].endswith("[e2] -> [e3se]")
    assert "16 x 3 x 3" in lines[3]
    assert "[classifier]" in lines[4]
