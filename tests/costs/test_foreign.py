"""Tables of once-for-all and TF-NAS as costs of a space: every number where it belongs, gaps named."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from binas.base.errors import BinasError, FileError, SpaceError, TableError
from binas.costs.foreign import read_once_for_all, read_tf_nas
from binas.space import SearchSpace, load_space, space_from_data
from binas.tables import Cost, Provenance, parse_unit
from binas.testing.tables import read_tfnas

OFA = load_space("ofa-mbv3")
# Channels before each stage, in OFA's MobileNetV3 of width 1.0, with size, squeeze-excite and h-swish of the stage.
STAGES = [
    (16, 112, 24, 0, 0),
    (24, 56, 40, 1, 0),
    (40, 28, 80, 0, 1),
    (80, 14, 112, 1, 1),
    (112, 14, 160, 1, 1),
]
STRIDES = [2, 2, 2, 1, 2]


def latency(*numbers: int) -> float:
    """Some number that depends on all its arguments."""
    return round(sum((i + 1) * math.sqrt(n) for i, n in enumerate(numbers)) / 100, 6)


def ofa_table() -> dict[str, Any]:
    """A table as once-for-all's scripts would ask it: the queries of its MBv3LatencyTable, written by hand."""
    table = {
        "Conv-input:224x224x3-output:112x112x16": {"mean": 1.5, "count": 50},
        "expanded_conv-input:112x112x16-output:112x112x16-expand:16-kernel:3-stride:1-idskip:1-se:0-hs:0": {
            "mean": 0.7
        },
        "Conv_1-input:7x7x160-output:7x7x960": {"mean": 0.9},
        "AvgPool2D-input:7x7x960-output:1x1x960": {"mean": 0.1},
        "Conv_2-input:1x1x960-output:1x1x1280": {"mean": 0.3},
        "Logits-input:1x1x1280-output:1000": 0.2,
    }
    for (inputs, size, outputs, se, hs), stride in zip(STAGES, STRIDES, strict=True):
        out = -(-size // stride)
        for cin, fin, s, skip in ((inputs, size, stride, 0), (outputs, out, 1, 1)):
            for expansion in (3, 4, 6):
                for kernel in (3, 5, 7):
                    key = (
                        f"expanded_conv-input:{fin}x{fin}x{cin}-output:{out}x{out}x{outputs}-expand:{expansion * cin}"
                        f"-kernel:{kernel}-stride:{s}-idskip:{skip}-se:{se}-hs:{hs}"
                    )
                    table[key] = {"mean": latency(fin, cin, outputs, expansion, kernel, s), "count": 10}
    return table


def nsganet_table() -> dict[str, Any]:
    """The same numbers under the keys that nsganetv2's look_up_latency asks for."""
    names = {
        "Conv": "first_conv",
        "Conv_1": "final_expand_layer",
        "Conv_2": "feature_mix_layer",
        "expanded_conv": "MBConv",
    }
    table = {}
    for key, value in ofa_table().items():
        name, _, rest = key.partition("-")
        if name in names:
            table[f"{names[name]}-{_with_ratio(rest.partition('-hs:')[0])}"] = value
    return {**table, "classifier-input:1280-output:1000": {"mean": 0.2, "var": 1e-6}}


def _with_ratio(rest: str) -> str:
    """expand:96 of input:..x16 as expand:6."""
    found = re.search(r"input:\d+x\d+x(\d+)-.*expand:(\d+)", rest)
    return (
        rest
        if found is None
        else rest.replace(f"expand:{found[2]}", f"expand:{int(found[2]) // int(found[1])}")
    )


def written(tmp_path: Path, table: object, name: str = "table.yaml") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(table))  # JSON is YAML
    return path


class TestOnceForAll:
    def test_every_entry_of_the_built_in_space(self, tmp_path: Path) -> None:
        cost = read_once_for_all(written(tmp_path, ofa_table()), OFA)
        assert cost.unit == parse_unit("ms")
        assert cost.fixed == pytest.approx(1.5 + 0.7 + 0.9 + 0.1 + 0.3 + 0.2)
        for s, stage in enumerate(OFA.stages):
            inputs, size, outputs, _, _ = STAGES[s]
            for b, block in enumerate(stage.blocks):
                for c, config in enumerate(block):
                    expansion, kernel = config.get("expansion"), config.get("kernel")
                    out = -(-size // STRIDES[s])
                    shape = (size, inputs, outputs) if b == 0 else (out, outputs, outputs)
                    wanted = latency(*shape, expansion, kernel, STRIDES[s] if b == 0 else 1)
                    assert cost.values.configs[s][b][c] == wanted

    def test_as_yaml_people_write(self, tmp_path: Path) -> None:
        lines = [
            f"{key}:\n  mean: {value['mean'] if isinstance(value, dict) else value}\n  count: 3"
            for key, value in ofa_table().items()
        ]
        (tmp_path / "lut.yaml").write_text("\n".join(lines) + "\n")
        cost = read_once_for_all(tmp_path / "lut.yaml", OFA, "phone", Provenance(device="Note 10", batch=1))
        assert (cost.name, cost.provenance.device, cost.provenance.batch) == ("phone", "Note 10", 1)

    def test_the_older_keys_of_proxyless_tables(self, tmp_path: Path) -> None:
        """They name the ratio and neither squeeze-excite nor activation; pooling is part of the classifier."""
        space = proxyless_space()
        table = {
            "Conv-input:32x32x3-output:16x16x8": 1.0,
            "Conv_1-input:8x8x16-output:8x8x64": 2.0,
            "Logits-input:8x8x64-output:10": 4.0,
        }
        for size, inputs, stride, skip in ((16, 8, 2, 0), (8, 16, 1, 1)):
            for ratio in (3, 6):
                for kernel in (3, 5):
                    key = f"expanded_conv-input:{size}x{size}x{inputs}-output:8x8x16-expand:{ratio}-kernel:{kernel}"
                    table[f"{key}-stride:{stride}-idskip:{skip}"] = latency(size, ratio, kernel)
        cost = read_once_for_all(written(tmp_path, table), space)
        assert cost.fixed == 7.0
        assert cost.values.configs[0][0][0] == latency(16, 3, 3)
        assert cost.values.configs[0][1][3] == latency(8, 6, 5)

    @pytest.mark.parametrize(
        ("change", "missing"), [({}, 11), ({"se": True}, 12), ({"activation": "hs"}, 12)]
    )
    def test_older_keys_never_stand_for_other_blocks(
        self, tmp_path: Path, change: dict[str, Any], missing: int
    ) -> None:
        key = "expanded_conv-input:16x16x8-output:8x8x16-expand:3-kernel:3-stride:2-idskip:0"
        with pytest.raises(TableError, match=f"lacks {missing} of the 12 entries"):
            read_once_for_all(written(tmp_path, {key: 1.0}), proxyless_space(**change))

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        table = ofa_table()
        gone = [key for key in table if "input:28x28x40-output:14x14x80" in key or key.startswith("Conv_2")]
        for key in gone:
            del table[key]
        with pytest.raises(TableError) as caught:
            read_once_for_all(written(tmp_path, table), OFA)
        text = str(caught.value)
        assert "lacks 10 of the 96 entries that the space 'ofa-mbv3' needs" in text
        assert sum(key in text for key in gone) == 6
        assert "and 4 more" in text
        assert "first convolutions are input:224x224x3-output:112x112x16" in text

    def test_the_table_of_nsganetv2(self, tmp_path: Path) -> None:
        """Its i7 table has other names for the same layers, pooling is in final_expand_layer, ratios for widths."""
        theirs = read_once_for_all(written(tmp_path, nsganet_table()), OFA)
        ours = read_once_for_all(written(tmp_path, ofa_table()), OFA)
        np.testing.assert_array_equal(theirs.values.flat(), ours.values.flat())
        assert theirs.fixed == pytest.approx(ours.fixed - 0.1)  # AvgPool2D

    def test_what_the_table_of_nsganetv2_lacks(self, tmp_path: Path) -> None:
        with pytest.raises(
            TableError, match=r"lacks .* first convolutions are input:224x224x3-output:112x112x16; give"
        ):
            read_once_for_all(written(tmp_path, nsganet_table()), replace(OFA, resolution=192))

    def test_a_table_of_other_keys_is_told_so(self, tmp_path: Path) -> None:
        with pytest.raises(TableError, match=r"its keys begin with conv3x3\. This reader knows"):
            read_once_for_all(written(tmp_path, {"conv3x3-32": 1.0}), OFA)

    def test_a_table_of_another_resolution(self, tmp_path: Path) -> None:
        with pytest.raises(TableError, match=r"lacks .* give a space of that resolution and width"):
            read_once_for_all(written(tmp_path, ofa_table()), replace(OFA, resolution=192))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is not a look-up table"),
            ("[1, 2]", "is not a look-up table"),
            ("Conv-input:1x1x1-output:1x1x1: fast", "'fast', not a cost from zero to 1e\\+100"),
            ("Conv-input:1x1x1-output:1x1x1: 1.0e+308", "'1e\\+308', not a cost"),
            ("Conv-input:1x1x1-output:1x1x1: {mean: .nan}", "'nan', not a cost"),
            ("Conv-input:1x1x1-output:1x1x1: {mean: -1}", "'-1', not a cost"),
            ("Conv-input:1x1x1-output:1x1x1: {mean: true}", "'True', not a cost"),
            ("Conv-input:1x1x1-output:1x1x1: {count: 3}", "has no mean"),
            ("a: &x 1\nb: *x", "aliases"),
            ("a: !!python/object/apply:os.system ['true']", "tags"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "x.yaml").write_text(text)
        with pytest.raises(BinasError, match=message):
            read_once_for_all(tmp_path / "x.yaml", OFA)

    def test_too_large(self, tmp_path: Path) -> None:
        (tmp_path / "x.yaml").write_text("a: 1\n" + "#" * (5 * 2**20))
        with pytest.raises(FileError, match="bytes"):
            read_once_for_all(tmp_path / "x.yaml", OFA)

    def test_activations_it_does_not_know(self, tmp_path: Path) -> None:
        with pytest.raises(SpaceError, match="activation 'sw'"):
            read_once_for_all(written(tmp_path, ofa_table()), proxyless_space(activation="sw"))


def proxyless_space(**more: Any) -> SearchSpace:
    stage = {"name": "s1", "depths": [1, 2], "channels": 16, "stride": 2, "activation": "r6", **more}
    return space_from_data(
        {
            "format": "binas/space",
            "version": 1,
            "name": "proxyless",
            "channels": 3,
            "resolution": 32,
            "classes": 10,
            "stem": ["cn_k3_s2_c8_nr6"],
            "head": ["cn_k1_c64_nr6"],
            "stages": [{**stage, "configs": {"expansion": [3, 6], "kernel": [3, 5]}}],
        }
    )


def whole(space: SearchSpace) -> SearchSpace:
    """The TF-NAS space with the stem and head of TF-NAS."""
    return replace(
        space,
        channels=3,
        resolution=224,
        classes=1000,
        stem=("cn_k3_s2_c32_nre", "ds_k3_s1_c16_se0.25_nre"),
        head=("cn_k1_c1280_nsw",),
    )


def by_key(table: dict[str, Any]) -> dict[str, Any]:
    """The by-block layout in TF-NAS's own keys: widths from 4 times the inputs up have twice the squeeze."""
    keyed: dict[str, Any] = {"base": table["stem_and_head_ms"]}
    for item in table["blocks"]:
        for text, value in item["ms"].items():
            kernel, expansion, se = (part.lstrip("kes") for part in text.split("_"))
            width = item["cin"] * int(expansion)
            squeeze = 0 if se == "0" else item["cin"] * (1 if int(expansion) <= 4 else 2)
            key = f"MBI_{item['in_hw']}_{item['cin']}_{squeeze}_{item['cout']}_k{kernel}_s{item['stride']}_{item['act']}"
            keyed.setdefault(key, {})[str(width)] = value
    return keyed


class TestTfNas:
    @pytest.mark.parametrize("layout", ["blocks", "keys"])
    @pytest.mark.parametrize("device", ["cpu", "gpu"])
    def test_real_tables(self, tfnas_path: Path, tmp_path: Path, device: str, layout: str) -> None:
        """Both layouts give every published number; the reference reader has another way to find it."""
        space, wanted = read_tfnas(tfnas_path, device)
        path = tfnas_path
        if layout == "keys":
            path = written(tmp_path, by_key(json.loads(tfnas_path.read_text())[device]), "keys.json")
        cost = read_tf_nas(path, whole(space), device)
        assert_same(cost, wanted["latency"])
        if layout == "blocks":
            assert cost.provenance.device == wanted["latency"].provenance.device
            assert cost.provenance.batch == wanted["latency"].provenance.batch

    def test_which_device(self, tfnas_path: Path) -> None:
        space, _ = read_tfnas(tfnas_path, "cpu")
        with pytest.raises(TableError, match="holds the devices cpu, gpu; say which one with --table cpu"):
            read_tf_nas(tfnas_path, whole(space))

    def test_another_batch(self, tfnas_path: Path) -> None:
        space, _ = read_tfnas(tfnas_path, "gpu")
        with pytest.raises(TableError, match="the table is of batch 32, not 1"):
            read_tf_nas(tfnas_path, whole(space), "gpu", provenance=Provenance(batch=1))

    def test_another_space(self, tfnas_path: Path) -> None:
        with pytest.raises(TableError, match=r"lacks .* The table has blocks of 112x112x16 to 24 relu"):
            read_tf_nas(tfnas_path, OFA, "cpu")

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ([], "not a TF-NAS table"),
            ({"base": "x"}, "base is 'x', not a cost"),
            ({"base": 1, "SKIP_1": {}}, "the key 'SKIP_1'"),
            ({"base": 1, "MBI_112_16_0_24_k3_s2_relu": 3}, "is not one such as"),
            ({"base": 1, "MBI_112_16_0_24_k3_s2_relu": {"wide": 3}}, "has the width 'wide'"),
            ({"base": 1, "MBI_112_16_0_24_k3_s2_relu": {"32": -3}}, "width 32 is '-3', not a cost"),
            ({"cpu": {}}, "cpu is damaged"),
            ({"cpu": 5}, "cpu is damaged"),
            ({"cpu": {"unit": "s", "stem_and_head_ms": 1, "blocks": []}}, "is in 's', not in ms"),
            (
                {"cpu": {"unit": "ms", "stem_and_head_ms": 1, "blocks": [{"ms": {"k3": 1}}]}},
                "the config 'k3'",
            ),
            ({"cpu": {"unit": "ms", "stem_and_head_ms": 1, "blocks": [{"ms": {"k3_e2_se0": 1}}]}}, "damaged"),
        ],
    )
    def test_bad_tables(self, tmp_path: Path, table: object, message: str) -> None:
        with pytest.raises(TableError, match=message):
            read_tf_nas(written(tmp_path, table, "x.json"), OFA, "cpu")

    def test_blocks_that_contradict_each_other(self, tmp_path: Path) -> None:
        item = {"in_hw": 8, "cin": 8, "cout": 8, "stride": 1, "act": "relu", "ms": {"k3_e2_se0": 1.0}}
        table = {"unit": "ms", "stem_and_head_ms": 1, "blocks": [item, {**item, "ms": {"k3_e2_se0": 2.0}}]}
        with pytest.raises(TableError, match="block 2 has another cost for MBI_8_8_0_8_k3_s1_relu width 16"):
            read_tf_nas(written(tmp_path, {"cpu": table}, "x.json"), OFA, "cpu")


def assert_same(one: Cost, two: Cost) -> None:
    assert one.fixed == two.fixed
    for a, b in zip(one.values.arrays(), two.values.arrays(), strict=True):
        np.testing.assert_array_equal(a, b)
