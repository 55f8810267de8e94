"""Measurements of evaluators with known contributions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from binas.contributions import Journal, Recorded
from binas.contributions.design import Design
from binas.contributions.factorial import kinds_of
from binas.contributions.outcomes import Outcomes
from binas.contributions.passes import measure
from binas.contributions.paths import balanced_paths


@dataclass
class MemoryJournal:
    """A journal without files, for tests that measure often."""

    images: int
    recorded: dict[int, Outcomes] = field(default_factory=dict)

    def has(self, number):
        return number in self.recorded

    def first_missing(self, end):
        return next((number for number in range(end) if number not in self.recorded), end)

    def write(self, number, outcomes):
        self.recorded[number] = outcomes

    def read(self, number, first, end):
        whole = self.recorded[number]
        return Outcomes(whole.correct[first:end], whole.log_probability[first:end])


@pytest.fixture
def memory_journal():
    """Makes journals in memory: ``memory_journal(images)``."""
    return MemoryJournal


@pytest.fixture
def record():
    """Measures factorial passes in memory: ``record(evaluator, passes, outcome, seed)``."""

    def recorded(evaluator, passes, outcome="correct", seed=0):
        journal = MemoryJournal(evaluator.images)

        def paths(images, number):
            return balanced_paths(evaluator.space, images, number, seed)

        measure(evaluator, journal, passes, paths)
        return Recorded(Design(evaluator.space), journal, passes, seed, kinds_of(outcome))

    return recorded


@pytest.fixture
def journal(tmp_path: Path):
    """Opens journals on disk: ``journal(images, name)``."""

    def opened(images: int, name: str = "j") -> Journal:
        return Journal(tmp_path / name, {"images": images})

    return opened
