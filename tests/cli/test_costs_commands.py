"""``binas costs``: look at tables, compare, merge, export blocks and import what comes back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from calling import answer, refusal, said

from binas.costs.filled import correct_sum
from binas.space import load_space, save_space
from binas.tables import load_costs

TINY = """
format: binas/space
version: 1
name: tiny
channels: 1
resolution: 8
classes: 2
stem: [cn_k3_s2_c8_nre]
stages:
  - {name: s1, depths: [1, 2], channels: 8, activation: re, configs: {expansion: [1, 2], kernel: [3]}}
"""


def changed(example: Path, path: Path, factor: float = 1.0, **conditions: object) -> Path:
    """The example's table with another latency, measured elsewhere."""
    data = json.loads((example / "costs.json").read_text())
    latency = data["costs"]["latency"]
    latency["provenance"] |= conditions
    latency["fixed"] *= factor
    path.write_text(json.dumps(data))
    return path


class TestShow:
    def test_each_cost(self, example: Path) -> None:
        found = answer("costs", "show", example / "costs.json")
        assert found["space"] == "imagenet-mbconv"
        assert list(found["costs"])[:3] == ["latency", "macs", "params"]
        latency = found["costs"]["latency"]
        assert latency["fixed"] < latency["least"] < 45 < latency["most"]
        assert latency["provenance"]["batch"] == 1
        text = said("costs", "show", example / "costs.json")
        assert "Intel Xeon (as in the paper), 1 thread, batch 1, float32" in text
        assert "computed from the space, exact" in text

    def test_every_number(self, example: Path) -> None:
        text = said("costs", "show", example / "costs.json", "--cost", "latency")
        assert text.count(" block ") == load_space("imagenet-mbconv").alpha_size
        assert " depth " not in text
        assert list(answer("costs", "show", example / "costs.json", "--cost", "params")["costs"]) == [
            "params"
        ]

    def test_a_cost_that_is_not_there(self, example: Path) -> None:
        assert "no cost 'energy'; the table has latency, macs, params" in refusal(
            "costs", "show", example / "costs.json", "--cost", "energy"
        )

    def test_the_space_of_a_lone_table(self, example: Path, tmp_path: Path) -> None:
        alone = changed(example, tmp_path / "costs.json")
        assert answer("costs", "show", alone)["space"] == "imagenet-mbconv"
        data = json.loads(alone.read_text())
        del data["space"]
        alone.write_text(json.dumps(data))
        assert "--space" in refusal("costs", "show", alone)
        assert answer("costs", "show", alone, "--space", "imagenet-mbconv")["space"] == "imagenet-mbconv"


class TestDiff:
    def test_numbers_and_conditions(self, example: Path, tmp_path: Path) -> None:
        other = changed(example, tmp_path / "other.json", 2.0, batch=64)
        found = answer("costs", "diff", example / "costs.json", other)
        latency = next(item for item in found["costs"] if item["cost"] == "latency")
        assert latency["conditions"] == {"batch": [1, 64]}
        assert [change["entry"] for change in latency["changes"]] == ["fixed"]
        text = said("costs", "diff", example / "costs.json", other)
        assert "latency: 1 of 241 numbers differ; the second is 1 times the first (median)" in text
        assert "batch: 1 and 64" in text
        assert "macs: the same 241 numbers" in text

    def test_costs_of_only_one(self, example: Path, tmp_path: Path) -> None:
        data = json.loads((example / "costs.json").read_text())
        del data["costs"]["macs"]
        (tmp_path / "less.json").write_text(json.dumps(data))
        text = said("costs", "diff", example / "costs.json", tmp_path / "less.json")
        assert f"only in {example / 'costs.json'}: macs" in text


class TestMerge:
    def test_other_conditions_are_not_mixed(self, example: Path, tmp_path: Path) -> None:
        gpu, out = (
            changed(example, tmp_path / "gpu.json", 0.1, batch=64, device="Titan"),
            tmp_path / "out.json",
        )
        message = refusal("costs", "merge", example / "costs.json", gpu, "--out", out)
        assert "they differ in device, batch" in message
        assert not out.exists()

    def test_renamed(self, example: Path, tmp_path: Path) -> None:
        gpu, out = (
            changed(example, tmp_path / "gpu.json", 0.1, batch=64, device="Titan"),
            tmp_path / "out.csv",
        )
        rename = f"{gpu}:latency=latency_gpu"
        found = answer("costs", "merge", example / "costs.json", gpu, "--out", out, "--rename", rename)
        assert {"latency", "macs", "params", "latency_gpu"} <= set(found["costs"])
        made = load_costs(out, load_space("imagenet-mbconv"))
        assert made["latency_gpu"].provenance.batch == 64
        assert made["latency"].provenance.batch == 1

    def test_averaged(self, example: Path, tmp_path: Path) -> None:
        again, out = changed(example, tmp_path / "again.json", 3.0, threads=4), tmp_path / "out.json"
        options = ("--average", "--ignore", "threads")
        said("costs", "merge", example / "costs.json", again, "--out", out, *options)
        space = load_space("imagenet-mbconv")
        assert load_costs(out, space)["latency"].fixed == pytest.approx(
            2 * load_costs(example / "costs.json", space)["latency"].fixed
        )

    @pytest.mark.parametrize("rename", ["latency=x", "nowhere.json:latency=x", "{file}:latency", "{file}:=x"])
    def test_bad_renames(self, example: Path, tmp_path: Path, rename: str) -> None:
        file = example / "costs.json"
        message = refusal(
            "costs", "merge", file, "--out", tmp_path / "x.json", "--rename", rename.format(file=file)
        )
        assert "write FILE:OLD=NEW" in message

    def test_existing_files_are_kept(self, example: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        out.write_text("mine")
        assert "exists" in refusal("costs", "merge", example / "costs.json", "--out", out)
        assert out.read_text() == "mine"
        said("costs", "merge", example / "costs.json", "--out", out, "--overwrite")
        assert "ends in .json or .csv" in refusal(
            "costs", "merge", example / "costs.json", "--out", tmp_path / "x"
        )


class TestPhone:
    """The worked example of docs/howto/device.md with a device that counts bytes."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "tiny.yaml").write_text(TINY)
        folder = tmp_path / "phone"
        found = answer("costs", "export-blocks", tmp_path / "tiny.yaml", "--out", folder, "--networks", 3)
        assert found == {"folder": str(folder), "block": 2, "fixed": 1, "network": 3}
        return folder

    def fill(self, folder: Path, leave: int = 0) -> Path:
        rows = list(csv.DictReader((folder / "fill-in.csv").open()))
        for row in rows[leave:]:
            row["value"] = (folder / row["file"]).stat().st_size
        with (folder / "fill-in.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return folder / "fill-in.csv"

    def test_there_and_back(self, folder: Path, tmp_path: Path) -> None:
        filled, out = self.fill(folder), tmp_path / "costs.json"
        options = ("--unit", "us", "--device", "Pixel 9", "--runtime", "TFLite", "--threads", 1, "--batch", 1)
        text = said("costs", "import", filled, *options, "--out", out)
        assert "Pixel 9, TFLite, 1 thread, batch 1, float32" in text
        assert "warning: what the blocks make together is off by" in text
        cost = load_costs(out, load_space(tmp_path / "tiny.yaml"))["latency"]
        assert cost.values.configs[0][1][0] == (folder / "0001_s1_1_e1k3.onnx").stat().st_size
        assert cost.provenance.source == "imported from fill-in.csv"

    def test_unfilled_rows_are_named(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "costs.json"
        message = refusal(
            "costs", "import", self.fill(folder, 1), "--unit", "us", "--device", "x", "--out", out
        )
        assert "1 of 3 values are missing: s1/1/e1k3" in message
        assert not out.exists()

    def test_the_device_must_be_said(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "costs.json"
        assert "--device" in refusal("costs", "import", self.fill(folder), "--unit", "us", "--out", out)
        assert not out.exists()

    def test_exports_are_not_overwritten(self, folder: Path, tmp_path: Path) -> None:
        message = refusal("costs", "export-blocks", tmp_path / "tiny.yaml", "--out", folder)
        assert "already holds manifest.json" in message

    def test_peak_memory(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "costs.json"
        options = ("--unit", "B", "--device", "x", "--name", "peak", "--combine", "max")
        assert "peak" in answer("costs", "import", self.fill(folder), *options, "--out", out)["costs"]
        assert load_costs(out, load_space(tmp_path / "tiny.yaml"))["peak"].combine == "max"


def test_too_few_networks_correct_nothing(example: Path) -> None:
    space = load_space("imagenet-mbconv")
    cost = load_costs(example / "costs.json", space)["latency"]
    assert correct_sum(space, cost, [(space.extreme(), 1.0)] * 9) is cost


class TestOtherTools:
    def test_tf_nas(self, tfnas_path: Path, tmp_path: Path) -> None:
        from dataclasses import replace

        from binas.testing.tables import read_tfnas

        space, wanted = read_tfnas(tfnas_path, "cpu")
        stem, head = ("cn_k3_s2_c32_nre", "ds_k3_s1_c16_nre"), ("cn_k1_c1280_nsw",)
        save_space(
            replace(space, channels=3, resolution=224, classes=1000, stem=stem, head=head),
            tmp_path / "space.yaml",
        )
        options = ("--from", "tf-nas", "--table", "cpu", "--space", tmp_path / "space.yaml")
        found = answer("costs", "import", tfnas_path, *options, "--out", tmp_path / "costs.json")
        assert found["costs"][0] == "latency"
        assert len(found["warnings"]) == 1  # the known anomaly
        made = load_costs(tmp_path / "costs.json", load_space(tmp_path / "space.yaml"))["latency"]
        assert made.values.equals(wanted["latency"].values)
        assert made.provenance.device == "Intel Xeon Gold 6130"

    def test_once_for_all_says_what_is_missing(self, tmp_path: Path) -> None:
        (tmp_path / "lut.yaml").write_text("Conv-input:224x224x3-output:112x112x24: {mean: 1.0}\n")
        options = ("--from", "once-for-all", "--device", "Note 10", "--out", tmp_path / "x.json")
        assert "--space ofa-mbv3" in refusal("costs", "import", tmp_path / "lut.yaml", *options)
        message = refusal("costs", "import", tmp_path / "lut.yaml", *options, "--space", "ofa-mbv3")
        assert "lacks 96 of the 96 entries" in message
