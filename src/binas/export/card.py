"""The model card: ``README.md`` of an exported network, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binas.export.graph_files import ONNX, TORCH
from binas.export.int8 import INT8, Int8Facts
from binas.export.model_file import ModelFile
from binas.space.architecture import Architecture
from binas.space.files import space_from_data
from binas.space.graph_space import network_of
from binas.space.networks import input_shapes, network_sizes
from binas.space.space import SearchSpace
from binas.supernet.weights.equality import TOLERANCE


def model_card(model: ModelFile) -> str:
    """The whole card as Markdown."""
    sections = (
        _head(model),
        _architecture(model),
        _figures(model),
        _input(model),
        _loading(model),
        _origin(model),
    )
    return "\n".join("\n".join(section) + "\n" for section in sections)


def _head(model: ModelFile) -> Iterator[str]:
    data = f" for {_text(model.data)}" if model.data else ""
    yield f"# {_text(model.name)}"
    yield ""
    yield (
        f"An image classifier{data} with {len(model.classes) or 'unnamed'} classes, found and trained by binas "
        f"{model.binas} in the search space {_space_name(model)}."
    )
    if model.classes:
        yield ""
        yield f"Classes, in the order of the logits: {', '.join(map(_text, model.classes))}."


def _architecture(model: ModelFile) -> Iterator[str]:
    yield "## Architecture"
    yield ""
    yield f"`{model.architecture}`"
    yield ""
    yield "```"
    space = space_from_data(model.space)
    yield draw(space, space.parse(model.architecture))
    yield "```"


def _figures(model: ModelFile) -> Iterator[str]:
    yield "## Figures"
    yield ""
    yield f"* Size: {model.parameters:,} parameters, {model.macs:,} multiply-accumulates per image."
    yield f"* Limits asked for: {', '.join(f'`{limit}`' for limit in model.limits) or 'none'}."
    for item in model.accuracy:
        yield f"* Accuracy, {item.weights}: {item.percent:.2f} % of {item.images} {item.part} images."
    for fact in model.latency:
        yield f"* Latency, {fact.kind}: {fact.ms:.4g} ms ({_text(fact.device)}; {_text(fact.runtime)})."
    if model.latency and model.input.graphs == "bytes":
        yield "  Latencies are those of the network itself, without the normalisation of the input."
    for name, entry in model.graphs.items():
        worst = max((item.difference for item in entry.parity), default=0.0)
        batches = " and ".join(str(item.batch) for item in entry.parity)
        yield (
            f"* `{name}` against PyTorch: logits differ by at most {worst:.2g} at batch sizes {batches} "
            f"(allowed: {TOLERANCE:g} of the largest logit)."
        )
    if model.int8 is not None:
        yield from _int8(model.int8)


def _int8(facts: Int8Facts) -> Iterator[str]:
    yield ""
    yield f"`{INT8}`, ranges from {facts.calibration} training images. {facts.verdict}"
    yield ""
    yield f"| | accuracy on {facts.images} {facts.part} images | latency (95 % interval) | bytes |"
    yield "| --- | --- | --- | --- |"
    for name, percent, time, size in (
        ("float32", facts.accuracy_before, facts.latency_before, facts.byte_count_before),
        ("int8", facts.accuracy, facts.latency, facts.byte_count),
    ):
        yield f"| {name} | {percent:.2f} % | {time.value:.4g} ms ({time.low:.4g} to {time.high:.4g}) | {size:,} |"
    yield ""
    yield f"Measured taking turns in one session on {_text(facts.device)} with {_text(facts.runtime)}."
    for warning in facts.warnings:
        yield f"Note: {_text(warning)}"


def _input(model: ModelFile) -> Iterator[str]:
    shape = " x ".join(map(str, model.input.shape))
    mean, std = (_numbers(values) for values in (model.input.mean, model.input.std))
    yield "## Input"
    yield ""
    yield f"Batches of any size of images {shape} (channels, height, width)."
    yield ""
    if model.graphs and model.input.graphs == "bytes":
        files = " and ".join(f"`{name}`" for name in model.graphs)
        yield f"* {files}: the bytes of the images (uint8, 0 to 255). The normalisation is part of the file."
    elif model.graphs:
        yield "* The ONNX and torch.export files take normalised float32 images, as below."
    yield f"* `binas.load_model`: float32, (x - mean) / std of pixels x in 0..1, with mean {mean} and std {std}."


def _loading(model: ModelFile) -> Iterator[str]:
    shape, dtype = (
        ", ".join(map(str, model.input.shape)),
        "uint8" if model.input.graphs == "bytes" else "float32",
    )
    yield "## How to load it"
    yield ""
    yield "```python"
    yield "# binas: pip install binas"
    yield "import binas, torch"
    yield "from binas.data import normalise"
    yield ""
    yield 'network = binas.load_model(".")  # this folder; weights are checked against model.json'
    yield f"images = torch.zeros(1, {shape}, dtype=torch.uint8)"
    yield f"logits = network(normalise(images, {model.input.mean}, {model.input.std}))"
    yield "```"
    if ONNX in model.graphs:
        yield ""
        yield "```python"
        yield "# ONNX: pip install onnxruntime"
        yield "import numpy, onnxruntime"
        yield ""
        yield f'session = onnxruntime.InferenceSession("{ONNX}")'
        yield f'(logits,) = session.run(None, {{"images": numpy.zeros((1, {shape}), "{dtype}")}})'
        yield "```"
    if TORCH in model.graphs:
        yield ""
        yield "```python"
        yield "# torch.export: pip install torch; open such files only from people you trust"
        yield "import torch"
        yield ""
        yield f'network = torch.export.load("{TORCH}").module()'
        yield f"logits = network(torch.zeros(1, {shape}, dtype=torch.{dtype}))"
        yield "```"


def _origin(model: ModelFile) -> Iterator[str]:
    yield "## Where it comes from"
    yield ""
    if model.data:
        yield f"* Data: {_text(model.data)}; licence: {_text(model.data_licence) or 'not known to binas'}."
    if model.command:
        yield "* Made by:"
        yield ""
        yield f"      {' '.join(model.command.split())}"
        yield ""
    yield f"* Weights: `model.safetensors`, SHA-256 `{model.weights.sha256}`."


def _space_name(model: ModelFile) -> str:
    return f"`{model.space.get('name')}`"


def _numbers(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"


def _text(text: str) -> str:
    """Text of others in one line, without what Markdown would take for markup."""
    return " ".join(text.split()).translate({ord(sign): f"\\{sign}" for sign in "\\`*_[]<>|#"})


def draw(space: SearchSpace, architecture: Architecture) -> str:
    """An architecture as text: a line for input, stem, each stage and head with its name, the shape after it, its blocks."""
    rows = list(_rows(space, architecture))
    name, shape = (max(len(row[i]) for row in rows) for i in (0, 1))
    return "\n".join(f"{a:<{name}}  {b:<{shape}}  {c}".rstrip() for a, b, c in rows)


def _rows(space: SearchSpace, architecture: Architecture) -> Iterator[tuple[str, str, str]]:
    channels, side, classes = network_sizes(space)
    shapes = list(_shapes(space))
    yield "input", _shape((channels, side, side)), ""
    yield "stem", _shape(shapes[0]), _blocks(space.stem)
    for stage, names, shape in zip(space.stages, architecture.stages, shapes[1:], strict=True):
        yield stage.name, _shape(shape), _blocks(names) or "(no blocks)"
    if space.network is not None:
        yield "head", f"{classes} classes", ""
        return
    layers = [*space.head, "pool", *([f"linear {space.features}"] if space.features else []), "classifier"]
    yield "head", f"{classes} classes", _blocks(layers)


def _shapes(space: SearchSpace) -> Iterator[tuple[int, ...]]:
    """What leaves the stem and each stage, for one image."""
    if space.network is None:
        yield from ((shape.channels, shape.size, shape.size) for shape in input_shapes(space))
        return
    network = network_of(space.network)
    yield network.graph.by_name[network.blocks[0].entering].shape
    last = -1
    for stage in space.stages:
        last += len(stage.blocks)
        yield network.graph.by_name[network.blocks[last].leaving].shape


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _blocks(names: Sequence[str]) -> str:
    return " -> ".join(f"[{name}]" for name in names)
