"""What does reading images cost, and how does it grow?

    python benchmarks/data.py            # about a minute
    python benchmarks/data.py --only stream

Makes JPEG photos (500 x 375, noise over a gradient, about 90 kB) in a temporary folder, in steps of twice the
number, and measures per image: checking all files before training, decoding all into memory at 224 x 224, and one
shuffled pass without the cache with one and with two threads; and the peak memory of a process that makes that
pass. Then the time to load the embedded sample, and the peak memory of a process that makes one shuffled pass over
a stream (Parquet files of 2,500 PNG images, 32 x 32) of 2,500 and of 20,000 images. The last line is one JSON
object; exit code 1 if time per image or memory grows with the number of images.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from binas.data import DataConfig, FileImages, embedded, load_data
from binas.data.config import Format, Names
from binas.data.folder import image_folder
from binas.data.images import Images

COUNTS = (250, 500, 1000)
IN_FILE = 2_500
STREAMED = (IN_FILE, 8 * IN_FILE)
BATCH = 32
GROWS = ("check_ms", "cache_ms", "pass_2_ms", "pass_mib")
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


def write_parquet(folder: Path, count: int) -> None:
    """Small images of noise, all different."""
    from pyarrow import Table, parquet

    rng, rows = np.random.default_rng(0), []
    for i in range(count):
        made = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(made, "PNG", compress_level=1)
        rows.append({"image": {"bytes": made.getvalue(), "path": None}, "label": i % 10})
    for first in range(0, count, IN_FILE):
        some = Table.from_pylist(rows[first : first + IN_FILE])
        parquet.write_table(some, folder / f"train-{first:06}.parquet", row_group_size=500)


def one_pass(images: Images) -> None:
    for _ in images.batches(BATCH, seed=0):
        pass


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def pass_memory(make: Callable[..., Images], *given: object) -> float:
    """Peak memory in MiB of a process that makes one pass, PyTorch included."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_memory, (make, *given))


def streamed(path: Path, count: int) -> Images:
    """The training images of a stream, nearly all."""
    source = DataConfig(
        kind="huggingface", path=path, streaming=True, length=count, class_names=tuple("abcdefghij"), size=32
    )
    return load_data(source).train


def stream_row(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        write_parquet(Path(place), count)
        return {"images": count, "pass_mib": pass_memory(streamed, Path(place), count)}


def _peak_memory(make: Callable[..., Images], *given: object) -> float:
    one_pass(make(*given))
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
        "pass_mib": pass_memory(opened, folder, 2),
    }


def folders() -> list[dict[str, float]]:
    """A row for each number of photos in a folder."""
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
    return rows


def streams() -> list[dict[str, float]]:
    """A row for each number of images in a stream."""
    rows = [stream_row(count) for count in STREAMED]
    for made in rows:
        print("stream of {images} images: peak memory {pass_mib:.0f} MiB".format(**made))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("stream",), help="leave the folders and the sample out")
    found: dict[str, Any] = {}
    if parser.parse_args().only is None:
        found = {"rows": folders(), "embedded_s": min(timed(embedded) for _ in range(3))}
        print(f"\nembedded sample: {found['embedded_s']:.2f} s")
    found["streams"] = streams()
    ends = [(rows[0], rows[-1]) for rows in (found.get("rows", []), found["streams"]) if rows]
    found["growth"] = max(last[key] / first[key] for first, last in ends for key in GROWS if key in first)
    print(json.dumps(found))
    return 0 if found["growth"] <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
