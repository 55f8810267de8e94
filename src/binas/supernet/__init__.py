"""Networks: the supernet with shared weights, and plain networks taken out of it. Needs torch."""

from binas.supernet import bottleneck  # noqa: F401  (registers its family)
from binas.supernet.extract import extract
from binas.supernet.families import ElasticBlock, Family, family_names, register
from binas.supernet.network import Supernet
from binas.supernet.paths import Paths, paths_of, sample_paths, sample_relaxed
from binas.supernet.plain import SqueezeRule
from binas.supernet.static import StaticNetwork

__all__ = [
    "ElasticBlock",
    "Family",
    "Paths",
    "SqueezeRule",
    "StaticNetwork",
    "Supernet",
    "extract",
    "family_names",
    "paths_of",
    "register",
    "sample_paths",
    "sample_relaxed",
]
