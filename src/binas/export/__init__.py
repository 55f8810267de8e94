"""Finished networks as files: weights, ONNX, torch.export, int8, model card. Needs torch."""

from binas.base.packages import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
