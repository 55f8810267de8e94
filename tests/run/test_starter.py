"""Configurations to start from, for folders of images."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from binas.base.errors import DataError, FileError
from binas.run.config import config_model, load_config
from binas.run.start import create_run
from binas.run.starter import chosen_space, look, write_starter
from binas.space import load_space


def images(folder: Path, side: int, mode: str = "RGB", classes: int = 3, each: int = 12) -> Path:
    shape = (side, side + 3, 3) if mode == "RGB" else (side, side + 3)
    rng = np.random.default_rng(0)
    for label in range(classes):
        place = folder / f"class {label}"
        place.mkdir(parents=True)
        for number in range(each):
            pixels = rng.integers(0, 255, shape).astype(np.uint8)
            Image.fromarray(pixels, mode).save(place / f"{number}.png")
    return folder


@pytest.mark.parametrize(
    ("side", "mode", "space", "size"),
    [(20, "L", "demo", 28), (40, "RGB", "demo", 32), (100, "RGB", "imagenet-mbconv", 96)],
)
def test_a_folder_gets_a_space_that_fits_it(tmp_path, side, mode, space, size):
    made = write_starter(tmp_path / "mine.yaml", images(tmp_path / "photos", side, mode, each=50))
    assert (made.space, made.size) == (space, size)
    written = load_space(tmp_path / "mine-space.yaml")
    assert (written.classes, written.resolution, written.channels) == (3, size, 1 if mode == "L" else 3)
    assert "150" in made.sentence()
    config = load_config(tmp_path / "mine.yaml")
    create_run(tmp_path / "run", config)  # which checks images, space, batches and limits against each other
    assert config.data.size == size


def test_every_setting_stands_there_with_its_default(tmp_path):
    """Without the # before them, the settings are those they stand for."""
    write_starter(tmp_path / "mine.yaml")
    text = (tmp_path / "mine.yaml").read_text()
    assert text.startswith("# binas run mine.yaml --out runs/mine\n")
    (tmp_path / "bare.yaml").write_text(re.sub(r"(?m)^( *)#(?=[a-z])", r"\1", text))
    bare, plain = (load_config(tmp_path / name) for name in ("bare.yaml", "mine.yaml"))
    assert bare.model_dump() == plain.model_dump() == config_model()().model_dump()
    for part in config_model().model_fields:
        assert re.search(rf"(?m)^#?{part}:", text)
    assert "# time for measuring, at most, for each variant\n  #seconds: 300.0\n" in text


@pytest.mark.parametrize("there", ["mine.yaml", "mine-space.yaml"])
def test_nothing_is_overwritten(tmp_path, there):
    folder = images(tmp_path / "photos", 20)
    (tmp_path / there).write_text("precious")
    with pytest.raises(FileError, match=there):
        write_starter(tmp_path / "mine.yaml", folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["photos", there])


def test_what_is_no_folder_of_images(tmp_path):
    with pytest.raises(DataError):
        look(tmp_path / "nothing")
    folder = images(tmp_path / "photos", 20)
    (folder / "class 0" / "0.png").write_text("not an image")
    with pytest.raises(DataError, match=r"0\.png is not an image"):
        look(folder)


def test_sizes_between_the_spaces():
    assert [chosen_space(side) for side in (1, 28, 29, 63, 64, 230, 5000)] == [
        ("demo", 28),
        ("demo", 28),
        ("demo", 32),
        ("demo", 32),
        ("imagenet-mbconv", 64),
        ("imagenet-mbconv", 224),
        ("imagenet-mbconv", 224),
    ]
