"""The three kinds of progress that training, passes over images and measuring report, turned into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from binas.contributions.progress import Watcher
from binas.costs.session import Progress
from binas.run.teller import Teller
from binas.training.reporting import RunReporter


class TrainingProgress(RunReporter):
    """Figures of training to ``metrics.jsonl`` and TensorBoard in ``folder``; how far it is, to a teller."""

    def __init__(self, folder: Path, teller: Teller) -> None:
        super().__init__(folder, quiet=True)
        self.teller, self.note = teller, ""

    def advance(self, done: int, **values: float) -> None:
        """One more batch."""
        super().advance(done, **values)
        self.teller.show(done / self.total, self.note)

    def record(self, epoch: int, step: int, metrics: Mapping[str, float]) -> None:
        """Figures of an epoch."""
        super().record(epoch, step, metrics)
        known = [f"{name} {value:.4g}" for name, value in metrics.items() if name != "learning_rate"]
        self.note = f"epoch {epoch}: {', '.join(known)}"
        self.teller.show(step / self.total, self.note)


class PassProgress(Watcher):
    """Passes over images, or architectures measured one by one."""

    def __init__(self, teller: Teller) -> None:
        self.teller, self.total, self.text = teller, 1, ""

    def start(self, what: str, total: int, images: int, done: int = 0) -> None:
        """How much there is to do."""
        self.total = total

    def advance(self, done: int) -> None:
        """One more."""
        self.teller.show(done / self.total, self.text)

    def note(self, text: str) -> None:
        """Shown from now on."""
        self.text = text


def measuring_progress(teller: Teller) -> Callable[[Progress], None]:
    """The progress of a measuring session."""
    return lambda state: teller.show(state.fraction, state.doing, state.left)


def keep_figures(folder: Path, phase: str, figures: Mapping[str, float]) -> None:
    """Figures that arise once, in ``metrics.jsonl`` and TensorBoard; those that are not numbers are left out."""
    reporter = RunReporter(folder, quiet=True)
    reporter.start(phase, 1, 0)
    reporter.record(1, 1, {name: value for name, value in figures.items() if math.isfinite(value)})
    reporter.finish()
