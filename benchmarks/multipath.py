"""What does a batch of mixed architectures cost, against one pass of the heaviest network?

    python benchmarks/multipath.py            # batch 256 and 1024, small-28, 2 threads: about two minutes
    python benchmarks/multipath.py --quick    # within 60 seconds
    python benchmarks/multipath.py --processes  # also two processes of one thread against one of two

Every image takes its own uniformly drawn path. Measured in the same run, taking turns, as ratios to the plain
network extracted for the heaviest architecture (channels_last, as all others).

In eval, as times of its forward:

* grouped: binas, images sorted by config, each group on sliced weights; new paths in every repeat, so that
  nothing prepared for one set of group sizes is timed as if it were free;
* one masked pass: every block once at full width and largest kernel for every image, channels, smaller kernels
  and squeeze-excite of the others masked away;
* all configs: every config of every block on every image, then a mask that keeps the image's own (what the
  reference implementation does). Run on an eighth of the batch and scaled, because it is slow;
* MAC ideal: mean multiply-accumulates of the drawn architectures over those of the heaviest.

In training, as images per second over those of training the heaviest network (forward, loss, backward, SGD with
Nesterov momentum and weight decay), with G distinct configs per block and step, and with all of them.

glibc is told to keep freed memory: by default every large tensor is mapped and unmapped anew, which hits all rows
and blurs the ratios. Times are medians; the load of the machine at the start is in the result, since two threads wait
for each other when others need the cores. The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.costs.analytic import architecture_work, config_work, shapes
from binas.space import load_space
from binas.supernet import Paths, Supernet, extract, sample_paths
from binas.supernet.layers import affine
from binas.supernet.mbconv import ElasticMBConv
from binas.supernet.network import keep_memory

AT_MOST = {256: 1.0, 1024: 0.7}
AT_LEAST = {2: 1.4, 3: 1.4, 4: 1.4}
TRAINING_BATCH = 256
WORKER_STEPS = 12
PEER_SHARE = 8


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(functions: dict[str, Callable[[], object]], repeats: int, seconds: float) -> dict[str, float]:
    """Median seconds of each, taking turns so that a slow moment of the machine hits all of them.

    Each runs three times unmeasured; no new round starts after ``seconds``.
    """
    end = time.perf_counter() + seconds
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(3 + repeats):
        for name, function in functions.items():
            spent = timed(function)
            if turn >= 3:
                times[name].append(spent)
        if turn >= 3 and time.perf_counter() > end:
            break
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
    norms = affine([block.project.norm(choice.norm) for choice in block.choices])
    scale, shift = (part[pick][:, :, None, None] for part in norms)
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


def batch_of(net: Supernet, count: int, generator: torch.Generator) -> Tensor:
    shape = (count, net.space.channels, net.space.resolution, net.space.resolution)
    return torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)


def heaviest_of(net: Supernet) -> nn.Module:
    return extract(net, net.space.extreme()).to(memory_format=torch.channels_last)


def measure(net: Supernet, batch: int, repeats: int, seconds: float) -> dict[str, float]:
    """Ratios to the heaviest network's forward at one batch size."""
    space, generator = net.space, torch.Generator().manual_seed(batch)
    images, heaviest = batch_of(net, batch, generator), heaviest_of(net)
    drawn = [sample_paths(space, batch, generator) for _ in range(3 + repeats)]
    fresh, paths = itertools.cycle(drawn), drawn[0]
    small = batch // PEER_SHARE
    few, few_paths = images[:small], (paths[0][:small], paths[1][:small])
    check_peers(net, few, few_paths)
    both = {"heaviest": lambda: heaviest(images), "grouped": lambda: net(images, next(fresh))}
    times = interleaved(both, repeats, seconds)
    base = times["heaviest"]
    masked = timed(lambda: one_masked_pass(net, images, paths))
    everything = timed(lambda: all_configs(net, few, few_paths)) * PEER_SHARE
    return {
        "heaviest_ms": base * 1e3,
        "grouped": times["grouped"] / base,
        "one_masked_pass": masked / base,
        "all_configs": everything / base,
        "mac_ideal": mac_ideal(net, drawn),
    }


def trainer(network: nn.Module, images: Tensor, labels: Tensor) -> Callable[..., None]:
    """One step of training: forward, loss, backward, SGD."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)

    def step(*paths: Paths) -> None:
        loss = F.cross_entropy(network(images, *paths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def measure_training(net: Supernet, repeats: int, seconds: float) -> dict[str, float]:
    """Images per second over those of training the heaviest network, by groups per step."""
    space, generator = net.space, torch.Generator().manual_seed(0)
    images = batch_of(net, TRAINING_BATCH, generator)
    labels = torch.randint(space.classes or 1, (TRAINING_BATCH,), generator=generator)
    plain, ours = trainer(heaviest_of(net.train()), images, labels), trainer(net, images, labels)
    steps: dict[str, Callable[[], object]] = {"heaviest": plain}
    for groups in (*AT_LEAST, None):
        steps[str(groups or "all")] = lambda g=groups: ours(  # type: ignore[misc]
            sample_paths(space, TRAINING_BATCH, generator, g)
        )
    times = interleaved(steps, repeats, seconds)
    base = times.pop("heaviest")
    ratios = {f"G={name}": base / spent for name, spent in times.items()}
    return {"heaviest_images_per_s": TRAINING_BATCH / base, **ratios}


def work(space: str) -> None:
    """A process of its own: waits for a line, trains for some steps with 3 groups, prints images per second."""
    net, generator = Supernet(load_space(space)).train(), torch.Generator().manual_seed(0)
    images = batch_of(net, TRAINING_BATCH, generator)
    step = trainer(net, images, torch.zeros(TRAINING_BATCH, dtype=torch.int64))
    for _ in range(3):
        step(sample_paths(net.space, TRAINING_BATCH, generator, 3))
    print("ready", flush=True)
    sys.stdin.readline()
    spent = timed(
        lambda: [step(sample_paths(net.space, TRAINING_BATCH, generator, 3)) for _ in range(WORKER_STEPS)]
    )
    print(WORKER_STEPS * TRAINING_BATCH / spent)


def images_per_second(space: str, processes: int, threads: int) -> float:
    """Training with 3 groups in several processes at the same time, together."""
    command = [sys.executable, __file__, "--space", space, "--threads", str(threads), "--worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(processes)]  # type: ignore[call-overload]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(float(worker.communicate()[0]) for worker in workers)


def measure_processes(space: str, rounds: int) -> float:
    """Images per second of two processes of one thread over one process of two; median of rounds."""
    return statistics.median(
        images_per_second(space, 2, 1) / images_per_second(space, 1, 2) for _ in range(rounds)
    )


def show(results: dict[int, dict[str, float]], training: dict[str, float]) -> None:
    names = ["heaviest_ms", "grouped", "one_masked_pass", "all_configs", "mac_ideal"]
    print("batch  " + "  ".join(f"{name:>15}" for name in names))
    for batch, row in results.items():
        print(f"{batch:5}  " + "  ".join(f"{row[name]:15.2f}" for name in names))
    print("all but heaviest_ms are ratios to it; all_configs ran on an eighth of the batch, scaled")
    print(f"training, batch {TRAINING_BATCH}: " + "  ".join(f"{k} {v:.2f}" for k, v in training.items()))
    print("images per second; all but the first are ratios to it")


def missed_targets(results: dict[int, dict[str, float]], training: dict[str, float]) -> list[str]:
    slow = [(f"batch {b}", results[b]["grouped"], most) for b, most in AT_MOST.items()]
    few = [(f"training G={g}", training[f"G={g}"], least) for g, least in AT_LEAST.items()]
    return [f"{name}: {value:.2f} > {most}" for name, value, most in slow if value > most] + [
        f"{name}: {value:.2f} < {least}" for name, value, least in few if value < least
    ]


def rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in row.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, within 60 seconds")
    parser.add_argument("--processes", action="store_true", help="also compare processes with threads")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--space", default="small-28")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.worker:
        work(options.space)
        return 0
    load = os.getloadavg()[0]
    net = Supernet(load_space(options.space)).eval()
    repeats, seconds = (9, 6.0) if options.quick else (31, 25.0)
    with torch.inference_mode():
        results = {batch: measure(net, batch, repeats, seconds) for batch in AT_MOST}
    training = measure_training(net, repeats, seconds)
    show(results, training)
    missed = missed_targets(results, training)
    report = {
        "space": options.space,
        "threads": options.threads,
        "load": round(load, 2),
        "eval": {str(batch): rounded(row) for batch, row in results.items()},
        "training": rounded(training),
        "missed": missed,
    }
    if options.processes:
        report["two_processes_over_two_threads"] = round(measure_processes(options.space, 3), 3)
        print(f"two processes of one thread over one of two: {report['two_processes_over_two_threads']}")
    print(json.dumps(report))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
