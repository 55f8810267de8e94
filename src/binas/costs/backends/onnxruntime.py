"""ONNX Runtime: its own graph optimisations on, one stream, threads pinned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from binas.costs.backends._base import Backend, Runner, Shape
from binas.costs.backends.torch import random_inputs
from binas.costs.onnx_graph import to_onnx

if TYPE_CHECKING:
    from torch import Tensor, nn

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class OnnxRuntimeBackend(Backend):
    """ONNX Runtime on the CPU or, where it was built with it, CUDA."""

    name = "onnxruntime"
    requires = "onnxruntime"
    devices = ("cpu", "cuda")

    @classmethod
    def _no_gpu(cls) -> str | None:
        import onnxruntime

        known = PROVIDERS["cuda"] in onnxruntime.get_available_providers()
        return None if known else "this onnxruntime was built without CUDA (install onnxruntime-gpu)"

    def prepare(self, module: nn.Module, shapes: Sequence[Shape]) -> Runner:
        """A session of the module on random inputs."""
        inputs = random_inputs(shapes, self.settings.batch)
        return self.prepare_graph(to_onnx(module, inputs), inputs)

    def prepare_graph(self, graph: bytes, inputs: Sequence[Tensor]) -> Runner:
        """A session with inputs and outputs bound to the device, so that a run copies nothing."""
        import onnxruntime

        session = onnxruntime.InferenceSession(
            graph, self._options(), providers=[PROVIDERS[self.settings.device]]
        )
        binding = session.io_binding()
        for own, x in zip(session.get_inputs(), inputs, strict=True):
            value = onnxruntime.OrtValue.ortvalue_from_numpy(x.numpy(), self.settings.device, 0)
            binding.bind_ortvalue_input(own.name, value)
        for output in session.get_outputs():
            binding.bind_output(output.name, self.settings.device)
        run, quiet = session.run_with_iobinding, onnxruntime.RunOptions()
        return lambda: run(binding, quiet)

    def _options(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.settings.threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        return options
