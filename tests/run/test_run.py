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
from small_networks import BOTTLENECK, MBCONV
from typer.testing import CliRunner

from binas.base.errors import BinasError, ConfigError
from binas.cli.main import app
from binas.run.config import load_config, save_config
from binas.run.limits import check_questions
from binas.run.run import open_run
from binas.run.start import create_run
from binas.space import load_space, save_space
from binas.training.checkpoint import load_checkpoint

PHASE = {"epochs": 1, "batch_size": 32, "learning_rate": 0.01}
MULTI = {**PHASE, "groups": 2, "distillation": {"share": 0.5}, "recalibration": 64}


def write_config(folder: Path, **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_space(MBCONV, folder / "small.yaml")
    np.savez(folder / "bars.npz", **bars(200))
    content = {
        "space": "small.yaml",
        "data": {"kind": "arrays", "path": "bars.npz"},
        "training": {"device": "cpu", "heaviest": PHASE, "supernet": MULTI},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({**content, **changes}))
    return folder / "config.yaml"


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command in this process; errors become 2 as in the real one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BinasError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    code, said = call("train", "--config", write_config(folder), "--out", folder / "run", "--quiet")
    torch.set_num_threads(threads)
    assert code == 0, said
    assert "lightest" in said
    return folder / "run"


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
    assert run.space.fingerprint == MBCONV.fingerprint
    assert run.config.training.supernet.groups == 2
    assert {path.name.split("-")[0].split(".")[0] for path in (trained / "supernet").iterdir()} == {"weights"}


def test_evaluate_says_accuracy_error_and_whether_recalibrated(trained):
    arguments = ["evaluate", trained, "--arch", "lightest", "--arch", MBCONV.extreme(), "--json"]
    plain = json.loads(call(*arguments)[1])
    again = json.loads(call(*arguments, "--recalibrate")[1])
    assert [r["architecture"] for r in plain["results"]] == [
        str(MBCONV.extreme(False)),
        str(MBCONV.extreme()),
    ]
    assert (plain["recalibrated_on"], again["recalibrated_on"]) == (0, 64)
    assert plain["count"] == len(open_run(trained).data.validation)
    assert all(0 <= r["accuracy"] <= 100 and r["error"] >= 0 for r in plain["results"] + again["results"])
    assert "BatchNorm of the supernet" in call("evaluate", trained, "--arch", "heaviest")[1]


def test_training_again_changes_nothing(trained):
    before = {path: path.stat().st_mtime_ns for path in (trained / "supernet").iterdir()}
    assert call("train", "--out", trained, "--quiet")[0] == 0
    assert before == {path: path.stat().st_mtime_ns for path in (trained / "supernet").iterdir()}


def test_other_settings_are_refused_for_an_old_run(trained):
    config = trained.parent / "config.yaml"
    code, said = call("train", "--config", config, "--out", trained, "--set", "training.seed=5")
    assert code == 2
    assert "training.seed was 0, now 5" in said
    free = ["--set", "training.checkpoint_seconds=5"]
    assert call("train", "--config", config, "--out", trained, "--quiet", *free)[0] == 0


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path, trained):
    """SIGKILL at a random moment in a process of its own, then the same command again."""
    config = write_config(tmp_path)
    command = [sys.executable, "-m", "binas.cli.main", "train", "--out", str(tmp_path / "run"), "--quiet"]
    options = ["--config", str(config), "--set", "training.checkpoint_seconds=0"]
    process = subprocess.Popen([*command, *options], env={**os.environ, "OMP_NUM_THREADS": "1"})
    while not (tmp_path / "run" / "heaviest" / "progress.json").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert call("train", "--out", tmp_path / "run", "--quiet")[0] == 0
    torch.set_num_threads(threads)
    for phase in ("heaviest", "supernet"):
        one, two = (load_checkpoint(run / phase, "weights").tensors for run in (trained, tmp_path / "run"))
        assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"training": {"heaviest": {"epochs": 0}}}, "training.heaviest.epochs (line"),
        ({"training": {"heavy": {}}}, "allowed here are recipe, seed"),
        ({"training": {"recipe": "fast"}}, "'small' or 'imagenet'"),
        ({"training": 3}, "training"),
        ({"spaces": "demo"}, "spaces (line"),
        ({"space": "nowhere"}, "neither a built-in space"),
        ({"space": "imagenet-mbconv"}, "224"),
        ({"data": {"kind": "arrays", "path": "none.npz"}}, "none.npz"),
        ({"data": {"kind": "arrays"}}, "needs a path"),
        ({"training": {"heaviest": {"learning_rate": float("nan")}}}, "learning_rate"),
    ],
)
def test_a_bad_configuration_is_named_and_nothing_is_written(tmp_path, changes, said):
    code, output = call("train", "--config", write_config(tmp_path, **changes), "--out", tmp_path / "run")
    assert code == 2
    assert said in output
    assert not (tmp_path / "run").exists()


def test_images_of_the_wrong_kind_are_refused(tmp_path):
    config = write_config(tmp_path)
    np.savez(tmp_path / "bars.npz", **bars(200, channels=1))
    code, said = call("train", "--config", config, "--out", tmp_path / "run")
    assert (code, "takes 3 channels, the images have 1" in said) == (2, True)
    wrong = {**bars(200), "classes": np.array(["a", "b"])}
    np.savez(tmp_path / "bars.npz", **wrong)
    code, said = call("train", "--config", config, "--out", tmp_path / "run")
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
    create_run(Path("run"), config)
    monkeypatch.chdir(tmp_path / "c")
    assert create_run(tmp_path / "run", load_config(Path("config.yaml"))).config == config


def test_a_run_killed_at_its_start_can_be_started(tmp_path):
    config = load_config(write_config(tmp_path))
    (tmp_path / "run").mkdir()
    save_space(MBCONV, tmp_path / "run" / "space.yaml")
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
        ("training.supernet.batch_size=5000", "training.supernet.batch_size"),
        ("training.supernet.batch_size=1", "BatchNorm needs two"),
        ("training.finetune.augment.crop=50", "training.finetune.augment"),
        ("training.mixed_precision=fp16", "needs a GPU"),
    ],
)
def test_what_would_fail_later_is_found_first(tmp_path, change, said):
    config = write_config(tmp_path)
    code, output = call("train", "--config", config, "--out", tmp_path / "run", "--set", change)
    assert (code, said in output) == (2, True)
    assert not (tmp_path / "run").exists()


def test_free_settings_change_without_the_configuration(trained):
    arguments = ["train", "--out", trained, "--quiet"]
    assert call(*arguments, "--set", "training.checkpoint_seconds=7")[0] == 0
    assert open_run(trained).config.training.checkpoint_seconds == 7
    assert call(*arguments, "--set", "training.seed=7")[0] == 2


def test_out_must_be_a_folder(tmp_path):
    config = write_config(tmp_path)
    code, said = call("train", "--config", config, "--out", config)
    assert (code, "is a file" in said) == (2, True)


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    config = write_config(tmp_path / "c")
    (tmp_path / "thesis.txt").write_text("precious")
    code, said = call("train", "--config", config, "--out", tmp_path)
    assert (code, "holds other files" in said) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {"c", "thesis.txt"}


def test_configuration_round_trip_and_overrides(tmp_path):
    config = load_config(write_config(tmp_path), ["training.supernet.groups=null", "training.seed=3"])
    assert (config.training.supernet.groups, config.training.seed) == (None, 3)
    save_config(config, tmp_path / "saved" / "config.yaml")
    again = load_config(tmp_path / "saved" / "config.yaml")
    assert again.training == config.training
    assert again.data.path is not None
    assert again.data.path.samefile(tmp_path / "bars.npz")
    for bad in ("training.seed", "=3", "training.seed.x=1", "space=[1"):
        with pytest.raises(ConfigError if bad != "space=[1" else BinasError):
            load_config(tmp_path / "config.yaml", [bad])


@pytest.mark.parametrize("name", sorted(path.name for path in Path("configs").glob("*.yaml")))
def test_ready_configurations_are_valid(name):
    text = (Path("configs") / name).read_text()
    assert text.startswith(f"# binas run configs/{name} --out runs/{name.removesuffix('.yaml')}\n")
    config = load_config(Path("configs") / name)
    space = load_space(config.space)
    check_questions(config, space)
    assert space.classes is not None  # or else no network could be built


def test_create_run_continues_only_its_own(tmp_path):
    config = load_config(write_config(tmp_path))
    create_run(tmp_path / "run", config)
    assert create_run(tmp_path / "run", config).folder == tmp_path / "run"
