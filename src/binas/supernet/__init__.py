"""Networks: the supernet with shared weights, and plain networks taken out of it. Needs torch."""

from binas.space.families import Family, NetworkRules, SqueezeRule, family_names, register
from binas.supernet.families import ElasticBlock
from binas.supernet.network import Supernet, extract, keep_memory
from binas.supernet.paths import Paths, paths_of, sample_paths, sample_relaxed
from binas.supernet.plain import plain_block
from binas.supernet.static import StaticNetwork

__all__ = [
    "ElasticBlock",
    "Family",
    "NetworkRules",
    "Paths",
    "SqueezeRule",
    "StaticNetwork",
    "Supernet",
    "extract",
    "family_names",
    "keep_memory",
    "paths_of",
    "plain_block",
    "register",
    "sample_paths",
    "sample_relaxed",
]
