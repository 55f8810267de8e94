"""Lock, log, records and the time left, each on its own."""

import errno
import json
import shutil
from pathlib import Path

import pytest

from binas.base.errors import ConfigError, FileError
from binas.base.identity import identity_of
from binas.base.lock import locked
from binas.base.progress import Progress
from binas.run.config import load_config
from binas.run.engine import State, advance, clear_expensive, judge, redo, refuse_expensive, states
from binas.run.log import log_event, read_log
from binas.run.records import Record, outcome, read_record, write_record
from binas.run.run import Run
from binas.run.start import create_run
from binas.run.status import Standing, standing, total_left
from binas.space import load_space
from binas.tasks import all_steps
from binas.tasks._base import Step
from binas.tasks.measure import MEASURE
from binas.tasks.outlook import Amount
from binas.tasks.search import SEARCH
from binas.training.team import one_thread
from tiny_run import write_config


class Heard(Progress):
    def __init__(self):
        self.lines = []

    def show(self, done, doing="", left=None):
        self.lines.append((round(done, 3), doing, left))

    def say(self, text):
        self.lines.append(text)


class TestLock:
    def test_two_processes_do_not_work_in_one_folder(self, tmp_path):
        run = create_run(tmp_path / "run", load_config(write_config(tmp_path)))
        with locked(tmp_path / "run"), pytest.raises(FileError, match="another binas process"):
            advance(run, all_steps())
        with locked(tmp_path / "run"), pytest.raises(FileError, match="another binas process"):
            create_run(tmp_path / "run", run.config)


class TestLog:
    def test_events_are_lines(self, tmp_path):
        log_event(tmp_path, "started", "measure")
        log_event(tmp_path, "finished", "measure", seconds=1.5)
        assert [(e["event"], e["step"]) for e in read_log(tmp_path)] == [
            ("started", "measure"),
            ("finished", "measure"),
        ]
        assert read_log(tmp_path)[1]["seconds"] == 1.5

    def test_half_a_line_is_passed_over_and_not_added_to(self, tmp_path):
        log_event(tmp_path, "started", "measure")
        with (tmp_path / "log.jsonl").open("a") as file:
            file.write('{"event": "prog')
        log_event(tmp_path, "finished", "measure")
        assert [event["event"] for event in read_log(tmp_path)] == ["started", "finished"]

    def test_no_log_yet(self, tmp_path):
        assert read_log(tmp_path) == []


class TestRecords:
    def test_round_trip(self, tmp_path):
        record = Record(
            "measure", "finished", "ab", {"a": [1, None]}, "now", 1.5, ("costs.json",), {"cpu": "x"}
        )
        write_record(tmp_path, record)
        assert read_record(tmp_path, "measure") == record
        assert read_record(tmp_path, "search") is None

    def test_a_damaged_record_is_named(self, tmp_path):
        (tmp_path / "steps").mkdir()
        (tmp_path / "steps" / "measure.json").write_text("[]")
        with pytest.raises(
            FileError, match=r"measure\.json is damaged.*Delete it; the step is then done again"
        ):
            read_record(tmp_path, "measure")

    def test_identity_does_not_depend_on_the_order(self):
        assert identity_of({"a": 1, "b": 2}) == identity_of({"b": 2, "a": 1}) != identity_of({"a": 1, "b": 3})

    def test_the_outcome_of_a_step_is_that_of_its_files(self, tmp_path):
        (tmp_path / "a.json").write_text("1")
        record = Record("x", "finished", "", {}, "", files=("a.json",))
        first = outcome(tmp_path, record)
        (tmp_path / "a.json").write_text("2")
        assert outcome(tmp_path, record) != first
        (tmp_path / "a.json").unlink()
        assert outcome(tmp_path, record) is None
        assert outcome(tmp_path, None) is None


class TestEngine:
    @pytest.fixture
    def run(self, tmp_path):
        return create_run(tmp_path / "run", load_config(write_config(tmp_path / "config")))

    def test_a_step_that_fails_keeps_its_time_and_goes_on(self, run):
        def fails(run, progress):
            progress.say("trying")
            raise RuntimeError("no luck")

        step = Step("made", "fail", fails, ("made.json",))
        with pytest.raises(RuntimeError):
            advance(run, (step,))
        events = [(e["event"], e.get("why")) for e in read_log(run.folder)]
        assert events == [("started", None), ("said", None), ("failed", "no luck")]
        assert judge(run, step).word == "started"
        spent = read_record(run.folder, "made").seconds

        def works(run, progress):
            (run.folder / "made.json").write_text("{}")

        better = Step("made", "work", works, ("made.json",))
        assert advance(run, (better,)) == ["made"]
        assert read_record(run.folder, "made").seconds > spent > 0
        assert advance(run, (better,)) == []

    def test_a_new_version_of_a_step_is_done_again(self, run):
        def works(run, progress):
            (run.folder / "made.json").write_text("{}")

        progress = Heard()
        advance(run, (Step("made", "", works, ("made.json",)),), progress)
        newer = Step("made", "", works, ("made.json",), version=2)
        assert judge(run, newer).reasons == ("version was 1, now 2",)
        assert advance(run, (newer,), progress) == ["made"]
        assert "made.json of before moved to old/" in progress.lines[-1]

    def test_a_file_nobody_recorded_is_not_overwritten(self, run):
        (run.folder / "made.json").write_text("mine")
        step = Step("made", "", lambda run, _: (run.folder / "made.json").write_text("{}"), ("made.json",))
        advance(run, (step,))
        (kept,) = (run.folder / "old").glob("*/made.json")
        assert kept.read_text() == "mine"

    def test_a_step_alone_says_what_it_needs(self, run):
        with pytest.raises(ConfigError, match="needs measure and estimate and check first"):
            advance(run, SEARCH.steps)

    def test_a_configuration_replaced_meanwhile(self, run):
        create_run(run.folder, load_config(run.folder / "config.yaml", ["sample.count=7"]))
        with one_thread(), pytest.raises(ConfigError, match="another process has changed"):
            advance(run, all_steps())

    def test_what_waits_for_a_step_says_so(self, run):
        def works(run, progress):
            (run.folder / "made.json").write_text("{}")

        first, second = (
            Step(name, "", works, ("made.json",), after=after) for name, after in (("a", ()), ("b", ("a",)))
        )
        advance(run, (first, second))
        newer = Step("a", "", works, ("made.json",), version=2)
        found = states(run, (newer, second))
        assert [state.word for state in found] == ["stale", "stale"]
        assert found[1].reasons == ("a first",)

    def test_redo_sets_aside_what_is_kept_otherwise(self, run):
        """A step that is stale goes on from what it recorded; one that is redone on request does not."""

        def works(run, progress):
            (run.folder / "made.json").write_text("{}")
            (run.folder / "recorded").mkdir(exist_ok=True)

        step, newer = (
            Step("made", "", works, ("made.json",), kept=("recorded",), version=version) for version in (1, 2)
        )
        advance(run, (step,))
        advance(run, (newer,))
        assert not list((run.folder / "old").glob("*/recorded"))
        redo(run, (newer,), Progress())
        assert judge(run, newer).word == "to do"
        assert len(list((run.folder / "old").glob("*/recorded"))) == 1


class TestExpensive:
    """Finished training is done again only where that is allowed: its files may be on a disk that is not mounted."""

    @pytest.fixture
    def work(self, tmp_path):
        return Trainings(create_run(tmp_path / "run", load_config(write_config(tmp_path / "config"))))

    @pytest.mark.parametrize("name", ["first", "second"])
    @pytest.mark.parametrize("whole_folder", [False, True])
    def test_files_that_are_gone_ask_for_redo(self, work, name, whole_folder):
        work.train()
        if whole_folder:
            shutil.rmtree(work.run.folder / name)
        else:
            (work.run.folder / name / "weights.json").unlink()
        before = tree(work.run.folder)
        for refused in (lambda: refuse_expensive(work.run, work.steps), work.train):
            with pytest.raises(FileError, match=rf"{name}/weights.* is missing.*mounted.*--redo"):
                refused()
        assert tree(work.run.folder) == before
        assert work.done == ["first", "second"]

    def test_redo_trains_what_is_gone_and_keeps_what_comes_out_the_same(self, work):
        work.train()
        (work.run.folder / "first" / "weights.json").unlink()
        clear_expensive(work.run, work.steps, Progress())
        refuse_expensive(work.run, work.steps[:1])
        assert work.train() == ["first"]
        (kept,) = (work.run.folder / "old").iterdir()
        assert tree(kept) == {
            "first/weights-1": "1",
            "steps/first.json": (kept / "steps/first.json").read_text(),
        }
        assert work.train() == []

    def test_redo_trains_what_follows_when_it_comes_out_otherwise(self, work):
        work.train()
        (work.run.folder / "first" / "weights.json").unlink()
        work.weights = "2"
        clear_expensive(work.run, work.steps, Progress())
        assert work.train() == ["first", "second"]

    def test_redo_sets_aside_all_that_a_change_makes_stale(self, work):
        work.train()
        work.version = 2
        with pytest.raises(ConfigError, match="version was 1, now 2"):
            refuse_expensive(work.run, work.steps)
        clear_expensive(work.run, work.steps, Progress())
        assert not (work.run.folder / "first").exists()
        assert not (work.run.folder / "second").exists()
        assert work.train() == ["first", "second"]

    @pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
    def test_one_failing_stat_changes_nothing(self, work, monkeypatch, number):
        work.train()
        before, stat = tree(work.run.folder), Path.stat

        def fails(path, **options):
            if path.name == "weights-1":
                raise OSError(number, "the server is away", str(path))
            return stat(path, **options)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "stat", fails)
            for refused in (lambda: refuse_expensive(work.run, work.steps), work.train):
                with pytest.raises(FileError, match="weights-1: the server is away"):
                    refused()
        assert tree(work.run.folder) == before
        assert work.train() == []


class Trainings:
    """Two expensive steps, the second from the files of the first, and how often they were done."""

    def __init__(self, run):
        self.run, self.weights, self.version, self.done = run, "1", 1, []

    @property
    def steps(self):
        return self.step("first"), self.step("second", ("first",))

    def step(self, name, after=()):
        files = (f"{name}/weights.json", f"{name}/weights-*")

        def work(run, progress):
            self.done.append(name)
            (run.folder / name).mkdir(exist_ok=True)
            (run.folder / name / "weights.json").write_text("{}")
            (run.folder / name / "weights-1").write_text(self.weights)

        return Step(name, "", work, files, after=after, expensive=True, version=self.version)

    def train(self):
        return advance(self.run, self.steps)


def tree(folder):
    """Every file and what is in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


class TestTimeLeft:
    def state(self, word, record=None, inputs=None, amount="epochs"):
        step = Step("train.supernet", "", lambda run, progress: None, (), amounts=(Amount(amount, "epochs"),))
        return State(step, word, record, inputs)

    def record(self, **inputs):
        return Record("train.supernet", "finished", "", inputs, "", 60.0)

    def test_as_long_as_before_by_the_amount(self):
        stale = self.state("stale", self.record(epochs=2), {"epochs": 3})
        assert standing(stale, []).left == 90.0
        assert standing(self.state("stale", self.record(), {}), []).left == 60.0

    def test_by_the_rate_of_what_was_started(self):
        events = [
            {"event": "progress", "step": "train.supernet", "done": 0.2, "since": 0.1, "seconds": 1.0},
            {"event": "progress", "step": "train.supernet", "done": 0.5, "since": 0.25, "seconds": 10.0},
            {"event": "progress", "step": "measure", "done": 0.9, "since": 0.0, "seconds": 1.0},
        ]
        assert standing(self.state("started", self.record()), events).left == pytest.approx(20.0)

    def test_unknown_rather_than_invented(self):
        assert standing(self.state("to do"), []).left is None
        assert standing(self.state("to do"), [], planned=40.0).left == 40.0
        assert standing(self.state("stale", self.record(), {}), [], planned=40.0).left == 60.0  # it took that
        assert standing(self.state("started", self.record()), []).left is None
        stood = [
            Standing(self.state("done", self.record()), 60.0, 0.0),
            Standing(self.state("stale", self.record()), 60.0, 40.0),
            Standing(self.state("to do"), None, None),
        ]
        assert total_left(stood) == (40.0, ["train.supernet"])
        assert json.dumps(stood[1].to_json())


def test_devices_that_are_not_here(monkeypatch):
    def no_gpu(settings):
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr("binas.costs.machine.device_name", no_gpu)
    run = Run(Path("nowhere"), load_config(None, ["measure.device=cuda"]), load_space("small-28"))
    (measure,) = MEASURE.steps
    assert measure.facts(run)["device"] == "not on this machine"
