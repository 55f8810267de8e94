"""Training: the heaviest network, the supernet, a network of its own. Needs torch."""

from binas.base.packages import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
