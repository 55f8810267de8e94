"""What does augmentation cost, and is plain tensor code worth having compared with kornia?

    python benchmarks/augmentation.py            # one thread: about half a minute

Milliseconds per batch (the least of the repeats, the two columns taking turns) of each operation in binas and
in kornia, and of whole settings, on 256 grey images of 28 x 28 and on 64 colour images of 224 x 224. The last
line is one JSON object; exit code 1 if the operations together take more than half of kornia's time on the
small images.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial

import kornia.augmentation as K
import torch
from torch import Generator

from binas.data import Augmentation, AugmentConfig, augment

BATCHES = ((256, 1, 28, 28), (64, 3, 224, 224))
TARGET = 0.5


def least(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """The least time of each function in ms, the functions taking turns."""
    best = [float("inf")] * len(functions)
    for _ in range(repeats + 1):  # the first round warms up
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], 1000 * (time.perf_counter() - start))
    return best


def operations(shape: tuple[int, ...]) -> dict[str, list[Callable[[], object]]]:
    """The operations that binas writes itself, and kornia's for the same purpose."""
    images = torch.randint(256, shape, dtype=torch.uint8)
    floats = augment.normalise(images, (0.5,) * shape[1], (0.25,) * shape[1])
    draw, side = Generator().manual_seed(0), shape[2]
    padding, square = side // 14, side // 4
    share = (square / side) ** 2
    return {
        "crop": [
            partial(augment.shift, images, padding, draw),
            partial(K.RandomCrop((side, side), padding=padding), floats),
        ],
        "flip": [partial(augment.flip, images, draw), partial(K.RandomHorizontalFlip(0.5), floats)],
        "cutout": [
            partial(augment.cutout, floats, square, draw),
            partial(K.RandomErasing(scale=(share, share), ratio=(1.0, 1.0), p=1.0), floats),
        ],
        "erasing": [partial(augment.erase, floats, 0.5, draw), partial(K.RandomErasing(p=0.5), floats)],
        "mixup": [
            partial(augment.mixup, floats, 0.2, draw),
            partial(K.RandomMixUpV2(data_keys=["input"]), floats),
        ],
    }


def settings(shape: tuple[int, ...]) -> dict[str, Callable[[], object]]:
    """Whole augmentations, normalisation included."""
    images = torch.randint(256, shape, dtype=torch.uint8)
    side, ones = shape[2], (0.5,) * shape[1]
    configs = {
        "normalise only": AugmentConfig(),
        "crop, flip": AugmentConfig(crop=side // 14, flip=True),
        "crop, flip, erasing, mixup": AugmentConfig(crop=side // 14, flip=True, erasing=0.25, mixup=0.2),
        "resized crop, flip": AugmentConfig(resized_crop=0.08, flip=True),
        "randaugment, 8 draws": AugmentConfig(auto="randaugment"),
        "autoaugment, 8 draws": AugmentConfig(auto="autoaugment"),
        "autoaugment, 64 draws": AugmentConfig(auto="autoaugment", policies=64),
    }
    return {
        name: partial(Augmentation(config, shape[2:], ones, ones), images, seed=0)
        for name, config in configs.items()
    }


def main() -> int:
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[float]]] = {}
    for shape in BATCHES:
        name = " x ".join(map(str, shape))
        repeats = 30 if shape[1] == 1 else 5
        print(f"\n{name:28} binas ms   kornia ms   ratio")
        found[name] = {kind: least(pair, repeats) for kind, pair in operations(shape).items()}
        for kind, (own, other) in found[name].items():
            print(f"{kind:28} {own:8.2f} {other:11.2f} {own / other:7.2f}")
        for kind, function in settings(shape).items():
            found[name][kind] = least([function], repeats // 5)
            print(f"{kind:28} {found[name][kind][0]:8.2f}")
    ratio = together(found["256 x 1 x 28 x 28"])
    print(
        f"\ncrop, flip, cutout, erasing and mixup together on the small images: {ratio:.2f} of kornia's time"
    )
    print(json.dumps({"ms": found, "ratio": ratio}))
    return 0 if ratio <= TARGET else 1


def together(times: dict[str, list[float]]) -> float:
    pairs = [pair for pair in times.values() if len(pair) == 2]
    return sum(own for own, _ in pairs) / sum(other for _, other in pairs)


if __name__ == "__main__":
    sys.exit(main())
