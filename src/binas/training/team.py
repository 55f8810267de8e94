"""Several processes that train one network: each batch is cut into shards, and the shards are shared out.

A shard has BatchNorm statistics, augmentation and paths of its own; gradients and statistics are the means over shards,
weighted by their images and added up in the order of the shards. So the result depends on the number of shards, which is
a setting of the phase and is written down when a run starts, and not on how many processes do the work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from binas.base.cores import usable_cores
from binas.base.workers import launched
from binas.training.config import TrainSettings

FEWEST = 32  # images of a shard: with fewer, small networks compute much slower per image
LONGEST = timedelta(hours=2)  # that one process waits for another; a dead one is noticed at once


@dataclass(frozen=True, slots=True)
class Team:
    """The processes that train together, ``size`` of them, and which of them this one is; the first one writes."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process prepares, writes and speaks."""
        return self.rank == 0

    def gather(self, mine: Tensor) -> Tensor:
        """What each process has, stacked in the order of ranks."""
        if self.size == 1:
            return mine[None]
        rows = mine.new_empty(self.size, *mine.shape)
        distributed.all_gather(list(rows), mine.contiguous())
        return rows

    def trade(self, parts: Tensor) -> Tensor:
        """Of ``parts`` (one for each process) what each process has for this one, stacked in the order of ranks."""
        if self.size == 1:
            return parts
        received = torch.empty_like(parts)
        distributed.all_to_all_single(received, parts.contiguous())
        return received

    def add_up(self, mine: Tensor) -> Tensor:
        """The sum over all processes, of numbers whose sum does not depend on the order: counts, or one number and zeros."""
        if self.size > 1:
            distributed.all_reduce(mine)
        return mine

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.add_up(torch.zeros(1))


ALONE = Team()


def processes_of(config: TrainSettings) -> int:
    """How many processes do the work: those of a launcher; else the setting, or the cores there are, and 1 on a GPU."""
    if launched():
        return launched()
    return (config.processes or usable_cores()) if on_cpu(config) else 1


def on_cpu(config: TrainSettings) -> bool:
    """Whether networks compute on the CPU."""
    return config.device == "cpu" or not torch.cuda.is_available()


def suitable_shards(config: TrainSettings, batch_size: int) -> int:
    """As many shards as processes do the work, of :data:`FEWEST` images or more; under a launcher one for each process."""
    return launched() or max(1, min(processes_of(config), batch_size // FEWEST))


Place = Any  # a Store of torch, which does not declare it
_launcher: list[Place] = []


def keep_store(store: Place) -> None:
    """The store that all processes of a launcher know, where teams of them meet."""
    _launcher[:] = [store]


def meeting_place(name: str, size: int) -> Place:
    """Where a team meets: at a name in the launcher's store, or on this machine in the file of that name."""
    if _launcher:
        return distributed.PrefixStore(name, _launcher[0])  # type: ignore[attr-defined]  # it does export it
    return distributed.FileStore(name, size)  # type: ignore[attr-defined]


def stay_on_this_machine() -> None:
    """Let processes talk to each other without a network, unless the user has chosen one."""
    if not sys.platform.startswith("win"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")


@contextmanager
def joined(place: Place, rank: int, size: int, config: TrainSettings) -> Iterator[Team]:
    """Take part in a team whose processes meet in a store."""
    if not _launcher:
        stay_on_this_machine()
    how = "gloo" if on_cpu(config) else "cpu:gloo,cuda:nccl"
    distributed.init_process_group(how, store=place, rank=rank, world_size=size, timeout=LONGEST)
    try:
        yield Team(rank, size)
    finally:
        distributed.destroy_process_group()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread: the same sums in the same order, whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Shards:
    """The ``count`` shards of every batch of a network's training, of which this process does every n-th.

    A piece is what is computed at once: a shard, or where they share BatchNorm statistics (``joint``) all shards of a
    process.
    """

    def __init__(self, network: nn.Module, team: Team, count: int, joint: bool = False) -> None:
        self.team, self.count = team, count
        mine = range(team.rank, count, team.size)
        self.pieces = [mine] if joint else [range(shard, shard + 1) for shard in mine]
        self.all_pieces = team.size if joint else count
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.buffers = list(network.buffers())
        self.statistics = [b for b in self.buffers if b.is_floating_point()]
        self.shapes = [t.shape for t in (*self.parameters, *self.statistics)]
        self.sizes = [*(shape.numel() for shape in self.shapes), len(self.parameters)]

    def places(self, batch_size: int) -> list[int] | None:
        """The places in a batch of the images of this process: shard after shard, each with every n-th; None: all."""
        if self.count == 1:
            return None
        return [place for shard in self._mine() for place in range(shard, batch_size, self.count)]

    def rows(self, shard: int, batch_size: int) -> slice:
        """Where the images of a shard are among those of this process."""
        sizes = [len(range(own, batch_size, self.count)) for own in self._mine() if own <= shard]
        return slice(sum(sizes[:-1]), sum(sizes))

    def share(self, piece: range, batch_size: int) -> float:
        """What a piece counts: its share n_p / n of the images of a batch."""
        return sum(len(range(shard, batch_size, self.count)) for shard in piece) / batch_size

    def backward(
        self, piece_loss: Callable[[range, int], Tensor], batch_size: int, batches: int = 1
    ) -> list[float]:
        """The mean loss of each of some batches; gradients of all together and statistics become means over pieces.

        mean = sum_p n_p / n * value_p. ``piece_loss`` gives the loss of one piece (its shards) of one batch, by its number,
        after the backward pass of that loss times its :meth:`share`. A piece does all batches before processes exchange
        anything. A parameter that none used gets no gradient.
        """
        if self.all_pieces == 1:
            return [float(piece_loss(self.pieces[0], number)) for number in range(batches)]
        before = [b.clone() for b in self.buffers] if len(self.pieces) > 1 else []
        rows = [
            self._one(partial(piece_loss, piece), batches, self.share(piece, batch_size), before)
            for piece in self.pieces
        ]
        *parts, used, losses = torch.split(self._total(rows), [*self.sizes, batches])
        means = [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        for p, mean, some in zip(self.parameters, means, used.tolist(), strict=False):
            p.grad = mean if some else None
        for statistic, mean in zip(self.statistics, means[len(self.parameters) :], strict=True):
            statistic.copy_(mean)
        found: list[float] = losses.tolist()
        return found

    def _mine(self) -> list[int]:
        return [shard for piece in self.pieces for shard in piece]

    def _one(
        self, batch_loss: Callable[[int], Tensor], batches: int, share: float, before: Sequence[Tensor]
    ) -> Tensor:
        """Gradients, statistics, which parameters have a gradient, and the losses of one piece, in one row.

        ``before`` are the buffers that every piece starts from, given where this process does several.
        """
        for parameter in self.parameters:
            parameter.grad = None
        for buffer, start in zip(self.buffers if before else (), before, strict=True):
            buffer.copy_(start)
        losses = torch.stack([batch_loss(number).detach() for number in range(batches)])
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        used = losses.new_tensor([p.grad is not None for p in self.parameters], dtype=torch.float32)
        flat = [g.detach().reshape(-1) for g in grads]
        flat += [share * statistic.detach().reshape(-1) for statistic in self.statistics]
        return torch.cat([*flat, used, share * losses])

    def _total(self, rows: list[Tensor]) -> Tensor:
        """The rows of all pieces, added up in their order: sums of numbers depend on it.

        Each process adds up its own share of the columns, of which the others send it theirs, and all learn all sums. So
        memory and traffic of a process are a few times its own rows, whatever the number of processes.
        """
        size, length = self.team.size, len(rows[0])
        most, width = -(-self.all_pieces // size), -(-length // size)
        mine = rows[0].new_zeros(size, most, width)  # a part of the columns for each process
        for number, row in enumerate(rows):
            mine[:, number] = functional.pad(row, (0, size * width - length)).view(size, width)
        parts = self.team.trade(mine)
        total = parts[0, 0].clone()
        for piece in range(1, self.all_pieces):
            total += parts[piece % size, piece // size]
        return self.team.gather(total).view(-1)[:length]
