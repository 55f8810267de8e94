"""``binas estimate`` and ``binas sample`` as a user calls them, on a small trained run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from small_data import bars
from small_networks import MBCONV
from typer.testing import CliRunner

from binas.base.errors import BinasError
from binas.cli.main import app
from binas.contributions import SupernetEvaluator
from binas.space import load_space, save_space
from binas.tables import load_contributions, load_samples

PHASE = {"epochs": 1, "batch_size": 32, "learning_rate": 0.01}
MULTI = {**PHASE, "groups": 2, "recalibration": 64}


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and output of a command in this process; errors become 2 as in the real one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BinasError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def said(*arguments: object) -> dict:
    code, text = call(*arguments, "--json")
    assert code == 0, text
    return json.loads(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder, threads = tmp_path_factory.mktemp("estimate"), torch.get_num_threads()
    save_space(MBCONV, folder / "small.yaml")
    np.savez(folder / "bars.npz", **bars(400))
    content = {
        "space": "small.yaml",
        "data": {"kind": "arrays", "path": "bars.npz"},
        "training": {"device": "cpu", "heaviest": PHASE, "supernet": MULTI},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    torch.set_num_threads(1)
    assert call("train", "--config", folder / "config.yaml", "--out", folder / "run", "--quiet")[0] == 0
    torch.set_num_threads(threads)
    return folder / "run"


@pytest.fixture
def run(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_estimate_writes_contributions_with_errors_and_where_they_come_from(run):
    told = said("estimate", run, "--budget", 600)
    found = load_contributions(run / "contributions.json", load_space(run / "space.yaml"))
    assert told["evaluations"] <= 600
    assert told["passes"] == 600 // told["images"]
    assert found.base == pytest.approx(told["base"])
    assert found.covariance is not None
    assert found.stderr is not None
    assert (found.stderr.flat() > 0).all()
    errors = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(errors, [found.base_stderr, *found.stderr.flat()], rtol=1e-4)


def test_a_larger_budget_goes_on_where_a_smaller_one_ended(run, monkeypatch):
    images = said("estimate", run, "--budget", 400)["images"]
    asked = []
    measured = SupernetEvaluator.outcomes

    def counting(self, chosen, depths, configs):
        asked.append(len(chosen))
        return measured(self, chosen, depths, configs)

    monkeypatch.setattr(SupernetEvaluator, "outcomes", counting)
    more = said("estimate", run, "--budget", 800)
    assert sum(asked) == more["evaluations"] - 400 // images * images
    again = said("estimate", run, "--budget", 800)
    assert again == more
    asked.clear()
    fresh = said("estimate", run, "--budget", 800, "--no-resume")
    assert sum(asked) == fresh["evaluations"]
    assert fresh == more


def test_the_paper_protocol_and_its_readings(run):
    passes = 1 + MBCONV.alpha_size + MBCONV.beta_size
    base = said("estimate", run, "--protocol", "paper", "--repeats", 1, "--images", 40)
    assert base["evaluations"] == passes * base["images"]
    table = load_contributions(run / "contributions.json", MBCONV)
    said("estimate", run, "--protocol", "paper", "--repeats", 1, "--images", 40, "--reading", "depth")
    other = load_contributions(run / "contributions.json", MBCONV)
    assert table.base == other.base
    assert not table.values.equals(other.values)


def test_the_ranking_may_be_stable_early(run):
    told = said("estimate", run, "--stability", 0.0)
    assert told["passes"] == 4  # the first look


def test_samples_are_measured_once_and_carry_halves(run):
    told = said("sample", run, "--count", 5)
    first = load_samples(run / "samples.json", MBCONV)
    assert told["count"] == len(first) == 5
    assert first.halves is not None
    said("sample", run, "--count", 8)
    second = load_samples(run / "samples.json", MBCONV)
    assert second.rows[:5] == first.rows
    code, text = call("sample", run, "--count", 8, "--recalibrate")
    assert code == 2
    assert "recalibrated_on was 0" in text
    assert load_samples(run / "samples.json", MBCONV).rows == second.rows
    assert said("sample", run, "--count", 3, "--strata", "cost", "--out", run / "s.json")["count"] == 3


def test_estimates_are_judged_on_the_other_half_of_the_images(run):
    said("estimate", run, "--half", 1, "--budget", 500)
    said("sample", run, "--half", 2, "--count", 12)
    code, text = call("evaluate-estimator", run, "--resamples", 20)
    assert code == 0, text
    assert "Noise ceiling" in text
    assert "MACs only" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", 2], "does not use --repeats"),
        (["--protocol", "paper", "--outcome", "correct"], "does not use --outcome"),
        (["--budget", 10], "Give a larger --budget"),
        (["--protocol", "paper", "--budget", 100], "one repeat needs"),
    ],
)
def test_bad_requests_are_answered_and_nothing_is_changed(run, arguments, message):
    said("estimate", run, "--budget", 400)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, text = call("estimate", run, *arguments, "--no-resume")
    assert code == 2
    assert message in text
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_another_supernet_is_not_mixed_with_what_was_recorded(run):
    said("estimate", run, "--budget", 400)
    header = next((run / "outcomes").glob("*/journal.json"))
    content = json.loads(header.read_text())
    header.write_text(json.dumps({**content, "evaluator": "another/network"}))
    before = (run / "contributions.json").read_bytes()
    code, text = call("estimate", run, "--budget", 400)
    assert code == 2
    assert "recorded for something else" in text
    assert (run / "contributions.json").read_bytes() == before


def test_an_untrained_run_is_pointed_to_training(tmp_path):
    code, text = call("estimate", tmp_path)
    assert code == 2
    assert "binas run --out" in text
