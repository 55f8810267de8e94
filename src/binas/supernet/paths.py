"""Paths: which architecture each image takes (paper section 3.2, multi-path sampling).

A pair of integer tensors with one row per image: depths (n, S), and config indices (n, S, D) whose entries past
a depth are not read. :meth:`SearchSpace.to_indices` gives the same arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture
from binas.space.odds import DEPTH, Odds
from binas.space.space import SearchSpace

Paths = tuple[Tensor, Tensor]
Indices = tuple[NDArray[np.int64], NDArray[np.int64]]


def paths_of(space: SearchSpace, architectures: Iterable[Architecture]) -> Paths:
    """Paths with one row per architecture."""
    items = list(architectures)
    for architecture in items:
        space.check(architecture)
    depths, configs = space.to_indices(items)
    return torch.from_numpy(depths), torch.from_numpy(configs)


def sample_paths(
    space: SearchSpace,
    count: int,
    generator: torch.Generator,
    groups: int | None = None,
    odds: Sequence[Odds] = (),
) -> Paths:
    """A uniform path for each of ``count`` images: every depth and every config equally likely.

    With ``odds`` every image draws one of them, and its path by that.

    With ``groups`` = G each block draws G distinct configs and a random partition of the images into G equal
    parts, one part per config. Each image alone is still uniform; one step touches fewer weights, in larger
    groups. None is the paper's sampling. By odds one is drawn for all images, and G cards of each block's deck, which
    may be the same config: each image alone still takes a config as likely as the odds say.
    """
    if count < 1 or (groups is not None and groups < 1):
        raise ArchitectureError(f"paths need at least one image and one group, got {count} and {groups}.")
    if odds:
        return _drawn_by(space, count, generator, odds, groups)
    depths = torch.empty((count, len(space.stages)), dtype=torch.int64)
    configs = torch.full((count, len(space.stages), space.max_depth), -1, dtype=torch.int64)
    for s, stage in enumerate(space.stages):
        pick = torch.randint(len(stage.depths), (count,), generator=generator)
        depths[:, s] = torch.tensor(stage.depths)[pick]
        for b, choices in enumerate(stage.blocks):
            drawn = _draw_configs(len(choices), count, generator, groups)
            configs[:, s, b] = torch.where(depths[:, s] > b, drawn, -1)
    return depths, configs


def _drawn_by(
    space: SearchSpace, count: int, generator: torch.Generator, odds: Sequence[Odds], groups: int | None
) -> Paths:
    """Paths by odds, each image by one of them, or with groups all by one."""
    turns = torch.randint(len(odds), (1 if groups else count,), generator=generator).expand(count)
    depths = torch.empty((count, len(space.stages)), dtype=torch.int64)
    configs = torch.full((count, len(space.stages), space.max_depth), -1, dtype=torch.int64)

    def drawn(place: tuple[int, int], hands: int | None) -> Tensor:
        shares = _shares(count, generator, hands)
        picks = torch.empty(count, dtype=torch.int64)
        for number, item in enumerate(odds):
            deck = torch.from_numpy(item.decks[place])
            own = turns == number
            picks[own] = deck[(shares[own] * len(deck)).long().clamp_(max=len(deck) - 1)]
        return picks

    for s, stage in enumerate(space.stages):
        depths[:, s] = torch.tensor(stage.depths)[drawn((s, DEPTH), None)]
        for b in range(len(stage.blocks)):
            configs[:, s, b] = torch.where(depths[:, s] > b, drawn((s, b), groups), -1)
    return depths, configs


def _shares(count: int, generator: torch.Generator, hands: int | None) -> Tensor:
    """Where in a deck each image draws, uniform in 0..1: all on their own, or in so many equal groups."""
    if hands is None or hands >= count:
        return torch.rand(count, generator=generator)
    return torch.rand(hands, generator=generator)[torch.randperm(count, generator=generator) % hands]


def nearer_heaviest(space: SearchSpace, paths: Paths, share: float, generator: torch.Generator) -> Paths:
    """Paths that keep each decision with probability ``share``; the others are those of the heaviest network."""
    heaviest = paths_of(space, [space.extreme()])
    depths, configs = (
        torch.where((torch.rand(own.shape, generator=generator) < share) & (own >= 0), own, most)
        for own, most in zip(paths, heaviest, strict=True)
    )
    return depths, configs


def with_extremes(space: SearchSpace, paths: Paths, share: float) -> Paths:
    """The first ``share`` of the images on the heaviest path, the last on the lightest (the sandwich rule)."""
    depths, configs = paths[0].clone(), paths[1].clone()
    count = int(share * len(depths))
    for heaviest, rows in ((True, slice(0, count)), (False, slice(len(depths) - count, len(depths)))):
        one, two = paths_of(space, [space.extreme(heaviest)])
        depths[rows], configs[rows] = one.expand(count, -1), two.expand(count, -1, -1)
    return depths, configs


def _draw_configs(choices: int, count: int, generator: torch.Generator, groups: int | None) -> Tensor:
    if groups is None or groups >= choices:
        return torch.randint(choices, (count,), generator=generator)
    chosen = torch.randperm(choices, generator=generator)[:groups]
    return chosen[torch.randperm(count, generator=generator) % groups]


def sample_relaxed(
    space: SearchSpace,
    alpha_logits: Tensor,
    beta_logits: Tensor,
    generator: torch.Generator | None = None,
    temperature: float = 1.0,
    hard: bool = True,
) -> tuple[Tensor, Tensor]:
    """Gumbel-softmax sample of every decision: softmax((logits + Gumbel noise) / temperature).

    With ``hard`` the values are one-hot and gradients are those of the softmax (straight-through). Vectors are
    ordered as in ``space.layout``; leading dimensions give one sample per row.
    """
    if not temperature > 0:
        raise ArchitectureError(f"the temperature must be above 0, got {temperature}.")
    layout = space.layout
    check_relaxed(space, alpha_logits, beta_logits)
    decisions = [where for blocks in layout.config_slices for where in blocks]
    alpha = _gumbel(alpha_logits, decisions, generator, temperature, hard)
    return alpha, _gumbel(beta_logits, layout.beta_slices, generator, temperature, hard)


def _gumbel(
    logits: Tensor,
    decisions: Sequence[slice],
    generator: torch.Generator | None,
    temperature: float,
    hard: bool,
) -> Tensor:
    noise = -torch.log(torch.empty_like(logits).exponential_(generator=generator))
    scores = (logits + noise) / temperature
    parts = [scores[..., where].softmax(-1) for where in decisions]
    soft = torch.cat(parts, -1) if parts else scores
    if not hard:
        return soft
    picks = [torch.nn.functional.one_hot(p.argmax(-1), p.shape[-1]).to(p.dtype) for p in parts]
    return torch.cat(picks, -1) + soft - soft.detach() if picks else soft


def check_relaxed(space: SearchSpace, alpha: Tensor, beta: Tensor) -> None:
    """Raise an error unless the last dimensions are the space's alpha and beta."""
    sizes = (space.alpha_size, space.beta_size)
    if (alpha.shape[-1:], beta.shape[-1:]) != (sizes[:1], sizes[1:]):
        raise ArchitectureError(
            f"alpha and beta have shapes {tuple(alpha.shape)} and {tuple(beta.shape)}; the space {space.name!r} "
            f"needs {sizes[0]} and {sizes[1]} entries in the last dimension."
        )


@dataclass(frozen=True)
class PathTables:
    """What paths of a space may say: ``allowed[s, depth]`` and the number of configs ``sizes[s, b]``."""

    space: SearchSpace
    allowed: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, space: SearchSpace) -> PathTables:
        """Tables of a space, made once for many batches."""
        allowed = np.zeros((len(space.stages), space.max_depth + 1), dtype=np.bool_)
        sizes = np.zeros((len(space.stages), space.max_depth), dtype=np.int64)
        for s, stage in enumerate(space.stages):
            allowed[s, list(stage.depths)] = True
            sizes[s, : len(stage.blocks)] = [len(configs) for configs in stage.blocks]
        return cls(space, allowed, sizes)

    def check(self, paths: Paths, count: int) -> Indices:
        """Paths as arrays, after checking shapes, types, depths and configs of active blocks."""
        pair = isinstance(paths, tuple | list) and len(paths) == 2
        if not pair or not all(_is_whole(part) for part in paths):
            raise ArchitectureError(
                "paths must be an Architecture or a pair of integer tensors (depths, configs)."
            )
        depths, configs = (part.detach().cpu().numpy().astype(np.int64, copy=False) for part in paths)
        want = (count, len(self.space.stages))
        if depths.shape != want or configs.shape != (*want, self.space.max_depth):
            raise ArchitectureError(
                f"paths have shapes {depths.shape} and {configs.shape}; {count} images in the space "
                f"{self.space.name!r} need {want} and {(*want, self.space.max_depth)}."
            )
        self._check_depths(depths)
        self._check_configs(depths, configs)
        return depths, configs

    def _check_depths(self, depths: NDArray[np.int64]) -> None:
        inside = (depths >= 0) & (depths < self.allowed.shape[1])
        known = self.allowed[np.arange(len(self.allowed)), np.where(inside, depths, 0)] & inside
        if not known.all():
            stage = self.space.stages[int(np.argmin(known.all(0)))]
            allowed = ", ".join(map(str, stage.depths))
            raise ArchitectureError(
                f"paths have a depth of stage {stage.name!r} that is not one of {allowed}."
            )

    def _check_configs(self, depths: NDArray[np.int64], configs: NDArray[np.int64]) -> None:
        active = np.arange(self.sizes.shape[1]) < depths[:, :, None]
        wrong = active & ((configs < 0) | (configs >= self.sizes))
        if wrong.any():
            s, b = np.argwhere(wrong.any(0))[0]
            raise ArchitectureError(
                f"paths have a config index of block {b + 1} of stage {self.space.stages[s].name!r} that is not "
                f"within 0 to {self.sizes[s, b] - 1}."
            )


def _is_whole(part: object) -> bool:
    kinds = (torch.bool, torch.uint8)
    return isinstance(part, Tensor) and not part.is_floating_point() and part.dtype not in kinds
