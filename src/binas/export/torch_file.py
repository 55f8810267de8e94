"""``model.pt2``: a ``torch.export`` program, read back and compared.

binas writes such files and reads back only what it has just written. Reading one runs torch's own reader, so open
only files from people you trust.
"""

from __future__ import annotations

import io
from typing import Any, Final

import torch

from binas.export.graph import Graph
from binas.export.parity import Parity, check_parity

TORCH: Final = "model.pt2"


def torch_file(graph: Graph) -> tuple[bytes, tuple[Parity, ...]]:
    """The graph as a program for any batch size, and how well what is read back agrees."""
    free = {"images": {0: torch.export.Dim("batch", min=1)}}
    program = torch.export.export(graph.module, (graph.example(2),), dynamic_shapes=free)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    data = buffer.getvalue()
    loaded: Any = torch.export.load(io.BytesIO(data)).module()
    return data, check_parity(graph, loaded, TORCH)
