from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from binas.base.errors import BinasError, ConfigError, FileError, SpaceError, TableError, UnitError
from binas.data.config import DataRecord
from binas.run.config import load_config
from binas.run.folder import Folder, load, open_folder
from binas.search.problem import evaluate
from binas.space import Config, SearchSpace, Stage, load_space, save_space
from binas.tables import Column, Contributions, Cost, CostTable, Provenance, parse_unit
from binas.tables.samples import Sample, Samples

SPACE = SearchSpace("tiny", (Stage("s1", (0, 1), ((Config("a"), Config("b")),)),))


def write(folder: Path, space: str = "yaml", contributions: str = "json", costs: str = "json") -> Path:
    values = Column.build(SPACE, lambda s, i: 2.0 * i, lambda s, b, c: 0.5 * c)
    save_space(SPACE, folder / f"space.{space}")
    Contributions(SPACE, 70.0, values).save(folder / f"contributions.{contributions}")
    cost = Cost(
        "latency", parse_unit("ms"), 1.0, Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: 1.0 + c)
    )
    CostTable(SPACE, {"latency": cost}).save(folder / f"costs.{costs}")
    return folder


@pytest.mark.parametrize(
    "endings", [("yaml", "json", "json"), ("yml", "csv", "csv"), ("json", "json", "csv")]
)
def test_every_format(tmp_path: Path, endings: tuple[str, str, str]) -> None:
    folder = load(write(tmp_path, *endings))
    assert folder.space == SPACE
    assert folder.path == tmp_path
    problem = folder.problem(["latency<=0.0025s"])
    good, bad = (evaluate(problem, SPACE.parse(name)) for name in ("a", "b"))
    assert (good.accuracy, good.costs, good.feasible) == (72.0, {"latency": 2.0}, True)
    assert (bad.accuracy, bad.costs, bad.feasible) == (72.5, {"latency": 3.0}, False)


def test_path_as_text(tmp_path: Path) -> None:
    assert load(str(write(tmp_path))).costs["latency"].fixed == 1.0


@pytest.mark.parametrize("name", ["missing", "a\0b", "x" * 5000])
def test_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match=r"there is no folder .*binas example paper"):
        load(tmp_path / name)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(FileError, match=r"there is no folder .*it is a file\. Give the folder") as caught:
        load(tmp_path / "space.yaml")
    assert "binas example" not in str(caught.value)  # which would not write over a file


@pytest.mark.parametrize("name", ["space.yaml", "contributions.json", "costs.json"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(FileError, match=f"has no {name}. See `binas schema {name.split('.')[0]}`"):
        load(tmp_path)


def test_two_files_for_one_table(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "costs.csv").write_text("")
    with pytest.raises(FileError, match=r"has both costs\.json and costs\.csv; keep one"):
        load(tmp_path)


def test_tables_of_another_space(tmp_path: Path) -> None:
    write(tmp_path)
    save_space(load_space("small-28"), tmp_path / "space.yaml")
    with pytest.raises(TableError, match=r"contributions\.json: it was made for the space 'tiny'"):
        load(tmp_path)


@pytest.mark.parametrize(("name", "error"), [("space.yaml", SpaceError), ("costs.json", TableError)])
def test_damaged_file(tmp_path: Path, name: str, error: type[BinasError]) -> None:
    (write(tmp_path) / name).write_text("{}")
    with pytest.raises(error, match=name):
        load(tmp_path)


def test_limit_without_unit(tmp_path: Path) -> None:
    with pytest.raises(UnitError, match=r"limit 'latency=2': '2' has no unit.*2ms"):
        load(write(tmp_path)).problem(["latency=2"])


def test_a_table_of_other_images_is_refused_by_their_fingerprint(tmp_path: Path) -> None:
    values = Column.full(SPACE, 0.0)
    table = Contributions(
        SPACE, 70.0, values, provenance=Provenance(source="measured", data="0123456789abcdef")
    )
    table.save(tmp_path / "contributions.json")
    for images in (None, "0123456789abcdef"):
        assert Folder(tmp_path, SPACE, images).contributions.base == 70.0
    with pytest.raises(TableError, match="measured on other images, or on another split"):
        Folder(tmp_path, SPACE, "fedcba9876543210").contributions  # noqa: B018


def test_a_table_of_another_number_of_classes_is_refused(tmp_path: Path) -> None:
    made_for, other = replace(SPACE, classes=10), replace(SPACE, classes=100)
    Contributions(made_for, 70.0, Column.full(made_for, 0.0)).save(tmp_path / "contributions.json")
    with pytest.raises(TableError, match=f"fingerprint {made_for.fingerprint}"):
        Folder(tmp_path, other).contributions  # noqa: B018


class TestOtherImages:
    """Tables of other images than the run's, or of another split of them, are refused by whoever opens the folder."""

    def tables(self, folder: Path, contributions: str | None, samples: str | None) -> Path:
        save_space(SPACE, folder / "space.yaml")
        write(folder)
        values, about = Column.full(SPACE, 0.0), Provenance(source="measured", data=contributions)
        Contributions(SPACE, 70.0, values, provenance=about).save(folder / "contributions.json")
        rows = tuple(Sample(SPACE.parse(name), 70.0) for name in ("a", "b"))
        Samples(SPACE, rows, Provenance(source="measured", data=samples)).save(folder / "samples.json")
        return folder

    def record(self, folder: Path, fingerprint: str) -> None:
        counts = {"train": 8, "validation": 4, "test": 4}
        DataRecord(
            fingerprint=fingerprint, images=counts, classes=("x", "y"), channels=1, height=4, width=4
        ).save(folder / "data.json")

    def test_a_run_s_record_of_its_images_counts(self, tmp_path: Path) -> None:
        self.record(self.tables(tmp_path, "one", "one"), "one")
        assert load(tmp_path).problem(["latency=2.5ms"])
        self.record(tmp_path, "two")
        with pytest.raises(TableError, match=r"contributions\.json was measured on other images"):
            load(tmp_path)
        with pytest.raises(TableError, match=r"samples\.json was measured on other images"):
            open_folder(tmp_path).samples  # noqa: B018

    @pytest.mark.parametrize("content", ['{"my": [1, 2]}', "[1, 2]", "no JSON", "", None])
    def test_beside_tables_a_file_of_that_name_may_be_of_somebody_else(
        self, tmp_path: Path, content: str | None
    ) -> None:
        path = self.tables(tmp_path, "one", "one") / "data.json"
        path.mkdir() if content is None else path.write_text(content)
        assert load(tmp_path).images is None
        (tmp_path / "config.yaml").write_text("")  # a run: now it is its record, and damaged
        with pytest.raises(FileError, match=r"data\.json"):
            load(tmp_path)

    def test_a_record_that_is_damaged_is_told_beside_tables_too(self, tmp_path: Path) -> None:
        self.record(self.tables(tmp_path, "one", "one"), "one")
        path = tmp_path / "data.json"
        path.write_text(path.read_text()[:-20])
        with pytest.raises(FileError, match="not complete JSON"):
            load(tmp_path)

    @pytest.mark.parametrize("split", ["one", None])
    def test_without_a_record_tables_of_one_split_are_used(self, tmp_path: Path, split: str | None) -> None:
        assert load(self.tables(tmp_path, "one", split)).samples

    def test_without_a_record_both_must_be_of_the_same_split(self, tmp_path: Path) -> None:
        folder = load(self.tables(tmp_path, "one", "two"))
        with pytest.raises(
            TableError, match=r"samples\.json .*fingerprint two.*contributions beside it \(one\)"
        ):
            folder.problem(["latency=2.5ms"])

    def test_samples_alone_are_enough(self, tmp_path: Path) -> None:
        (self.tables(tmp_path, "one", "two") / "contributions.json").unlink()
        assert open_folder(tmp_path).samples


@pytest.mark.parametrize(
    "change", ["finetune.weight_decay=11", "sample.count=1000001", "estimate.passes=1000001"]
)
def test_settings_have_an_end(change: str) -> None:
    with pytest.raises(ConfigError, match=rf"{change.split('=')[0]}: must be less than or equal to"):
        load_config(None, [change])
