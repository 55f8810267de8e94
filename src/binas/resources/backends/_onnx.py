"""Modules as ONNX, for the backends that read it."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

OPSET = 17


def to_onnx(module: nn.Module, inputs: Sequence[Tensor]) -> bytes:
    """The module in eval mode as an ONNX model with inputs ``x0``, ``x1``, ...

    By tracing: the graphs are straight lines, and the newer exporter takes several times as long, which counts
    when every block of a space is exported to be timed.
    """
    import torch

    buffer: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            copy.deepcopy(module).eval(),
            tuple(inputs),
            buffer,
            input_names=[f"x{i}" for i in range(len(inputs))],
            opset_version=OPSET,
            dynamo=False,
        )
    return bytes(buffer.getvalue())
