"""Blocks out as ONNX, numbers back as a table: a round trip with a device that only reads files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from torch import nn

from binas.base.errors import BinasError, FileError, TableError
from binas.costs import analytic_costs
from binas.costs.exchange import export_blocks, some_networks
from binas.costs.filled import Filled, import_filled
from binas.costs.manifest import Manifest, read_manifest
from binas.costs.plausible import doubts
from binas.space import SearchSpace, load_space, sample_many, space_from_data
from binas.supernet import StaticNetwork
from binas.tables import Column, Cost, Provenance, load_costs, parse_unit
from binas.testing.tables import read_tfnas

CONFIGS = {"expansion": [2, 4], "kernel": [3, 5]}
SPACE = space_from_data(
    {
        "format": "binas/space",
        "version": 1,
        "name": "tiny",
        "channels": 3,
        "resolution": 16,
        "classes": 4,
        "stem": ["cn_k3_s2_c8_nre"],
        "head": ["cn_k1_c24"],
        "stages": [
            {"name": "s1", "depths": [1, 2, 3], "channels": 8, "configs": CONFIGS, "activation": "re"},
            {"name": "s2", "depths": [1, 2], "channels": 16, "stride": 2, "configs": CONFIGS, "se": True},
        ],
    }
)
NETWORKS = [SPACE.extreme(False), SPACE.extreme(True), *sample_many(SPACE, 2, seed=1)]

Row = dict[str, str]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    folder = tmp_path_factory.mktemp("exchange") / "blocks"
    return folder, export_blocks(SPACE, folder, networks=NETWORKS)


def stored(path: Path) -> float:
    """The fake device: a file costs a thousandth of its weights (equal biases are stored only once)."""
    tensors = onnx.load(path).graph.initializer
    return sum(math.prod(item.dims) for item in tensors if len(item.dims) > 1) / 1000


def weights(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.dim() > 1)


def fill(folder: Path, change: Callable[[list[Row]], None] = lambda rows: None, unit: str = "ms") -> Path:
    """The CSV as someone fills it in, and what happens to it on the way."""
    rows = list(csv.DictReader(io.StringIO((folder / "fill-in.csv").read_text())))
    for row in rows:
        row |= {"value": repr(stored(folder / row["file"])), "unit": unit}
    change(rows)
    path = folder / "filled.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def imported(
    exported: tuple[Path, Manifest], change: Callable[[list[Row]], None] = lambda rows: None, **more
) -> Filled:
    folder, manifest = exported
    return import_filled(fill(folder, change), manifest, SPACE, **more)


class TestExport:
    def test_each_distinct_block_once(self, exported: tuple[Path, Manifest]) -> None:
        """s1 keeps its shape, so all its blocks are alike; s2 has a first block that is not."""
        folder, manifest = exported
        kinds = [item.kind for item in manifest.files]
        assert (kinds.count("block"), kinds.count("fixed"), kinds.count("network")) == (4 + 8, 1, 4)
        assert len({item.file for item in manifest.files}) == len(kinds)
        uses = [(use.stage, use.block, use.config) for item in manifest.files for use in item.uses]
        assert len(uses) == len(set(uses)) == SPACE.alpha_size
        assert read_manifest(folder / "manifest.json") == manifest
        assert (
            load_space(folder / "space.yaml").fingerprint == SPACE.fingerprint == manifest.space.fingerprint
        )

    def test_files_run_on_the_shapes_of_the_manifest(self, exported: tuple[Path, Manifest]) -> None:
        folder, manifest = exported
        for item in manifest.files[:2] + manifest.files[12:14]:
            data = (folder / item.file).read_bytes()
            assert hashlib.sha256(data).hexdigest() == item.sha256
            session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
            inputs = {f"x{i}": np.ones(shape, np.float32) for i, shape in enumerate(item.inputs)}
            assert all(np.isfinite(output).all() for output in session.run(None, inputs))

    def test_fill_in(self, exported: tuple[Path, Manifest]) -> None:
        folder, manifest = exported
        rows = list(csv.reader(io.StringIO((folder / "fill-in.csv").read_text())))
        assert rows[0] == ["key", "file", "value", "unit"]
        assert [row[:2] for row in rows[1:]] == [[item.key, item.file] for item in manifest.files]
        assert all(row[2:] == ["", ""] for row in rows[1:])

    def test_batch(self, tmp_path: Path) -> None:
        manifest = export_blocks(SPACE, tmp_path, batch=3)
        assert {shape[0] for item in manifest.files for shape in item.inputs} == {3}
        fixed = next(item for item in manifest.files if item.kind == "fixed")
        assert fixed.inputs == ((3, 3, 16, 16), (3, 16, 4, 4))

    @pytest.mark.parametrize("name", ["manifest.json", "fill-in.csv"])
    def test_nothing_is_overwritten(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("mine")
        with pytest.raises(FileError, match=f"already holds {name}"):
            export_blocks(SPACE, tmp_path)
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]

    def test_batch_of_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(TableError, match="at least 1"):
            export_blocks(SPACE, tmp_path, batch=0)

    @pytest.mark.parametrize(
        "text", ["[]", '{"format": "binas/costs"}', '{"format": "binas/blocks", "version": 1}']
    )
    def test_other_files_are_no_manifest(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(TableError, match=r"is damaged.*Take the manifest"):
            read_manifest(tmp_path / "manifest.json")

    def test_file_names_stay_in_the_folder(self, exported: tuple[Path, Manifest], tmp_path: Path) -> None:
        data = json.loads((exported[0] / "manifest.json").read_text())
        data["files"][0]["file"] = "../secret.onnx"
        (tmp_path / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(TableError, match=r"files\.0\.file"):
            read_manifest(tmp_path / "manifest.json")


class TestRoundTrip:
    def test_table_predicts_what_the_device_would_cost(self, exported: tuple[Path, Manifest]) -> None:
        """The fake device adds up, so the table gives every network's weights exactly."""
        cost = imported(exported).table["latency"]
        for architecture in sample_many(SPACE, 10, seed=3):
            parts = [
                cost.values.configs[s][b][SPACE.config_index(s, b, name)]
                for s, names in enumerate(architecture.stages)
                for b, name in enumerate(names)
            ]
            network = StaticNetwork.from_architecture(SPACE, architecture)
            assert cost.fixed + sum(parts) == pytest.approx(weights(network) / 1000)

    def test_a_normal_table(self, exported: tuple[Path, Manifest], tmp_path: Path) -> None:
        found = imported(exported, provenance=Provenance(device="Pixel 9", runtime="TFLite", threads=1))
        found.table.save(tmp_path / "costs.json")
        again = load_costs(tmp_path / "costs.json", SPACE)
        assert again["latency"].values.equals(found.table["latency"].values)
        stated = again["latency"].provenance
        assert (stated.device, stated.runtime, stated.threads, stated.batch, stated.dtype) == (
            "Pixel 9",
            "TFLite",
            1,
            1,
            "float32",
        )
        assert stated.source == "imported from filled.csv"
        assert again["macs"].values.equals(analytic_costs(SPACE)["macs"].values)

    def test_whole_networks_agree_with_the_sum(self, exported: tuple[Path, Manifest]) -> None:
        found = imported(exported)
        assert [item for item, _ in found.networks] == NETWORKS
        assert not any("whole networks" in text for text in found.warnings)

    def test_a_sum_that_is_off_is_told_with_numbers(self, exported: tuple[Path, Manifest]) -> None:
        def slower(rows: list[Row]) -> None:
            for row in rows:
                if row["key"].startswith("network/"):
                    row["value"] = repr(float(row["value"]) * 2)

        (text,) = [text for text in imported(exported, slower).warnings if "whole networks" in text]
        assert "off by 50.0 % on average from the 4 whole networks" in text
        assert "bias -50.0 %, worst -50.0 %" in text

    def test_calibration_gets_the_networks(self, exported: tuple[Path, Manifest]) -> None:
        def doubled(space: SearchSpace, cost: Cost, networks: object) -> Cost:
            assert space is SPACE
            assert len(networks) == 4
            return replace(cost, fixed=2 * cost.fixed)

        plain, better = imported(exported), imported(exported, calibrate=doubled)
        assert better.table["latency"].fixed == 2 * plain.table["latency"].fixed

    def test_networks_may_stay_empty(self, exported: tuple[Path, Manifest]) -> None:
        def only_blocks(rows: list[Row]) -> None:
            for row in rows:
                if row["key"].startswith("network/"):
                    row["value"] = ""

        found = imported(exported, only_blocks, calibrate=lambda *_: pytest.fail("nothing to calibrate with"))
        assert found.networks == []

    def test_maxima(self, exported: tuple[Path, Manifest]) -> None:
        found = imported(exported, name="peak", combine="max")
        assert found.table["peak"].combine == "max"

    def test_units_of_rows_convert(self, exported: tuple[Path, Manifest]) -> None:
        def mixed(rows: list[Row]) -> None:
            rows[0] |= {"value": repr(float(rows[0]["value"]) * 1000), "unit": "us"}
            rows[1]["unit"] = ""

        plain, same = imported(exported), imported(exported, mixed, unit="ms")
        assert same.table["latency"].unit == parse_unit("ms")
        for one, two in zip(
            plain.table["latency"].values.arrays(), same.table["latency"].values.arrays(), strict=True
        ):
            np.testing.assert_allclose(one, two)

    def test_the_first_unit_is_the_tables(self, exported: tuple[Path, Manifest]) -> None:
        def seconds(rows: list[Row]) -> None:
            rows[0] |= {"value": repr(float(rows[0]["value"]) / 1000), "unit": "s"}

        assert imported(exported, seconds).table["latency"].unit == parse_unit("s")


BAD: list[tuple[str, Callable[[list[Row]], object], str]] = [
    ("missing row", lambda rows: rows.pop(2), r"1 of 13 values are missing: s1/1/e4k3\. Nothing was written"),
    ("empty value", lambda rows: rows[2].update(value=""), "1 of 13 values are missing: s1/1/e4k3"),
    (
        "duplicate",
        lambda rows: rows.append(dict(rows[1])),
        r"line 19 \(s1/1/e2k5\): this key has a value already",
    ),
    (
        "negative",
        lambda rows: rows[0].update(value="-1"),
        r"line 2 \(s1/1/e2k3\): -1 is not a cost from zero up",
    ),
    ("nan", lambda rows: rows[0].update(value="nan"), "nan is not a cost"),
    ("infinite", lambda rows: rows[0].update(value="1e999"), "not a cost"),
    ("decimal comma", lambda rows: rows[0].update(value="1,5"), "'1,5' is not a number .decimal point"),
    ("unit in the value", lambda rows: rows[0].update(value="1.5ms"), "the unit has its own column"),
    ("no unit", lambda rows: rows[0].update(unit=""), "it has no unit: fill the column unit, or pass --unit"),
    ("unknown unit", lambda rows: rows[0].update(unit="mss"), "unknown unit 'mss'"),
    ("unit of another kind", lambda rows: rows[3].update(unit="mJ"), "does not convert"),
    (
        "unknown key",
        lambda rows: rows[0].update(key="s9/1/x"),
        r"line 2 \(s9/1/x\): no such key in the manifest",
    ),
    (
        "swapped files",
        lambda rows: rows[0].update(file=rows[1]["file"]),
        "the file of this key is 0001_s1_1_e2k3",
    ),
    (
        "no column",
        lambda rows: [row.pop("unit") for row in rows],
        "lacks the columns unit; .* separated by commas",
    ),
    ("no rows", lambda rows: [row.update(value="") for row in rows], "13 of 13 values are missing"),
]


class TestBadFiles:
    @pytest.mark.parametrize(("change", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
    def test_rows(
        self, exported: tuple[Path, Manifest], change: Callable[[list[Row]], None], message: str
    ) -> None:
        with pytest.raises(BinasError, match=message):
            imported(exported, change)

    def test_everything_at_once(self, exported: tuple[Path, Manifest]) -> None:
        def change(rows: list[Row]) -> None:
            rows[0]["value"], rows[1]["value"] = "-1", ""
            rows[2]["key"] = "what"

        with pytest.raises(TableError) as caught:
            imported(exported, change)
        for part in (
            "-1 is not a cost",
            "(what): no such key",
            "2 of 13 values are missing: s1/1/e2k5; s1/1/e4k3",
        ):
            assert part in str(caught.value)

    @pytest.mark.parametrize("text", ["", "\n\n", "a;b\n", "key;file;value;unit\n"])
    def test_no_table_at_all(self, exported: tuple[Path, Manifest], tmp_path: Path, text: str) -> None:
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises(TableError, match=r"is empty|lacks the columns"):
            import_filled(tmp_path / "x.csv", exported[1], SPACE)

    def test_another_space(self, exported: tuple[Path, Manifest]) -> None:
        folder, manifest = exported
        with pytest.raises(TableError, match="made for the space 'tiny'"):
            import_filled(fill(folder), manifest, load_space("small-28"))

    def test_another_batch(self, exported: tuple[Path, Manifest]) -> None:
        with pytest.raises(TableError, match="exported for batch 1, not 64"):
            imported(exported, provenance=Provenance(batch=64))

    def test_a_file_changed_after_export(self, tmp_path: Path) -> None:
        manifest = export_blocks(SPACE, tmp_path)
        path = fill(tmp_path)
        first = tmp_path / manifest.files[0].file
        first.write_bytes(first.read_bytes() + b"x")
        with pytest.raises(TableError, match=f"{manifest.files[0].file} was changed after it was exported"):
            import_filled(path, manifest, SPACE)

    def test_a_manifest_that_lacks_entries(self, exported: tuple[Path, Manifest]) -> None:
        folder, manifest = exported
        short = manifest.model_copy(update={"files": manifest.files[1:]})
        path = fill(folder, lambda rows: rows.pop(0))
        with pytest.raises(TableError, match="the manifest lacks: s1 block 1 e2k3; s1 block 2 e2k3"):
            import_filled(path, short, SPACE)


class TestDoubts:
    def test_a_row_in_another_unit(self, exported: tuple[Path, Manifest]) -> None:
        warnings = imported(exported, lambda rows: rows[0].update(value="0.0001")).warnings
        assert any(re.search("far from what .*: e2k3 of s1 block 1 .*e-05 times", text) for text in warnings)

    def test_a_larger_config_that_is_much_cheaper(self, exported: tuple[Path, Manifest]) -> None:
        """e4k3 at half of e2k3 is doubted; once, though three blocks share the number."""

        def change(rows: list[Row]) -> None:
            rows[2]["value"] = repr(float(rows[0]["value"]) / 2)

        (text,) = [x for x in imported(exported, change).warnings if "larger" in x]
        assert "in 1 cases a larger config is much cheaper" in text
        assert "e4k3 costs 0.50 of e2k3 in s1 block 1" in text

    @pytest.mark.parametrize(
        ("value", "message"),
        [("0", "costs nothing"), ("1e6", "costs .* times what blocks of its MACs would")],
    )
    def test_the_fixed_part(self, exported: tuple[Path, Manifest], value: str, message: str) -> None:
        def change(rows: list[Row]) -> None:
            next(row for row in rows if row["key"] == "fixed part")["value"] = value

        warnings = imported(exported, change).warnings
        assert any(re.search("the fixed part.*" + message, text) for text in warnings)

    def test_free_blocks(self, exported: tuple[Path, Manifest]) -> None:
        warnings = imported(exported, lambda rows: rows[0].update(value="0")).warnings
        assert any(
            "cost nothing although they compute something (1 blocks): e2k3 of s1 block 1" in x
            for x in warnings
        )

    def test_a_plausible_table_raises_none(self) -> None:
        cost = Cost(
            "x", parse_unit("ms"), 3.0, Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: 1.0 + c)
        )
        assert doubts(SPACE, cost) == []

    def test_spaces_that_cannot_be_counted(self) -> None:
        space = load_space("nas-bench-macro")
        assert doubts(space, Cost("x", parse_unit("ms"), 1.0, Column.full(space, 1.0))) == []

    @pytest.mark.parametrize(("device", "expected"), [("cpu", 1), ("gpu", 0)])
    def test_real_tables(self, tfnas_path: Path, device: str, expected: int) -> None:
        """Of 576 measured blocks only the one known anomaly is doubted (the first block on the Xeon)."""
        space, table = read_tfnas(tfnas_path, device)
        whole = replace(
            space,
            channels=3,
            resolution=224,
            classes=1000,
            stem=("cn_k3_s2_c32_nre", "ds_k3_s1_c16_nre"),
            head=("cn_k1_c1280_nsw",),
        )
        found = doubts(whole, table["latency"])
        assert len(found) == expected
        assert not expected or "k5e6 costs 0.67 of k3e6 in s1 block 1" in found[0]


@pytest.mark.parametrize("count", [0, 1, 2, 10, 40])
def test_some_networks_are_distinct_and_start_with_the_extremes(count: int) -> None:
    found = some_networks(SPACE, count, seed=3)
    assert len(found) == len(set(found)) == count
    assert found[:2] == [SPACE.extreme(False), SPACE.extreme(True)][:count]
    assert found == some_networks(SPACE, count, seed=3)
