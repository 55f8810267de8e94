import gc
import itertools

import pytest

from binas.base.errors import MeasureError
from binas.costs.meters import (
    cuda_seconds,
    energy_zones,
    host_seconds,
    joules,
    own_seconds,
    until_stable,
)


def test_host_seconds_counts_every_run_without_garbage_collection():
    seen = []
    seconds = host_seconds(lambda: seen.append(gc.isenabled()), 7)
    assert seen == [False] * 7
    assert gc.isenabled()
    assert seconds > 0


@pytest.mark.parametrize(("clock", "cpu", "own"), [(5.0, 5.0, 5.0), (9.0, 5.0, 5.0), (5.0, 6.0, 5.0)])
def test_time_given_to_other_programs_is_left_out(clock, cpu, own):
    """Quiet, interrupted, and with a second thread that waits busily."""
    busy = iter([100.0, 100.0 + cpu])
    assert own_seconds(lambda: None, 3, lambda runner, repeats: clock, lambda: next(busy)) == own


def test_cpu_time_of_its_own_is_never_longer_than_the_clock_says():
    def work():
        sum(range(20_000))

    taken = []

    def seconds(runner, repeats):
        taken.append(host_seconds(runner, repeats))
        return taken[-1]

    assert 0 < own_seconds(work, 50, seconds) <= taken[0]


def test_a_gpu_is_read_between_two_events_after_all_earlier_work(monkeypatch):
    torch = pytest.importorskip("torch")
    happened = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            happened.append("record")

        def synchronize(self):
            happened.append("wait")

        def elapsed_time(self, other):
            return 12.0  # milliseconds

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: happened.append("finish"))
    assert cuda_seconds(lambda: happened.append("run"), 2) == pytest.approx(0.012)
    assert happened == ["finish", "record", "run", "run", "record", "wait"]


class TestUntilStable:
    def test_it_waits_for_the_end_of_the_warm_up(self):
        times = itertools.chain([9.0, 5.0, 3.0, 2.0], itertools.repeat(1.0))
        assert until_stable(lambda: next(times), seconds=1e9) == 1.0

    def test_it_stops_soon_when_nothing_changes(self):
        times = itertools.count()
        assert until_stable(lambda: 1.0 + 0 * next(times), seconds=1e9) == 1.0
        assert next(times) == 4

    def test_it_ends_however_long_it_improves(self):
        times = (0.5**n for n in itertools.count())
        assert until_stable(lambda: next(times), most=20, seconds=1e9) == 0.5**19

    def test_a_slow_network_runs_four_times(self):
        runs = itertools.count()
        assert until_stable(lambda: 100.0 / 2 ** next(runs)) == pytest.approx(12.5)
        assert next(runs) == 4


class TestEnergy:
    @pytest.fixture
    def counters(self, tmp_path):
        """Two packages and one part of the first, as the kernel shows them."""
        for name, value in (("intel-rapl:0", 100), ("intel-rapl:0:0", 50), ("intel-rapl:1", 999_000)):
            zone = tmp_path / name
            zone.mkdir()
            (zone / "energy_uj").write_text(f"{value}\n")
            (zone / "max_energy_range_uj").write_text("1000000\n")
        return tmp_path

    def test_packages_are_found_and_their_parts_not_counted_twice(self, counters):
        assert [zone.path.name for zone in energy_zones(counters)] == ["intel-rapl:0", "intel-rapl:1"]

    def test_energy_is_summed_over_packages_and_counters_may_start_again(self, counters):
        def run():
            for name, step in (("intel-rapl:0", 2_000), ("intel-rapl:1", 3_000)):
                file = counters / name / "energy_uj"
                file.write_text(str((int(file.read_text()) + step) % 1_000_000))

        assert joules(energy_zones(counters))(run, 2) == pytest.approx(0.010)

    def test_what_cannot_be_read_is_left_out(self, counters):
        (counters / "intel-rapl:1" / "energy_uj").write_text("no number")
        assert len(energy_zones(counters)) == 1

    def test_without_counters_it_says_to_import(self, tmp_path):
        assert energy_zones(tmp_path / "none") == []
        with pytest.raises(MeasureError, match="binas costs import"):
            joules([])
