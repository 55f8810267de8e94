"""Labelled images to train, validate and test with, and their augmentation. Needs torch."""

from binas.base.packages import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
