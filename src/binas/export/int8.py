"""``model.int8.onnx``: static quantisation by onnxruntime, with what it costs and what it buys on this machine.

Weights per output channel, activations per tensor from the range seen on training images (QDQ format). Weights use 7
of 8 bits: on CPUs without VNNI instructions sums of full 8-bit products overflow. Normalisation of the input stays
in float32.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from binas.base.errors import ExplodedError
from binas.base.interval import Interval
from binas.costs.backends import Runner
from binas.costs.backends.onnxruntime import OnnxRuntimeBackend
from binas.costs.device import BackendDevice
from binas.costs.machine import device_name, runtime_name
from binas.costs.session import CONTROL, Plan, run_session
from binas.costs.settings import Settings
from binas.costs.statistics import Estimate
from binas.costs.workloads import control_workload
from binas.data.dataset import ImageData
from binas.data.images import Images
from binas.export.graph import INPUT, Graph
from binas.export.graph_files import OnnxRun
from binas.training.judgement import Accuracy

INT8 = "model.int8.onnx"
BEFORE, AFTER = "float32", "int8"
CALIBRATION_BATCH, ACCURACY_BATCH = 64, 256
_PREFIX = "/network/"  # of the names of all nodes but those that normalise


@dataclass(frozen=True)
class Quantisation:
    """How to quantise and judge it: training images set the ranges, held-out ones (``part``) give the accuracy."""

    data: ImageData
    part: Literal["validation", "test"] = "test"
    calibration: int = 512
    plan: Plan = field(default_factory=lambda: Plan(budget=30.0))
    settings: Settings = field(default_factory=lambda: Settings(backend="onnxruntime"))


@dataclass(frozen=True)
class Int8Facts:
    """The quantised file, and accuracy (percent) and latency (ms) before and after, measured taking turns."""

    sha256: str
    byte_count: int
    byte_count_before: int
    calibration: int
    part: Literal["validation", "test"]
    images: int
    accuracy_before: float
    accuracy: float
    latency_before: Interval
    latency: Interval
    device: str
    runtime: str
    warnings: tuple[str, ...] = ()

    @property
    def speed(self) -> float:
        """Latency before over latency after: above 1 the quantised network is faster."""
        return self.latency_before.value / self.latency.value

    @property
    def verdict(self) -> str:
        """One sentence: faster, slower or the same here, and what became of the accuracy."""
        if self.latency.high < self.latency_before.low:
            change = f"{self.speed:.2f} times as fast as float32 on this machine"
        elif self.latency.low > self.latency_before.high:
            change = f"slower than float32 on this machine ({1 / self.speed:.2f} times its latency)"
        else:
            change = "as fast as float32 on this machine within the noise"
        points = self.accuracy - self.accuracy_before
        size = f"{self.byte_count / self.byte_count_before:.0%}"
        return f"int8 is {change}; accuracy changes by {points:+.2f} points; the file has {size} of the size."


def quantise(graph: Graph, model: bytes, how: Quantisation) -> bytes:
    """The ONNX model of ``graph`` with 8-bit weights and activations."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder, _quiet():
        given, prepared, made = (Path(folder) / name for name in ("given.onnx", "prepared.onnx", "made.onnx"))
        given.write_bytes(model)
        quant_pre_process(str(given), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(made),
            _reader(_calibration_images(graph, how)),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=_normalising(model),
        )
        return made.read_bytes()


def onnx_accuracy(graph: Graph, model: bytes, how: Quantisation) -> Accuracy:
    """Accuracy of an ONNX model in onnxruntime on held-out images."""
    run, images = OnnxRun(model), _held_out(how)
    right = 0
    for batch in images.batches(ACCURACY_BATCH):
        logits = run(graph.feed(batch.images))
        if not np.isfinite(logits).all():
            raise ExplodedError("the ONNX model gives logits that are not finite, so it has no accuracy.")
        right += int((logits.argmax(1) == batch.labels).sum())
    return Accuracy(100 * right / len(images), len(images))


def before_and_after(graph: Graph, model: bytes, quantised: bytes, how: Quantisation) -> Int8Facts:
    """Accuracy and latency of both models; latencies come from one session in which they take turns."""
    before, after = (onnx_accuracy(graph, data, how) for data in (model, quantised))
    backend = OnnxRuntimeBackend(how.settings)
    device = _GraphDevice(backend, {BEFORE: model, AFTER: quantised}, graph.example(how.settings.batch))
    with backend.pinned():
        measured = run_session((BEFORE, AFTER), device, how.plan, time.perf_counter)
    return Int8Facts(
        hashlib.sha256(quantised).hexdigest(),
        len(quantised),
        len(model),
        min(how.calibration, len(how.data.train)),
        how.part,
        after.images,
        before.percent,
        after.percent,
        _latency(measured.estimates[BEFORE]),
        _latency(measured.estimates[AFTER]),
        device_name(how.settings),
        f"{runtime_name(how.settings)}, {_threads(how.settings.threads)}, batch {how.settings.batch}",
        measured.warnings,
    )


class _GraphDevice(BackendDevice):
    """Runs finished ONNX models; the control is prepared as in every session."""

    def __init__(self, backend: OnnxRuntimeBackend, models: dict[str, bytes], images: Tensor) -> None:
        super().__init__(backend, lambda _: control_workload())
        self.graphs, self.models, self.images = backend, models, images

    def prepare(self, entry: str) -> Runner:
        """A session of its own for each model."""
        if entry == CONTROL:
            return super().prepare(entry)
        return self.graphs.prepare_graph(self.models[entry], [self.images])


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"


def _latency(estimate: Estimate) -> Interval:
    """In milliseconds."""
    return Interval(estimate.value, estimate.low, estimate.high).scaled(1e3)


def _held_out(how: Quantisation) -> Images:
    return how.data.test if how.part == "test" else how.data.validation


def _calibration_images(graph: Graph, how: Quantisation) -> Iterator[Tensor]:
    """Training images as the graph takes them, at most ``how.calibration``, always the same."""
    left = how.calibration
    for batch in how.data.train.batches(CALIBRATION_BATCH, seed=0):
        yield graph.feed(batch.images[:left])
        left -= len(batch)
        if left <= 0:
            return


def _reader(batches: Iterator[Tensor]) -> Any:
    """The batches in the form onnxruntime asks for."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            """The next batch, None after the last."""
            batch = next(batches, None)
            return None if batch is None else {INPUT: batch.numpy()}

    return Reader()


def _normalising(model: bytes) -> list[str]:
    """Names of the nodes before the network."""
    import onnx

    nodes = onnx.load_model_from_string(model).graph.node
    return [node.name for node in nodes if not node.name.startswith(_PREFIX)]


@contextmanager
def _quiet() -> Iterator[None]:
    """onnxruntime's quantiser gives advice on the root logger that is followed already; errors still show."""
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(before)
