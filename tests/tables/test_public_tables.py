"""NAS-Bench-Macro and TF-NAS: what their README says is what the readers give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from binas.base.errors import TableError
from binas.space import Architecture, enumerate_all, load_space, to_block_string
from binas.tables import load_costs
from binas.testing.tables import MacroRecord, macro_architecture, read_nas_bench_macro, read_tfnas

SPACE = load_space("nas-bench-macro")


@pytest.fixture(scope="module")
def macro(nas_bench_macro_path: Path) -> dict[Architecture, MacroRecord]:
    return read_nas_bench_macro(nas_bench_macro_path)


class TestNasBenchMacro:
    def test_strings_collapse_to_the_architectures_of_our_space(
        self, macro: dict[Architecture, MacroRecord], nas_bench_macro_path: Path
    ) -> None:
        raw = json.loads(nas_bench_macro_path.read_text())
        strings = [text for record in macro.values() for text in record.strings]
        assert len(raw) == len(strings) == len(set(strings)) == 6_561
        assert len(macro) == 3_969
        assert set(macro) == set(enumerate_all(SPACE))

    def test_strings_of_one_network_have_one_record(
        self, macro: dict[Architecture, MacroRecord], nas_bench_macro_path: Path
    ) -> None:
        """Moving an identity inside a stage changes nothing: equal runs, parameters and FLOPs."""
        raw = json.loads(nas_bench_macro_path.read_text())
        for record in macro.values():
            for text in record.strings:
                assert tuple(raw[text]["test_acc"]) == record.runs
                assert (raw[text]["params"], raw[text]["flops"]) == (record.params, record.flops)

    def test_different_networks_differ(self, macro: dict[Architecture, MacroRecord]) -> None:
        """So nothing more collapses: hardly any two architectures share their three runs."""
        assert len({record.runs for record in macro.values()}) > 3_950

    @pytest.mark.parametrize("quantity", ["params", "flops"])
    def test_exactly_additive(self, macro: dict[Architecture, MacroRecord], quantity: str) -> None:
        """fixed + one number per (block, config), read off single changes, gives every network exactly."""

        def of(stage: int, names: tuple[str, ...]) -> int:
            stages = [("id",)] * 3
            stages[stage] = names
            return int(getattr(macro[Architecture(tuple(stages))], quantity))

        fixed = of(0, ("id",))
        table: dict[tuple[int, int, str], int] = {}
        for s, stage in enumerate(SPACE.stages):
            for b, configs in enumerate(stage.blocks):
                before = ("id",) + ("e3k3",) * (b - 1) if b else ()
                base = of(s, before) if b else fixed
                table |= {(s, b, c.name): of(s, (*before, c.name)) - base for c in configs}
        for architecture, record in macro.items():
            parts = [
                table[s, b, n] for s, names in enumerate(architecture.stages) for b, n in enumerate(names)
            ]
            assert fixed + sum(parts) == getattr(record, quantity)

    def test_records_hold_together(self, macro: dict[Architecture, MacroRecord]) -> None:
        for record in macro.values():
            assert len(record.runs) == 3
            assert record.accuracy == pytest.approx(np.mean(record.runs), abs=1e-9)
            assert record.std == pytest.approx(np.std(record.runs), abs=1e-4)
            assert 40 < record.accuracy < 100

    def test_the_example_of_the_readme(self, macro: dict[Architecture, MacroRecord]) -> None:
        record = macro[SPACE.parse("id-e6k5_id-e3k3-e6k5_e3k3")]
        assert "02012100" in record.strings
        assert (record.params, record.flops) == (890_666, 47_327_744)


class TestMacroStrings:
    @pytest.mark.parametrize(
        ("text", "compact"),
        [
            ("00000000", "id_id_id"),
            ("10000000", "e3k3_id_id"),
            ("01000000", "id-e3k3_id_id"),
            ("00001000", "id_id-e3k3_id"),
            ("00010000", "id_id-e3k3_id"),
            ("22222222", "e6k5-e6k5_e6k5-e6k5-e6k5_e6k5-e6k5-e6k5"),
        ],
    )
    def test_identities(self, text: str, compact: str) -> None:
        assert str(macro_architecture(text)) == compact

    @pytest.mark.parametrize("text", ["", "0000000", "000000000", "00000003", "0000000\n", "٠" * 8])
    def test_bad_strings(self, text: str) -> None:
        with pytest.raises(TableError, match="eight digits from 0 to 2"):
            macro_architecture(text)

    def test_records_that_differ_inside_a_network(self, tmp_path: Path) -> None:
        record = {"test_acc": [1, 2, 3], "mean_acc": 2, "std": 1, "params": 1, "flops": 1}
        data = {"00010000": record, "00001000": {**record, "params": 2}}
        (tmp_path / "macro.json").write_text(json.dumps(data))
        with pytest.raises(
            TableError, match="00010000 and 00001000 are one network, but their records differ"
        ):
            read_nas_bench_macro(tmp_path / "macro.json")

    @pytest.mark.parametrize("data", [[], {"00000000": {}}, {"00000000": 5}, {"x": {}}])
    def test_other_files(self, tmp_path: Path, data: Any) -> None:
        (tmp_path / "macro.json").write_text(json.dumps(data))
        with pytest.raises(TableError, match=r"NAS-Bench-Macro|damaged"):
            read_nas_bench_macro(tmp_path / "macro.json")


class TestTfnas:
    @pytest.mark.parametrize(
        ("device", "name", "batch", "fixed"),
        [
            ("cpu", "Intel Xeon Gold 6130", 1, 9.356469964981079),
            ("gpu", "NVIDIA Titan RTX", 32, 1.985807514190674),
        ],
    )
    def test_layout(self, tfnas_path: Path, device: str, name: str, batch: int, fixed: float) -> None:
        space, table = read_tfnas(tfnas_path, device)
        assert [len(stage.blocks) for stage in space.stages] == [2, 3, 4, 4, 4, 1]
        assert [stage.depths for stage in space.stages] == [
            (1, 2),
            (2, 3),
            (2, 3, 4),
            (2, 3, 4),
            (2, 3, 4),
            (1,),
        ]
        assert {len(block) for stage in space.stages for block in stage.blocks} == {16}
        assert list(table.costs) == ["latency"]
        latency = table["latency"]
        assert (latency.unit.name, latency.fixed) == ("ms", fixed)
        assert (latency.provenance.device, latency.provenance.batch) == (name, batch)
        assert table.space is space

    @pytest.mark.parametrize("device", ["cpu", "gpu"])
    def test_every_latency_is_where_it_belongs(self, tfnas_path: Path, device: str) -> None:
        space, table = read_tfnas(tfnas_path, device)
        for block in json.loads(tfnas_path.read_text())[device]["blocks"]:
            s, b = block["stage"] - 1, block["block"] - 1
            for text, milliseconds in block["ms"].items():
                name = text.replace("_se0", "").replace("_se1", "se").replace("_", "")
                config = space.stages[s].blocks[b][space.config_index(s, b, name)]
                assert table["latency"].values.configs[s][b][space.config_index(s, b, name)] == milliseconds
                kernel, expansion, se = (config.get(key) for key in ("kernel", "expansion", "se"))
                assert text == f"k{kernel}_e{expansion}_se{int(bool(se))}"

    def test_the_anomaly_of_the_readme(self, tfnas_path: Path) -> None:
        """On the Xeon the first block's k3e6 is slower than its k5e6: costs are not monotone."""
        space, table = read_tfnas(tfnas_path, "cpu")
        first = table["latency"].values.configs[0][0]
        assert first[space.config_index(0, 0, "k3e6")] > first[space.config_index(0, 0, "k5e6")]

    def test_tables_can_be_saved_and_shown(self, tfnas_path: Path, tmp_path: Path) -> None:
        space, table = read_tfnas(tfnas_path, "cpu")
        table.save(tmp_path / "costs.json")
        again = load_costs(tmp_path / "costs.json", space)["latency"]
        assert again.values.equals(table["latency"].values)
        assert again.provenance == table["latency"].provenance
        text = to_block_string(space, space.extreme(heaviest=False))
        assert text.startswith("[['ir_r1_k3_s2_e2_c24_nre'], ['ir_r1_k3_s2_e2_c40_nsw', ")

    def test_unknown_device(self, tfnas_path: Path) -> None:
        with pytest.raises(TableError, match="has no device 'tpu'; it has cpu, gpu"):
            read_tfnas(tfnas_path, "tpu")

    @pytest.mark.parametrize(
        "table",
        [
            {},
            {"blocks": []},
            {"blocks": 5},
            {"blocks": [{"stage": 1, "block": 2}]},
        ],
    )
    def test_damaged(self, tmp_path: Path, table: Any) -> None:
        (tmp_path / "tfnas.json").write_text(json.dumps({"cpu": table}))
        with pytest.raises(TableError, match="the table of cpu is damaged"):
            read_tfnas(tmp_path / "tfnas.json", "cpu")

    def test_not_even_an_object(self, tmp_path: Path) -> None:
        (tmp_path / "tfnas.json").write_text("[]")
        with pytest.raises(TableError, match="has no device 'cpu'; it has nothing"):
            read_tfnas(tmp_path / "tfnas.json", "cpu")
