"""``binas TASK RUN``: the step, its settings changed by options; questions of one's own; estimate, sample and check."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from calling import answer, binas, contents, refusal, said

from binas.contributions import SupernetEvaluator
from binas.tables import load_contributions, load_samples
from binas.tasks import all_tasks
from tiny_run import SPACE, write_config


@pytest.fixture
def counted(monkeypatch):
    """Images that the supernet is asked for, call by call."""
    asked, outcomes = [], SupernetEvaluator.outcomes

    def count(self, chosen, depths, configs):
        asked.append(len(chosen))
        return outcomes(self, chosen, depths, configs)

    monkeypatch.setattr(SupernetEvaluator, "outcomes", count)
    return asked


def set_aside(run: Path) -> list[str]:
    """What was moved to RUN/old/."""
    return sorted(path.name for path in run.glob("old/*/*"))


class TestOneRule:
    @pytest.mark.parametrize("task", [name for name in all_tasks() if name != "train"])
    def test_what_is_done_is_said_and_nothing_is_changed(self, finished_once, task):
        before = contents(finished_once)
        text = said(task, finished_once)
        assert f"{task} was done already with these inputs; nothing was changed" in text
        found = answer(task, finished_once)
        assert (found["task"], found["done"]) == (task, [])
        assert all(Path(name).exists() for name in found["files"])
        assert contents(finished_once) == before

    def test_the_value_a_setting_has_anyway_is_the_run_s_step(self, finished):
        """``--seed 0`` is the default: the same half of the images, nothing set aside."""
        before = contents(finished)
        images = json.loads((finished / "contributions.json").read_text())["provenance"]["images"]
        assert "was done already" in said("estimate", finished, "--seed", 0)
        found = answer("estimate", finished, "--seed", 0)
        assert found["done"] == []
        assert found["images"] == images == 25 // 2
        assert not (finished / "old").exists()
        assert contents(finished) == before

    def test_an_option_changes_the_setting_and_does_the_step_again(self, finished, counted):
        found = answer("estimate", finished, "--passes", 6)
        assert found["done"] == ["estimate"]
        assert found["passes"] == 6
        assert len(counted) > 0
        assert yaml.safe_load((finished / "config.yaml").read_text())["estimate"]["passes"] == 6
        states = {item["step"]: item["state"] for item in answer("status", finished)["steps"]}
        assert (states["estimate"], states["sample"], states["measure"]) == ("done", "done", "done")
        assert states["check"] == states["search"] == "stale"

    def test_redo_sets_aside_and_does_it_again(self, finished, counted):
        before = (finished / "contributions.json").read_text()
        found = answer("estimate", finished, "--redo")
        assert found["done"] == ["estimate"]
        assert sum(counted) == found["evaluations"]
        assert {"contributions.json", "outcomes"} <= set(set_aside(finished))
        (old,) = finished.glob("old/*/contributions.json")
        assert old.read_text() == before

    @pytest.mark.parametrize(
        ("task", "options"),
        [
            ("estimate", ["--passes", 2]),
            ("estimate", ["--seed", 5, "--passes", 2]),
            ("estimate", ["--half", "both", "--protocol", "paper", "--repeats", 1, "--images", 10]),
            ("sample", ["--count", 2, "--seed", 4]),
            ("check", ["--resamples", 5]),
            ("search", ["--limits", "latency=10%", "-l", "latency=40%"]),
            ("report", ["--cost", "macs"]),
            ("report", ["-l", "latency=40%"]),
            ("measure", ["--table", "none", "--backend", "none"]),
        ],
        ids=lambda item: item if isinstance(item, str) else " ".join(map(str, item)),
    )
    def test_a_question_leaves_the_run_as_it_is(self, finished, tmp_path, task, options):
        before = contents(finished)
        folder = tmp_path / "asked"
        folder.mkdir()
        out = folder / ("page.html" if task == "report" else "out.json")
        assert answer(task, finished, *options, "--out", out)
        assert [path.name for path in folder.iterdir()] == [out.name]
        assert contents(finished) == before

    def test_a_question_of_a_task_that_waits_for_another(self, trained, tmp_path):
        before = contents(trained)
        assert "binas sample" in refusal("check", trained, "--out", tmp_path / "check.json")
        assert contents(trained) == before

    def test_a_step_whose_predecessors_are_not_done_says_which(self, trained):
        before = contents(trained)
        message = refusal("check", trained)
        assert "estimate" in message
        assert "sample" in message
        assert {name: data for name, data in contents(trained).items() if name in before} == before

    def test_training_is_not_repeated_unasked(self, finished):
        before = contents(finished)
        message = refusal("train", finished, "--seed", 1)
        assert "train.seed was 0, now 1" in message
        assert "--redo" in message
        assert contents(finished) == before

    def test_a_folder_that_is_no_run(self, tmp_path):
        for task in ("measure", "estimate", "sample", "finetune", "compare", "export"):
            assert "binas run CONFIG --out" in refusal(task, tmp_path)
        assert list(tmp_path.iterdir()) == []


class TestTrain:
    def test_a_folder_becomes_a_run(self, trained_once):
        found = answer("train", trained_once)
        assert set(found["validation"]) == {"heaviest", "lightest", "random"}
        text = said("train", trained_once)
        assert f"Next: binas run --out {trained_once}" in text
        states = {item["step"]: item["state"] for item in answer("status", trained_once)["steps"]}
        assert [name for name, state in states.items() if state == "done"] == [
            "train.data",
            "train.heaviest",
            "train.supernet",
        ]

    def test_a_wrong_configuration_makes_no_folder(self, tmp_path):
        config = write_config(tmp_path)
        run = tmp_path / "run"
        assert "train.supernet.epochs" in refusal(
            "train", run, "--config", config, "--set", "train.supernet.epochs=0"
        )
        assert not run.exists()


class TestEstimate:
    def test_contributions_with_errors_and_where_they_come_from(self, trained):
        found = answer("estimate", trained, "--budget", 60)
        table = load_contributions(trained / "contributions.json", SPACE)
        assert found["evaluations"] <= 60
        assert found["passes"] == 60 // found["images"]
        assert table.base == pytest.approx(found["base"])
        assert table.covariance is not None
        assert table.stderr is not None
        errors = np.sqrt(np.diag(table.covariance))
        np.testing.assert_allclose(errors, [table.base_stderr, *table.stderr.flat()], rtol=1e-4)
        assert "E[Acc]" in said("estimate", trained)

    def test_a_larger_budget_goes_on_where_a_smaller_one_ended(self, trained, counted):
        images = answer("estimate", trained, "--budget", 60)["images"]
        counted.clear()
        more = answer("estimate", trained, "--budget", 120)
        assert sum(counted) == more["evaluations"] - 60 // images * images
        counted.clear()
        assert answer("estimate", trained, "--budget", 120)["done"] == []
        again = answer("estimate", trained, "--redo")
        assert sum(counted) == again["evaluations"]
        assert {**again, "done": []} == {**more, "done": []}

    def test_a_question_uses_the_passes_of_the_run(self, finished, tmp_path, counted):
        found = answer("estimate", finished, "--passes", 6, "--out", tmp_path / "more.json")
        assert found["passes"] == 6
        assert sum(counted) == 2 * found["images"]  # the run has recorded four

    def test_a_question_that_is_killed_resumes(self, finished, tmp_path, monkeypatch, counted):
        outcomes, out = SupernetEvaluator.outcomes, tmp_path / "more.json"

        def dies(self, chosen, depths, configs):
            if len(counted) == 2:
                raise KeyboardInterrupt
            return outcomes(self, chosen, depths, configs)

        question = ("estimate", finished, "--seed", 3, "--passes", 4, "--out", out)
        with monkeypatch.context() as patch:
            patch.setattr(SupernetEvaluator, "outcomes", dies)
            assert binas(*question).code == 130
        counted.clear()
        found = answer(*question)
        assert sum(counted) < found["evaluations"]

    def test_the_paper_protocol_and_its_readings(self, trained, tmp_path):
        passes = 1 + SPACE.alpha_size + SPACE.beta_size
        how = ("--protocol", "paper", "--repeats", 1)
        base = answer("estimate", trained, *how)
        assert base["evaluations"] == passes * base["images"]
        table = load_contributions(trained / "contributions.json", SPACE)
        answer("estimate", trained, *how, "--reading", "depth")
        other = load_contributions(trained / "contributions.json", SPACE)
        assert table.base == other.base
        assert not table.values.equals(other.values)

    def test_the_ranking_may_be_stable_early(self, trained):
        assert (
            answer("estimate", trained, "--passes", 24, "--stability", 0.0)["passes"] == 4
        )  # the first look

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--budget", 10], "larger"),
            (["--protocol", "paper", "--budget", 100], "one repeat needs"),
        ],
    )
    def test_what_cannot_be_paid_is_refused(self, finished, tmp_path, options, message):
        before = contents(finished)
        assert message in refusal("estimate", finished, *options, "--out", tmp_path / "x.json")
        assert contents(finished) == before
        assert list(tmp_path.glob("x*")) == []

    def test_another_supernet_is_not_mixed_with_what_was_recorded(self, trained):
        answer("estimate", trained)
        header = next((trained / "outcomes").glob("*/journal.json"))
        header.write_text(json.dumps({**json.loads(header.read_text()), "evaluator": "another/network"}))
        before = (trained / "contributions.json").read_bytes()
        assert "recorded for something else" in refusal("estimate", trained, "--passes", 6)
        kept = [path.read_bytes() for path in trained.rglob("contributions.json")]
        assert before in kept

    def test_an_untrained_run_is_pointed_to_training(self, trained):
        for path in (trained / "supernet").iterdir():
            path.unlink()
        assert "needs train.supernet first" in refusal("estimate", trained)


class TestSample:
    def test_measured_once_with_halves(self, trained):
        found = answer("sample", trained, "--count", 3)
        first = load_samples(trained / "samples.json", SPACE)
        assert found["count"] == len(first) == 3
        assert found["min"] <= found["mean"] <= found["max"]
        assert first.halves is not None
        answer("sample", trained, "--count", 5)
        second = load_samples(trained / "samples.json", SPACE)
        assert second.rows[:3] == first.rows
        assert "5 architectures on 13 images" in said("sample", trained)

    def test_those_measured_otherwise_are_set_aside(self, trained):
        answer("sample", trained, "--count", 3)
        first = load_samples(trained / "samples.json", SPACE)
        answer("sample", trained, "--no-recalibrate")
        second = load_samples(trained / "samples.json", SPACE)
        assert second.architectures == first.architectures
        assert second.provenance.to_data()["recalibrated_on"] == 0
        (old,) = trained.glob("old/*/samples.json")
        assert load_samples(old, SPACE).rows == first.rows

    def test_strata_and_a_file_of_one_s_own(self, trained, tmp_path):
        out = tmp_path / "s.json"
        assert answer("sample", trained, "--count", 3, "--strata", "cost", "--out", out)["count"] == 3
        assert len(load_samples(out, SPACE)) == 3
        assert not (trained / "samples.json").exists()


class TestCheck:
    def test_estimates_are_judged_on_the_other_half_of_the_images(self, trained):
        answer("estimate", trained)
        found = answer("sample", trained, "--count", 12)
        assert found["provenance"]["images"] == 13
        text = said("check", trained)
        assert "Noise ceiling" in text
        assert "MACs only" in text
        choice = json.loads((trained / "estimator.json").read_text())
        assert choice["chosen"] in text
        assert answer("check", trained)["chosen"] == choice["chosen"]

    def test_too_few_samples_choose_what_the_contributions_ask_for(self, finished_once):
        assert "only 6 measured networks" in said("check", finished_once)

    def test_a_limit_is_a_question(self, finished):
        answer("sample", finished, "--count", 12)
        before = contents(finished)
        found = answer("check", finished, "-l", "latency=60%")
        assert all("latency=60%" in item["regret"] for item in found["estimators"])
        assert contents(finished) == before


@pytest.mark.parametrize(
    "typed",
    [
        ("measure", "costs.json", "--overwrite"),
        ("check", "estimator.json"),
        ("report", "report.html", "-l", "latency=40%"),
        ("search", "results/latency=30%.json", "-l", "latency=40%"),
        ("sample", "samples.json"),
    ],
    ids=lambda typed: typed[0],
)
def test_a_question_is_not_answered_over_what_the_run_made(finished_once, typed):
    task, name, *more = typed
    own = next((finished_once / name).parent.glob("*.json")) if "/" in name else finished_once / name
    before = contents(finished_once)
    assert "belongs to the run" in refusal(task, finished_once, "--out", own, *more)
    assert contents(finished_once) == before
