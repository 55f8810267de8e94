"""Quantisation: the file, and honest figures before and after."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from exported import network_and_facts
from small_data import bar_data

from binas.base.interval import Interval
from binas.costs.session import Plan
from binas.export import Int8Facts, Quantisation, export_network
from binas.export.graph import Graph
from binas.export.graph_files import OnnxRun, onnx_file
from binas.export.int8 import onnx_accuracy, quantise

SHORT = Plan(rounds=3, tolerance=1e9, budget=1e9, sample_seconds=1e-4)  # three rounds, however long they take


def bars_network():
    data = bar_data()
    network, facts = network_and_facts()
    return network, replace(facts, mean=data.mean, std=data.std), data


@pytest.fixture(scope="module")
def quantised(tmp_path_factory):
    network, facts, data = bars_network()
    how = Quantisation(data, calibration=100, plan=SHORT)
    folder = tmp_path_factory.mktemp("int8") / "x"
    return network, facts, data, how, export_network(network, facts, folder, (), quantisation=how)


def follow(graph, tensor, steps):
    """Kinds of the first nodes on the way from a tensor."""
    kinds = []
    for _ in range(steps):
        node = next(node for node in graph.node if tensor in node.input)
        kinds.append(node.op_type)
        tensor = node.output[0]
    return kinds


def test_weights_and_activations_are_quantised_but_not_the_normalisation(quantised):
    *_, done = quantised
    model = onnx.load(done.folder / "model.int8.onnx")
    onnx.checker.check_model(model)
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("QuantizeLinear") > 5
    assert follow(model.graph, "images", 4) == ["Cast", "Mul", "Add", "QuantizeLinear"]
    stored = {
        item.name: item.data_type
        for item in model.graph.initializer
        if len(item.dims) == 4 and item.dims[0] > 1
    }
    assert set(stored.values()) == {onnx.TensorProto.INT8}
    scales = [item.dims for item in model.graph.initializer if "scale" in item.name]
    assert any(dims and dims[0] > 1 for dims in scales)  # one per channel


def test_logits_stay_close(quantised):
    network, facts, data, how, done = quantised
    graph = Graph.of(network, facts, "bytes")
    images = data.test.images
    before, after = (
        OnnxRun((done.folder / f).read_bytes())(images) for f in ("model.onnx", "model.int8.onnx")
    )
    assert np.corrcoef(before.flatten(), after.flatten())[0, 1] > 0.95
    assert not torch.equal(before, after)
    assert quantise(graph, onnx_file(graph)[0], how) == (done.folder / "model.int8.onnx").read_bytes()


def test_figures_are_those_of_the_files(quantised):
    *_, data, _, done = quantised
    found = done.model.int8
    labels = data.test.labels.numpy()
    for name, percent in (("model.onnx", found.accuracy_before), ("model.int8.onnx", found.accuracy)):
        session = onnxruntime.InferenceSession(done.folder / name, providers=["CPUExecutionProvider"])
        (logits,) = session.run(None, {"images": data.test.images.numpy()})
        assert percent == pytest.approx(100 * (logits.argmax(1) == labels).mean())
    assert (found.images, found.part, found.calibration) == (len(labels), "test", 100)
    assert (found.byte_count, found.byte_count_before) == tuple(
        (done.folder / name).stat().st_size for name in ("model.int8.onnx", "model.onnx")
    )
    for time in (found.latency, found.latency_before):
        assert 0 < time.low <= time.value <= time.high
    assert "onnxruntime" in found.runtime
    text = (done.folder / "README.md").read_text()
    assert found.verdict in text
    assert f"| int8 | {found.accuracy:.2f} % |" in text


def test_it_is_not_measured_again(quantised, monkeypatch):
    network, facts, _, how, done = quantised
    monkeypatch.setattr("binas.export.exporting.quantise", lambda *_: 1 / 0)
    again = export_network(network, facts, done.folder, ("safetensors",), quantisation=how)
    assert not again.written
    assert export_network(network, facts, done.folder, ("onnx",)).model.int8 == done.model.int8


def test_validation_images_and_normalised_input():
    network, facts, data = bars_network()
    graph = Graph.of(network, facts, "normalised")
    model, _ = onnx_file(graph)
    how = Quantisation(data, "validation", calibration=40)
    found = onnx_accuracy(graph, model, how)
    raw = onnx_accuracy(
        Graph.of(network, facts, "bytes"), onnx_file(Graph.of(network, facts, "bytes"))[0], how
    )
    assert found == raw
    assert found.images == len(data.validation)
    assert len(quantise(graph, model, how)) > 0


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (Interval(2.0, 1.9, 2.1), "slower than float32 on this machine (2.00 times its latency)"),
        (Interval(0.5, 0.4, 0.6), "2.00 times as fast as float32 on this machine"),
        (Interval(1.02, 0.99, 1.05), "as fast as float32 on this machine within the noise"),
    ],
)
def test_the_verdict_says_when_it_is_slower(after, said):
    before = Interval(1.0, 0.98, 1.01)
    facts = Int8Facts("0" * 64, 30, 100, 8, "test", 10, 90.0, 89.5, before, after, "cpu", "ort")
    assert said in facts.verdict
    assert "-0.50 points" in facts.verdict
    assert "30%" in facts.verdict
