"""The search space: stages with allowed depths, blocks with lists of configs (paper sections 3.1, 4.1.1).

Everything else derives from this value: the supernet, the keys of the tables, the layout of all vectors
(``space.layout``) and the search problem. It is immutable and hashable; :mod:`binas.space.files` reads and
writes it as YAML.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture
from binas.space.checks import check_space
from binas.space.layout import Layout
from binas.space.rules import DEFAULT_RULES, NetworkRules

OptionValue = bool | int | float | str
Options = tuple[tuple[str, OptionValue], ...]


@dataclass(frozen=True, slots=True)
class Config:
    """One way to build a block: a name and its options, such as expansion, kernel, se."""

    name: str
    options: Options = ()

    def get(self, key: str, default: OptionValue | None = None) -> OptionValue | None:
        """The value of one option."""
        return dict(self.options).get(key, default)


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks of one resolution; ``depths`` are the allowed numbers of active blocks.

    ``blocks[b]`` lists the configs of block b; ``attributes`` are what all its blocks share
    (channels, stride of the first block, activation, family, ...).
    """

    name: str
    depths: tuple[int, ...]
    blocks: tuple[tuple[Config, ...], ...]
    attributes: Options = ()

    def get(self, key: str, default: OptionValue | None = None) -> OptionValue | None:
        """The value of one attribute."""
        return dict(self.attributes).get(key, default)

    def block_options(self, block: int, config: Config) -> dict[str, OptionValue]:
        """Attributes of the stage overridden by the options of ``config``, for 0-based ``block``."""
        merged = {**dict(self.attributes), **dict(config.options)}
        if block > 0 and "stride" in merged:
            merged["stride"] = 1  # only the first block of a stage downsamples (paper appendix B)
        return merged

    @property
    def count(self) -> int:
        """Number of distinct stages: sum over depths of the product of config counts."""
        sizes = [len(configs) for configs in self.blocks]
        return sum(math.prod(sizes[:depth]) for depth in self.depths)


@dataclass(frozen=True)
class SearchSpace:
    """A named set of stages between a fixed stem and head.

    ``stem`` and ``head`` are block strings (see :mod:`binas.space.blockstrings`); they and
    ``resolution`` are needed only to build networks, not to search given tables. ``rules`` are what all networks
    share: padding, BatchNorm, squeeze-excite, input normalisation. ``network`` is the graph of a model of one's own
    as JSON (:mod:`binas.space.graphs`); then blocks, stem and head come from it.
    """

    name: str
    stages: tuple[Stage, ...]
    description: str = ""
    channels: int | None = None
    resolution: int | None = None
    stem: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    features: int | None = None
    classes: int | None = None
    network: str | None = None
    rules: NetworkRules = DEFAULT_RULES
    _lookup: dict[tuple[int, int], dict[str, int]] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        check_space(self)
        lookup = {
            (s, b): {config.name: c for c, config in enumerate(configs)}
            for s, stage in enumerate(self.stages)
            for b, configs in enumerate(stage.blocks)
        }
        object.__setattr__(self, "_lookup", lookup)

    @property
    def count(self) -> int:
        """Exact number of architectures, prod_s sum_d prod_{b<=d} |C_b|."""
        return math.prod(stage.count for stage in self.stages)

    @property
    def max_depth(self) -> int:
        """Largest number of blocks of any stage (D in the paper)."""
        return max((len(stage.blocks) for stage in self.stages), default=0)

    @property
    def alpha_size(self) -> int:
        """Number of alpha variables: every config of every block."""
        return sum(len(configs) for stage in self.stages for configs in stage.blocks)

    @property
    def beta_size(self) -> int:
        """Number of beta variables: every allowed depth of every stage."""
        return sum(len(stage.depths) for stage in self.stages)

    @cached_property
    def layout(self) -> Layout:
        """Where each choice stands in vectors, and architectures as such vectors."""
        return Layout(self)

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of everything that gives the space its meaning (not its name or description)."""
        data = json.dumps(self.to_data(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(data.encode()).hexdigest()[:16]

    def to_data(self) -> dict[str, Any]:
        """The content of the space as plain data, without its name and description."""
        data: dict[str, Any] = {"stages": [_stage_data(stage) for stage in self.stages]}
        for key in ("channels", "resolution", "features", "classes", "network"):
            if getattr(self, key) is not None:
                data[key] = getattr(self, key)
        for key in ("stem", "head"):
            if getattr(self, key):
                data[key] = list(getattr(self, key))
        if self.rules != DEFAULT_RULES:
            data["rules"] = self.rules.to_data()
        return data

    def config_index(self, stage: int, block: int, name: str) -> int:
        """Index of the config called ``name`` in a block (0-based stage and block)."""
        return self._lookup[stage, block][name]

    def check(self, architecture: Architecture) -> None:
        """Raise an error that names the first decision that is not in this space."""
        if not isinstance(architecture, Architecture):
            raise ArchitectureError(
                f"{architecture!r} is not an Architecture; read strings with space.parse."
            )
        if len(architecture.stages) != len(self.stages):
            raise ArchitectureError(
                f"the architecture has {len(architecture.stages)} stages, "
                f"the space {self.name!r} has {len(self.stages)}."
            )
        for s, (stage, names) in enumerate(zip(self.stages, architecture.stages, strict=True)):
            if len(names) not in stage.depths:
                allowed = ", ".join(map(str, stage.depths))
                raise ArchitectureError(
                    f"stage {stage.name!r} has depth {len(names)} in the architecture; allowed are {allowed}."
                )
            for b, name in enumerate(names):
                if name not in self._lookup[s, b]:
                    allowed = ", ".join(self._lookup[s, b])
                    raise ArchitectureError(
                        f"block {b + 1} of stage {stage.name!r} has the unknown config {name[:60]!r}; "
                        f"allowed are {allowed}."
                    )

    def __contains__(self, architecture: object) -> bool:
        try:
            self.check(architecture)  # type: ignore[arg-type]
        except (ArchitectureError, AttributeError):
            return False
        return True

    def parse(self, text: str) -> Architecture:
        """Read a compact string and check that it belongs to this space."""
        architecture = Architecture.parse(text)
        self.check(architecture)
        return architecture

    def to_indices(
        self, architectures: Iterable[Architecture]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Depths (n, S) and config indices (n, S, D) of architectures; -1 where a block is not active."""
        items = list(architectures)
        depths = np.array([a.depths for a in items], dtype=np.int64).reshape(len(items), len(self.stages))
        configs = np.full((len(items), len(self.stages), self.max_depth), -1, dtype=np.int64)
        for i, architecture in enumerate(items):
            for s, names in enumerate(architecture.stages):
                for b, name in enumerate(names):
                    configs[i, s, b] = self._lookup[s, b][name]
        return depths, configs

    @cached_property
    def _names(self) -> list[list[list[str]]]:
        return [[[config.name for config in block] for block in stage.blocks] for stage in self.stages]

    def from_indices(self, depths: Sequence[int], configs: Sequence[Sequence[int]]) -> Architecture:
        """The architecture with these depths and config indices (entries past a depth are ignored)."""
        return Architecture(
            tuple(
                tuple([block[c] for block, c in zip(blocks[:depth], row, strict=False)])
                for blocks, depth, row in zip(self._names, depths, configs, strict=True)
            )
        )

    def extreme(self, heaviest: bool = True) -> Architecture:
        """Deepest architecture with the last config of every block, or shallowest with the first."""
        pick = -1 if heaviest else 0
        choose = max if heaviest else min
        return Architecture.of(
            [configs[pick].name for configs in stage.blocks[: choose(stage.depths)]] for stage in self.stages
        )


def _stage_data(stage: Stage) -> dict[str, Any]:
    blocks = [
        [{"name": config.name, **dict(config.options)} for config in configs] for configs in stage.blocks
    ]
    data: dict[str, Any] = {"name": stage.name, "depths": list(stage.depths), **dict(stage.attributes)}
    # Compared as text: Python takes 1, 1.0 and True for equal, and dictionaries forget their order.
    if blocks and len({json.dumps(block) for block in blocks}) == 1:
        return {**data, "configs": blocks[0]}
    return {**data, "blocks": [{"configs": block} for block in blocks]}


def make_options(options: Mapping[str, OptionValue]) -> Options:
    """Options as an immutable, ordered tuple."""
    return tuple(options.items())
