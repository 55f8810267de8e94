"""A stream cannot be measured on: a run says so before it trains, and its advice costs nothing."""

import io

import numpy as np
import pytest
from PIL import Image
from small_data import bars

from binas.base.errors import DataError
from binas.run.config import load_config
from binas.run.start import create_run
from binas.run.teller import Teller
from tiny_run import call, write_config

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")


class Heard(Teller):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def config(tmp_path):
    """The images of the tiny run as a Parquet file, to be streamed."""
    made = bars(160)
    rows = {
        "image": [{"bytes": png(pixels), "path": None} for pixels in made["images"]],
        "label": made["labels"].tolist(),
    }
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=list("abcde"))}
    folder = tmp_path / "config"
    folder.mkdir()
    datasets.Dataset.from_dict(rows, features=datasets.Features(features)).to_parquet(folder / "bars.parquet")
    source = {"kind": "huggingface", "path": "bars.parquet", "size": 12, "streaming": True}
    return write_config(folder, data=source)


def test_a_run_on_a_stream_is_refused_before_anything_is_trained_or_written(config, tmp_path):
    code, said = call("run", config, "--out", tmp_path / "run")
    assert code == 2
    assert "data.streaming=false" in said
    assert not (tmp_path / "run").exists()


def test_the_advice_can_be_followed_without_redo(config, tmp_path):
    with pytest.raises(DataError, match=r"--set data\.streaming=false"):
        create_run(tmp_path / "run", load_config(config))
    stored = create_run(tmp_path / "run", load_config(config, ["data.streaming=false"]))
    assert stored.data.validation.indexed


def test_finished_training_is_not_set_aside_for_a_stream(config, tmp_path):
    run = create_run(tmp_path / "run", load_config(config, ["data.streaming=false"]))
    (run.folder / "supernet").mkdir()
    (run.folder / "supernet" / "weights.json").write_text("{}")
    with pytest.raises(DataError, match="stream"):
        create_run(run.folder, load_config(config), redo=True)
    assert (run.folder / "supernet" / "weights.json").exists()
    assert not load_config(run.folder / "config.yaml").data.streaming


def test_training_alone_may_stream_and_says_what_it_is_not_good_for(config, tmp_path):
    heard = Heard()
    run = create_run(tmp_path / "run", load_config(config), teller=heard, whole=False)
    assert not run.data.train.indexed
    assert "binas run" in heard.lines[0]
