"""Runs from Python: what the command line does, with every check it makes, and what it leaves to be read."""

import shutil
import subprocess
import sys

import pytest

import binas
from binas.base.errors import BinasError, ConfigError, FileError
from binas.contributions.supernet_evaluator import SupernetEvaluator
from binas.run.config import FILE
from binas.run.start import ask, do_task
from binas.search import frontier
from binas.tables import load_contributions, load_costs, load_samples
from binas.tasks import all_tasks
from binas.tasks.check import CheckSettings
from binas.tasks.search import SearchSettings, open_problem
from binas.training.team import one_thread
from tiny_run import STEPS

TASKS = all_tasks()


def contents(folder):
    """Bytes and time of every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


class TestWholeRun:
    def test_it_is_done_and_says_so(self, finished):
        run = binas.open_run(finished)
        assert [(item.state.step.name, item.state.word) for item in run.status] == [
            (step, "done") for step in STEPS
        ]
        assert run.report == finished / "report.html"
        assert "<html" in run.report.read_text()

    def test_its_answers_are_typed(self, finished):
        run = binas.open_run(finished)
        assert [answer.question for answer in run.answers] == ["latency=30%", "latency=70%"]
        for answer in run.answers:
            (limit,) = answer.limits
            assert answer.status == "optimal"
            assert answer.costs["latency"].value <= limit.value
            network = run.networks[answer.question]
            assert network.architecture == answer.architecture
            assert network.name == run.network_name(answer.architecture)
            assert 0 <= network.judgement.tuned.test.percent <= 100

    def test_its_frontier_is_the_one_a_new_search_finds(self, finished):
        run = binas.open_run(finished)
        read, computed = run.frontier, frontier(open_problem(run), "latency")
        assert len(read) > 2
        assert (read.cost, read.error) == (computed.cost, computed.error)
        assert list(read) == list(computed)
        for answer in run.answers:
            best = read.at(answer.limits[0].value)
            assert best.accuracy == pytest.approx(answer.accuracy)

    def test_its_frontier_is_read_from_the_file(self, copied):
        path = copied / "frontier.csv"
        path.write_text("\n".join(path.read_text().splitlines()[:3]) + "\n")
        assert len(binas.open_run(copied).frontier) == 2

    def test_parts_of_the_configuration_are_given_as_arguments(self, copied, config):
        run = binas.run(config, out=copied, check={"resamples": 12})
        assert run.settings(CheckSettings).resamples == 12
        assert binas.open_run(copied).settings(CheckSettings).resamples == 12
        same = binas.run(out=copied)  # the run's own configuration
        assert same.settings(CheckSettings).resamples == 12
        assert {item.state.word for item in same.status} == {"done"}

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"search": {"limits": ["latency=45"]}}, "has no unit"),
            ({"search": {"limits": ["energy=1mJ"]}}, "no cost 'energy'"),
            (
                {"search": {"limit": ["latency=45ms"]}},
                "search.limit is not a setting; allowed here are limits",
            ),
            ({"search": {"estimator": "oracle"}}, "must be auto or one of additive"),
            ({"train": {"supernet": {"batch_size": 5000}}}, "train.supernet.batch_size"),
            ({"serach": {}, "spaces": "demo"}, "spaces is not a setting"),
            ({"data": {"limit": 80}}, "validation images; a run needs at least 20"),
            ({"measure": {"table": None, "device": "cuda"}}, "cuda"),
        ],
    )
    def test_every_check_is_made_before_anything_is_trained(self, config, tmp_path, changes, match):
        with pytest.raises(BinasError, match=match):
            binas.run(config, out=tmp_path / "run", **changes)
        assert not (tmp_path / "run").exists()

    def test_training_is_not_thrown_away_unasked(self, copied):
        before = contents(copied)
        with pytest.raises(ConfigError, match=r"train\.seed was 0, now 5.*--redo"):
            binas.run(out=copied, train={"seed": 5})
        assert contents(copied) == before

    def test_there_must_be_a_run_to_open(self, tmp_path):
        with pytest.raises(
            FileError, match=r"there is no run in .*Check the path; `binas run CONFIG --out FOLDER`"
        ):
            binas.open_run(tmp_path)


@pytest.mark.parametrize(
    "first",
    [
        "import binas",
        "import binas.run.status",
        "from binas.run.config import load_config; import binas",
        "from binas import open_run; import binas",
        "import binas; binas.run; import binas.run.engine as engine; engine.advance",
    ],
)
def test_the_room_of_runs_can_be_called_whatever_was_imported_before(first, tmp_path):
    script = (
        f"{first}\n"
        "from binas import run\n"
        "for call in (run, binas.run):\n"
        "    try:\n"
        "        call('nowhere.yaml', out='run')\n"
        "    except binas.base.errors.FileError as error:\n"
        "        print('nowhere.yaml' in str(error))\n"
        "import binas.run.folder as folder\n"
        "print(binas.run.folder is folder)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True"] * 3, done.stderr


class TestDoTask:
    def test_changes_are_kept_in_the_configuration(self, copied):
        run, done = do_task(copied, TASKS["check"], ["check.resamples=12"])
        assert done == ["check"]
        assert run.settings(CheckSettings).resamples == 12
        assert "resamples: 12" in (copied / FILE).read_text()
        before = contents(copied)
        assert do_task(copied, TASKS["check"])[1] == []
        assert do_task(copied, TASKS["check"], [("check.resamples", 12)])[1] == []
        assert contents(copied) == before

    def test_a_change_of_another_task_makes_only_that_stale(self, copied):
        _, done = do_task(copied, TASKS["check"], ["search.solver=bcfw"])
        assert done == []
        assert binas.open_run(copied).settings(SearchSettings).solver == "bcfw"
        stale = [item.state.step.name for item in binas.open_run(copied).status if item.state.word != "done"]
        assert stale[0] == "search"

    @pytest.mark.parametrize("change", ["check.resamples=0", "train.seed=5", "search.limits=[energy=1mJ]"])
    def test_what_is_refused_changes_nothing(self, copied, change):
        before = contents(copied)
        with pytest.raises(BinasError):
            do_task(copied, TASKS["check"], [change])
        assert contents(copied) == before

    def test_again_sets_aside_what_is_there_recorded_passes_too(self, copied):
        with one_thread():
            _, done = do_task(copied, TASKS["estimate"], again=True)
        assert done == ["estimate"]
        kept = {path.relative_to(copied / "old").parts[1] for path in (copied / "old").glob("*/*")}
        assert kept == {"contributions.json", "outcomes", "metrics.jsonl"}
        assert {item.state.word for item in binas.open_run(copied).status} == {"done"}  # the same came out


QUESTIONS = {
    "measure": ["measure.table=null", "measure.backend=none"],
    "estimate": ["estimate.passes=6", "estimate.half=both"],
    "sample": ["sample.count=3", "sample.strata=cost"],
    "check": ["check.resamples=7"],
    "report": ["report.cost=macs"],
}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("names", [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")])
def test_a_script_in_several_processes_of_a_launcher_is_refused(config, tmp_path, monkeypatch, names, rank):
    for name, value in zip(names, (rank, 2), strict=True):
        monkeypatch.setenv(name, str(value))
    with pytest.raises(ConfigError, match=rf"process {rank} of 2 .* start the script without the launcher"):
        binas.run(config, out=tmp_path / "run")
    with pytest.raises(ConfigError, match=rf"process {rank} of 2 .* binas shrink MODEL --out"):
        binas.shrink(None, tmp_path / "photos", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.fixture
def evaluated(monkeypatch):
    """A list that gets an item whenever images are classified to estimate contributions."""
    passes, real = [], SupernetEvaluator.outcomes

    def outcomes(self, images, depths, configs):
        passes.append(len(images))
        return real(self, images, depths, configs)

    monkeypatch.setattr(SupernetEvaluator, "outcomes", outcomes)
    return passes


class TestAsk:
    def test_every_task_that_can_be_asked_is_tried(self):
        assert set(QUESTIONS) == {name for name, task in TASKS.items() if task.ask is not None}

    @pytest.mark.parametrize("name", QUESTIONS)
    def test_the_run_is_left_as_it_is(self, finished, tmp_path, name):
        out = tmp_path / ("page.html" if name == "report" else "answer.json")
        before = contents(finished)
        with one_thread():
            answer = ask(finished, TASKS[name], out, QUESTIONS[name])
        assert contents(finished) == before
        assert answer is not None
        assert out.exists()
        assert [path.name for path in tmp_path.iterdir()] == [out.name]

    def test_answers_are_those_of_the_changed_settings(self, finished, tmp_path):
        run = binas.open_run(finished)
        with one_thread():
            for name, changes in QUESTIONS.items():
                ask(finished, TASKS[name], tmp_path / f"{name}.html", changes)
        costs = load_costs(shutil.copy(tmp_path / "measure.html", tmp_path / "costs.json"), run.space)
        assert "latency" not in costs.costs
        samples = load_samples(shutil.copy(tmp_path / "sample.html", tmp_path / "samples.json"), run.space)
        assert (len(samples), samples.provenance.to_data()["strata"]) == (3, "cost")
        whole = load_contributions(shutil.copy(tmp_path / "estimate.html", tmp_path / "c.json"), run.space)
        assert whole.provenance.to_data()["images"] == len(run.data.validation)

    def test_passes_of_the_run_are_not_evaluated_again(self, finished, copied, tmp_path, evaluated):
        with one_thread():
            same = ask(finished, TASKS["estimate"], tmp_path / "same.json")
            assert evaluated == []
            assert same.base == binas.open_run(finished).tables.contributions.base
            more = ask(finished, TASKS["estimate"], tmp_path / "more.json", ["estimate.passes=6"])
            assert len(evaluated) == 2  # four of six are there
            run, _ = do_task(copied, TASKS["estimate"], ["estimate.passes=6"])
        assert run.tables.contributions.base == more.base

    def test_an_interrupted_question_resumes(self, finished, tmp_path, evaluated, monkeypatch):
        changes = ["estimate.passes=8", "estimate.seed=1"]
        with one_thread():
            whole = ask(finished, TASKS["estimate"], tmp_path / "whole.json", changes)
            assert len(evaluated) == 8
            evaluated.clear()
            with monkeypatch.context() as patched:
                patched.setattr(type(whole), "save", interrupt)
                with pytest.raises(KeyboardInterrupt):
                    ask(finished, TASKS["estimate"], tmp_path / "parts.json", changes)
            assert 0 < len(evaluated) < 8
            parts = ask(finished, TASKS["estimate"], tmp_path / "parts.json", changes)
        assert len(evaluated) == 8
        assert parts.base == whole.base
        assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.json", "whole.json"]

    def test_what_belongs_to_the_run_cannot_be_asked(self, finished, tmp_path):
        with pytest.raises(ConfigError, match=r"`binas finetune` has no --out"):
            ask(finished, TASKS["finetune"], tmp_path / "x")

    def test_bad_settings_are_refused(self, finished, tmp_path):
        with pytest.raises(ConfigError, match=r"sample\.count"):
            ask(finished, TASKS["sample"], tmp_path / "x.json", ["sample.count=1"])
        assert not (tmp_path / "x.json").exists()
