"""``binas finetune``, ``export`` and ``evaluate``: single networks of a trained run."""

import json
import shutil

import onnxruntime
import pytest
import torch
from calling import answer, contents, refusal, said

import binas
from tiny_run import SPACE

LIGHTEST = SPACE.extreme(False)
ALL = ("--formats", "onnx", "--formats", "torch", "--formats", "safetensors")


@pytest.fixture(scope="module")
def run(trained_once, tmp_path_factory):
    """A trained run with a network called best, fine-tuned through the command line."""
    folder = tmp_path_factory.mktemp("networks") / "run"
    shutil.copytree(trained_once, folder)
    text = said("finetune", folder, "--arch", "lightest", "--name", "best", "--quiet")
    assert "fine-tuned" in text
    assert f"binas export {folder} --network best" in text
    return folder


class TestFinetune:
    def test_again_says_that_it_was_done(self, run):
        question = ("finetune", run, "--arch", LIGHTEST, "--name", "best")
        assert "was done already" in said(*question, "--quiet")
        found = answer(*question)
        assert (found["new"], found["architecture"]) == (False, str(LIGHTEST))
        assert (run / "networks" / "best" / "metrics.jsonl").exists()

    def test_from_scratch_and_a_file_that_names_the_architecture(self, run, tmp_path):
        (tmp_path / "best.json").write_text(json.dumps({"architecture": str(LIGHTEST)}))
        config = (run / "config.yaml").read_bytes()
        found = answer("finetune", run, "--arch", tmp_path / "best.json", "--from-scratch", "--epochs", 1)
        assert (found["new"], found["from_scratch"]) == (True, True)
        assert found["name"].endswith("-scratch")
        assert (run / "config.yaml").read_bytes() == config  # for this network only

    def test_set_reaches_what_has_no_option(self, run):
        options = ("--set", "finetune.distillation.share=0", "--set", "finetune.augment.crop=1")
        found = answer("finetune", run, "--arch", "lightest", "--name", "alone", *options)
        assert found["settings"]["distillation.share"] == 0
        assert found["settings"]["augment.crop"] == 1


class TestExport:
    def test_everything_is_there_and_said(self, run):
        text = said("export", run, "--network", "best", *ALL, "--int8")
        folder = run / "networks" / "best" / "export"
        files = ("model.json", "model.safetensors", "model.onnx", "model.pt2", "model.int8.onnx")
        for name in ("README.md", *files):
            assert (folder / name).exists()
            assert name in text
        assert "float32 on this machine" in text
        assert "bytes (uint8, 0 to 255)" in text
        assert binas.load_model(folder)(torch.ones(2, 3, 12, 12)).shape == (2, 5)
        assert "nothing was changed" in said("export", run, "--network", "best")

    def test_one_format_into_another_folder(self, run, tmp_path):
        options = ("--arch", LIGHTEST, "--formats", "onnx", "--normalised", "--out", tmp_path / "x")
        before = contents(run)
        found = answer("export", run, *options)
        assert set(found["files"]) == {"README.md", "model.json", "model.safetensors", "model.onnx"}
        assert found["written"]
        assert found["model"]["input"]["graphs"] == "normalised"
        model = tmp_path / "x" / "model.onnx"
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        assert session.get_inputs()[0].type == "tensor(float)"
        assert contents(run) == before

    def test_the_networks_of_a_run_in_another_format(self, finished):
        found = answer("export", finished, "--formats", "torch")
        assert found["done"] == ["export"]
        assert len([name for name in found["files"] if name.endswith("model.pt2")]) >= 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["finetune", "--arch", "e9k9_e9k9"], "e9k9"),
        (["finetune", "--arch", "heaviest", "--name", "best"], "holds the network"),
        (["finetune", "--arch", "lightest", "--name", "../x"], "no name of a network"),
        (["finetune", "--arch", "lightest", "--set", "train.seed=4"], "begin with finetune."),
        (["finetune", "--name", "x"], "--arch"),
        (["finetune", "--arch", "lightest", "--epochs", "0"], "finetune.epochs"),
        (["export"], "needs search and finetune first"),
        (["export", "--out", "x"], "either --arch or --network"),
        (["export", "--arch", "lightest", "--network", "best"], "either --arch or --network"),
        (["export", "--arch", "heaviest"], "is not fine-tuned"),
        (["export", "--network", "worst"], "no finished network"),
        (["export", "--network", "best", "--formats", "tflite"], "export.formats"),
        (["export", "--network", "best", "--formats", ","], "export.formats"),
        (["evaluate", "--arch", "e9k9_e9k9"], "e9k9"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else "",
)
def test_bad_requests_are_answered_in_one_paragraph(run, arguments, words):
    command, *options = arguments
    before = sorted(run.rglob("*"))
    assert words in refusal(command, run, *options)
    assert before == sorted(run.rglob("*"))


def test_a_folder_without_a_run_is_named(tmp_path):
    for command in ("finetune", "export", "evaluate"):
        assert "there is no run" in refusal(command, tmp_path, "--arch", "lightest")


class TestEvaluate:
    def test_accuracy_with_the_supernet_s_weights(self, trained_once):
        before = contents(trained_once)
        found = answer("evaluate", trained_once, "--arch", "heaviest", "--arch", LIGHTEST)
        assert (found["images"], found["count"], found["recalibrated_on"]) == ("validation", 25, 0)
        assert [item["architecture"] for item in found["results"]] == [str(SPACE.extreme()), str(LIGHTEST)]
        assert all(0 <= item["accuracy"] <= 100 for item in found["results"])
        assert contents(trained_once) == before

    def test_other_images_and_statistics(self, trained_once):
        options = ("--arch", "lightest", "--images", "test", "--recalibrate", "--weights", "heaviest")
        found = answer("evaluate", trained_once, *options)
        assert (found["images"], found["recalibrated_on"], found["weights"]) == ("test", 64, "heaviest")
        text = " ".join(said("evaluate", trained_once, *options).split())
        assert "BatchNorm re-estimated on 64 training images" in text
