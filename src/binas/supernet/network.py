"""The supernet: shared weights for every architecture of a space, one path per image (paper sections 3.1, 3.2).

The forward takes images and paths; nothing stores an active sub-network. Images that take the same config of a
block are put side by side and run together on the slice of the weights that config uses, so that a batch of
mixed architectures costs about the mean of their multiply-accumulates, not the sum over all configs.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from binas.base.errors import ArchitectureError, ModelError
from binas.space.architecture import Architecture
from binas.space.networks import network_sizes
from binas.space.space import SearchSpace
from binas.supernet.blueprint import blueprint_of
from binas.supernet.families import ElasticBlock
from binas.supernet.paths import Paths, PathTables, check_relaxed, paths_of
from binas.supernet.plain import Head, initialise
from binas.supernet.plan import BlockPlan, plan_batch
from binas.supernet.rows import Order, joined, side_by_side, take
from binas.supernet.static import StaticNetwork

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt, in malloc.h


class Supernet(nn.Module):
    """Shared weights of a space: stem, ``stages[s][b]`` elastic blocks, head."""

    def __init__(self, space: SearchSpace) -> None:
        super().__init__()
        self.space = space
        network_sizes(space)
        plan = blueprint_of(space)
        self.stem = plan.stem()
        stages = [
            nn.ModuleList(plan.elastic(s, b) for b in range(len(stage.blocks)))
            for s, stage in enumerate(space.stages)
        ]
        self.head = plan.head()
        initialise(self)
        self.stages = nn.ModuleList(stages)  # after initialise: elastic layers set their own weights
        self._tables = PathTables.of(space)
        self._ranks = [
            [np.array(self.block(s, b).rank()) for b in range(len(stage.blocks))]
            for s, stage in enumerate(space.stages)
        ]

    def forward(self, images: Tensor, paths: Paths | Architecture, scores: Tensor | None = None) -> Tensor:
        """Images (n, channels, h, w) to logits (n, classes); row i takes path i, or all one architecture.

        With ``scores`` (n, S, D), which are all ones, logits are the same, and the slope of a loss in a score is its slope
        in how much the output of that block counts for that image: what straight-through gradients need (:func:`_scored`).
        """
        self._check_images(images)
        if isinstance(paths, Architecture):
            depths, configs = paths_of(self.space, [paths])
            paths = depths.expand(len(images), -1), configs.expand(len(images), -1, -1)
        plan = plan_batch(self._ranks, self._tables.check(paths, len(images)))
        x = self._enter(take(images, plan.first))
        for s, (blocks, plans) in enumerate(zip(self.stages, plan.stages, strict=True)):
            x = _run_stage(blocks, x, plans, None if scores is None else scores[:, s])  # type: ignore[arg-type]
        return take(self.head(x), plan.back)

    def relaxed(self, images: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        """Logits for relaxed decisions: sum over configs weighted by alpha, over depths by beta.

        Block: x_b = sum_c alpha[s,b,c] * block(x_{b-1}, c); stage: sum_d beta[s,d] * x_d. Differentiable in
        images, weights, alpha and beta. Vectors are ordered as in ``space.layout``, of shape (size,) or one
        row per image. Every config runs, so this costs the sum over configs.
        """
        self._check_images(images)
        check_relaxed(self.space, alpha, beta)
        layout, x = self.space.layout, self._enter(images)
        for s, stage in enumerate(self.space.stages):
            states = [x]
            for b, where in enumerate(layout.config_slices[s]):
                outputs = [self.block(s, b)(states[-1], c) for c in range(len(stage.blocks[b]))]
                states.append(_mix(outputs, alpha[..., where]))
            x = _mix([states[depth] for depth in stage.depths], beta[..., layout.beta_slices[s]])
        logits: Tensor = self.head(x)
        return logits

    def block(self, stage: int, block: int) -> ElasticBlock:
        """The elastic block at 0-based positions."""
        elastic = self.stages[stage][block]  # type: ignore[index]
        assert isinstance(elastic, ElasticBlock)
        return elastic

    def start_from(self, architecture: Architecture) -> None:
        """Let all configs of the blocks of ``architecture`` start from its trained weights (paper appendix).

        Channels are sorted by importance, smaller kernels and private norms copied; what ``architecture``
        itself computes does not change.
        """
        self.space.check(architecture)
        for s, names in enumerate(architecture.stages):
            for b, name in enumerate(names):
                self.block(s, b).start_from(self.space.config_index(s, b, name))

    def absorb(
        self, network: StaticNetwork, architecture: Architecture | None = None, new_classifier: bool = False
    ) -> None:
        """Take over the weights of a plain network as those of ``architecture``, the heaviest unless given.

        The inverse of :func:`extract`: afterwards that gives the network back. With ``new_classifier`` the last layer
        keeps the weights it has, for another number of classes.
        """
        architecture = architecture or self.space.extreme()
        self.space.check(architecture)
        if not isinstance(self.head, Head) or not isinstance(network.head, Head):
            self._absorb_parts(network, architecture)
            return
        blocks = network.row()
        first, last = len(self.stem), len(blocks) - len(self.head.blocks)  # type: ignore[arg-type]
        if last - first != sum(architecture.depths):
            raise ModelError(
                f"the network has {len(blocks)} blocks, {architecture} of the space {self.space.name!r} with stem "
                f"and head {sum(architecture.depths) + first + len(blocks) - last}."
            )
        _copy(nn.Sequential(*blocks[:first]), self.stem, "stem")
        given = iter(blocks[first:last])
        for s, names in enumerate(architecture.stages):
            for b, (name, block) in enumerate(zip(names, given, strict=False)):
                self._absorb_block(s, b, name, block)
        _copy(nn.Sequential(*blocks[last:]), self.head.blocks, "head")
        self._absorb_classifier(network.head, new_classifier)

    def _absorb_parts(self, network: StaticNetwork, architecture: Architecture) -> None:
        """The same for a network of the space itself, part by part."""
        _copy(network.stem, self.stem, "stem")
        blocks = iter(network.blocks.children())
        for s, names in enumerate(architecture.stages):
            for b, name in enumerate(names):
                self._absorb_block(s, b, name, next(blocks))
        _copy(network.head, self.head, "head")

    def _absorb_block(self, stage: int, block: int, config: str, plain: nn.Module) -> None:
        try:
            self.block(stage, block).absorb(plain, self.space.config_index(stage, block, config))
        except ModelError as error:
            raise ModelError(
                f"block {block + 1} of stage {self.space.stages[stage].name!r}: {error}"
            ) from error

    def _absorb_classifier(self, head: Head, new: bool) -> None:
        own = self.head
        assert isinstance(own, Head)
        if own.features is not None or head.features is not None:
            _copy(head.features or nn.Identity(), own.features or nn.Identity(), "features")
        classes, wanted = head.classifier.out_features, own.classifier.out_features
        if new:
            return
        if classes != wanted:
            raise ModelError(
                f"the network tells {classes} classes apart, the space {self.space.name!r} {wanted}. Give the space "
                "the network's classes, or ask for a new classifier."
            )
        _copy(head.classifier, own.classifier, "classifier")

    def _enter(self, images: Tensor) -> Tensor:
        """The stem, in the memory layout in which slices of rows and convolutions are fastest."""
        x: Tensor = self.stem(side_by_side(images))
        return x

    def _check_images(self, images: Tensor) -> None:
        if images.ndim != 4 or images.shape[1] != self.space.channels or len(images) == 0:
            raise ArchitectureError(
                f"images have shape {tuple(images.shape)}; the space {self.space.name!r} needs "
                f"(n, {self.space.channels}, height, width) with at least one image."
            )


def extract(supernet: Supernet, architecture: Architecture) -> StaticNetwork:
    """The plain network of one architecture with copies of its weights and BatchNorm statistics.

    It gives what ``supernet(images, architecture)`` gives in eval mode, shares no memory with the supernet, and
    is in train or eval mode as the supernet is.
    """
    space = supernet.space
    space.check(architecture)
    assert space.channels is not None
    blocks = [
        supernet.block(s, b).static(space.config_index(s, b, name))
        for s, names in enumerate(architecture.stages)
        for b, name in enumerate(names)
    ]
    stem, head = copy.deepcopy(supernet.stem), copy.deepcopy(supernet.head)
    weight = next(supernet.parameters())
    network = StaticNetwork(space.channels, stem, nn.Sequential(*blocks), head)
    return network.to(device=weight.device, dtype=weight.dtype).train(supernet.training)


def keep_memory() -> bool:
    """Let this process keep freed memory for the next layer; True where that is possible (glibc).

    Large tensors come and go with every layer. Without it every one is mapped and unmapped anew, which costs a
    multi-path pass on a CPU up to half its time. The process holds on to the most memory it ever needed.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))


def _copy(given: nn.Module, own: nn.Module, where: str) -> None:
    """The weights of a plain part into one that is made as it is."""
    if repr(given) != repr(own):
        raise ModelError(f"the {where} of the network does not fit the space: it is {given}, not {own}.")
    own.load_state_dict(given.state_dict())


def _run_stage(
    blocks: Sequence[ElasticBlock], x: Tensor, plans: Sequence[BlockPlan], scores: Tensor | None
) -> Tensor:
    """All blocks of a stage. Images that have reached their depth are set aside and not computed further."""
    done: list[Tensor] = []
    for b, (block, plan) in enumerate(zip(blocks, plans, strict=False)):  # ends early when all images have
        x = take(x, plan.rows)
        if plan.stopped:
            ended, x = torch.split(x, [plan.stopped, len(x) - plan.stopped])
            done.append(ended)
        if plan.groups:
            out = block.run(x, plan.groups)
            x = out if scores is None else _scored(out, x, scores[:, b], plan.images)
    return joined([part for part in (*done, x) if len(part)])


def _scored(out: Tensor, entering: Tensor, scores: Tensor, images: Order) -> Tensor:
    """out + (score - 1) (out - entering) with the score of each row's image: with scores of one exactly ``out``.

    The slope in a score is <d loss / d out, out - entering>: what the block does to the image, to first order. Where a
    block changes the shape it is that of ``out`` alone. What enters does not depend on the config, so leaving it out moves
    the slopes of all configs alike, which sum_c alpha_c = 1 makes irrelevant, and takes away a residual connection's noise.
    """
    weights = scores[torch.from_numpy(images).to(scores.device)].view(-1, *[1] * (out.ndim - 1))
    own = out - entering if entering.shape == out.shape else out
    return out + (weights - 1) * own


def _mix(items: list[Tensor], weights: Tensor) -> Tensor:
    """sum_i weights[..., i] * items[i], with weights of shape (k,) or (n, k)."""
    parts = [item * weights[..., i].reshape(-1, *[1] * (item.ndim - 1)) for i, item in enumerate(items)]
    return torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]
