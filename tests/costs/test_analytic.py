from __future__ import annotations

from dataclasses import replace

import pytest

from binas.base.errors import ArchitectureError, SpaceError, UnitError
from binas.costs import analytic_costs, architecture_work, peak_activation
from binas.costs.analytic import (
    Work,
    block_trace,
    block_work,
    config_work,
    shapes,
    trace_peak,
    trace_weight_bytes,
    trace_work,
)
from binas.space import (
    Architecture,
    Config,
    SearchSpace,
    Stage,
    from_block_string,
    load_space,
    parse_block,
    sample_many,
)
from binas.space.codes import round_channels
from binas.space.families import ConvShape, Shape, Trace
from binas.space.space import Options

PAPER = load_space("imagenet-mbconv")

# HardCoRe-NAS networks of the same space (timm) and the millions of parameters that timm lists for them.
HARDCORE_NAS = {
    "a": (
        "[['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k5_s1_e3_c24_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c40_nre', 'ir_r1_k5_s1_e6_c40_nre_se0.25'], "
        "['ir_r1_k5_s2_e6_c80_se0.25', 'ir_r1_k5_s1_e6_c80_se0.25'], "
        "['ir_r1_k5_s1_e6_c112_se0.25', 'ir_r1_k5_s1_e6_c112_se0.25'], "
        "['ir_r1_k5_s2_e6_c192_se0.25', 'ir_r1_k5_s1_e6_c192_se0.25'], ['cn_r1_k1_s1_c960']]",
        5.26,
    ),
    "b": (
        "[['ds_r1_k3_s1_e1_c16_nre'], "
        "['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k5_s1_e3_c24_nre_se0.25', 'ir_r1_k3_s1_e3_c24_nre'], "
        "['ir_r1_k5_s2_e3_c40_nre', 'ir_r1_k5_s1_e3_c40_nre', 'ir_r1_k5_s1_e3_c40_nre'], "
        "['ir_r1_k5_s2_e3_c80', 'ir_r1_k5_s1_e3_c80', 'ir_r1_k3_s1_e3_c80', 'ir_r1_k3_s1_e3_c80'], "
        "['ir_r1_k5_s1_e3_c112', 'ir_r1_k3_s1_e3_c112', 'ir_r1_k3_s1_e3_c112', 'ir_r1_k3_s1_e3_c112'], "
        "['ir_r1_k5_s2_e6_c192_se0.25', 'ir_r1_k5_s1_e6_c192_se0.25', 'ir_r1_k3_s1_e3_c192_se0.25'], "
        "['cn_r1_k1_s1_c960']]",
        5.18,
    ),
    "f": (
        "[['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre_se0.25', 'ir_r1_k5_s1_e3_c24_nre_se0.25'], "
        "['ir_r1_k5_s2_e6_c40_nre_se0.25', 'ir_r1_k5_s1_e6_c40_nre_se0.25'], "
        "['ir_r1_k5_s2_e6_c80_se0.25', 'ir_r1_k5_s1_e6_c80_se0.25', 'ir_r1_k3_s1_e3_c80_se0.25', "
        "'ir_r1_k3_s1_e3_c80_se0.25'], "
        "['ir_r1_k3_s1_e6_c112_se0.25', 'ir_r1_k5_s1_e6_c112_se0.25', 'ir_r1_k5_s1_e6_c112_se0.25', "
        "'ir_r1_k3_s1_e3_c112_se0.25'], "
        "['ir_r1_k5_s2_e6_c192_se0.25', 'ir_r1_k5_s1_e6_c192_se0.25', 'ir_r1_k3_s1_e6_c192_se0.25', "
        "'ir_r1_k3_s1_e6_c192_se0.25'], ['cn_r1_k1_s1_c960']]",
        8.20,
    ),
}


class TestPublishedNetworks:
    @pytest.mark.parametrize("name", HARDCORE_NAS)
    def test_parameters(self, name: str) -> None:
        text, millions = HARDCORE_NAS[name]
        assert round(architecture_work(PAPER, from_block_string(PAPER, text)).params / 1e6, 2) == millions

    def test_hardcorenas_a_exactly(self) -> None:
        architecture = from_block_string(PAPER, HARDCORE_NAS["a"][0])
        assert architecture_work(PAPER, architecture) == Work(macs=224_227_936, params=5_260_232)


class TestByHand:
    def test_one_block(self) -> None:
        """8 -> 16 -> 8 channels on a 4 x 4 image with stride 2 and squeeze-excite.

        expand   1x1:      4*4 * 8*16   = 2048 MACs; 128 weights +  32 of BatchNorm
        depthwise 3x3:     2*2 * 9*16   =  576 MACs; 144 weights +  32
        squeeze 16*0.25=4, rounded to 8: 128 MACs;   128 weights +   8 biases
        excite:                          128 MACs;   128 weights +  16 biases
        project  1x1:      2*2 * 16*8   =  512 MACs; 128 weights +  16
        """
        code = parse_block("ir_r1_k3_s2_e2_c8_se0.25")
        assert block_work(code, inputs=8, size=4) == Work(
            2048 + 576 + 128 + 128 + 512, 160 + 176 + 136 + 144 + 144
        )

    def test_odd_sizes_round_up(self) -> None:
        assert block_work(parse_block("ir_r1_k3_s2_e2_c8"), inputs=8, size=5) == Work(
            25 * 128 + 9 * 144 + 9 * 128, 160 + 176 + 144
        )

    def test_depthwise_separable_has_no_expansion(self) -> None:
        assert block_work(parse_block("ds_r1_k3_s1_e1_c4"), inputs=8, size=2) == Work(
            4 * 72 + 4 * 32, 72 + 16 + 32 + 8
        )

    def test_convolution(self) -> None:
        assert block_work(parse_block("cn_r1_k3_s2_c16"), inputs=3, size=32) == Work(16**2 * 432, 432 + 32)

    def test_a_linear_layer_is_a_convolution_of_one_pixel_with_a_bias(self) -> None:
        trace = Trace(Shape(10, 1))
        trace.run([ConvShape(10, 5, norm=False)])
        assert trace_work(trace) == Work(50, 55)

    def test_edge_residual(self) -> None:
        """3x3 from 8 to 32 channels on 4 x 4, then 1x1 back."""
        assert block_work(parse_block("er_r1_k3_s1_e4_c8"), 8, 4) == Work(
            16 * (9 * 8 * 32 + 32 * 8), 9 * 8 * 32 + 64 + 32 * 8 + 16
        )

    def test_bottleneck(self) -> None:
        """8 -> 8 -> 8 -> 16 channels at half size, and a 1x1 shortcut because the shape changes."""
        macs = 16 * 64 + 4 * 9 * 64 + 4 * 128 + 4 * 128
        params = (64 + 16) + (9 * 64 + 16) + (128 + 32) + (128 + 32)
        assert block_work(parse_block("bt_r1_k3_s2_e0.5_c16_nre"), 8, 4) == Work(macs, params)

    def test_weight_bytes_are_those_of_folded_layers(self) -> None:
        """8 -> 16 -> 8: 128 + 144 + 128 weights, 16 + 16 + 8 biases; int8 keeps biases of four bytes."""
        trace = block_trace(parse_block("ir_r1_k3_s1_e2_c8"), 8, 4)
        sizes = {"float32": 4 * 440, "float16": 2 * 440, "int8": 400 + 4 * 40}
        assert {dtype: trace_weight_bytes(trace, dtype) for dtype in sizes} == sizes

    @pytest.mark.parametrize(
        ("code", "elements"),
        [
            ("cn_k3_s2_c16", 128 + 64),
            ("ir_k3_s2_e2_c8", 128 + 256),  # expanding; the input is not needed afterwards
            ("ir_k3_s1_e2_c8", 128 + 256 + 256),  # depth-wise, while the input waits for the sum
            ("ir_k3_s1_e2_c8_noskip", 256 + 256),
            ("ir_k3_s1_e1_c8_se0.25_noskip", 128 + 128),  # the product needs no memory of its own
            ("er_k3_s1_e2_c8", 128 + 256 + 128),
            ("bt_k3_s1_e1_c8", 128 + 128 + 128),
            ("bt_k3_s1_e1_c16", 128 + 256 + 256),
        ],
    )
    def test_peaks(self, code: str, elements: int) -> None:
        """8 channels of 4 x 4 come in."""
        assert trace_peak(block_trace(parse_block(code), 8, 4)) == elements

    def test_a_tensor_that_is_read_again_is_not_written_over(self) -> None:
        trace = Trace(Shape(2, 1))
        doubled = trace.add([0, 0], Shape(2, 1), in_place=True)
        trace.add([doubled, 0], Shape(2, 1))
        assert trace_peak(trace) == 6
        other = Trace(Shape(2, 1))
        other.add([0, 0], Shape(2, 1), in_place=True)
        assert trace_peak(other) == 2

    @pytest.mark.parametrize(
        ("channels", "rounded"),
        [(1, 8), (8, 8), (11, 16), (12, 16), (18, 24), (20, 24), (26, 24), (27, 32), (240.0, 240)],
    )
    def test_rounding_of_channels(self, channels: float, rounded: int) -> None:
        assert round_channels(channels) == rounded
        assert rounded % 8 == 0
        assert rounded >= 0.9 * channels

    def test_a_whole_network(self) -> None:
        """stem 3 -> 8 at 4 x 4, one block 8 -> 8, head 8 -> 16, classifier 16 -> 10, on an 8 x 8 image."""
        space = tiny()
        stem, head, classifier = Work(16 * 216, 216 + 16), Work(16 * 128, 128 + 32), Work(160, 170)
        block = Work(16 * 64 + 16 * 72 + 16 * 64, 80 + 88 + 80)
        assert shapes(space).fixed == stem + head + classifier
        assert architecture_work(space, space.parse("k3")) == stem + block + head + classifier

    def test_features_are_a_layer_with_bias(self) -> None:
        with_features = replace(tiny(), features=32)
        more = Work(16 * 32 + 32 * 10 - 16 * 10, 17 * 32 + 33 * 10 - 17 * 10)
        assert shapes(with_features).fixed == shapes(tiny()).fixed + more

    def test_repeats_of_the_stem_are_counted(self) -> None:
        once = replace(tiny(), stem=("cn_r1_k3_s2_c8", "ds_r1_k3_s1_e1_c8", "ds_r1_k3_s1_e1_c8"))
        repeated = replace(tiny(), stem=("cn_r1_k3_s2_c8", "ds_r2_k3_s1_e1_c8"))
        assert shapes(repeated) == shapes(once)


def tiny(
    attributes: Options = (("channels", 8), ("stride", 1)), options: Options = (("kernel", 3),)
) -> SearchSpace:
    stage = Stage("s1", (1,), ((Config("k3", options),),), attributes)
    return SearchSpace(
        "tiny",
        (stage,),
        channels=3,
        resolution=8,
        stem=("cn_r1_k3_s2_c8",),
        head=("cn_r1_k1_s1_c16",),
        classes=10,
    )


class TestTables:
    @pytest.mark.parametrize("name", ["imagenet-mbconv", "imagenet-mbconv-e236", "ofa-mbv3", "demo"])
    def test_tables_add_up_to_whole_networks(self, name: str) -> None:
        space = load_space(name)
        table = analytic_costs(space)
        assert {name: cost.unit.name for name, cost in table.costs.items()} == {
            "macs": "MACs",
            "params": "params",
            "weight_bytes": "B",
            "peak_memory": "B",
        }
        for architecture in sample_many(space, 20, seed=0):
            work = architecture_work(space, architecture)
            for cost, expected in ((table["macs"], work.macs), (table["params"], work.params)):
                parts = [
                    cost.values.configs[s][b][space.config_index(s, b, name)]
                    for s, names in enumerate(architecture.stages)
                    for b, name in enumerate(names)
                ]
                assert cost.fixed + sum(parts) == expected

    def test_extremes_of_the_paper_space(self) -> None:
        heaviest = architecture_work(PAPER, PAPER.extreme())
        lightest = architecture_work(PAPER, PAPER.extreme(heaviest=False))
        assert heaviest == Work(macs=520_947_808, params=8_949_984)
        assert lightest == Work(macs=136_826_032, params=3_246_072)
        for architecture in sample_many(PAPER, 40, seed=1, how="architectures"):
            work = architecture_work(PAPER, architecture)
            assert lightest.macs < work.macs < heaviest.macs
            assert lightest.params < work.params < heaviest.params

    def test_wider_larger_and_squeezed_cost_more(self) -> None:
        """Configs are ordered by expansion, kernel, squeeze-excite; each step adds work in every block."""
        for stage in config_work(PAPER):
            for block in stage:
                for c, work in enumerate(block):
                    for step in (1, 2, 4):
                        if c % (2 * step) < step and c + step < len(block):
                            assert block[c + step].macs > work.macs
                            assert block[c + step].params > work.params

    def test_shapes_of_the_paper(self) -> None:
        """The column "Input" of the appendix table."""
        assert shapes(PAPER).stages == ((16, 112), (24, 56), (40, 28), (80, 14), (112, 14))

    def test_stored_as_another_type(self) -> None:
        whole, half, byte = (
            analytic_costs(PAPER, dtype)["weight_bytes"] for dtype in ("float32", "float16", "int8")
        )
        assert (half.fixed, half.provenance.dtype) == (whole.fixed / 2, "float16")
        for a, b, c in zip(whole.values.arrays(), half.values.arrays(), byte.values.arrays(), strict=True):
            assert (b == a / 2).all()
            assert ((c > a / 4) & (c < a / 3) | (a == 0)).all()

    def test_peaks_of_the_paper_space(self) -> None:
        """The first block of a stage expands at the resolution before the stride (16 * 112^2 in, times 1 + e)."""
        fixed, blocks = peak_activation(PAPER)
        assert fixed == 4 * (32 + 32) * 112**2  # the depth-wise filter after the first convolution
        assert blocks[0][0][0] == 4 * (16 + 48) * 112**2
        assert blocks[0][1][0] == 4 * (24 + 72 + 72) * 56**2
        halved, halves = peak_activation(PAPER, "float16")
        assert halved * 2 == fixed
        assert halves[2][1][3] * 2 == blocks[2][1][3]

    def test_provenance_says_where_it_comes_from(self) -> None:
        assert "computed" in analytic_costs(PAPER)["macs"].provenance.source


class TestRefused:
    def test_spaces_that_do_not_say_enough(self) -> None:
        with pytest.raises(SpaceError, match="does not say channels, resolution and classes"):
            analytic_costs(load_space("nas-bench-macro"))

    @pytest.mark.parametrize(
        ("attributes", "options", "message"),
        [
            ((), (), "stage 's1' must say its channels"),
            ((("channels", "many"),), (), "stage 's1' must say its channels"),
            ((("channels", 8), ("stride", 0)), (), "stage 's1' must say its channels"),
            ((("channels", 8),), (("channels", 16),), "changes its channels or stride"),
            ((("channels", 8),), (("stride", 2),), "changes its channels or stride"),
            ((("channels", 8),), (("op", "identity"),), "has no block string"),
            ((("channels", 8),), (("kernel", 4),), "a kernel must be odd"),
            ((("channels", 8), ("family", "unheard")), (), "unknown block family 'unheard'"),
        ],
    )
    def test_stages_without_a_shape(self, attributes: Options, options: Options, message: str) -> None:
        with pytest.raises(SpaceError, match=message):
            analytic_costs(tiny(attributes, options))

    @pytest.mark.parametrize("attributes", [(("channels", 16),), (("channels", 8), ("stride", 2))])
    def test_a_stage_that_may_vanish_must_keep_the_shape(self, attributes: Options) -> None:
        stage = replace(tiny().stages[0], depths=(0, 1), attributes=attributes)
        with pytest.raises(SpaceError, match="may vanish"):
            analytic_costs(replace(tiny(), stages=(stage,)))

    def test_a_stage_that_vanishes_costs_nothing(self) -> None:
        space = replace(tiny(), stages=(replace(tiny().stages[0], depths=(0, 1)),))
        assert architecture_work(space, space.parse("0")) == shapes(space).fixed

    def test_unknown_data_type(self) -> None:
        for function in (analytic_costs, peak_activation):
            with pytest.raises(UnitError, match="unknown data type 'int4'; known are float32, float16, int8"):
                function(PAPER, "int4")

    def test_blocks_that_do_not_fit_together(self) -> None:
        with pytest.raises(SpaceError, match="convolution of 8 channels is given 4"):
            Trace(Shape(4, 2)).run([ConvShape(8, 8)])

    def test_foreign_architecture(self) -> None:
        with pytest.raises(ArchitectureError, match="unknown config"):
            architecture_work(tiny(), Architecture.parse("k7"))
