"""Modules as ONNX: for the backends that read it, for other devices, and as the file a user deploys."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

OPSET = 17


def to_onnx(
    module: nn.Module,
    inputs: Sequence[Tensor],
    names: Sequence[str] | None = None,
    results: Sequence[str] | None = None,
    any_batch: bool = False,
) -> bytes:
    """The module in eval mode as an ONNX model with inputs ``names`` (``x0``, ``x1``, ...) and outputs ``results``.

    With ``any_batch`` the first dimension of all named inputs and outputs may have any size. By tracing: the graphs
    are straight lines, and the newer exporter takes several times as long, which counts when every block of a space
    is exported to be timed.
    """
    import torch

    given = list(names or [f"x{i}" for i in range(len(inputs))])
    free = {name: {0: "batch"} for name in (*given, *(results or ()))} if any_batch else None
    buffer: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # Margins are computed from the size of what arrives, which is fixed in the graph; the exporter leaves them as small
        # operations on constants, which runtimes fold (onnxruntime makes them part of the convolution).
        warnings.filterwarnings("ignore", message="Constant folding")
        warnings.filterwarnings("ignore", message="Converting a tensor to a Python integer")
        torch.onnx.export(
            copy.deepcopy(module).eval(),
            tuple(inputs),
            buffer,
            input_names=given,
            output_names=None if results is None else list(results),
            dynamic_axes=free,
            opset_version=OPSET,
            dynamo=False,
        )
    return bytes(buffer.getvalue())
