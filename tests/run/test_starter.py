"""Configurations to start from, for folders of images."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from binas.base.errors import ConfigError, DataError, FileError
from binas.base.times import parse_duration
from binas.run.config import config_model, load_config
from binas.run.plan import total_seconds
from binas.run.start import create_run
from binas.run.starter import fitting_spaces, look, write_starter
from binas.space import load_space
from binas.tasks.outlook import Rates


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
    [(20, "L", "small-32", 28), (40, "RGB", "small-32", 32), (100, "RGB", "photos-96", 96)],
)
def test_a_folder_gets_a_space_that_fits_it(tmp_path, side, mode, space, size):
    made = write_starter(
        tmp_path / "mine.yaml", images(tmp_path / "photos", side, mode, each=50), probing=None
    )
    assert (made.space, made.size) == (space, size)
    written = load_space(tmp_path / "mine-space.yaml")
    assert (written.classes, written.resolution, written.channels) == (3, size, 1 if mode == "L" else 3)
    assert "150" in made.sentences()[0]
    config = load_config(tmp_path / "mine.yaml")
    create_run(tmp_path / "run", config)  # which checks images, space, batches and limits against each other
    assert config.data.size == size


def test_every_setting_stands_there_with_its_default(tmp_path):
    """Without the # before them, the settings are those they stand for."""
    write_starter(tmp_path / "mine.yaml", probing=None)
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
        write_starter(tmp_path / "mine.yaml", folder, probing=None)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["photos", there])


@pytest.mark.parametrize("target", ["/dev/null", "../elsewhere.yaml"])
def test_nothing_is_put_beside_what_cannot_be_written(tmp_path, target):
    folder, place = images(tmp_path / "photos", 20), tmp_path / "here"
    place.mkdir()
    (place / "mine.yaml").symlink_to(target)
    with pytest.raises(FileError, match=r"mine\.yaml"):
        write_starter(place / "mine.yaml", folder, probing=None)
    assert [path.name for path in place.iterdir()] == ["mine.yaml"]
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_what_is_no_folder_of_images(tmp_path):
    with pytest.raises(DataError):
        look(tmp_path / "nothing")
    folder = images(tmp_path / "photos", 20)
    (folder / "class 0" / "0.png").write_text("not an image")
    with pytest.raises(DataError, match=r"0\.png is not an image"):
        look(folder)


def test_every_size_has_a_space_made_for_it_and_never_the_demo():
    assert [fitting_spaces(side, 10)[0] for side in (1, 28, 29, 63, 64, 100, 127, 128, 5000)] == [
        ("small-32", 28),
        ("small-32", 28),
        ("small-32", 32),
        ("small-32", 32),
        ("photos-96", 64),
        ("photos-96", 96),
        ("photos-96", 96),
        ("photos-160", 128),
        ("photos-160", 160),
    ]
    assert [fitting_spaces(side, 100)[0] for side in (64, 150, 230)] == [
        ("photos-96", 64),
        ("imagenet-mbconv", 128),
        ("imagenet-mbconv", 224),
    ]


def test_what_follows_is_quicker():
    for side, classes in ((300, 10), (300, 1000), (130, 10), (70, 10), (30, 10)):
        sizes = [size for _, size in fitting_spaces(side, classes)]
        assert sizes == sorted(set(sizes), reverse=True) or classes >= 100
        assert max(sizes) <= max(side, 32)


class TestTime:
    """What is said of time, with invented rates: a training image takes ``each`` seconds per 32 x 32 pixels."""

    @pytest.fixture(scope="class")
    @classmethod
    def photos(cls, tmp_path_factory):
        return images(tmp_path_factory.mktemp("images") / "photos", 100, each=100)

    @pytest.fixture
    def write(self, photos, tmp_path):
        return partial(self.written, photos, tmp_path)

    @staticmethod
    def written(photos, tmp_path, time, each=2e-3):
        def probing(space, data, config):
            per_image = each * space.resolution**2 / 32**2
            small = ("heaviest_forward", "multipath", "forward", "recalibrate")
            rates = dict.fromkeys(("heaviest", "supernet", "network"), per_image) | dict.fromkeys(
                small, per_image / 5
            )
            return Rates(**rates, table=10.0, prepare=0.3)

        return write_starter(tmp_path / "mine.yaml", photos, time, probing)

    def test_what_the_defaults_take(self, write):
        made = write(None)
        assert made.outlook.images.total == 300
        said = made.sentences()[1]
        assert "with 2 + 6 + 3 epochs" in said
        assert re.search(r"About \d+ min .* up to about 30 epochs of the heaviest: --time ", said)
        advised = parse_duration(said.split("--time ")[1].rstrip("."))
        assert advised >= 1.5 * total_seconds(made.outlook)  # never less than the defaults take anyway

    def test_a_plan_is_written_and_valid(self, write, tmp_path):
        made = write(600.0)
        config = load_config(tmp_path / "mine.yaml")
        text = (tmp_path / "mine.yaml").read_text()
        assert "# Plan for 10min: the space 'photos-96' at 96 x 96 pixels" in text
        assert config.train.heaviest.epochs == made.plan.own["train.heaviest.epochs"] >= 10
        assert config.estimate.passes == made.plan.own["estimate.passes"]
        assert "together" in made.sentences()[-1]
        run = create_run(tmp_path / "run", config)
        assert (
            run.config.train.supernet.epochs
            == config.train.supernet.epochs
            == made.plan.own["train.supernet.epochs"]
        )

    def test_smaller_images_where_the_time_is_short(self, write):
        assert write(600.0, each=5e-2).size < 96

    def test_too_short_for_any(self, write, tmp_path):
        with pytest.raises(ConfigError, match="too short"):
            write(20.0, each=5e-2)
        assert not (tmp_path / "mine.yaml").exists()
        assert not (tmp_path / "mine-space.yaml").exists()
