"""Finished networks as files: weights, ONNX, torch.export, int8, model card. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.export.exporting import (
        FORMATS as FORMATS,
        Exported as Exported,
        export_network as export_network,
    )
    from binas.export.facts import (
        AccuracyFact as AccuracyFact,
        LatencyFact as LatencyFact,
        ModelFacts as ModelFacts,
    )
    from binas.export.int8 import Int8Facts as Int8Facts, Quantisation as Quantisation
    from binas.export.model_file import (
        ModelFile as ModelFile,
        load_model as load_model,
        read_model_file as read_model_file,
    )

__getattr__, __all__ = lazy_names(__name__, __file__)
