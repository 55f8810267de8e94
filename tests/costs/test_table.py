"""What ``measure`` makes of its settings: tables read, measured once, or once for each variant."""

import os
from types import SimpleNamespace

import pytest

from binas.base.errors import FileError, TableError
from binas.base.progress import Progress
from binas.costs import measure as measuring
from binas.costs.table import MeasureSettings, measure_costs, write_costs
from binas.search import SearchProblem, explain, frontier, solve
from binas.tables import Column, Contributions, load_costs
from tiny_run import SPACE, made_table


@pytest.fixture
def measured(monkeypatch):
    """The settings that were measured with; two threads are half as slow, but for a fixed cost."""
    seen = []

    def measures(space, how, samples, seed, name):
        seen.append((how.settings.backend, how.settings.threads, how.journal.name))
        cost = made_table(1e-4 / how.settings.threads)["latency"]
        verification = SimpleNamespace(estimates={}, seconds=1.0, warnings=())
        return SimpleNamespace(cost=cost, session=verification)

    monkeypatch.setattr(measuring, "measure_space", measures)
    return seen


def contributions():
    return Contributions(SPACE, 70.0, Column.build(SPACE, lambda s, i: 1.0 * i, lambda s, b, c: 0.5 * c))


def test_one_setting_is_a_plain_table(measured, tmp_path):
    table = write_costs(SPACE, MeasureSettings(), tmp_path / "costs.json", Progress())
    assert table.variants == {}
    assert measured == [("onnxruntime", 1, "costs.json.journal")]
    assert set(load_costs(tmp_path / "costs.json", SPACE).costs) >= {"latency", "macs", "params"}


@pytest.mark.parametrize("kind", ["pipe", "device", "link"])
def test_nothing_is_measured_or_kept_beside_what_is_no_file(measured, tmp_path, kind):
    """Samples are kept beside a table while it is measured: beside a pipe, a device or a link out they have no place."""
    out = tmp_path / "below" / "costs.json"
    out.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("/dev/null" if kind == "device" else "../elsewhere.json")
    with pytest.raises(FileError, match=r"cannot write .*costs\.json: it is (not a regular file|a link to)"):
        write_costs(SPACE, MeasureSettings(), out, Progress())
    assert measured == []
    assert list(out.parent.iterdir()) == [out]


def test_several_are_variants_and_the_search_chooses(measured, tmp_path):
    settings = MeasureSettings.model_validate({"threads": [1, 2]})
    table = write_costs(SPACE, settings, tmp_path / "costs.json", Progress())
    assert list(table.variants) == ["threads=1", "threads=2"]
    assert [journal for *_, journal in measured] == ["costs.json.journal", "costs.json.journal1"]
    again = load_costs(tmp_path / "costs.json", SPACE)
    problem = SearchProblem.build(contributions(), again, ["latency=20%"])
    result = solve(problem)
    assert result.variant == "threads=2"
    singles = [solve(problem.of_variant(name)) for name in table.variants]
    assert result.accuracy == max(single.accuracy or 0.0 for single in singles)
    assert {point.variant for point in frontier(problem.with_limits(()), "latency")} == {"threads=2"}
    standing = {item.name: item for item in explain(problem, result.architecture).variants}
    assert standing["threads=2"].chosen
    assert "dominated at every limit" in standing["threads=1"].sentence("latency")


def test_names_of_variants_say_what_differs():
    both = MeasureSettings.model_validate({"threads": [1, 2], "backend": ["onnxruntime", "torch"]})
    assert next(iter(both.variants)) == "backend=onnxruntime, threads=1"
    assert len(both.variants) == 4
    assert list(MeasureSettings.model_validate({"threads": 4}).variants) == [""]
    assert both.model_dump(mode="json")["threads"] == [1, 2]
    assert MeasureSettings().model_dump(mode="json")["threads"] == 1


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"backend": "tpu"}, {"backend": ["none", "torch"]}])
def test_what_cannot_be_measured_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        MeasureSettings.model_validate(wrong)


def test_a_table_is_read_instead(tmp_path, measured):
    made_table(2e-4).save(tmp_path / "phone.json")
    table = measure_costs(
        SPACE, MeasureSettings(table=tmp_path / "phone.json"), tmp_path / "x.json", Progress()
    )
    assert measured == []
    assert table["latency"].fixed == pytest.approx(made_table(2e-4)["latency"].fixed)


def test_nothing_to_limit_is_an_error(tmp_path):
    from binas.space import load_space

    with pytest.raises(TableError, match=r"set measure\.backend"):
        measure_costs(
            load_space("nas-bench-macro"), MeasureSettings(backend=("none",)), tmp_path / "x.json", Progress()
        )
