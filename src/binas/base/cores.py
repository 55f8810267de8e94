"""How many cores this process may use: fewer than the machine has, where it is bound to some or has a share of them."""

from __future__ import annotations

import os
from pathlib import Path

QUOTA = Path(
    "/sys/fs/cgroup/cpu.max"
)  # of a container: microseconds it may compute in a period, and the period

# The environment in which NumPy and torch, loaded afterwards, compute with one thread.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def usable_cores(quota: Path = QUOTA) -> int:
    """Cores by affinity, at most what a container's quota pays for in full, at least 1."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    paid = _paid(quota)
    return bound if paid is None else max(1, min(bound, paid))


def _paid(quota: Path) -> int | None:
    """Whole cores of the quota; None where there is none."""
    try:
        share, period = map(int, quota.read_text(encoding="ascii").split())
    except (OSError, ValueError):  # no container, or "max": no limit
        return None
    return share // period if period > 0 else None
