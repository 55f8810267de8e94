"""Lock, log, records and the time left, each on its own."""

import json
from types import SimpleNamespace

import pytest

from binas.base.errors import ConfigError, FileError
from binas.base.identity import identity_of
from binas.base.lock import locked
from binas.base.progress import Progress
from binas.run.config import load_config
from binas.run.engine import State, advance, judge
from binas.run.log import log_event, read_log
from binas.run.start import create_run
from binas.run.status import Standing, standing, total_left
from binas.run.step import Record, Step, outcome, read_record, write_record
from binas.run.steps import SEARCH, STEPS
from tiny_run import one_thread, write_config


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
            advance(run, STEPS)
        with locked(tmp_path / "run"), pytest.raises(FileError, match="another binas process"):
            create_run(tmp_path / "run", run.config)


class TestLog:
    def test_events_are_lines(self, tmp_path):
        log_event(tmp_path, "started", "costs")
        log_event(tmp_path, "finished", "costs", seconds=1.5)
        assert [(e["event"], e["step"]) for e in read_log(tmp_path)] == [
            ("started", "costs"),
            ("finished", "costs"),
        ]
        assert read_log(tmp_path)[1]["seconds"] == 1.5

    def test_half_a_line_is_passed_over_and_not_added_to(self, tmp_path):
        log_event(tmp_path, "started", "costs")
        with (tmp_path / "log.jsonl").open("a") as file:
            file.write('{"event": "prog')
        log_event(tmp_path, "finished", "costs")
        assert [event["event"] for event in read_log(tmp_path)] == ["started", "finished"]

    def test_no_log_yet(self, tmp_path):
        assert read_log(tmp_path) == []


class TestRecords:
    def test_round_trip(self, tmp_path):
        record = Record(
            "costs", "finished", "ab", {"a": [1, None]}, "now", 1.5, ("costs.json",), {"cpu": "x"}
        )
        write_record(tmp_path, record)
        assert read_record(tmp_path, "costs") == record
        assert read_record(tmp_path, "search") is None

    def test_a_damaged_record_is_named(self, tmp_path):
        (tmp_path / "steps").mkdir()
        (tmp_path / "steps" / "costs.json").write_text("[]")
        with pytest.raises(FileError, match=r"costs\.json is damaged.*record of a step"):
            read_record(tmp_path, "costs")

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
        with pytest.raises(ConfigError, match="needs costs and contributions first"):
            advance(run, (SEARCH,))

    def test_a_configuration_replaced_meanwhile(self, run):
        create_run(run.folder, load_config(run.folder / "config.yaml", ["check.count=7"]))
        with one_thread(), pytest.raises(ConfigError, match="another process has changed"):
            advance(run, STEPS)


class TestTimeLeft:
    def state(self, word, record=None, inputs=None, amount="epochs"):
        step = Step("supernet", "", lambda run, progress: None, (), amount=amount)
        return State(step, word, inputs or {}, record)

    def record(self, **inputs):
        return Record("supernet", "finished", "", inputs, "", 60.0)

    def test_as_long_as_before_by_the_amount(self):
        stale = self.state("stale", self.record(epochs=2), {"epochs": 3})
        assert standing(stale, []).left == 90.0
        assert standing(self.state("stale", self.record(), {}), []).left == 60.0

    def test_by_the_rate_of_what_was_started(self):
        events = [
            {"event": "progress", "step": "supernet", "done": 0.2, "since": 0.1, "seconds": 1.0},
            {"event": "progress", "step": "supernet", "done": 0.5, "since": 0.25, "seconds": 10.0},
            {"event": "progress", "step": "costs", "done": 0.9, "since": 0.0, "seconds": 1.0},
        ]
        assert standing(self.state("started", self.record()), events).left == pytest.approx(20.0)

    def test_unknown_rather_than_invented(self):
        assert standing(self.state("to do"), []).left is None
        assert standing(self.state("started", self.record()), []).left is None
        stood = [
            Standing(self.state("done", self.record()), 60.0, 0.0),
            Standing(self.state("stale", self.record()), 60.0, 40.0),
            Standing(self.state("to do"), None, None),
        ]
        assert total_left(stood) == (40.0, ["supernet"])
        assert json.dumps(stood[1].to_json())


def test_devices_that_are_not_here(monkeypatch):
    from binas.run import costs_step

    def no_gpu(settings):
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(costs_step, "device_name", no_gpu)
    config = load_config(None, ["measuring.device=cuda"])
    facts = costs_step.cost_facts(SimpleNamespace(config=config, space=SimpleNamespace(fingerprint="f")))
    assert facts["device"] == "not on this machine"
