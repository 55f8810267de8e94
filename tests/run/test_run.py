"""Runs as a user starts, interrupts and inspects them, through the command line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from small_data import bars
from small_networks import BOTTLENECK

from binas.base.errors import BinasError, ConfigError
from binas.run.config import load_config, save_config
from binas.run.run import Run, open_run
from binas.run.start import create_run
from binas.space import load_space, save_space
from binas.tasks.search import check_questions
from binas.training import TrainSettings
from binas.training.checkpoint import load_checkpoint
from binas.training.loop import UNFINISHED
from tiny_run import SPACE, call, write_config


def test_a_run_holds_what_it_depends_on(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {
        ".lock",
        "config.yaml",
        "data.json",
        "heaviest",
        "log.jsonl",
        "metrics.jsonl",
        "space.yaml",
        "steps",
        "supernet",
        "tensorboard",
    }
    run = open_run(trained)
    assert run.space.fingerprint == SPACE.fingerprint
    assert run.settings(TrainSettings).supernet.groups == 2
    assert {path.name.split("-")[0].split(".")[0] for path in (trained / "supernet").iterdir()} == {"weights"}


def test_evaluate_says_accuracy_error_and_whether_recalibrated(trained):
    arguments = ["evaluate", trained, "--arch", "lightest", "--arch", SPACE.extreme(), "--json"]
    plain = json.loads(call(*arguments)[1])
    again = json.loads(call(*arguments, "--recalibrate")[1])
    assert [r["architecture"] for r in plain["results"]] == [
        str(SPACE.extreme(False)),
        str(SPACE.extreme()),
    ]
    assert (plain["recalibrated_on"], again["recalibrated_on"]) == (0, 64)
    assert plain["count"] == len(open_run(trained).data.validation)
    assert all(0 <= r["accuracy"] <= 100 and r["error"] >= 0 for r in plain["results"] + again["results"])
    assert "BatchNorm of the supernet" in call("evaluate", trained, "--arch", "heaviest")[1]


def test_training_again_changes_nothing(trained):
    before = {path: path.stat().st_mtime_ns for path in (trained / "supernet").iterdir()}
    assert call("train", trained, "--quiet")[0] == 0
    assert before == {path: path.stat().st_mtime_ns for path in (trained / "supernet").iterdir()}


def test_other_settings_are_refused_for_an_old_run(trained, config):
    before = (trained / "config.yaml").read_bytes()
    for change in (["--seed", 5], ["--set", "train.seed=5"]):
        code, said = call("train", trained, "--config", config, *change)
        assert code == 2
        assert "train.seed was 0, now 5" in said
    assert (trained / "config.yaml").read_bytes() == before


def test_a_run_keeps_the_shards_it_started_with(tmp_path):
    """Weights depend on them; the number of processes, which may change, decides only where none are known."""
    config = write_config(tmp_path)
    train = {"train.processes": 2, "train.heaviest.batch_size": 64}
    started = create_run(tmp_path / "run", load_config(config, train.items()))
    shards = [getattr(started.config.train, phase).shards for phase in ("heaviest", "supernet")]
    assert shards == [2, 1]  # batches of 64 and 32 images, 32 at least in a shard
    again = create_run(tmp_path / "run", load_config(config, {**train, "train.processes": 1}.items()))
    assert again.config.train.heaviest.shards == 2
    assert load_config(tmp_path / "run" / "config.yaml").train.heaviest.shards == 2


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_the_same(tmp_path, trained):
    """SIGKILL at a random moment in a process of its own, then the same command again."""
    config = write_config(tmp_path)
    command = [sys.executable, "-m", "binas.cli.main", "train", str(tmp_path / "run"), "--quiet"]
    options = ["--config", str(config), "--checkpoint-seconds", "0"]
    process = subprocess.Popen([*command, *options], env={**os.environ, "OMP_NUM_THREADS": "1"})
    heaviest = tmp_path / "run" / "heaviest"
    while not any((heaviest / f"{name}.json").exists() for name in UNFINISHED):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert call("train", tmp_path / "run", "--quiet")[0] == 0
    for phase in ("heaviest", "supernet"):
        one, two = (load_checkpoint(run / phase, "weights").tensors for run in (trained, tmp_path / "run"))
        assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train": {"supernet": {"epochs": 0}}}, "train.supernet.epochs (line"),
        ({"train": {"heaviest": {"epochs": 0}}}, "needs weights to start from"),
        ({"train": {"heavy": {}}}, "allowed here are start, recipe, seed"),
        ({"train": {"recipe": "fast"}}, "'small' or 'imagenet'"),
        ({"train": 3}, "train"),
        ({"spaces": "demo"}, "spaces (line"),
        ({"space": "nowhere"}, "neither a built-in space"),
        ({"space": "imagenet-mbconv", "measure": {}}, "224"),
        ({"data": {"kind": "arrays", "path": "none.npz"}}, "none.npz"),
        ({"data": {"kind": "arrays"}}, "needs a path"),
        ({"train": {"heaviest": {"learning_rate": float("nan")}}}, "learning_rate"),
    ],
)
def test_a_bad_configuration_is_named_and_nothing_is_written(tmp_path, changes, said):
    code, output = call("train", tmp_path / "run", "--config", write_config(tmp_path, **changes))
    assert code == 2
    assert said in output
    assert not (tmp_path / "run").exists()


def test_images_of_the_wrong_kind_are_refused(tmp_path):
    config = write_config(tmp_path)
    np.savez(tmp_path / "bars.npz", **bars(200, channels=1))
    code, said = call("train", tmp_path / "run", "--config", config)
    assert (code, "takes 3 channels, the images have 1" in said) == (2, True)
    wrong = {**bars(200), "classes": np.array(["a", "b"])}
    np.savez(tmp_path / "bars.npz", **wrong)
    code, said = call("train", tmp_path / "run", "--config", config)
    assert (code, "out of range" in said) == (2, True)


def test_weights_of_another_space_are_refused(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    save_space(BOTTLENECK, tmp_path / "run" / "space.yaml")
    code, said = call("evaluate", tmp_path / "run", "--arch", "heaviest")
    assert code == 2
    assert "another space" in said


def test_unknown_architectures_and_untrained_runs_are_answered(trained, tmp_path):
    assert call("evaluate", trained, "--arch", "e9k9")[0] == 2
    code, said = call("evaluate", tmp_path, "--arch", "heaviest")
    assert (code, "there is no run" in said) == (2, True)
    (tmp_path / "config.yaml").write_text((trained / "config.yaml").read_text())
    (tmp_path / "space.yaml").write_text((trained / "space.yaml").read_text())
    code, said = call("evaluate", tmp_path, "--arch", "heaviest")
    assert (code, "no trained supernet" in said) == (2, True)


def test_the_same_command_goes_on_from_relative_paths(tmp_path, monkeypatch):
    write_config(tmp_path / "c")
    monkeypatch.chdir(tmp_path)
    config = load_config(Path("c/config.yaml"))
    started = create_run(Path("run"), config)
    monkeypatch.chdir(tmp_path / "c")
    assert create_run(tmp_path / "run", load_config(Path("config.yaml"))).config == started.config


def test_a_run_killed_at_its_start_can_be_started(tmp_path):
    config = load_config(write_config(tmp_path))
    (tmp_path / "run").mkdir()
    save_space(SPACE, tmp_path / "run" / "space.yaml")
    assert create_run(tmp_path / "run", config).folder == tmp_path / "run"


def test_weights_trained_on_other_images_are_refused(trained, tmp_path):
    """Another split would put training images among the held-out ones."""
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**content, "data": {**content["data"], "seed": 7}}))
    code, said = call("evaluate", tmp_path / "run", "--arch", "heaviest")
    assert (code, "another split" in said) == (2, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("train.supernet.batch_size=5000", "train.supernet.batch_size"),
        ("train.supernet.batch_size=1", "BatchNorm needs two"),
        ("finetune.augment.crop=50", "finetune.augment"),
        ("train.mixed_precision=fp16", "needs a GPU"),
    ],
)
def test_what_would_fail_later_is_found_first(tmp_path, change, said):
    config = write_config(tmp_path)
    code, output = call("train", tmp_path / "run", "--config", config, "--set", change)
    assert (code, said in output) == (2, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "change", [["--checkpoint-seconds", 7], ["--set", "train.checkpoint_seconds=7"]], ids=["option", "set"]
)
def test_settings_of_speed_change_without_training_again(trained, tmp_path, change):
    folder = shutil.copytree(trained, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (folder / "supernet").iterdir()}
    assert call("train", folder, "--quiet", *change)[0] == 0
    assert open_run(folder).settings(TrainSettings).checkpoint_seconds == 7
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "supernet").iterdir()}


def test_out_must_be_a_folder(tmp_path):
    config = write_config(tmp_path)
    code, said = call("train", config, "--config", config)
    assert (code, "is a file" in said) == (2, True)


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    config = write_config(tmp_path / "c")
    (tmp_path / "thesis.txt").write_text("precious")
    code, said = call("train", tmp_path, "--config", config)
    assert (code, "holds other files" in said) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {"c", "thesis.txt"}


def test_configuration_round_trip_and_overrides(tmp_path):
    config = load_config(write_config(tmp_path), ["train.supernet.groups=null", ("train.seed", 3)])
    train = config.part(TrainSettings)
    assert (train.supernet.groups, train.seed) == (None, 3)
    save_config(config, tmp_path / "saved" / "config.yaml")
    again = load_config(tmp_path / "saved" / "config.yaml")
    assert again.model_dump() == config.model_dump()
    assert again.data.path is not None
    assert again.data.path.samefile(tmp_path / "bars.npz")
    for bad in ("train.seed", "=3", "train.seed.x=1", "space=[1"):
        with pytest.raises(ConfigError if bad != "space=[1" else BinasError):
            load_config(tmp_path / "config.yaml", [bad])


@pytest.mark.parametrize("name", sorted(path.name for path in Path("configs").glob("*.yaml")))
def test_ready_configurations_are_valid(name):
    text = (Path("configs") / name).read_text()
    assert text.startswith(f"# binas run configs/{name} --out runs/{name.removesuffix('.yaml')}\n")
    config = load_config(Path("configs") / name)
    space = load_space(config.space)
    check_questions(Run(Path("nowhere"), config, space))
    assert space.classes is not None  # or else no network could be built


def test_create_run_continues_only_its_own(tmp_path):
    config = load_config(write_config(tmp_path))
    create_run(tmp_path / "run", config)
    assert create_run(tmp_path / "run", config).folder == tmp_path / "run"
