"""``model.onnx``: any batch size, checked by onnx, compared with PyTorch in onnxruntime."""

from __future__ import annotations

import json
from typing import Any, Final

import torch
from torch import Tensor

from binas.base.errors import ModelError
from binas.costs.onnx_graph import to_onnx
from binas.export.graph import INPUT, OUTPUT, Graph
from binas.export.parity import Parity, check_parity
from binas.version import __version__

ONNX: Final = "model.onnx"


def onnx_file(graph: Graph) -> tuple[bytes, tuple[Parity, ...]]:
    """The graph as an ONNX model with input ``images`` and output ``logits``, and how well it agrees."""
    traced = to_onnx(graph.module, [graph.example(2)], [INPUT], [OUTPUT], any_batch=True)
    data = _described(traced, graph)
    return data, check_parity(graph, OnnxRun(data), ONNX)


class OnnxRun:
    """An ONNX model in onnxruntime on the CPU: images to logits."""

    def __init__(self, model: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def __call__(self, images: Tensor) -> Tensor:
        """Images as the graph takes them, (n, channels, h, w), to logits (n, classes)."""
        (logits,) = self.session.run([OUTPUT], {INPUT: images.numpy()})
        return torch.from_numpy(logits)


def _described(model: bytes, graph: Graph) -> bytes:
    """The model, checked, with its architecture and classes in its metadata, so that the file alone says them."""
    import onnx

    loaded = onnx.load_model_from_string(model)
    loaded.producer_name, loaded.producer_version = "binas", __version__
    facts = graph.facts
    notes = {"architecture": str(facts.architecture), "space": facts.space.name, "input": graph.kind}
    onnx.helper.set_model_props(loaded, {**notes, "classes": json.dumps(facts.classes)})
    try:
        onnx.checker.check_model(loaded, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ModelError(f"{ONNX} would not be valid ONNX: {error}. Nothing was written.") from error
    return bytes(loaded.SerializeToString())
