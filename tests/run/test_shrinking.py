"""A trained classifier made smaller: an ordinary run, from a module or from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from foreign_networks import trained
from own_models import CLASSES, own_model
from PIL import Image
from safetensors.torch import save_file
from small_data import bars
from torch import Tensor, nn

from binas.base.errors import ConfigError, FileError, ModelError, SpaceError
from binas.base.progress import Progress
from binas.costs.analytic import analytic_costs
from binas.data.config import DataConfig
from binas.data.loading import load_data
from binas.run.models import _compared, about_accuracy, built, traced
from binas.run.shrinking import Wish, of_the_model, shrink
from binas.run.start import around_limits, configure, create_run
from binas.search.limits import parse_limits
from binas.supernet.network import extract
from binas.supernet.weights import load_network
from binas.tasks.sample import SampleSettings
from binas.training.config import TrainSettings
from binas.training.judgement import Accuracy
from tiny_run import SPACE

QUICK: dict[str, Any] = {
    "train": {
        "processes": 1,
        "device": "cpu",
        "supernet": {"epochs": 1, "batch_size": 32, "recalibration": 64},
    },
    "finetune": {"epochs": 1, "batch_size": 32, "recalibration": 64},
    "measure": {"backend": "torch", "seconds": 2, "samples": 12},
    "estimate": {"passes": 4},
    "sample": {"count": 8},
    "check": {"resamples": 5},
    "search": {"candidates": 1, "closed_loop": False},
    "compare": {"random": 1},
    "export": {"formats": ["safetensors"]},
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with as many classes as the models have."""
    path = tmp_path_factory.mktemp("images") / "bars.npz"
    np.savez(path, **bars(200))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "resnet",
        "bottleneck",
        "mobilenet",
        "efficientnet",
        "convnext",
        "vit",
        "published convnext",
        "published vit",
    ],
)
def test_end_to_end(name: str, images: Path, tmp_path: Path) -> None:
    model = Sized(own_model(name)) if "vit" in name else own_model(name)
    run = shrink(model, images, ["latency=90%"], tmp_path / "run", **QUICK)
    (answer,) = run.answers
    assert answer.architecture is not None
    assert answer.costs["latency"].value <= answer.limits[0].value
    assert answer.limits[0].value == pytest.approx(0.9 * run.tables.costs["latency"].range(run.space)[1])
    assert set(run.networks) == {"latency=0.9x"}
    assert run.removed[0].startswith("The model itself is right on ")
    assert run.removed[1].startswith("latency=0.9x: stage s1")
    assert run.story[:2] == run.removed[:2]
    own = extract(run.supernet("heaviest"), run.space.extreme())
    shown = torch.randn(2, 3, *run.data.size)
    with torch.no_grad():
        assert torch.allclose(own(shown), model.eval()(shown), atol=1e-4)  # nothing was trained from scratch


class Sized(nn.Module):
    """A transformer needs one size of images."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(nn.functional.pad(x, (2, 2, 2, 2)))


def test_percentages_are_of_the_model() -> None:
    assert of_the_model("latency=50%") == "latency=0.5x"
    assert of_the_model("latency<=75% and params=300k") == "latency<=0.75x and params=300k"
    assert of_the_model("latency=8ms") == "latency=8ms"


def test_times_the_heaviest() -> None:
    costs = analytic_costs(SPACE)
    (limit,) = parse_limits("macs=0.5x", SPACE, costs.costs)
    assert limit.value == pytest.approx(0.5 * costs["macs"].range(SPACE)[1])


def test_another_number_of_classes_gets_a_new_classifier(images: Path) -> None:
    data = load_data(DataConfig(kind="arrays", path=images))
    model = own_model("resnet")
    model.fc = nn.Linear(32, 1000)  # type: ignore[assignment]
    graph, weights, own = traced(model, data)
    assert own == 1000
    assert graph.classes == CLASSES
    assert weights["fc.weight"].shape == (CLASSES, 32)
    source = Wish(images, model=model).source(data, "own")
    assert source.new_classifier
    assert f"tells 1000 classes apart, the images have {CLASSES}" in source.notes[-1]


@pytest.mark.slow
def test_a_model_with_a_new_classifier_is_judged_after_it_was_trained(images: Path, tmp_path: Path) -> None:
    model = own_model("resnet")
    model.fc = nn.Linear(32, 7)  # type: ignore[assignment]
    settings = {**QUICK, "train": {**QUICK["train"], "heaviest": {"epochs": 1, "batch_size": 32}}}
    run = shrink(model, images, "latency=90%", tmp_path / "run", **settings)
    assert run.removed[0].startswith("The model itself is right on ")


def test_weights_are_read_in_full_precision(tmp_path: Path) -> None:
    model, path = own_model("resnet"), tmp_path / "half.safetensors"
    save_file(
        {
            name: value.half() if value.is_floating_point() else value
            for name, value in model.state_dict().items()
        },
        path,
    )
    again = built(own_model("resnet", seed=1), path)
    assert torch.allclose(again.module.fc.weight, model.fc.weight, atol=1e-3)  # type: ignore[union-attr, arg-type]
    assert "are float16; they were converted to float32" in again.notes[0]


def inside(names: str) -> Callable[[nn.Module], Any]:
    """What a training script saves that puts the weights there."""
    return lambda model: {"epoch": 3, "optimizer": {"lr": 0.1}, names: model.state_dict()}


SAVED: dict[str, Callable[[nn.Module], Any]] = {
    "alone": nn.Module.state_dict,
    "under a usual name": inside("state_dict"),
    "under a name of one's own": inside("net"),
    "of a wrapper": lambda model: Wrapped(model).state_dict(),
}


class Wrapped(nn.Module):
    """A model in a module that has something to count, as frameworks have."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Any:
        return self.model(x)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("form", SAVED)
def test_weights_are_found_however_they_were_saved(form: str, wrapped: bool, tmp_path: Path) -> None:
    model, fresh = own_model("resnet"), own_model("resnet", seed=1)
    torch.save(SAVED[form](model), tmp_path / "w.pth")
    built(Wrapped(fresh) if wrapped else fresh, tmp_path / "w.pth")
    assert torch.equal(fresh.fc.weight, model.fc.weight)  # type: ignore[arg-type, union-attr]
    built(fresh, own_model("resnet", seed=2).state_dict())
    assert not torch.equal(fresh.fc.weight, model.fc.weight)  # type: ignore[arg-type, union-attr]


def test_counts_and_indices_stay_those_of_the_model() -> None:
    model, fresh = own_model("resnet"), own_model("resnet", seed=1)
    for number, each in enumerate((model, fresh)):
        each.register_buffer("ids", torch.full((3,), number))
    built(fresh, model.state_dict())
    assert fresh.ids.tolist() == [1, 1, 1]  # type: ignore[operator, union-attr]
    assert torch.equal(fresh.fc.weight, model.fc.weight)  # type: ignore[arg-type, union-attr]


def wrong_weights(folder: Path) -> None:
    save_file(own_model("convnext").state_dict(), folder / "w.safetensors")
    built(own_model("resnet"), folder / "w.safetensors")


def truncated(folder: Path) -> None:
    (folder / "w.safetensors").write_bytes(b"\x00" * 20)
    built(own_model("resnet"), folder / "w.safetensors")


def pickled(folder: Path) -> None:
    torch.save(own_model("resnet"), folder / "w.pth")
    built(own_model("resnet"), folder / "w.pth")


def no_function(folder: Path) -> None:
    (folder / "model.py").write_text("x = 1\n")
    built(f"{folder / 'model.py'}:build")


def code(text: str) -> Callable[[Path], None]:
    """A model file with this code in it, built."""

    def make(folder: Path) -> None:
        (folder / "model.py").write_text(text)
        built(f"{folder / 'model.py'}:build")

    return make


def no_module(folder: Path) -> None:
    (folder / "model.py").write_text("def build():\n    return 3\n")
    built(f"{folder / 'model.py'}:build")


WRONG = {
    "weights of another network": (wrong_weights, ModelError, "not those of this model"),
    "a truncated file": (truncated, ModelError, "not a safetensors|cannot|damaged|no safetensors"),
    "a pickled module": (pickled, ModelError, "tensors"),
    "no file": (lambda folder: built(own_model("resnet"), folder / "none.pth"), ModelError, "no weight file"),
    "no function": (no_function, ConfigError, "no function 'build'"),
    "code that fails": (
        code("import nowhere_to_be_found\n"),
        ConfigError,
        "cannot be run: ModuleNotFoundError",
    ),
    "a function with arguments": (code("def build(x):\n    return x\n"), ConfigError, "without arguments"),
    "a function that fails": (code("def build():\n    return 1 / 0\n"), ConfigError, "ZeroDivisionError"),
    "no module": (no_module, ConfigError, "not a torch.nn.Module"),
    "no such model": (lambda folder: built("model:build"), ConfigError, "FILE.py:FUNCTION"),
}


def test_a_model_file_imports_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_the_model.py").write_text("from torch import nn\nlast = nn.Linear(2, 3)\n")
    (tmp_path / "model.py").write_text("from beside_the_model import last\nbuild = lambda: last\n")
    assert isinstance(built(f"{tmp_path / 'model.py'}:build").module, nn.Linear)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same images as files, one folder per class."""
    folder, given = tmp_path_factory.mktemp("photos"), bars(200)
    for number, (image, label) in enumerate(zip(given["images"], given["labels"], strict=True)):
        place = folder / f"class{label}"
        place.mkdir(exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(place / f"{number}.png")
    return folder


def test_photos_of_a_folder_need_nothing_else(photos: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(
        ConfigError, match="no network keeps"
    ):  # measured, and refused before anything is trained
        shrink(own_model("resnet"), photos, ["latency=1%"], tmp_path / "run", progress=Heard(said), **QUICK)
    side = bars(1)["images"].shape[-1]
    assert any(f"read as colour images of {side} x {side} pixels" in text for text in said)
    assert any("hardly more than guessing among" in text for text in said)  # its weights are random


class Heard(Progress):
    """Keeps what is said."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def say(self, text: str) -> None:
        self.said.append(text)

    def part(self, number: int, count: int, name: str = "") -> Heard:
        return self


@pytest.mark.parametrize(("given", "size"), [(None, 224), (96, 96)])
def test_photos_are_read_as_a_known_network_takes_them(
    photos: Path, tmp_path: Path, given: int | None, size: int
) -> None:
    _, path = known(tmp_path, CLASSES)
    wish = Wish(photos, network="torchvision/mobilenet_v3_small", weights=path, size=given)
    assert wish.images() == {
        "data.kind": "folder",
        "data.path": str(photos),
        "data.size": size,
        "data.channels": 3,
    }


def test_the_first_layer_says_how_many_channels_photos_have(photos: Path) -> None:
    grey = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES))
    assert Wish(photos, model=grey).images()["data.channels"] == 1
    assert Wish(photos, model=nn.Linear(2, 2)).images()["data.channels"] == 3  # as the photos are


def test_images_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no .*none"):
        Wish(tmp_path / "none", model=own_model("resnet")).images()
    with pytest.raises(ConfigError, match="the images are given as list"):
        Wish([], model=own_model("resnet")).images()  # type: ignore[arg-type]


def test_images_that_are_not_square(tmp_path: Path) -> None:
    given = bars(60)
    np.savez(tmp_path / "wide.npz", **{**given, "images": given["images"][..., :-2]})
    with pytest.raises(ConfigError, match="must be square"):
        shrink(own_model("resnet"), tmp_path / "wide.npz", out=tmp_path / "run", **QUICK)
    assert not (tmp_path / "run").exists()


def test_a_size_is_said_of_a_folder_only(images: Path) -> None:
    with pytest.raises(ConfigError, match="--size is for images of a folder"):
        Wish(images, model=own_model("resnet"), size=8).images()


def test_mean_and_std_belong_together_and_one_number_is_enough(images: Path) -> None:
    data = load_data(DataConfig(kind="arrays", path=images))
    with pytest.raises(ConfigError, match="give both"):
        Wish(images, model=own_model("resnet"), mean=[0.5]).source(data, "own")
    for mean, std in (([0.5], [0.0]), ([127.0], [128.0])):
        with pytest.raises(ConfigError, match=r"are not of pixels in 0\.\.1"):
            Wish(images, model=own_model("resnet"), mean=mean, std=std).source(data, "own")
    source = Wish(images, model=own_model("resnet"), mean=[0.5], std=[0.25]).source(data, "own")
    assert source.space.rules.std == (0.25,) * 3


def test_a_model_that_guesses_is_told() -> None:
    assert "guessing" not in about_accuracy(Accuracy(50.0, 400), 10)
    assert "guessing among 10 classes" in about_accuracy(Accuracy(12.0, 400), 10)


def test_another_size_than_the_network_is_described_for_is_said(images: Path, tmp_path: Path) -> None:
    _, path = known(tmp_path, CLASSES)
    wish = Wish(images, network="torchvision/mobilenet_v3_small", weights=path)
    source = wish.source(load_data(DataConfig(kind="arrays", path=images)), "known")
    assert any("is described for images of 224 x 224 pixels" in note for note in source.notes)


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_answered_in_a_sentence(case: str, tmp_path: Path) -> None:
    make, kind, words = WRONG[case]
    with pytest.raises(kind, match=words):
        make(tmp_path)


def test_a_limit_below_the_smallest_network_is_refused_however_often(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for _ in range(2):
        with pytest.raises(
            ConfigError, match=r"no network keeps latency=0.01x: the smallest .* Nothing was trained"
        ):
            shrink(own_model("resnet"), images, ["latency=1%"], out, **QUICK)
        assert not (out / "heaviest").exists()
    with pytest.raises(ConfigError, match="another model, of other weights"):
        shrink(own_model("resnet", seed=1), images, ["latency=90%"], out, **QUICK)
    np.savez(tmp_path / "others.npz", **bars(100))
    with pytest.raises(ConfigError, match="a run with other images"):
        shrink(own_model("resnet"), tmp_path / "others.npz", ["latency=90%"], out, **QUICK)
    out.rename(tmp_path / "moved")  # everything it needs is in it, and it goes on without the model
    configured = configure(tmp_path / "moved", None, [("search.limits", ["latency=0.9x"])])
    run = around_limits(create_run(tmp_path / "moved", configured))
    (share,) = run.settings(
        TrainSettings
    ).supernet.around  # drawn around the limit, as if it had been the first
    assert 0 < share < 1
    assert run.settings(SampleSettings).around == (share,)


def known(folder: Path, classes: int) -> tuple[nn.Module, Path]:
    """A small published network and the file of its weights."""
    source, path = trained("torchvision/mobilenet_v3_small", classes), folder / "weights.safetensors"
    save_file({name: value.contiguous() for name, value in source.state_dict().items()}, path)
    return source, path


def test_a_known_network_is_compared_with_its_source(images: Path, tmp_path: Path) -> None:
    data = load_data(DataConfig(kind="arrays", path=images))
    source, path = known(tmp_path, CLASSES)
    shown = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        logits = source.eval()(shown)
    np.savez(tmp_path / "pairs.npz", images=shown.numpy(), logits=logits.numpy())
    np.savez(tmp_path / "wrong.npz", images=shown.numpy(), logits=logits.numpy() + 1)
    name = "torchvision/mobilenet_v3_small"
    loaded = load_network(name, path)
    assert "were not compared" in _compared(loaded, None)
    for original in (source, tmp_path / "pairs.npz"):
        assert "differ by at most" in _compared(loaded, original)
    with pytest.raises(ModelError, match="does not compute what its source computes"):
        _compared(loaded, tmp_path / "wrong.npz")
    with pytest.raises(FileError, match=r"cannot read .*none"):
        _compared(loaded, tmp_path / "none.npz")
    wish = Wish(images, network=name, weights=path, original=source, mean=(0.1,) * 3, std=(0.2,) * 3)
    made = wish.source(data, "m")
    assert made.space.rules.mean == (0.1,) * 3
    assert "differ by at most" in made.notes[-1]
    with pytest.raises(ConfigError, match="leave --pairs out"):
        Wish(images, model=own_model("resnet"), original=path).source(data, "m")


def test_a_new_classifier_is_the_same_each_time(images: Path, tmp_path: Path) -> None:
    data = load_data(DataConfig(kind="arrays", path=images))
    _, path = known(tmp_path, 7)
    wish = Wish(images, network="torchvision/mobilenet_v3_small", weights=path)
    one, two = (wish.source(data, "m") for _ in range(2))
    assert one.new_classifier
    assert one.weights() == two.weights()


class Pair(nn.Module):
    """Gives features beside logits."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = own_model("resnet")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.inner(x), x


def other_classes() -> nn.Module:
    """A model with a classifier that nothing can be put in the place of."""
    model = own_model("resnet")
    model.fc = nn.Sequential(nn.Linear(32, 7), nn.Sigmoid())  # type: ignore[assignment]
    return model


MODELS = {
    "gives probabilities": (lambda: nn.Sequential(own_model("resnet"), nn.Softmax(1)), "ends in softmax"),
    "gives a tuple": (Pair, "gives a tuple"),
    "half precision": (lambda: own_model("resnet").half(), r"float16; call \.float\(\)"),
    "another number of classes": (
        other_classes,
        "has 7 classes, the images 5, and its last layer is sigmoid",
    ),
    "weights that are no numbers": (lambda: not_finite(), "not finite"),
}


def not_finite() -> nn.Module:
    model = own_model("resnet")
    with torch.no_grad():
        model.fc.weight[0, 0] = float("nan")  # type: ignore[union-attr, index, operator]
    return model


@pytest.mark.parametrize("case", MODELS)
def test_a_model_that_cannot_be_shrunk_is_refused_before_anything_is_made(
    case: str, images: Path, tmp_path: Path
) -> None:
    make, words = MODELS[case]
    with pytest.raises(SpaceError, match=words):
        shrink(make(), images, ["latency=50%"], tmp_path / "run", **QUICK)
    assert not (tmp_path / "run").exists()


def test_blocks_named_for_a_known_network_are_refused(images: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave --blocks out"):
        shrink(
            None, images, out=tmp_path / "run", network="efficientnet_lite0", weights="x.pth", blocks=["a.*"]
        )


def test_images_of_another_size_are_refused(images: Path, tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"cannot be followed|cannot run"):
        shrink(own_model("vit"), images, ["latency=50%"], tmp_path / "run", **QUICK)
