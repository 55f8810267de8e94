"""TensorFlow's padding against another implementation of it: the runtime's own SAME_UPPER."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from small_networks import SPACES, images, onnx_logits, scrambled  # noqa: E402

from binas.costs.onnx_graph import to_onnx  # noqa: E402
from binas.space import NetworkRules, parse_block  # noqa: E402
from binas.space.families import ConvShape, MaxPoolShape  # noqa: E402
from binas.supernet import extract, plain_block  # noqa: E402
from binas.supernet.layers import ElasticConv  # noqa: E402
from binas.supernet.plain import ConvNorm, MaxPool  # noqa: E402

SAME = NetworkRules(padding="same")
CASES = [(size, kernel, stride) for size in (5, 8, 9, 12) for kernel in (3, 5, 7) for stride in (1, 2, 3)]


def reference(
    operation: str, x: torch.Tensor, kernel: int, stride: int, weight: torch.Tensor | None
) -> torch.Tensor:
    """One node with ``auto_pad=SAME_UPPER``, which is what TensorFlow's SAME is called in ONNX."""
    settings = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "auto_pad": "SAME_UPPER"}
    feeds = {"x": x.numpy()} | ({} if weight is None else {"w": weight.detach().numpy()})
    group = {} if weight is None else {"group": x.shape[1] // weight.shape[1]}
    node = helper.make_node(operation, list(feeds), ["y"], **settings, **group)
    inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, feeds)[0])


@pytest.mark.parametrize(("size", "kernel", "stride"), CASES)
def test_convolutions(size: int, kernel: int, stride: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, size, size + 1)
    plain = ConvNorm(ConvShape(4, 6, kernel, stride), SAME)
    with torch.no_grad():
        wanted = reference("Conv", x, kernel, stride, plain.conv.weight)
        torch.testing.assert_close(plain.conv(x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("size", "kernel", "stride"), CASES)
@pytest.mark.parametrize("training", [False, True])
def test_elastic_convolutions(size: int, kernel: int, stride: int, training: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, size, size)
    layer = ElasticConv(4, 4, [kernel], ["a"], stride, depthwise=True, rules=SAME).train(training)
    with torch.no_grad():
        wanted = reference("Conv", x, kernel, stride, layer.weight(4, 4, kernel))
        torch.testing.assert_close(layer.convolve(x, 4, kernel), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("size", "kernel", "stride"), CASES)
def test_pooling(size: int, kernel: int, stride: int) -> None:
    x = -torch.rand(2, 4, size, size)  # below zero, so that a margin of zeros would win
    pool = MaxPool(MaxPoolShape(kernel, stride), SAME)
    assert torch.equal(pool(x), reference("MaxPool", x, kernel, stride, None))


def test_pooling_of_pytorch() -> None:
    x = torch.randn(2, 4, 9, 9)
    block = plain_block(parse_block("mp_k3_s2_c4"), 4)
    assert torch.equal(block(x), torch.nn.functional.max_pool2d(x, 3, 2, 1))


def test_the_two_paddings_differ() -> None:
    x = torch.randn(1, 4, 8, 8)
    torch.manual_seed(0)
    same = ConvNorm(ConvShape(4, 4, 3, 2), SAME)
    plain = ConvNorm(ConvShape(4, 4, 3, 2))
    plain.load_state_dict(same.state_dict())
    assert same(x).shape == plain(x).shape
    assert not torch.allclose(same.eval()(x), plain.eval()(x), atol=1e-3)


def optimised(model: bytes, folder: Path) -> tuple[Any, set[str]]:
    """A session, and the operations that are left of a model after the runtime's basic optimisation."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session, {node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node}


def test_networks_of_a_space_with_rules_as_onnx(tmp_path: Path) -> None:
    """By the tracer without a word of warning, and by the newer exporter; margins are an explicit operation."""
    space, net = SPACES["tensorflow"], scrambled("tensorflow")
    network, batch = extract(net, space.extreme()), images(space, 2, size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = to_onnx(network, [batch])
    assert "Pad" in {node.op_type for node in onnx.load_from_string(model).graph.node}
    session, left = optimised(model, tmp_path)
    assert "Pad" not in left, "the runtime makes margins part of the convolution"
    with torch.no_grad():
        wanted = network(batch)
    traced = torch.from_numpy(session.run(None, {"x0": batch.numpy()})[0])
    torch.testing.assert_close(traced, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(onnx_logits(network, batch), wanted, rtol=1e-4, atol=1e-5)


def test_every_layer_has_the_epsilon_and_momentum_of_its_space() -> None:
    network = extract(scrambled("tensorflow"), SPACES["tensorflow"].extreme())
    norms = [layer for layer in network.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(0.05, 0.02)}
    assert isinstance(network.head.features[1], torch.nn.ReLU)
