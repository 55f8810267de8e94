"""What is measured: every distinct block of a space once, the fixed part as one module, whole networks.

The blocks are taken out of networks of the space, so they are exactly what a network is made of, whatever
their family, and what arrives at them is found by running those networks. Two blocks are the same workload when
their modules, their options and the shape of their input agree.

Stem and head are not neighbours, so the fixed part is one module with two inputs (an image and what the last
stage hands over): it runs in one call, and the overhead of a call is counted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.costs.backends import Shape
from binas.costs.job import FIXED, Place
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.supernet import StaticNetwork


@dataclass(frozen=True, eq=False)
class Workload:
    """A module and the shapes of its inputs, without the batch dimension."""

    module: nn.Module
    shapes: tuple[Shape, ...]


class FixedPart(nn.Module):
    """Stem and head of a network, side by side: images and last features in, first features and logits out."""

    def __init__(self, stem: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.stem, self.head = stem, head

    def forward(self, images: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Everything that is not searched, once."""
        return self.stem(images), self.head(features)


@dataclass(frozen=True, eq=False)
class SpaceWorkloads:
    """The distinct workloads of a space by name; ``places`` says which (stage, block, config) uses which."""

    space: SearchSpace
    blocks: Mapping[str, Workload]
    places: Mapping[Place, str]
    fixed: Workload

    def all(self) -> dict[str, Workload]:
        """Blocks and fixed part."""
        return {**self.blocks, FIXED: self.fixed}


def space_workloads(space: SearchSpace) -> SpaceWorkloads:
    """Every distinct block of a space and its fixed part, with fresh weights."""
    blocks: dict[str, Workload] = {}
    names: dict[tuple[str, ...], str] = {}
    places: dict[Place, str] = {}
    for place, workload in _all_blocks(space):
        name = names.setdefault(_identity(space, place, workload), _label(space, place))
        blocks.setdefault(name, workload)
        places[place] = name
    return SpaceWorkloads(space, blocks, places, _fixed(space))


def network_workload(space: SearchSpace, architecture: Architecture) -> Workload:
    """A whole network with fresh weights."""
    return Workload(StaticNetwork.from_architecture(space, architecture).eval(), (_image(space),))


def control_workload() -> Workload:
    """A small network that has nothing to do with the space: its time shows what the machine is doing."""
    layers = [nn.Conv2d(16, 64, 1), nn.Conv2d(64, 64, 3, 1, 1, groups=64), nn.ReLU(), nn.Conv2d(64, 16, 1)]
    return Workload(nn.Sequential(*layers * 2).eval(), ((16, 28, 28),))


def _image(space: SearchSpace) -> Shape:
    if space.channels is None or space.resolution is None:
        raise SpaceError(f"the space {space.name!r} does not say channels and resolution.")
    return (space.channels, space.resolution, space.resolution)


def _all_blocks(space: SearchSpace) -> Iterator[tuple[Place, Workload]]:
    """Every (stage, block, config), taken from deepest networks whose blocks all use the c-th of their configs."""
    most = max((len(configs) for stage in space.stages for configs in stage.blocks), default=0)
    for c in range(most):
        network = StaticNetwork.from_architecture(space, _deepest(space, c)).eval()
        places = [(s, b) for s, stage in enumerate(space.stages) for b in range(max(stage.depths))]
        with torch.inference_mode():
            x = network.stem(torch.zeros(1, *_image(space)))
            for (s, b), block in zip(places, network.blocks.children(), strict=True):
                if c < len(space.stages[s].blocks[b]):
                    yield (s, b, c), Workload(block, (tuple(x.shape[1:]),))
                x = block(x)


def _deepest(space: SearchSpace, config: int) -> Architecture:
    """Every stage at its largest depth, every block with its ``config``-th config, or its last."""
    return Architecture.of(
        [configs[min(config, len(configs) - 1)].name for configs in stage.blocks[: max(stage.depths)]]
        for stage in space.stages
    )


def _identity(space: SearchSpace, place: Place, workload: Workload) -> tuple[str, ...]:
    """What makes two blocks the same: the module's layers, the options it was built from, its input."""
    s, b, c = place
    stage = space.stages[s]
    options = stage.block_options(b, stage.blocks[b][c])
    return (repr(workload.module), json.dumps(options, sort_keys=True), str(workload.shapes))


def _label(space: SearchSpace, place: Place) -> str:
    """The first place a block has: ``s1/1/e3k3``."""
    s, b, c = place
    stage = space.stages[s]
    return f"{stage.name}/{b + 1}/{stage.blocks[b][c].name}"


def _fixed(space: SearchSpace) -> Workload:
    network = StaticNetwork.from_architecture(space, space.extreme()).eval()
    with torch.inference_mode():
        features = network.blocks(network.stem(torch.zeros(1, *_image(space))))
    return Workload(FixedPart(network.stem, network.head), (_image(space), tuple(features.shape[1:])))
