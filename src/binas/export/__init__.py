"""Finished networks as files: weights, ONNX, torch.export, int8, model card. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.export.exporting import FORMATS, Exported, export_network
    from binas.export.facts import AccuracyFact, LatencyFact, ModelFacts
    from binas.export.int8 import Int8Facts, Quantisation
    from binas.export.model_file import ModelFile, load_model, read_model_file

__getattr__, __all__ = lazy_names(__name__, __file__)
