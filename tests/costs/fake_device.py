"""An invented device with known times, noise, spikes, drift and a clock of its own."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from binas.costs.session import CONTROL


class FakeClock:
    """Seconds that pass only when the device works."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class KilledError(Exception):
    """The process dies."""


@dataclass
class FakeDevice:
    """Runs take ``truth`` seconds, times noise, spikes and drift.

    The noise of an entry's n-th sample depends on the entry and n only, so a device that goes on after a kill
    (``taken`` holds how many samples are done) behaves like one that never stopped. ``drift`` is a factor as a
    function of the clock. ``dies_after`` samples it raises.
    """

    truth: Mapping[str, float]
    clock: FakeClock = field(default_factory=FakeClock)
    jitter: float = 0.0
    spikes: float = 0.0
    drift: Callable[[float], float] = lambda now: 1.0
    dies_after: int | None = None
    taken: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, int]] = field(default_factory=list)
    control: float = 1e-4

    def seconds(self, entry: str) -> float:
        return self.control if entry == CONTROL else self.truth[entry]

    def warm_up(self, entry: str) -> float:
        return self.seconds(entry)

    def sample(self, entry: str, repeats: int) -> float:
        if self.dies_after is not None and len(self.calls) >= self.dies_after:
            raise KilledError
        value = self.seconds(entry) * self._noise(entry) * self.drift(self.clock.now)
        self.calls.append((entry, repeats))
        self.taken[entry] += 1
        self.clock.now += value * repeats
        return value

    def _noise(self, entry: str) -> float:
        digest = hashlib.sha256(f"{entry} {self.taken[entry]}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        spike = 1.0 + 4.0 * rng.random() if rng.random() < self.spikes else 1.0
        return float((1.0 + self.jitter * rng.exponential()) * spike)
