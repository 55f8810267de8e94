"""What the processor gives this process.

How many cores it may use: fewer than the machine has, where it is bound to some or has a share of them. And whether it can
compute in bfloat16: some virtual machines show matrix units (AMX) that end whoever uses them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
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


CPU_INFO = Path("/proc/cpuinfo")
ISA, WITHOUT_AMX = (
    "ONEDNN_MAX_CPU_ISA",
    "AVX512_CORE_FP16",
)  # the library's setting, and the most it may be without AMX
PRODUCT = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"


@cache
def no_bf16(cpu_info: Path = CPU_INFO, tried: Callable[[], int] | None = None) -> str | None:
    """Why a bfloat16 product on this CPU would end the process without a word, and what to do; None where it would not.

    Only where the processor shows matrix units and :data:`ISA` does not exclude them is it ``tried``, once, in a child.
    """
    if not _shows_amx(cpu_info) or _is_without_amx(os.environ.get(ISA, "")):
        return None
    if (tried or _try_product)() != -signal.SIGILL:
        return None
    return (
        "this processor shows matrix units (AMX) and ends whoever uses them, as some virtual machines do, so bfloat16 would "
        f"end the process without a word. Set {ISA}={WITHOUT_AMX} in the environment before the command starts, or compute "
        "in float32"
    )


def _shows_amx(cpu_info: Path) -> bool:
    try:
        return "amx_tile" in cpu_info.read_text(encoding="ascii", errors="replace")
    except OSError:  # no Linux
        return False


def _is_without_amx(isa: str) -> bool:
    """Whether a value of :data:`ISA` leaves matrix units out; DEFAULT and ALL are no limits."""
    return bool(isa) and isa.upper() not in ("DEFAULT", "ALL") and "AMX" not in isa.upper()


def _try_product() -> int:
    """The exit code of a process that does one product."""
    return subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, check=False).returncode
