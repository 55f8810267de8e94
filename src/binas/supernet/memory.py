"""The allocator: large tensors come and go with every layer, and glibc by default returns each to the system."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt, in malloc.h


def keep_memory() -> bool:
    """Let this process keep freed memory for the next layer; True where that is possible (glibc).

    Without it every large tensor is mapped and unmapped anew, which costs a multi-path pass on a CPU up to half
    its time. The process holds on to the most memory it ever needed.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))
