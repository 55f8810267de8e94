"""OpenVINO on the CPU: one stream, threads pinned, tuned for latency."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from binas.costs.backends._base import Backend, Runner, Shape
from binas.costs.backends.torch import random_inputs
from binas.costs.onnx_graph import to_onnx

if TYPE_CHECKING:
    from torch import nn

PRECISION = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


class OpenVinoBackend(Backend):
    """OpenVINO's CPU plugin; ``dtype`` is the precision it is asked to compute in."""

    name = "openvino"
    requires = "openvino"
    dtypes = ("float32", "float16", "bfloat16")

    @cached_property
    def _core(self) -> Any:
        import openvino

        return openvino.Core()

    def prepare(self, module: nn.Module, shapes: Sequence[Shape]) -> Runner:
        """A compiled model with its own request and inputs."""
        import openvino

        inputs = random_inputs(shapes, self.settings.batch)
        model = self._core.read_model(to_onnx(module, inputs))
        compiled = self._core.compile_model(
            model,
            "CPU",
            {
                "INFERENCE_NUM_THREADS": self.settings.threads,
                "NUM_STREAMS": 1,
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": PRECISION[self.settings.dtype],
            },
        )
        request = compiled.create_infer_request()
        for i, x in enumerate(inputs):
            request.set_input_tensor(i, openvino.Tensor(x.numpy()))

        def run() -> None:
            request.start_async()  # unlike infer(), this does not copy the outputs into a dictionary
            request.wait()

        return run
