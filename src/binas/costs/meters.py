"""What a run costs: seconds by the host's clock or the GPU's events, joules by the CPU's powercap counters."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from binas.base.errors import MeasureError
from binas.costs.backends import Runner

Meter = Callable[[Runner, int], float]
POWERCAP = Path("/sys/class/powercap")


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def host_seconds(runner: Runner, repeats: int) -> float:
    """Seconds of ``repeats`` runs in a row, by the host's clock."""
    with _without_garbage_collection():
        start = time.perf_counter()
        for _ in range(repeats):
            runner()
        return time.perf_counter() - start


def own_seconds(
    runner: Runner,
    repeats: int,
    seconds: Meter = host_seconds,
    busy: Callable[[], float] = time.process_time,
) -> float:
    """The same for one thread, without the time that the system gave to other programs meanwhile.

    A process that computes in one thread is busy as long as it runs, so on a quiet machine the clock and its CPU
    time agree; where the clock went on longer, the process was interrupted and its CPU time is what it needed.
    """
    start = busy()
    taken = seconds(runner, repeats)
    return min(taken, busy() - start)


def cuda_seconds(runner: Runner, repeats: int) -> float:
    """The same on a CUDA device, between two events on its stream."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        runner()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


@dataclass(frozen=True, slots=True)
class EnergyZone:
    """One energy counter of the CPU (a package): microjoules that start again at ``range``."""

    path: Path
    range: int

    def read(self) -> int:
        """The counter, in microjoules."""
        return int((self.path / "energy_uj").read_text())


def energy_zones(root: Path = POWERCAP) -> list[EnergyZone]:
    """The packages whose energy counters can be read; none on machines that offer none, or only to root."""
    zones = []
    for path in sorted(root.glob("intel-rapl:*")):
        try:
            zone = EnergyZone(path, int((path / "max_energy_range_uj").read_text()))
            zone.read()
        except (OSError, ValueError):
            continue
        if path.name.count(":") == 1:  # what lies below a package is part of it
            zones.append(zone)
    return zones


def joules(zones: list[EnergyZone]) -> Meter:
    """A meter of the energy all packages take while a network runs: of the whole CPU, whoever uses it."""
    if not zones:
        raise MeasureError(
            "this machine offers no readable energy counters (/sys/class/powercap/intel-rapl*; reading them may need "
            "root). Measure energy with a tool of the device and read it with `binas costs import`."
        )

    def measure(runner: Runner, repeats: int) -> float:
        before = [zone.read() for zone in zones]
        for _ in range(repeats):
            runner()
        after = [zone.read() for zone in zones]
        steps = zip(before, after, zones, strict=True)
        return sum((new - old) % zone.range for old, new, zone in steps) / 1e6

    return measure


def until_stable(run: Callable[[], float], most: int = 50, seconds: float = 2.0, gain: float = 0.05) -> float:
    """Run until three runs in a row bring no more than ``gain``; the seconds of the fastest.

    Stops after ``most`` runs or ``seconds`` at the latest, but not before four runs.
    """
    best, waiting, total = run(), 0, 0.0
    for done in range(1, most):
        if waiting >= 3 or (total >= seconds and done >= 4):
            break
        value = run()
        total += value
        waiting = 0 if value < best * (1 - gain) else waiting + 1
        best = min(best, value)
    return best
