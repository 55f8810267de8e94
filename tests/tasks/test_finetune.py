"""Networks of a run: fine-tuned, interrupted, named, found again and exported."""

import json
import math
import shutil

import pytest
import torch
from small_networks import MBCONV
from small_run import small_run

from binas.base.errors import BinasError, CheckpointError, ConfigError, ExplodedError, FileError
from binas.base.progress import Progress
from binas.costs.analytic import architecture_work
from binas.export import LatencyFact, load_model
from binas.run.run import Run, open_run
from binas.tasks.artefacts import network_folder, network_name, network_names
from binas.tasks.export import export_tuned
from binas.tasks.finetune import EXPLODED, INPUTS, Tuning, find_tuned, open_tuned, run_to_tune, tune_all
from binas.training import FinetuneSettings, TrainSettings, evaluate_architecture, phases
from binas.training.team import Team

LIGHTEST, HEAVIEST = MBCONV.extreme(False), MBCONV.extreme()


class Killed(Exception):
    pass


class KillAfter(Progress):
    """Nothing is shown; after some steps of training the process ends, so to say."""

    def __init__(self, steps):
        self.left = steps

    def show(self, done, doing="", left=None):
        self.left -= 1
        if self.left < 0:
            raise Killed


def tune(run, architecture, name=None, progress=None):
    return Tuning(run, Team()).tune(architecture, name, progress)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained run with one fine-tuned network."""
    folder = small_run(tmp_path_factory.mktemp("networks"))
    return open_run(folder), tune(open_run(folder), LIGHTEST)


@pytest.fixture
def copied(trained, tmp_path):
    run, _ = trained
    return open_run(shutil.copytree(run.folder, tmp_path / "run"))


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_record_holds_architecture_accuracies_and_size(trained):
    run, found = trained
    record = json.loads((found.folder / "network.json").read_text())
    assert found.new
    assert found.folder == network_folder(run.folder, network_name(LIGHTEST))
    assert record["architecture"] == str(LIGHTEST)
    assert record["settings"]["epochs"] == 2
    work = architecture_work(MBCONV, LIGHTEST)
    assert (record["parameters"], record["macs"]) == (work.params, work.macs)
    assert record["judgement"]["tuned"]["test"]["images"] == len(run.data.test)
    start = evaluate_architecture(run.supernet(), LIGHTEST, run.data, run.data.validation, 64)
    assert found.one_shot.validation == start
    assert found.tuned.validation.percent >= start.percent


def test_a_repeated_call_only_reads(trained, monkeypatch):
    run, found = trained
    before = contents(run.folder / "networks")
    monkeypatch.setattr("binas.training.tuned.judge", lambda *_: 1 / 0)  # test images are looked at once
    again = tune(run, LIGHTEST)
    assert not again.new
    assert again.record == found.record
    assert before == contents(run.folder / "networks")


@pytest.mark.parametrize("steps", [0, 5])
def test_an_interrupted_network_ends_the_same(trained, copied, steps):
    _, found = trained
    often = copied.settings(TrainSettings).model_copy(update={"checkpoint_seconds": 0.0})
    run = Run(copied.folder, copied.config.model_copy(update={"train": often}), copied.space)
    with pytest.raises(Killed):
        tune(run, LIGHTEST, "again", KillAfter(steps))
    assert network_names(run.folder) == [network_name(LIGHTEST)]
    again = tune(run, LIGHTEST, "again")
    assert again.record.weights == found.record.weights
    assert again.record.judgement == found.record.judgement


def test_killed_before_it_was_judged(copied):
    record = network_folder(copied.folder, network_name(LIGHTEST)) / "network.json"
    old = json.loads(record.read_text())
    record.unlink()
    assert tune(copied, LIGHTEST).record.model_dump(mode="json", exclude={"seconds"}) == {
        key: value for key, value in old.items() if key != "seconds"
    }


def test_folders_of_other_networks_and_settings_are_refused(copied):
    before = contents(copied.folder / "networks")
    name = network_name(LIGHTEST)
    with pytest.raises(FileError, match="holds the network"):
        tune(copied, HEAVIEST, name)
    other = run_to_tune(copied.folder, ["finetune.epochs=1"])
    with pytest.raises(CheckpointError, match="epochs was 2, now 1"):
        tune(other, LIGHTEST)
    for bad in ("../x", ".x", "a/b", "", "x" * 81):
        with pytest.raises(FileError, match="no name of a network"):
            network_folder(copied.folder, bad)
    assert before == contents(copied.folder / "networks")


def test_changes_are_for_fine_tuning_only_and_are_not_kept(copied):
    with pytest.raises(ConfigError, match=r"begin with finetune\."):
        run_to_tune(copied.folder, ["train.seed=1"])
    with pytest.raises(BinasError, match=r"finetune\.batch_size"):
        run_to_tune(copied.folder, ["finetune.batch_size=100000"])
    changed = run_to_tune(copied.folder, ["finetune.epochs=1", "finetune.from_scratch=true"])
    found = tune(changed, LIGHTEST)
    assert found.record.from_scratch
    assert found.record.name == f"{network_name(LIGHTEST)}-scratch"
    assert open_run(copied.folder).settings(FinetuneSettings).epochs == 2
    again = export_tuned(open_run(copied.folder), found, formats=())
    assert "--set finetune.epochs=1 --set finetune.from_scratch=true" in again.model.command
    assert again.model.accuracy[-1].weights == "trained from scratch"


def test_several_networks_share_their_teacher(copied):
    tuning = Tuning(copied, Team())
    names = [
        tuning.tune(architecture, name).record.name
        for name, architecture in (("a", LIGHTEST), ("b", HEAVIEST))
    ]
    assert names == ["a", "b"]
    assert network_names(copied.folder) == sorted([network_name(LIGHTEST), "a", "b"])
    assert find_tuned(copied, LIGHTEST).record.name == network_name(LIGHTEST)
    assert find_tuned(copied, HEAVIEST).record.name == "b"


def test_networks_are_opened_by_name_or_folder(trained):
    run, found = trained
    batch = torch.ones(1, 3, 12, 12)
    for key in (found.record.name, found.folder, str(found.folder)):
        assert torch.equal(open_tuned(run, key).network(batch), found.network(batch))
    with pytest.raises(FileError, match=found.record.name):
        open_tuned(run, "unknown")
    with pytest.raises(FileError, match="is not fine-tuned"):
        find_tuned(run, HEAVIEST)


def test_a_damaged_record_and_other_weights_are_named(copied):
    path = network_folder(copied.folder, network_name(LIGHTEST)) / "network.json"
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "weights": "0123"}))
    with pytest.raises(FileError, match="belongs to other weights"):
        open_tuned(copied, network_name(LIGHTEST))
    path.write_text(json.dumps({**good, "macs": "many"}))
    with pytest.raises(FileError, match="macs"):
        open_tuned(copied, network_name(LIGHTEST))


def test_an_export_keeps_what_an_earlier_one_said(copied):
    tuned = open_tuned(copied, network_name(LIGHTEST))
    latency = (LatencyFact("predicted", 1.0, "cpu", "torch"),)
    first = export_tuned(
        copied, tuned, formats=(), limits=["latency=1ms"], latency=latency, command="binas run x.yaml"
    )
    assert first.folder == tuned.folder / "export"
    assert [item.part for item in first.model.accuracy] == ["validation", "test"] * 2
    second = export_tuned(copied, tuned, formats=())
    assert not second.written
    assert (second.model.limits, second.model.latency) == (("latency=1ms",), latency)
    assert second.model.command == "binas run x.yaml"
    assert torch.equal(
        load_model(first.folder)(torch.ones(1, 3, 12, 12)), tuned.network(torch.ones(1, 3, 12, 12))
    )


def test_what_was_begun_is_noted_anew_until_something_is_trained(copied, monkeypatch):
    """Killed before its first checkpoint, then called with other settings: the run must not take it for its own."""
    name = network_name(HEAVIEST)
    with monkeypatch.context() as patched:
        patched.setattr("binas.training.phases._starting_network", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tune(run_to_tune(copied.folder, ["finetune.epochs=3"]), HEAVIEST)
    inputs = network_folder(copied.folder, name) / INPUTS
    assert json.loads(inputs.read_text())["epochs"] == 3
    tune(run_to_tune(copied.folder, ["finetune.epochs=1"]), HEAVIEST)
    assert json.loads(inputs.read_text())["epochs"] == 1
    said = tune_all(copied, [HEAVIEST], Progress())[HEAVIEST]  # by the settings of the run
    assert said.settings["epochs"] == json.loads(inputs.read_text())["epochs"] == 2
    assert [path.name for path in (copied.folder / "old").glob("*/networks/*")] == [name]


def explode_at(monkeypatch, place):
    """Let the loss of fine-tuning be no number at an epoch and batch; the list of places that were trained."""
    loss, seen = phases._taught_loss, []

    def exploding(logits, step, *others):
        seen.append((step.epoch, step.batch))
        return loss(logits, step, *others) * (math.nan if seen[-1] == place else 1.0)

    monkeypatch.setattr(phases, "_taught_loss", exploding)
    return seen


def test_after_an_explosion_a_runs_own_network_goes_on_with_clipping(copied, monkeypatch):
    with monkeypatch.context() as patched:
        explode_at(patched, (1, 1))
        with pytest.raises(ExplodedError, match=r"finetune\.clip=1: .* goes on from the end of epoch 1"):
            tune_all(copied, [HEAVIEST], Progress())
    seen = explode_at(monkeypatch, None)
    clipped = run_to_tune(copied.folder, ["finetune.clip=1"])
    tune_all(clipped, [HEAVIEST], Progress())
    assert {epoch for epoch, _ in seen} == {1}
    inputs = json.loads((network_folder(copied.folder, network_name(HEAVIEST)) / INPUTS).read_text())
    assert inputs["clip"] == 1
    assert EXPLODED not in inputs
    seen.clear()
    tune_all(copied, [HEAVIEST], Progress())  # without clipping it is another network
    assert {epoch for epoch, _ in seen} == {0, 1}


def test_that_it_exploded_is_known_after_a_retry_that_was_killed(copied, monkeypatch):
    with monkeypatch.context() as patched:
        explode_at(patched, (1, 1))
        with pytest.raises(ExplodedError):
            tune(copied, HEAVIEST)
        with pytest.raises(Killed):
            tune(copied, HEAVIEST, None, KillAfter(0))
    seen = explode_at(monkeypatch, None)
    tune(run_to_tune(copied.folder, ["finetune.clip=1"]), HEAVIEST)
    assert {epoch for epoch, _ in seen} == {1}


def test_an_unfinished_network_of_other_settings_is_refused(copied):
    often = copied.settings(TrainSettings).model_copy(update={"checkpoint_seconds": 0.0})
    run = Run(copied.folder, copied.config.model_copy(update={"train": often}), copied.space)
    with pytest.raises(Killed):
        tune(run, HEAVIEST, None, KillAfter(5))
    before = contents(copied.folder / "networks")
    gentler = run_to_tune(copied.folder, ["finetune.clip=1"])
    with pytest.raises(CheckpointError, match=r"clip was None, now 1"):
        tune(gentler, HEAVIEST)
    assert before == contents(copied.folder / "networks")
