"""Search spaces and architectures."""

from binas.space.architecture import Architecture
from binas.space.blockstrings import from_block_string, parse_block, parse_network, to_block_string
from binas.space.codes import BlockCode
from binas.space.derived import space_from_network
from binas.space.described import NetworkDescription
from binas.space.files import (
    builtin_names,
    load_space,
    save_space,
    space_from_data,
    space_from_yaml,
    space_schema,
    space_to_data,
    space_to_yaml,
)
from binas.space.layout import Choice, Layout
from binas.space.rules import NetworkRules, SqueezeRule
from binas.space.sampling import crossover, enumerate_all, mutate, sample, sample_many
from binas.space.space import Config, SearchSpace, Stage

__all__ = [
    "Architecture",
    "BlockCode",
    "Choice",
    "Config",
    "Layout",
    "NetworkDescription",
    "NetworkRules",
    "SearchSpace",
    "SqueezeRule",
    "Stage",
    "builtin_names",
    "crossover",
    "enumerate_all",
    "from_block_string",
    "load_space",
    "mutate",
    "parse_block",
    "parse_network",
    "sample",
    "sample_many",
    "save_space",
    "space_from_data",
    "space_from_network",
    "space_from_yaml",
    "space_schema",
    "space_to_data",
    "space_to_yaml",
    "to_block_string",
]
