"""``binas finetune`` and ``binas export`` as a user types them."""

import json

import onnxruntime
import pytest
import torch
from small_networks import MBCONV
from small_run import small_run
from typer.testing import CliRunner

import binas
from binas.base.errors import BinasError
from binas.cli.main import app

LIGHTEST = MBCONV.extreme(False)


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command in this process; errors become 2 as in the real one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BinasError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run with a network called best, fine-tuned through the command line."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = small_run(tmp_path_factory.mktemp("cli"))
    code, said = call("finetune", folder, "--arch", "lightest", "--name", "best", "--quiet")
    assert code == 0, said
    assert "fine-tuned" in said
    assert f"binas export {folder} --network best" in said
    yield folder
    torch.set_num_threads(before)


def test_fine_tuning_again_says_that_it_was_done(run):
    assert "was done already" in call("finetune", run, "--arch", LIGHTEST, "--name", "best", "--quiet")[1]
    found = json.loads(call("finetune", run, "--arch", LIGHTEST, "--name", "best", "--json")[1])
    assert (found["new"], found["architecture"]) == (False, str(LIGHTEST))
    assert (run / "networks" / "best" / "metrics.jsonl").exists()


def test_from_scratch_and_a_file_that_names_the_architecture(run, tmp_path):
    (tmp_path / "best.json").write_text(json.dumps({"architecture": str(LIGHTEST)}))
    options = ["--arch", tmp_path / "best.json", "--from-scratch", "--set", "training.finetune.epochs=1"]
    found = json.loads(call("finetune", run, *options, "--json")[1])
    assert (found["new"], found["from_scratch"]) == (True, True)
    assert found["name"].endswith("-scratch")


def test_an_export_has_everything_and_says_so(run):
    code, said = call("export", run, "--network", "best", "--int8")
    assert code == 0, said
    folder = run / "networks" / "best" / "export"
    for name in (
        "README.md",
        "model.json",
        "model.safetensors",
        "model.onnx",
        "model.pt2",
        "model.int8.onnx",
    ):
        assert (folder / name).exists()
        assert name in said
    assert "float32 on this machine" in said
    assert "bytes (uint8, 0 to 255)" in said
    assert binas.load_model(folder)(torch.ones(2, 3, 12, 12)).shape == (2, 5)
    assert "nothing was changed" in call("export", run, "--network", "best")[1]


def test_one_format_into_another_folder(run, tmp_path):
    options = [
        "--arch",
        LIGHTEST,
        "--format",
        "onnx",
        "--normalised-input",
        "--out",
        tmp_path / "x",
        "--json",
    ]
    found = json.loads(call("export", run, *options)[1])
    assert set(found["files"]) == {"README.md", "model.json", "model.safetensors", "model.onnx"}
    assert found["written"]
    assert found["model"]["input"]["graphs"] == "normalised"
    session = onnxruntime.InferenceSession(tmp_path / "x" / "model.onnx", providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].type == "tensor(float)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["finetune", "--arch", "e9k9_e9k9"], "e9k9"),
        (["finetune", "--arch", "heaviest", "--name", "best"], "holds the network"),
        (["finetune", "--arch", "lightest", "--name", "../x"], "no name of a network"),
        (["finetune", "--arch", "lightest", "--set", "training.seed=4"], "training.finetune."),
        (["export"], "needs search and finetune first"),
        (["export", "--arch", "lightest", "--network", "best"], "either --arch or --network"),
        (["export", "--arch", "heaviest"], "is not fine-tuned"),
        (["export", "--network", "worst"], "no finished network"),
        (["export", "--network", "best", "--format", "tflite"], "known formats are"),
        (["export", "--network", "best", "--format", ","], "known formats are"),
    ],
)
def test_bad_requests_are_answered_in_one_paragraph(run, arguments, said):
    command, *options = arguments
    before = sorted(path for path in run.rglob("*"))
    code, output = call(command, run, *options)
    assert (code, said in output) == (2, True), output
    assert before == sorted(path for path in run.rglob("*"))


def test_a_folder_without_a_run_is_named(tmp_path):
    for command in ("finetune", "export"):
        code, said = call(command, tmp_path, "--arch", "lightest")
        assert (code, "there is no run" in said) == (2, True)
