"""What does reading images cost, and how does it grow?

    python benchmarks/data.py            # about a minute

Makes JPEG photos (500 x 375, noise over a gradient, about 90 kB) in a temporary folder, in steps of twice the
number, and measures per image: checking all files before training, decoding all into memory at 224 x 224, and one
shuffled pass without the cache with one and with two threads; and the peak memory of a process that makes that
pass. Then the time to load the embedded sample. The last line is one JSON object; exit code 1 if time per image
or memory grows with the number of images.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from binas.data import FileImages, embedded
from binas.data.config import Format, Names
from binas.data.folder import image_folder

COUNTS = (250, 500, 1000)
BATCH = 32
GROWTH = 1.3  # allowed from the least to the most images: noise, not growth


def write_photos(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    ramp = np.linspace(0, 200, 500)[None, :, None] + np.zeros((375, 1, 3))
    for i in range(count):
        place = folder / f"class{i % 10}" / f"{i:05}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((ramp + rng.integers(0, 55, ramp.shape)).astype(np.uint8)).save(place, quality=90)


def opened(folder: Path, workers: int) -> FileImages:
    images = image_folder(folder, Names(), Format((224, 224), workers=workers)).train
    assert isinstance(images, FileImages)
    return images


def one_pass(images: FileImages) -> None:
    for _ in images.batches(BATCH, seed=0):
        pass


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def pass_memory(folder: Path) -> float:
    """Peak memory in MiB of a process that makes one pass, PyTorch included."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_memory, (folder,))


def _peak_memory(folder: Path) -> float:
    one_pass(opened(folder, 2))
    # ru_maxrss would count the parent's memory too; this needs Linux
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def row(folder: Path, count: int) -> dict[str, float]:
    write_photos(folder, count)
    one, two = opened(folder, 1), opened(folder, 2)
    return {
        "images": count,
        "check_ms": 1000 / count * timed(two.unreadable),
        "cache_ms": 1000 / count * timed(two.cache),
        "pass_1_ms": 1000 / count * timed(lambda: one_pass(one)),
        "pass_2_ms": 1000 / count * timed(lambda: one_pass(two)),
        "pass_mib": pass_memory(folder),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    rows = []
    print("images   check   cache   pass, 1 thread   pass, 2 threads (ms per image)   peak memory (MiB)")
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(Path(folder), count))
        print(
            "{images:6} {check_ms:7.2f} {cache_ms:7.2f} {pass_1_ms:16.2f} {pass_2_ms:17.2f} {pass_mib:34.0f}".format(
                **rows[-1]
            )
        )
    seconds = min(timed(embedded) for _ in range(3))
    print(f"\nembedded sample: {seconds:.2f} s")
    growth = max(rows[-1][key] / rows[0][key] for key in ("check_ms", "cache_ms", "pass_2_ms", "pass_mib"))
    print(json.dumps({"rows": rows, "embedded_s": seconds, "growth": growth}))
    return 0 if growth <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
