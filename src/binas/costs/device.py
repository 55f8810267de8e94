"""The device a session measures: workloads prepared by a backend, read by a meter."""

from __future__ import annotations

from collections.abc import Callable

from binas.costs.backends import Backend, Runner
from binas.costs.meters import Meter, cuda_seconds, host_seconds, own_seconds, until_stable
from binas.costs.workloads import Workload


class BackendDevice:
    """Prepares each workload when it is first needed and keeps it, since entries are measured taking turns.

    ``build`` makes the workload of an entry; its module is freed once the backend has its own form of it.
    ``meter`` reads something else than time.
    """

    def __init__(
        self, backend: Backend, build: Callable[[str], Workload], meter: Meter | None = None
    ) -> None:
        self.backend, self.build = backend, build
        self.seconds = _clock(backend)
        self.meter = meter or self.seconds
        self._runners: dict[str, Runner] = {}

    def warm_up(self, entry: str) -> float:
        """Prepare an entry and run it until it is stable; seconds of one run."""
        runner = self._runners[entry] = self.prepare(entry)
        return until_stable(lambda: self.seconds(runner, 1))

    def prepare(self, entry: str) -> Runner:
        """What runs an entry."""
        workload = self.build(entry)
        return self.backend.prepare(workload.module, workload.shapes)

    def sample(self, entry: str, repeats: int) -> float:
        """Mean cost of a run; one run before it brings code and weights back into the caches."""
        runner = self._runners[entry]
        runner()
        return self.meter(runner, repeats) / repeats


def _clock(backend: Backend) -> Meter:
    """What reads seconds: the GPU's events where calls return early, else the host's clock."""
    if backend.settings.device == "cuda":
        return cuda_seconds if backend.asynchronous else host_seconds
    return own_seconds if backend.settings.threads == 1 else host_seconds
