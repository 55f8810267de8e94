"""Shared settings and fixtures.

Hypothesis is deterministic so that a run can be repeated; ``HYPOTHESIS_PROFILE=explore`` looks for new cases.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

# One worker a core (pytest-xdist), each with one thread: several threads in each would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Some virtual machines show matrix units (AMX) and end the process that uses them.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import pytest
from hypothesis import HealthCheck, settings

# Tests start more than sixty processes, most of which load binas: whatever the shell says, it is compiled once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
USUAL = gc.get_threshold()
gc.set_threshold(0)  # nothing that is loaded now is garbage: until pytest_collection_finish

SLOW_DRAWING = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "default", deadline=None, max_examples=30, derandomize=True, suppress_health_check=SLOW_DRAWING
)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=SLOW_DRAWING)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_finish() -> None:
    """From now on garbage is looked for, but never again among modules and tests, which are all there is so far."""
    gc.freeze()
    gc.set_threshold(*USUAL)


def _public_table(name: str) -> Path:
    folder = os.environ.get("BINAS_TABLES")
    if not folder:
        pytest.skip("BINAS_TABLES is not set: it names the folder with the public tables")
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"the folder of BINAS_TABLES has no {name}")
    return path


@pytest.fixture(scope="session")
def nas_bench_macro_path() -> Path:
    """The NAS-Bench-Macro table, or a skip that says why."""
    return _public_table("nas_bench_macro_cifar10.json")


@pytest.fixture(scope="session")
def accel_nasbench_path() -> Path:
    """The Accel-NASBench table, or a skip that says why."""
    return _public_table("accel_nasbench.csv")


@pytest.fixture(scope="session")
def tfnas_path() -> Path:
    """The TF-NAS latency tables, or a skip that says why."""
    return _public_table("tfnas_block_latency.json")
