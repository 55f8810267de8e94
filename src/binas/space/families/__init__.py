"""Block families: what a config means as a block string, as layers, as costs and as weights. Loads no torch."""

from binas.space.families._base import (
    FIELDS,
    Family,
    describe,
    family_names,
    family_of,
    family_of_kind,
    known_kinds,
    register,
)
from binas.space.families.bottleneck import BOTTLENECK
from binas.space.families.layers import (
    BlockShape,
    ConvShape,
    Layer,
    MaxPoolShape,
    PoolShape,
    Shape,
    SqueezeShape,
    Step,
    Trace,
)
from binas.space.families.mbconv import MBCONV
from binas.space.rules import DEFAULT_RULES, NetworkRules, SqueezeRule

register(MBCONV)
register(BOTTLENECK)

__all__ = [
    "DEFAULT_RULES",
    "FIELDS",
    "BlockShape",
    "ConvShape",
    "Family",
    "Layer",
    "MaxPoolShape",
    "NetworkRules",
    "PoolShape",
    "Shape",
    "SqueezeRule",
    "SqueezeShape",
    "Step",
    "Trace",
    "describe",
    "family_names",
    "family_of",
    "family_of_kind",
    "known_kinds",
    "register",
]
