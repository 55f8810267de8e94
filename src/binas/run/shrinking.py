"""A model that is already trained, made smaller under limits: ``binas shrink``.

The model is traced, its blocks become a space whose heaviest member it is, and its weights those the heaviest network starts
from. The device is measured first, so that limits are known, and refused where no network keeps them, before anything is
trained. After that it is a run as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import ConfigError, FileError, SpaceError
from binas.base.files import exists, write_bytes
from binas.base.progress import Progress
from binas.run.config import FILE, RunConfig, load_config
from binas.run.run import Run
from binas.run.start import budget_of, create_run, do_task, finish
from binas.search.limits import parse_limits
from binas.space.graphs import Graph, Node
from binas.space.space import SearchSpace
from binas.tasks.artefacts import COSTS, SPACE, START

if TYPE_CHECKING:
    from torch import Tensor, nn

    from binas.data.dataset import ImageData

SHARES = (0.25, 0.5, 0.75, 1.0)
_PERCENT = re.compile(r"(=|<=)\s*(\d+\.?\d*|\.\d+)\s*%")
# A short elastic phase from a network that works, and fine-tuning from there: low rates, much of the teacher.
RECIPE: dict[str, Any] = {
    "train.recipe": "small",
    "train.heaviest.epochs": 0,
    "train.supernet.epochs": 4,
    "train.supernet.learning_rate": 1e-3,
    "train.supernet.groups": None,
    "train.supernet.sandwich": 0.125,
    "train.supernet.distillation.share": 0.9,
    "finetune.epochs": 4,
    "finetune.learning_rate": 1e-3,
    "finetune.distillation.share": 0.9,
}
ADAPTING = {"train.heaviest.epochs": 3, "train.heaviest.learning_rate": 2e-3}


def shrink(
    model: nn.Module | str,
    data: str | Path | Mapping[str, Any],
    limits: Sequence[str] = ("latency=50%",),
    out: str | Path = "runs/small",
    *,
    weights: str | Path | None = None,
    shares: Sequence[float] = SHARES,
    progress: Progress | None = None,
    time: str | None = None,
    **changes: Any,
) -> Run:
    """Smaller networks within ``limits`` of a trained classifier; the run, finished. What is done is not done again.

    ``model`` is a module that takes images and gives logits, or ``file.py:function`` that builds one; ``data`` a folder of
    images, or the settings of ``data``. A percentage in a limit is of what the model itself costs.
    """
    from binas.base.identity import flattened

    more = [(name, value) for name, value in flattened(changes).items()]
    return shrink_run(model, data, limits, Path(out), weights, more, progress, time, shares)[0]


def shrink_run(
    model: nn.Module | str,
    data: str | Path | Mapping[str, Any],
    limits: Sequence[str],
    folder: Path,
    weights: str | Path | None = None,
    changes: Sequence[tuple[str, Any]] = (),
    progress: Progress | None = None,
    time: str | None = None,
    shares: Sequence[float] = SHARES,
) -> tuple[Run, list[str]]:
    """Start the run, or go on with the one in ``folder``; the run, and the steps that were done now."""
    told = progress or Progress()
    if exists(folder / FILE):
        asked = ("search.limits", [of_the_model(text) for text in limits])
        run = create_run(folder, _own(folder, [asked, *changes]), progress=told)
    else:
        run = begin(model, data, limits, folder, weights, shares, changes, told, time)
    return run, finish(run, told)


def _own(folder: Path, changes: Sequence[tuple[str, Any]]) -> RunConfig:
    config = load_config(folder / FILE, changes)
    return config.model_copy(update={"space": str(folder / SPACE.file)})


def begin(
    model: nn.Module | str,
    data: str | Path | Mapping[str, Any],
    limits: Sequence[str],
    folder: Path,
    weights: str | Path | None,
    shares: Sequence[float],
    changes: Sequence[tuple[str, Any]],
    progress: Progress,
    time: str | None = None,
) -> Run:
    """Trace the model, start the run, measure the device, and say around which sizes networks are drawn."""
    from binas.space.files import save_space

    settings: dict[str, Any] = {
        **_data(data),
        **RECIPE,
        "search.limits": [of_the_model(text) for text in limits],
    }
    images = _images(settings, changes)
    module = built(model, weights)
    graph, tensors, new = traced(module, images)
    space = _space(graph, shares, folder.name)
    progress.say(described(space))
    folder.mkdir(parents=True, exist_ok=True)
    network = starting_network(space, tensors)
    save_space(space, folder / SPACE.file)
    write_bytes(folder / START, network)
    settings |= {
        "space": str(folder / SPACE.file),
        "train.start": str(folder / START),
        **(ADAPTING if new else {}),
    }
    config = load_config(None, [*settings.items(), *changes])
    run = create_run(folder, config, progress=progress, budget=budget_of(time, None, changes))
    return _around(run, progress)


def of_the_model(text: str) -> str:
    """A limit in which percentages are of what the model costs: ``latency=50%`` is ``latency=0.5x``."""
    return _PERCENT.sub(lambda found: f"{found[1]}{float(found[2]) / 100:g}x", text)


def _data(data: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(data, Mapping):
        return {f"data.{name}": value for name, value in data.items()}
    path = Path(data)
    kind = "arrays" if path.suffix == ".npz" else "folder"
    return {"data.kind": kind, "data.path": str(path)}


def _images(settings: Mapping[str, Any], changes: Sequence[tuple[str, Any]]) -> ImageData:
    from binas.data.loading import load_data

    asked = [(name, value) for name, value in (*settings.items(), *changes) if name.startswith("data.")]
    return load_data(load_config(None, asked).data)


def built(model: nn.Module | str, weights: str | Path | None = None) -> nn.Module:
    """The user's module with its weights; code of a file is run because the user names it, never because a file does."""
    made = _from_file(model) if isinstance(model, str) else model
    if weights is not None:
        _load(made, Path(weights))
    return made


def _from_file(text: str) -> nn.Module:
    import runpy

    from torch import nn

    name, _, function = text.partition(":")
    path = Path(name)
    if path.suffix != ".py" or not function or not exists(path):
        raise ConfigError(
            f"{text!r} is no model: give FILE.py:FUNCTION, a function without arguments that builds it."
        )
    found = runpy.run_path(str(path)).get(function)
    if not callable(found):
        raise ConfigError(f"{path} has no function {function!r}.")
    made = found()
    if not isinstance(made, nn.Module):
        raise ConfigError(f"{text} gives {type(made).__name__}, not a torch.nn.Module.")
    return made


def _load(module: nn.Module, path: Path) -> None:
    """Weights from safetensors, or from a file of torch without anything but tensors in it."""
    import torch

    from binas.training.checkpoint import read_tensors

    try:
        found: Any = (
            read_tensors(path)
            if path.suffix == ".safetensors"
            else torch.load(path, "cpu", weights_only=True)
        )
        tensors = found.get("state_dict", found.get("model", found))
        module.load_state_dict({name: _float(value) for name, value in tensors.items()})
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except Exception as error:
        raise FileError(
            f"the weights in {path} are not those of this model: {' '.join(str(error).split())[:300]}"
        ) from error


def _float(value: Tensor) -> Tensor:
    """Half precision is made whole, as the network is trained further."""
    return value.float() if value.is_floating_point() else value


def traced(module: nn.Module, images: ImageData) -> tuple[Graph, dict[str, Tensor], bool]:
    """The model as a graph for these images, its weights, and whether its classifier is new."""
    from binas.supernet.tracing import trace

    found = trace(module, (images.channels, *images.size))
    classes = len(images.classes)
    if found.graph.classes == classes:
        return found.graph, found.weights, False
    return (*_new_classifier(found.graph, found.weights, classes), True)


def _new_classifier(
    graph: Graph, weights: dict[str, Tensor], classes: int
) -> tuple[Graph, dict[str, Tensor]]:
    """The same with a last layer for another number of classes."""
    import torch

    last = graph.nodes[-1]
    if last.op != "linear":
        raise SpaceError(
            f"the model has {graph.classes} classes, the images {classes}, and its last layer is {last.op}, no linear "
            f"layer that "
            "could be replaced."
        )
    changed = last.changed(outputs=classes)
    nodes = (
        *graph.nodes[:-1],
        Node(changed.name, changed.op, changed.reads, changed.options, (classes,), changed.path),
    )
    drawn = torch.Generator().manual_seed(0)
    inputs = int(last.get("inputs"))
    fresh = {f"{last.name}.weight": torch.randn(classes, inputs, generator=drawn) * inputs**-0.5}
    if last.get("bias"):
        fresh[f"{last.name}.bias"] = torch.zeros(classes)
    return Graph(nodes), {**weights, **fresh}


def _space(graph: Graph, shares: Sequence[float], name: str) -> SearchSpace:
    from binas.space.graph_space import space_of_graph

    return space_of_graph(graph, re.sub(r"[^A-Za-z0-9._-]+", "-", name) or "model", shares)


def described(space: SearchSpace) -> str:
    """What was found in the model, in a sentence."""
    from binas.space.graph_space import OFF

    blocks = [configs for stage in space.stages for configs in stage.blocks]
    removable = sum(configs[0].name == OFF for configs in blocks)
    narrow = sum(sum(config.name != OFF for config in configs) > 1 for configs in blocks)
    return (
        f"the model has {len(blocks)} blocks in {len(space.stages)} stages: {narrow} can be narrower, {removable} can "
        f"be left out; "
        f"{space.count:,} networks in all"
    )


def starting_network(space: SearchSpace, weights: dict[str, Tensor]) -> bytes:
    """The heaviest network with the model's weights, as a safetensors file."""
    from safetensors.torch import save

    from binas.supernet.blueprint import fill
    from binas.supernet.static import StaticNetwork

    network = StaticNetwork.from_architecture(space, space.extreme())
    fill(space, weights, network)
    return bytes(save({name: value.contiguous() for name, value in network.state_dict().items()}))


def _around(run: Run, progress: Progress) -> Run:
    """Measure the device; refuse limits that nothing keeps; draw networks around those of the limits from now on."""
    from binas.tasks.measure import MEASURE

    run, _ = do_task(run.folder, MEASURE, progress=progress)
    table = COSTS.read(run)
    shares = []
    for question in run.questions:
        limits = parse_limits(question, run.space, table.costs)
        for limit in limits:
            least, most = table.costs[limit.cost].range(run.space)
            if not limit.lower and limit.value < least:
                unit = table.costs[limit.cost].unit.name
                raise ConfigError(
                    f"no network keeps {question}: the smallest that can be made of this model costs {least:.4g} "
                    f"{unit}, the limit "
                    f"is {limit.value:.4g} {unit}, the model itself costs {most:.4g} {unit}. Nothing was trained."
                )
            if not limit.lower:
                shares.append(min(1.0, (limit.value - least) / ((most - least) or 1.0)))
    around = sorted({round(share, 2) for share in shares}, reverse=True)
    settings = [("train.supernet.around", around), ("estimate.around", around), ("sample.around", around)]
    config = load_config(run.folder / FILE, settings).model_copy(
        update={"space": str(run.folder / SPACE.file)}
    )
    return create_run(run.folder, config, progress=progress)
