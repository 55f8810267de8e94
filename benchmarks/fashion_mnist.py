"""Full Fashion-MNIST in earnest: configs/fashion-mnist.yaml, with the table of cifar10.py.

    python benchmarks/fashion_mnist.py           # resumable; --data FOLDER with the four idx files, --out FOLDER
    python benchmarks/fashion_mnist.py --record  # also writes docs/results.md and its picture
    python benchmarks/fashion_mnist.py --quick   # 1,500 of the embedded images, one epoch each

The files are those of Debian's package dataset-fashion-mnist. What is compared, and how: benchmarks/earnest.py. Targets:
found above every other column at three quarters of the limits by two standard errors, accuracies rising with the limit.
The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import sys

from cifar10 import QUICK
from earnest import ROOT, Setup, main

SETUP = Setup(
    "fashion-mnist",
    ROOT / "configs" / "fashion-mnist.yaml",
    {**QUICK, "data.kind": "embedded"},
    changes=lambda data: {"data.path": str(data.resolve())},
)

if __name__ == "__main__":
    sys.exit(main(SETUP, str(__doc__)))
