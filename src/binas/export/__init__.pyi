from binas.export.exporting import FORMATS, Exported, export_network
from binas.export.facts import AccuracyFact, LatencyFact, ModelFacts
from binas.export.int8 import Int8Facts, Quantisation
from binas.export.model_file import ModelFile, load_model, read_model_file

__all__ = [
    "FORMATS",
    "AccuracyFact",
    "Exported",
    "Int8Facts",
    "LatencyFact",
    "ModelFacts",
    "ModelFile",
    "Quantisation",
    "export_network",
    "load_model",
    "read_model_file",
]
