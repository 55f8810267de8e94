"""``model.onnx`` and ``model.pt2``: files that run without binas, each compared with PyTorch before it is believed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from binas.base.errors import ModelError
from binas.costs.onnx_graph import to_onnx
from binas.export.graph import INPUT, OUTPUT, Graph
from binas.supernet.weights.equality import TOLERANCE
from binas.version import __version__

ONNX: Final = "model.onnx"
TORCH: Final = "model.pt2"
BATCHES = (1, 7)  # neither is the batch a file is traced with


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


def torch_file(graph: Graph) -> tuple[bytes, tuple[Parity, ...]]:
    """The graph as a ``torch.export`` program for any batch size, and how well what is read back agrees.

    binas reads back only what it has just written. Reading such a file runs torch's own reader, so open only files
    from people you trust.
    """
    free = {"images": {0: torch.export.Dim("batch", min=1)}}
    program = torch.export.export(graph.module, (graph.example(2),), dynamic_shapes=free)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    data = buffer.getvalue()
    loaded: Any = torch.export.load(io.BytesIO(data)).module()
    return data, check_parity(graph, loaded, TORCH)


@dataclass(frozen=True, slots=True)
class Parity:
    """Largest absolute difference from PyTorch's logits for a batch, and the largest absolute logit of PyTorch."""

    batch: int
    difference: float
    largest: float

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.difference <= TOLERANCE * self.largest


def check_parity(graph: Graph, run: Callable[[Tensor], Tensor], file: str) -> tuple[Parity, ...]:
    """Compare ``run`` with the graph on random images of several batch sizes; an error where they differ."""
    compared = tuple(_compare(graph, run, batch) for batch in BATCHES)
    for item in compared:
        if not item.holds:
            raise ModelError(
                f"{file} does not compute what PyTorch computes: logits of {item.batch} images differ by up to "
                f"{item.difference:.3g} where the largest is {item.largest:.3g} (allowed: {TOLERANCE:g} of it). "
                "Nothing was written; try another version of torch or of the runtime."
            )
    return compared


def _compare(graph: Graph, run: Callable[[Tensor], Tensor], batch: int) -> Parity:
    images = graph.example(batch, seed=batch)
    with torch.inference_mode():
        logits = graph.module(images)
        difference = (run(images) - logits).abs().max()
    return Parity(batch, float(difference), float(logits.abs().max()))
