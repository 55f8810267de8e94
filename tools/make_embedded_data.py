"""Make the Fashion-MNIST sample that comes with binas: the same bytes each time.

    python tools/make_embedded_data.py --source /usr/share/datasets/fashion-mnist --out src/binas/data/embedded

``--source`` holds the four idx files of Fashion-MNIST, as Debian's package dataset-fashion-mnist installs
them. 1,600 images of every class are drawn from the training files and all 1,000 from the test files, in the
order of the files, and written as idx files packed with xz, with the licence and a list of hashes of the
unpacked files beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
from pathlib import Path

import numpy as np

from binas.base.files import dump_json, write_bytes, write_text
from binas.data.division import stratified_sample
from binas.data.fashion import IMAGES, LABELS
from binas.data.idx import idx_bytes, read_idx

COUNTS = {"train": 16_000, "t10k": 10_000}
SEED = 0
LICENCE = """\
The images in this folder are a sample of Fashion-MNIST (https://github.com/zalandoresearch/fashion-mnist).

The MIT License (MIT)

Copyright (c) 2017 Zalando SE, https://tech.zalando.com

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def sample(source: Path) -> dict[str, bytes]:
    """The four idx files of the sample, by name, not packed."""
    files = {}
    for part, count in COUNTS.items():
        images, labels = IMAGES.format(part=part), LABELS.format(part=part)
        numbers = read_idx(source / f"{labels}.gz", 1)
        rows = stratified_sample(numbers, count, SEED)
        assert np.bincount(numbers[rows]).tolist() == [count // 10] * 10
        files[images] = idx_bytes(read_idx(source / f"{images}.gz", 3)[rows])
        files[labels] = idx_bytes(numbers[rows])
    return files


def main() -> None:
    """Read the arguments and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="folder with the four idx.gz files")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    options = parser.parse_args()
    files = sample(options.source)
    for name, data in files.items():
        write_bytes(options.out / f"{name}.xz", lzma.compress(data, preset=9))
    write_text(options.out / "LICENSE", LICENCE)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    made = {
        "format": "binas/embedded-images",
        "version": 1,
        "source": "Fashion-MNIST, from Debian's package dataset-fashion-mnist",
        "sha256": hashes,
    }
    write_text(options.out / "sample.json", dump_json(made))


if __name__ == "__main__":
    main()
