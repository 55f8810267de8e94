"""A model that is already trained, made smaller under limits: ``binas shrink``.

The model becomes the heaviest member of a space, and its weights those the heaviest network starts from
(:mod:`binas.run.models`). The device is measured first, so that limits are known, and refused where no network keeps them,
before anything is trained. After that it is a run as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import ConfigError
from binas.base.files import exists, is_folder, write_bytes
from binas.base.identity import file_digest
from binas.base.launch import refuse_launch
from binas.base.progress import Progress
from binas.run.config import FILE, load_config
from binas.run.models import (
    Known,
    Own,
    Source,
    about_accuracy,
    built,
    known_source,
    own_source,
)
from binas.run.run import Run, open_run
from binas.run.start import budget_of, check_kept, create_run, finish, own_config
from binas.space.files import load_space, save_space
from binas.space.graph_space import SHARES
from binas.tasks.artefacts import COSTS, SPACE, START

if TYPE_CHECKING:
    from torch import nn

    from binas.data.dataset import ImageData

_PERCENT = re.compile(r"(=|<=)\s*(\d+\.?\d*|\.\d+)\s*%")
# A short elastic phase from a network that works, and fine-tuning from there: low rates, much of the teacher.
RECIPE: dict[str, Any] = {
    "train.recipe": "small",
    "train.heaviest.epochs": 0,
    "train.supernet.epochs": 4,
    "train.supernet.learning_rate": 1e-3,
    "train.supernet.groups": None,
    "train.supernet.sandwich": 0.125,
    "train.supernet.gradual": 0.6,
    "train.supernet.distillation.share": 0.9,
    "finetune.epochs": 4,
    "finetune.learning_rate": 1e-3,
    "finetune.distillation.share": 0.9,
    "finetune.blends": 4,
}
OFFLINE = ("embedded", "fashion-mnist")  # kinds of images that need no path
USUAL_SIDE = 224  # pixels that photographs of a folder are read at, at most, unless --size says otherwise
ADAPTING = {"train.heaviest.epochs": 3, "train.heaviest.learning_rate": 2e-3}


Change = tuple[str, Any]


@dataclass(frozen=True)
class Wish:
    """What a user has: a module (or ``file.py:function``), or the name of a known ``network``; weights; images; limits.

    ``weights`` are a file or a state dict. ``data`` is a folder of images, an .npz file, the name of images that come
    along, or the settings of ``data``. ``size`` is the pixels a side that images of a folder are read at; without it what a
    known network takes, or their own. ``mean`` and ``std`` per channel (one number stands for all), of pixels in 0..1, are
    what a module of one's own expects images to be normalised with; without them those of the images are used. ``blocks``
    are names of modules, such as ``layers.*.*``, that may be narrowed or removed; without them they are found. What a known
    network computes is compared with ``original``: the live module that the weights are of, or a file of recorded pairs of
    images and logits (:func:`binas.supernet.weights.check_recorded`).
    """

    data: str | Path | Mapping[str, Any]
    limits: Sequence[str] = ("latency=50%",)
    model: nn.Module | str | None = None
    network: str | None = None
    weights: str | Path | Mapping[str, Any] | None = None
    shares: Sequence[float] = SHARES
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    blocks: Sequence[str] = ()
    original: nn.Module | str | Path | None = None
    size: int | None = None

    def source(self, images: ImageData, name: str) -> Source:
        """The network to be made smaller."""
        given = self._normalisation(images.channels)
        if isinstance(self._network, Known):
            return known_source(self._network, images, name, self.shares, given)
        return own_source(self._network, images, name, self.shares, given, self.blocks)

    @cached_property
    def _network(self) -> Known | Own:
        """What is to be made smaller, built once."""
        if (self.model is None) == (self.network is None):
            raise ConfigError(
                "give a model of your own, or the name of a network with --network; one of the two."
            )
        if self.model is not None:
            if self.original is not None:
                raise ConfigError("a model of your own is compared with itself; leave --pairs out.")
            return built(self.model, self.weights)
        assert self.network is not None
        if self.blocks:
            raise ConfigError(f"the blocks of {self.network} are known; leave --blocks out.")
        if self.weights is None:
            raise ConfigError(f"{self.network} needs a file of weights: give one with --weights.")
        return Known(self.network, self.weights, self.original)

    def _normalisation(self, channels: int) -> dict[str, Any]:
        """Rules of the network that were given; one number is that of every channel."""
        if self.mean is None and self.std is None:
            return {}
        if self.mean is None or self.std is None:
            raise ConfigError("--mean and --std say together how images were normalised: give both.")
        if any(not -1 <= value <= 2 for value in self.mean) or any(not 0 < value <= 2 for value in self.std):
            raise ConfigError(
                f"--mean {list(self.mean)} and --std {list(self.std)} are not of pixels in 0..1, every std above 0. Divide "
                "those of bytes by 255: 127 and 128 are 0.498 and 0.502."
            )
        given = {"mean": list(self.mean), "std": list(self.std)}
        return {name: value * channels if len(value) == 1 else value for name, value in given.items()}

    def images(self) -> dict[str, Any]:
        """The settings of the images; a size is said of those of a folder only."""
        if self.size is not None and not (isinstance(self.data, str | Path) and is_folder(Path(self.data))):
            raise ConfigError(
                "--size is for images of a folder; these have the size they have. Leave it out."
            )
        if isinstance(self.data, Mapping):
            return {f"data.{name}": value for name, value in self.data.items()}
        if not isinstance(self.data, str | Path):
            raise ConfigError(
                f"the images are given as {type(self.data).__name__}: give a folder, an .npz file, one of "
                f"{', '.join(OFFLINE)}, or settings of data such as {{'kind': 'arrays', 'path': 'images.npz'}}."
            )
        path = Path(self.data)
        if str(self.data) in OFFLINE and not exists(path):
            return {"data.kind": str(self.data)}
        if not exists(path):
            raise ConfigError(
                f"there is no {path}. Give --data a folder with one subfolder of images per class, an .npz file, or one of "
                f"{', '.join(OFFLINE)}."
            )
        if path.suffix == ".npz":
            return {"data.kind": "arrays", "data.path": str(path)}
        return {"data.kind": "folder", "data.path": str(path), **self._form(path)}

    def _form(self, folder: Path) -> dict[str, Any]:
        """What photographs are read as: size and channels of a known network or of the first layer, or their own."""
        from binas.data.folder import look
        from binas.supernet.tracing import input_channels

        if isinstance(self._network, Known):
            described = self._network.loaded.description
            return {"data.size": self.size or described.resolution, "data.channels": 3}
        seen, taken = look(folder), input_channels(self._network.module)
        channels = taken if taken in (1, 3) else 1 if seen.grey else 3
        return {"data.size": self.size or min(seen.side, USUAL_SIDE), "data.channels": channels}


def shrink(
    model: nn.Module | str | None,
    data: str | Path | Mapping[str, Any],
    limits: str | Sequence[str] = ("latency=50%",),
    out: str | Path = "runs/small",
    *,
    network: str | None = None,
    weights: str | Path | Mapping[str, Any] | None = None,
    shares: Sequence[float] = SHARES,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    blocks: str | Sequence[str] = (),
    source: nn.Module | str | Path | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    time: str | None = None,
    **changes: Any,
) -> Run:
    """Smaller networks within ``limits`` of a trained classifier; the run, finished. What is done is not done again.

    See :class:`Wish`, whose ``original`` is ``source`` here. A percentage in a limit is of what the model itself costs;
    ``changes`` are parts of the configuration. One limit, or one pattern of blocks, may be given as it is.
    """
    from binas.base.identity import flattened

    refuse_launch("shrink", f"shrink {model if isinstance(model, str) else 'MODEL'} --out {out}")
    more = [(name, value) for name, value in flattened(changes).items()]
    asked, chosen = ([given] if isinstance(given, str) else given for given in (limits, blocks))
    wish = Wish(data, asked, model, network, weights, shares, mean, std, chosen, source, size)
    return shrink_run(wish, Path(out), more, progress, time)[0]


def shrink_run(
    wish: Wish,
    folder: Path,
    changes: Sequence[Change] = (),
    progress: Progress | None = None,
    time: str | None = None,
) -> tuple[Run, list[str]]:
    """Start the run, or go on with the one in ``folder``; the run, and the steps that were done now."""
    told, asked = progress or Progress(), ("search.limits", [of_the_model(text) for text in wish.limits])
    start = _go_on if exists(folder / FILE) else begin
    return finish(start(wish, folder, [asked, *changes], told, time), told)


def _go_on(
    wish: Wish, folder: Path, changes: Sequence[Change], progress: Progress, time: str | None = None
) -> Run:
    """The run in ``folder``, if it is one of the same model and images, with these limits."""
    own = wish.images()
    _check_same(wish.source(_images([*own.items(), *changes]), _name(folder)), folder)
    if load_config(folder / FILE, own.items()).data != load_config(folder / FILE).data:
        raise ConfigError(
            f"{folder} holds a run with other images than those given now. Give another --out, or the images it began "
            "with. Nothing was changed."
        )
    if exists(folder / COSTS.file):
        check_kept(open_run(folder, changes))  # before its configuration is changed
    budget = budget_of(time, None, changes)
    return create_run(folder, own_config(folder, changes), progress=progress, budget=budget)


def _check_same(source: Source, folder: Path) -> None:
    """Refuse another model, or other weights, than those the run in ``folder`` began with."""
    own = exists(folder / START) and file_digest(folder / START) == sha256(source.weights()).hexdigest()
    if not own or source.space.fingerprint != load_space(folder / SPACE.file).fingerprint:
        raise ConfigError(
            f"{folder} holds a run of another model, of other weights or with other blocks and shares than those given "
            "now. Give another --out, or the model it began with. Nothing was changed."
        )


def _name(folder: Path) -> str:
    """Of the space, made of the folder's."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name) or "model"


def begin(
    wish: Wish, folder: Path, changes: Sequence[Change], progress: Progress, time: str | None = None
) -> Run:
    """Read the model and start the run."""
    own = wish.images()
    images = _images([*own.items(), *changes])
    source = wish.source(images, _name(folder))
    for text in (_read_as(images), *source.notes, source.sentence()):
        progress.say(text)
    save_space(source.space, folder / SPACE.file)
    write_bytes(folder / START, source.weights())
    files = {"space": str(folder / SPACE.file), "train.start": str(folder / START)}
    settings = {**own, **RECIPE, **(ADAPTING if source.new_classifier else {}), **files}
    config = load_config(None, [*settings.items(), *changes])
    run = create_run(folder, config, progress=progress, budget=budget_of(time, None, changes))
    if not source.new_classifier:
        progress.say(about_accuracy(source.judged(images), len(images.classes)))
    return run


def of_the_model(text: str) -> str:
    """A limit in which percentages are of what the model costs: ``latency=50%`` is ``latency=0.5x``."""
    return _PERCENT.sub(lambda found: f"{found[1]}{float(found[2]) / 100:g}x", text)


def _read_as(images: ImageData) -> str:
    """What the network is going to see."""
    (height, width), colour = images.size, "grey" if images.channels == 1 else "colour"
    return (
        f"{images.name}: {len(images.classes)} classes, read as {colour} images of {height} x {width} pixels (--size for "
        "those of a folder)"
    )


def _images(settings: Sequence[Change]) -> ImageData:
    from binas.data.loading import load_data

    images = load_data(load_config(None, [item for item in settings if item[0].startswith("data.")]).data)
    height, width = images.size
    if height != width:
        raise ConfigError(
            f"{images.name}: images of {height} x {width} pixels; those that a model is made smaller with must be square. "
            "Cut or resize them."
        )
    return images
