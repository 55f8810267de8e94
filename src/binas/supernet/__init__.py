"""Networks: the supernet with shared weights, and plain networks taken out of it. Needs torch."""

from binas.space.families import Family, SqueezeRule, family_names, register
from binas.supernet.extract import extract
from binas.supernet.families import ElasticBlock
from binas.supernet.network import Supernet
from binas.supernet.paths import Paths, paths_of, sample_paths, sample_relaxed
from binas.supernet.plain import plain_block
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
    "plain_block",
    "register",
    "sample_paths",
    "sample_relaxed",
]
