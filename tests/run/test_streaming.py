"""A stream cannot be measured on: a run says so before it trains, and its advice costs nothing."""

import io

import numpy as np
import pytest
from PIL import Image
from small_data import bars

import binas
from binas.base.errors import DataError
from binas.run.config import load_config
from binas.run.engine import judge
from binas.run.start import create_run, do_task
from binas.tasks.estimate import ESTIMATE
from binas.tasks.train import TRAIN
from tiny_run import call, write_config

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")


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
    assert (code, "data.streaming=false" in said) == (2, True)
    with pytest.raises(DataError, match=r"data\.streaming=false"):
        binas.run(config, out=tmp_path / "run")
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
    with pytest.raises(DataError, match="stream"):
        do_task(run.folder, ESTIMATE, ["data.streaming=true"], again=True)
    assert (run.folder / "supernet" / "weights.json").exists()
    assert not load_config(run.folder / "config.yaml").data.streaming


def test_training_alone_may_stream(config, tmp_path):
    """Whoever only wants a supernet; what follows is refused before it begins."""
    run = create_run(tmp_path / "run", load_config(config), tasks=[TRAIN])
    assert not run.data.train.indexed
    with pytest.raises(DataError, match="only `binas train` alone can stream"):
        binas.run(out=run.folder)
    assert {judge(run, step).word for step in TRAIN.steps} == {"to do"}
