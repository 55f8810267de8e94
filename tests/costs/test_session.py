import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from fake_device import FakeClock, FakeDevice, KilledError

from binas.base.errors import FileError, MeasureError
from binas.base.progress import Progress
from binas.costs.journal import Journal
from binas.costs.session import CONTROL, Plan, run_session

TRUTH = {f"block {i}": 1e-5 * (1 + i) ** 1.5 for i in range(12)}
PLAN = Plan(rounds=40, budget=1e9)
WANTED = {"entries": [CONTROL, *TRUTH]}


class Seen(Progress):
    """Keeps what it is shown."""

    def __init__(self):
        self.done, self.doing, self.left = [], [], []

    def show(self, done, doing="", left=None):
        self.done.append(done)
        self.doing.append(doing)
        self.left.append(left)


def run(device, plan=PLAN, journal=None, progress=None):
    return run_session(list(device.truth), device, plan, device.clock, journal, progress)


class TestTruth:
    """The procedure recovers known times within the error it states."""

    def test_exactly_without_noise(self):
        found = run(FakeDevice(TRUTH))
        for entry, seconds in TRUTH.items():
            assert found.estimates[entry].value == pytest.approx(seconds, rel=1e-12)
            assert found.estimates[entry].uncertainty == pytest.approx(0, abs=1e-12)
        assert found.warnings == ()

    def test_within_two_percent_when_every_third_sample_is_a_spike(self):
        found = run(FakeDevice(TRUTH, jitter=0.03, spikes=0.33))
        for entry, seconds in TRUTH.items():
            assert found.estimates[entry].value == pytest.approx(seconds, rel=0.02)

    def test_the_stated_interval_holds_the_value_of_a_very_long_session(self):
        short = run(FakeDevice(TRUTH, jitter=0.05, spikes=0.1))
        long = run(FakeDevice(TRUTH, jitter=0.05, spikes=0.1), Plan(rounds=1500, budget=1e9))
        inside = [short.estimates[e].low <= long.estimates[e].value <= short.estimates[e].high for e in TRUTH]
        assert sum(inside) >= len(TRUTH) - 1  # 95 % intervals of 12 entries

    def test_ratios_survive_drift_which_is_detected_and_corrected(self):
        device = FakeDevice(TRUTH, jitter=0.01, drift=lambda now: 1.0 + 0.4 * min(1.0, now / 0.3))
        found = run(device)
        assert found.drift.detected
        assert found.drift.change == pytest.approx(0.4, abs=0.1)
        assert any("drifted by" in warning for warning in found.warnings)
        ratios = np.array([found.estimates[e].value / TRUTH[e] for e in TRUTH])
        assert ratios.max() / ratios.min() < 1.03

    def test_an_entry_that_needs_further_rounds_on_a_slower_device_is_corrected(self):
        """Without the control the late samples of the one noisy entry would be a third too slow."""
        device = FakeDevice({"calm": 1e-4, "wild": 1e-4}, jitter=0.0)
        device._noise = lambda entry: 1.0 + (0.2 * (device.taken[entry] % 7) / 7 if entry == "wild" else 0.0)
        device.drift = lambda now: 1.0 if len(device.calls) < 130 else 1.3
        found = run_session(["calm", "wild"], device, Plan(quantile=0.5, rounds=40, budget=0.5), device.clock)
        assert len(found.samples["wild"]) > 2 * len(found.samples["calm"])
        ratio = found.estimates["wild"].value / found.estimates["calm"].value
        assert ratio == pytest.approx(1 + 0.2 * 3 / 7, rel=0.04)


class TestProcedure:
    def test_entries_take_turns_in_another_order_each_round(self):
        device = FakeDevice(TRUTH)
        run(device, Plan(rounds=5, budget=1e9))
        order = [entry for entry, _ in device.calls if entry != CONTROL]
        rounds = [order[i : i + 12] for i in range(0, 60, 12)]
        assert all(sorted(one) == sorted(TRUTH) for one in rounds)
        assert len({tuple(one) for one in rounds}) == 5

    def test_the_control_is_sampled_all_along(self):
        device = FakeDevice(TRUTH)
        run(device, Plan(rounds=3, control_every=4, budget=1e9))
        places = [i for i, (entry, _) in enumerate(device.calls) if entry == CONTROL]
        assert len(places) == 9
        assert max(b - a for a, b in pairwise(places)) == 5

    def test_a_sample_is_long_enough_for_the_clock(self):
        device = FakeDevice(TRUTH)
        run(device, Plan(rounds=2, sample_seconds=2e-3, budget=1e9))
        for entry, repeats in device.calls:
            assert repeats * device.seconds(entry) >= 2e-3 * (1 - 1e-9)
            assert repeats == 1 or (repeats - 1) * device.seconds(entry) < 2e-3

    def test_only_uncertain_entries_get_further_rounds(self):
        device = FakeDevice({"calm": 1e-3, "wild": 1e-3})
        device._noise = lambda entry: 1.0 + 0.03 * (device.taken[entry] % 10) * (entry == "wild")
        found = run_session(
            ["calm", "wild"], device, Plan(quantile=0.25, rounds=20, tolerance=0.01, budget=1e9), device.clock
        )
        assert len(found.samples["calm"]) == 20
        assert len(found.samples["wild"]) > 20
        assert found.estimates["wild"].uncertainty <= 0.01

    def test_the_budget_ends_the_session_but_not_before_every_entry_has_a_sample(self):
        device = FakeDevice(TRUTH)
        found = run(device, Plan(rounds=1000, budget=1e-9))
        assert Counter(entry for entry, _ in device.calls if entry != CONTROL) == dict.fromkeys(TRUTH, 1)
        assert found.seconds > 0

    def test_a_noisy_machine_is_named_with_numbers(self):
        found = run(FakeDevice(TRUTH, jitter=1.0, spikes=0.5), Plan(rounds=20, tolerance=0.01, budget=0.5))
        (warning, *_) = found.warnings
        assert "of 12 entries are not known to 1.0%" in warning
        assert "The machine is noisy: a quarter of the control's samples took over" in warning
        assert "--budget" in warning

    def test_progress_tells_the_time_left(self):
        seen = Seen()
        run(FakeDevice(TRUTH), Plan(rounds=4, budget=1e9), progress=seen)
        assert all(doing.startswith("preparing") for doing in seen.doing[:13])
        assert seen.left[:13] == [None] * 13
        shares, lefts = seen.done[13:], seen.left[13:]
        assert shares == sorted(shares)
        assert {0.25, 0.5, 0.75} <= set(shares)
        assert all(left is not None for left in lefts)
        assert lefts[-1] < lefts[0] / 4
        assert seen.doing[-1] == "round 4 of 4"

    def test_further_rounds_tell_the_rest_of_the_budget(self):
        seen, plan = Seen(), Plan(rounds=2, tolerance=1e-4, budget=0.5)
        run(FakeDevice(TRUTH, jitter=0.5), plan, progress=seen)
        assert seen.done[-1] == 1.0
        assert "entries to settle" in seen.doing[-1]
        assert seen.left[-1] < 0.1

    def test_nothing_to_measure(self):
        with pytest.raises(MeasureError, match="nothing to measure"):
            run(FakeDevice({}))

    @pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
    def test_what_is_no_cost_is_refused(self, value):
        device = FakeDevice(TRUTH)
        device.sample = lambda entry, repeats: value
        with pytest.raises(MeasureError, match="which is no cost"):
            run(device)

    @pytest.mark.parametrize(
        "change", [{"rounds": 0}, {"budget": 0}, {"tolerance": -1}, {"quantile": 0.7}, {"quantile": 0.0}]
    )
    def test_senseless_plans_are_refused(self, change):
        with pytest.raises(MeasureError, match=next(iter(change))):
            Plan(**change)


class TestResume:
    plan = Plan(rounds=6, tolerance=0.01, budget=0.3)

    def device(self, **more):
        return FakeDevice(TRUTH, jitter=0.1, spikes=0.1, **more)

    def session(self, device, path, resume=True):
        return run(device, self.plan, Journal.open(path, WANTED, resume))

    @pytest.mark.parametrize("killed_at", [0, 1, 13, 14, 15, 40, 83, 84, 85, 120])
    def test_killed_at_any_entry_the_session_ends_with_the_same_numbers(self, tmp_path, killed_at):
        whole = self.session(self.device(), tmp_path / "whole")
        path = tmp_path / "parts"
        with pytest.raises(KilledError):
            self.session(self.device(dies_after=killed_at), path)
        journal = Journal.open(path, WANTED)
        assert len(journal.samples) == killed_at
        now = journal.samples[-1].elapsed if journal.samples else 0.0
        rest = self.device(taken=Counter(sample.entry for sample in journal.samples), clock=FakeClock(now))
        resumed = self.session(rest, path)
        assert resumed.samples == whole.samples
        assert resumed.estimates == whole.estimates
        assert resumed.seconds == pytest.approx(whole.seconds)
        assert len(rest.calls) + killed_at == sum(map(len, whole.samples.values())) + whole.control.count

    def test_half_a_line_is_passed_over(self, tmp_path):
        path = tmp_path / "journal"
        with pytest.raises(KilledError):
            self.session(self.device(dies_after=30), path)
        samples = Journal.open(path, WANTED).samples
        path.write_text(path.read_text()[:-7])
        resumed = Journal.open(path, WANTED)
        assert resumed.samples == samples[:29]
        resumed.add(samples[29])
        assert Journal.open(path, WANTED).samples == samples

    def test_a_finished_journal_needs_no_device(self, tmp_path):
        whole = self.session(self.device(), tmp_path / "journal")
        again = self.session(FakeDevice(TRUTH, dies_after=0), tmp_path / "journal")
        assert again.estimates == whole.estimates

    def test_another_measuring_is_refused_and_its_journal_kept(self, tmp_path):
        path = tmp_path / "journal"
        self.session(self.device(), path)
        before = path.read_text()
        with pytest.raises(MeasureError, match="belongs to another measuring: space was None, now 'other'"):
            Journal.open(path, {**WANTED, "space": "other"})
        assert path.read_text() == before

    def test_without_resume_it_starts_afresh(self, tmp_path):
        path = tmp_path / "journal"
        self.session(self.device(), path)
        assert Journal.open(path, {**WANTED, "space": "other"}, resume=False).samples == []

    def test_a_changed_journal_is_refused(self, tmp_path):
        path = tmp_path / "journal"
        self.session(self.device(), path)
        lines = path.read_text().splitlines()
        row = json.loads(lines[5])
        lines[5] = json.dumps(["block 99", *row[1:]])
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(MeasureError, match="has a sample of 'block 99'"):
            self.session(self.device(), path)

    @pytest.mark.parametrize(
        ("line", "text"),
        [
            (1, "[1, 2]"),
            (1, '{"control": 0}'),
            (1, '{"control": 3}'),
            (4, "[1, 2]"),
            (4, '["block 1", -1, 2]'),
        ],
    )
    def test_a_damaged_journal_is_refused(self, tmp_path, line, text):
        path = tmp_path / "journal"
        self.session(self.device(), path)
        lines = path.read_text().splitlines()
        lines[line] = text
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(MeasureError, match="--redo"):
            self.session(self.device(), path)

    @pytest.mark.parametrize("text", ["", "half a line", "[1, 2\n", '{"format": "other"}\n'])
    def test_what_is_no_journal_is_refused(self, tmp_path, text):
        path = tmp_path / "journal"
        path.write_text(text)
        with pytest.raises((MeasureError, FileError), match="journal"):
            Journal.open(path, WANTED)

    def test_a_journal_that_cannot_be_written_is_an_error(self, tmp_path):
        journal = Journal.open(tmp_path / "journal", WANTED)
        (tmp_path / "journal").unlink()
        (tmp_path / "journal").mkdir()
        with pytest.raises(FileError, match="cannot write"):
            run(self.device(), self.plan, journal)
