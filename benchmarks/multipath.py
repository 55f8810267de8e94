"""What does a batch of mixed architectures cost, against one pass of the heaviest network?

    python benchmarks/multipath.py            # batch 256 and 1024, demo space, 2 threads: about a minute
    python benchmarks/multipath.py --quick    # within 60 seconds

Every image takes its own uniformly drawn path, in eval mode. Measured in the same run, as ratios to the plain
forward of the extracted heaviest network (channels_last, as all others):

* grouped: binas, images sorted by config, each group on sliced weights; new paths in every repeat, so that
  nothing prepared for one set of group sizes is timed as if it were free;
* one masked pass: every block once at full width and largest kernel for every image, channels, smaller kernels
  and squeeze-excite of the others masked away;
* all configs: every config of every block on every image, then a mask that keeps the image's own (what the
  reference implementation does). Run on an eighth of the batch and scaled, because it is slow;
* MAC ideal: mean multiply-accumulates of the drawn architectures over those of the heaviest.

The process restarts itself with glibc told to keep freed memory: by default every large tensor is mapped and
unmapped anew, which hits all rows and blurs the ratios. The last line is one JSON object; exit code 1 if a target
is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from binas.resources.analytic import architecture_work, config_work, shapes
from binas.space import load_space
from binas.supernet import Paths, Supernet, extract, sample_paths
from binas.supernet.mbconv import ElasticMBConv

TARGETS = {256: 1.0, 1024: 0.7}
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592"}
PEER_SHARE = 8


def keep_memory() -> None:
    """Restart once with an allocator that does not give memory back between layers."""
    if not all(name in os.environ for name in KEEP_MEMORY):
        os.environ.update(KEEP_MEMORY)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taking turns so that a slow moment of the machine hits all of them."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(timed(function))
    return {name: statistics.median(values) for name, values in times.items()}


def all_configs(net: Supernet, images: Tensor, paths: Paths) -> Tensor:
    """Every config of every block on every image; a mask keeps each image's own."""
    depths, configs = paths
    x = net.stem(images)
    for s, stage in enumerate(net.space.stages):
        for b, choices in enumerate(stage.blocks):
            outputs = [net.block(s, b)(x, c) for c in range(len(choices))]
            masks = [(configs[:, s, b] == c).to(x.dtype)[:, None, None, None] for c in range(len(choices))]
            mixed = sum(output * mask for output, mask in zip(outputs, masks, strict=True))
            active = (depths[:, s] > b)[:, None, None, None]
            x = torch.where(active, mixed, x if b else mixed)
    return net.head(x)


def masked_block(block: ElasticMBConv, x: Tensor, configs: Tensor) -> Tensor:
    """One pass at full width: per-image masks and filters instead of slices."""
    choices = block.choices
    pick = configs.clamp(min=0)
    widths = torch.tensor([c.width for c in choices])[pick]
    widest, act = max(c.width for c in choices), block.activations[choices[0].activation]
    mask = (torch.arange(widest)[None] < widths[:, None]).to(x.dtype)[:, :, None, None]
    expanded = act(block.expand(x, widest)) * mask
    kernels = torch.tensor([c.kernel for c in choices])[pick]
    inner = torch.zeros(())
    for kernel in sorted({c.kernel for c in choices}):
        own = (kernels == kernel).to(x.dtype)[:, None, None, None]
        inner = inner + act(block.depthwise(expanded, widest, kernel, f"k{kernel}")) * own
    inner = inner * mask
    reduced = torch.tensor([c.reduced for c in choices])[pick]
    if block.squeeze is not None:
        inner = torch.where((reduced > 0)[:, None, None, None], masked_squeeze(block, inner, reduced), inner)
    return masked_project(block, x, inner, pick)


def masked_squeeze(block: ElasticMBConv, inner: Tensor, reduced: Tensor) -> Tensor:
    full = block.squeeze.full
    hidden = full.activation(full.reduce(inner.mean((2, 3))))
    hidden = hidden * (torch.arange(hidden.shape[1])[None] < reduced[:, None]).to(hidden.dtype)
    return inner * full.gate(full.excite(hidden))[:, :, None, None]


def masked_project(block: ElasticMBConv, x: Tensor, inner: Tensor, pick: Tensor) -> Tensor:
    """The projection with each image's own output BatchNorm."""
    out = F.conv2d(inner, block.project.weight(inner.shape[1], block.outputs, 1))
    affine = [block.project.norms[c.norm].affine(block.outputs) for c in block.choices]
    scale, shift = (torch.stack(part)[pick][:, :, None, None] for part in zip(*affine, strict=True))
    out = out * scale + shift
    return out + x if block.skip else out


def one_masked_pass(net: Supernet, images: Tensor, paths: Paths) -> Tensor:
    depths, configs = paths
    x = net.stem(images)
    for s, stage in enumerate(net.space.stages):
        for b in range(len(stage.blocks)):
            out = masked_block(net.block(s, b), x, configs[:, s, b])
            active = (depths[:, s] > b)[:, None, None, None]
            x = torch.where(active, out, x if b else out)
    return net.head(x)


def mac_ideal(net: Supernet, drawn: list[Paths]) -> float:
    """Mean MACs of the drawn architectures over those of the heaviest."""
    table, fixed = config_work(net.space), shapes(net.space).fixed.macs
    macs = [
        fixed + sum(table[s][b][c].macs for s, row in enumerate(rows) for b, c in enumerate(row) if c >= 0)
        for _, configs in drawn
        for rows in configs.tolist()
    ]
    return statistics.mean(macs) / architecture_work(net.space, net.space.extreme()).macs


def check_peers(net: Supernet, images: Tensor, paths: Paths) -> None:
    """All ways must give the same logits, or their times mean nothing."""
    ours = net(images, paths)
    for other in (one_masked_pass, all_configs):
        worst = (other(net, images, paths) - ours).abs().max().item()
        if worst > 1e-3 * ours.abs().max().item():
            raise SystemExit(f"{other.__name__} differs from the grouped forward by {worst}")


def measure(net: Supernet, batch: int, repeats: int, peer_repeats: int) -> dict[str, float]:
    """Ratios to the heaviest network at one batch size."""
    space, generator = net.space, torch.Generator().manual_seed(batch)
    shape = (batch, space.channels, space.resolution, space.resolution)
    images = torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)
    drawn = [sample_paths(space, batch, generator) for _ in range(repeats + 1)]
    fresh, paths = itertools.cycle(drawn), drawn[0]
    heaviest = extract(net, space.extreme()).to(memory_format=torch.channels_last)
    small = batch // PEER_SHARE
    few, few_paths = images[:small], (paths[0][:small], paths[1][:small])
    check_peers(net, few, few_paths)
    both = {"heaviest": lambda: heaviest(images), "grouped": lambda: net(images, next(fresh))}
    peers = {
        "masked": lambda: one_masked_pass(net, images, paths),
        "all configs": lambda: all_configs(net, few, few_paths),
    }
    times = {**interleaved(both, repeats), **interleaved(peers, peer_repeats)}
    times["all configs"] *= PEER_SHARE
    base = times["heaviest"]
    return {
        "heaviest_ms": base * 1e3,
        "grouped": times["grouped"] / base,
        "one_masked_pass": times["masked"] / base,
        "all_configs": times["all configs"] / base,
        "mac_ideal": mac_ideal(net, drawn),
    }


def show(results: dict[int, dict[str, float]]) -> None:
    names = ["heaviest_ms", "grouped", "one_masked_pass", "all_configs", "mac_ideal"]
    print("batch  " + "  ".join(f"{name:>15}" for name in names))
    for batch, row in results.items():
        print(f"{batch:5}  " + "  ".join(f"{row[name]:15.2f}" for name in names))
    print("all but heaviest_ms are ratios to it; all_configs ran on an eighth of the batch, scaled")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, within 60 seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--space", default="demo")
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    net = Supernet(load_space(options.space)).eval()
    repeats, peer_repeats = (9, 1) if options.quick else (31, 5)
    with torch.inference_mode():
        results = {batch: measure(net, batch, repeats, peer_repeats) for batch in TARGETS}
    show(results)
    missed = [
        f"batch {b}: {results[b]['grouped']:.2f} > {t}"
        for b, t in TARGETS.items()
        if results[b]["grouped"] > t
    ]
    ratios = {str(batch): {k: round(v, 3) for k, v in row.items()} for batch, row in results.items()}
    print(
        json.dumps({"space": options.space, "threads": options.threads, "ratios": ratios, "missed": missed})
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
