from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import ArchitectureError, BinasError, SpaceError
from binas.space import (
    Architecture,
    BlockCode,
    Config,
    SearchSpace,
    Stage,
    from_block_string,
    load_space,
    parse_block,
    parse_network,
    sample_many,
    to_block_string,
)
from binas.space.blockstrings import block_code, format_network, read_architecture, to_blocks
from strategies import architectures, mbconv_spaces

# The networks that the paper's authors publish (README of Alibaba-MIIL/BINAS), with their depths.
PUBLISHED = {
    "BINAS A": (
        "[['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k3_s1_e3_c24_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c40_nre_se0.25', 'ir_r1_k5_s1_e4_c40_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c80', 'ir_r1_k5_s1_e3_c80_se0.25', 'ir_r1_k5_s1_e4_c80_se0.25'], "
        "['ir_r1_k5_s1_e4_c112_se0.25', 'ir_r1_k5_s1_e4_c112_se0.25'], "
        "['ir_r1_k5_s2_e4_c192_se0.25', 'ir_r1_k5_s1_e4_c192_se0.25', 'ir_r1_k3_s1_e4_c192_se0.25', "
        "'ir_r1_k5_s1_e3_c192_se0.25'], ['cn_r1_k1_s1_c960']]",
        (2, 2, 3, 2, 4),
    ),
    "BINAS C": (
        "[['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k5_s1_e3_c24_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c40_nre_se0.25', 'ir_r1_k5_s1_e4_c40_nre_se0.25'], "
        "['ir_r1_k5_s2_e4_c80_se0.25', 'ir_r1_k5_s1_e4_c80_se0.25', 'ir_r1_k5_s1_e4_c80_se0.25'], "
        "['ir_r1_k3_s1_e4_c112_se0.25', 'ir_r1_k5_s1_e6_c112_se0.25', 'ir_r1_k5_s1_e4_c112_se0.25'], "
        "['ir_r1_k3_s2_e6_c192_se0.25', 'ir_r1_k5_s1_e6_c192_se0.25', 'ir_r1_k3_s1_e6_c192_se0.25', "
        "'ir_r1_k5_s1_e4_c192_se0.25'], ['cn_r1_k1_s1_c960']]",
        (2, 2, 3, 3, 4),
    ),
    "BINAS F": (
        "[['ds_r1_k3_s1_e1_c16_nre'], "
        "['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k3_s1_e3_c24_nre', 'ir_r1_k3_s1_e3_c24_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c40_nre', 'ir_r1_k5_s1_e4_c40_nre', 'ir_r1_k3_s1_e4_c40_nre_se0.25', "
        "'ir_r1_k5_s1_e6_c40_nre_se0.25'], "
        "['ir_r1_k5_s2_e3_c80', 'ir_r1_k3_s1_e6_c80_se0.25', 'ir_r1_k5_s1_e6_c80_se0.25', "
        "'ir_r1_k5_s1_e6_c80_se0.25'], "
        "['ir_r1_k5_s1_e6_c112_se0.25', 'ir_r1_k5_s1_e6_c112_se0.25', 'ir_r1_k3_s1_e6_c112_se0.25', "
        "'ir_r1_k3_s1_e6_c112_se0.25'], "
        "['ir_r1_k3_s2_e6_c192_se0.25', 'ir_r1_k3_s1_e4_c192_se0.25', 'ir_r1_k5_s1_e6_c192_se0.25', "
        "'ir_r1_k5_s1_e6_c192_se0.25'], ['cn_r1_k1_s1_c960']]",
        (3, 4, 4, 4, 4),
    ),
}
BINAS_A = "e3k5-e3k3se_e3k5se-e4k5se_e3k5-e3k5se-e4k5se_e4k5se-e4k5se_e4k5se-e4k5se-e4k3se-e3k5se"


class TestPublished:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_read_and_written_back_byte_for_byte(self, name: str) -> None:
        text, depths = PUBLISHED[name]
        space = load_space("imagenet-mbconv")
        architecture = from_block_string(space, text)
        assert architecture.depths == depths
        assert to_block_string(space, architecture) == text

    def test_compact_string_of_binas_a(self) -> None:
        assert str(from_block_string(load_space("imagenet-mbconv"), PUBLISHED["BINAS A"][0])) == BINAS_A

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_every_block_string_alone(self, name: str) -> None:
        for stage in parse_network(PUBLISHED[name][0]):
            assert [parse_block(str(code)) for code in stage] == list(stage)
        assert format_network(parse_network(PUBLISHED[name][0])) == PUBLISHED[name][0]

    def test_spacing_and_quotes_do_not_matter(self) -> None:
        text = PUBLISHED["BINAS A"][0].replace("'", '"').replace(", ", " ,\n  ")
        assert str(from_block_string(load_space("imagenet-mbconv"), f"\n{text} ")) == BINAS_A

    def test_expansion_4_is_not_in_the_other_variant(self) -> None:
        with pytest.raises(
            ArchitectureError, match=r"block 2 of stage 's2' cannot be .*e4_c40.*allowed are .*e2_c40"
        ):
            from_block_string(load_space("imagenet-mbconv-e236"), PUBLISHED["BINAS A"][0])


@st.composite
def with_architecture(draw: st.DrawFn) -> tuple[SearchSpace, Architecture]:
    space = draw(mbconv_spaces())
    return space, draw(architectures(space))


class TestRoundTrip:
    @given(with_architecture())
    def test_random_spaces(self, pair: tuple[SearchSpace, Architecture]) -> None:
        """Lossless even where a stage vanishes next to one that looks alike."""
        space, architecture = pair
        assert from_block_string(space, to_block_string(space, architecture)) == architecture

    @pytest.mark.parametrize("name", ["imagenet-mbconv", "imagenet-mbconv-e236", "ofa-mbv3", "demo"])
    def test_builtins(self, name: str) -> None:
        space = load_space(name)
        for architecture in sample_many(space, 20, seed=0):
            assert from_block_string(space, to_block_string(space, architecture)) == architecture

    @given(
        st.builds(
            BlockCode,
            kind=st.sampled_from(["ir", "ds", "dsa", "cn", "er", "bt"]),
            kernel=st.integers(1, 99),
            stride=st.integers(1, 9),
            channels=st.integers(1, 10**6),
            expansion=st.floats(1e-9, 10**6),
            se=st.just(0.0) | st.floats(1e-9, 10.0),
            activation=st.sampled_from(["re", "r6", "hs", "sw"]),
            repeats=st.integers(1, 100),
            skip=st.booleans(),
        )
    )
    def test_codes(self, code: BlockCode) -> None:
        assert parse_block(str(code)) == code

    def test_bottlenecks(self) -> None:
        """The ratio is the expansion, of the output channels; ReLU is written, since h-swish is the default."""
        configs = tuple(
            Config(f"r{r:g}k{k}", (("ratio", r), ("kernel", k))) for r in (0.25, 1.5) for k in (1, 3)
        )
        attributes = (("channels", 32), ("stride", 2), ("family", "bottleneck"))
        space = SearchSpace("bt", (Stage("s", (0, 1, 2), (configs, configs), attributes),))
        assert to_block_string(space, space.parse("r0.25k3-r1.5k1")) == (
            "[['bt_r1_k3_s2_e0.25_c32_nre', 'bt_r1_k1_s1_e1.5_c32_nre']]"
        )
        for architecture in sample_many(space, 20, seed=0):
            assert from_block_string(space, to_block_string(space, architecture)) == architecture


def twin_space() -> SearchSpace:
    """Two stages that may vanish and look alike, then one that may not."""
    attributes = (("channels", 8), ("activation", "hs"))
    block = (Config("k3", (("kernel", 3),)), Config("k5", (("kernel", 5),)))
    optional = [Stage(name, (0, 1), (block,), attributes) for name in ("s1", "s2")]
    return SearchSpace("twins", (*optional, Stage("s3", (1,), (block,), attributes)))


class TestVanishingStages:
    def test_left_out_where_nothing_is_lost(self) -> None:
        space = SearchSpace(
            "one", (twin_space().stages[0], replace(load_space("small-28").stages[0], name="s2"))
        )
        text = to_block_string(space, space.parse("0_e2k3"))
        assert text == "[['ir_r1_k3_s1_e2_c16_nre']]"
        assert str(from_block_string(space, text)) == "0_e2k3"

    def test_written_as_an_empty_list_where_it_would_be_ambiguous(self) -> None:
        space = twin_space()
        texts = [to_block_string(space, space.parse(a)) for a in ("k3_0_k5", "0_k3_k5", "0_0_k5", "k3_k3_k5")]
        assert len(set(texts)) == 4
        assert "[]" in texts[1]

    def test_empty_list_where_a_stage_may_not_vanish(self) -> None:
        with pytest.raises(ArchitectureError, match="stage 's3' has 0 blocks in the string; allowed are 1"):
            from_block_string(twin_space(), "[[], [], []]")

    def test_networks_to_build_have_no_empty_stages(self) -> None:
        space = twin_space()
        assert [len(stage) for stage in to_blocks(space, space.parse("0_k3_k5"))] == [1, 1]


class TestRepeats:
    def test_unrolled_with_the_stride_on_the_first(self) -> None:
        (stage,) = parse_network("[['ir_r3_k3_s2_e4_c24']]")
        assert [(code.repeats, code.stride) for code in stage] == [(1, 2), (1, 1), (1, 1)]

    def test_repeats_of_equal_blocks_read_as_blocks(self) -> None:
        space = load_space("small-28")
        stages = ["ir_r2_k3_s1_e2_c16_nre", "ir_r3_k5_s2_e4_c32", "ir_r1_k3_s2_e2_c64", "cn_r1_k1_s1_c128"]
        text = str([[code] for code in stages])
        assert str(from_block_string(space, text)) == "e2k3-e2k3_e4k5-e4k5-e4k5_e2k3"

    def test_repeats_in_the_stem(self) -> None:
        stage = Stage("s", (1,), ((Config("a"),),), (("channels", 8),))
        space = SearchSpace("stem", (stage,), stem=("cn_r1_k3_s2_c8", "ds_r2_k3_s2_e1_c8"))
        text = to_block_string(space, space.parse("a"))
        assert text.startswith("[['ds_r1_k3_s2_e1_c8', 'ds_r1_k3_s1_e1_c8'], ")
        assert from_block_string(space, text) == space.parse("a")
        assert from_block_string(space, "[['ds_r2_k3_s2_e1_c8'], ['ir_r1_k3_s1_e1_c8']]") == space.parse("a")


class TestBadStrings:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("xx_r1_k3_s1_c8", "starts with 'xx'; known are ir, ds, dsa, cn, er, mp, bt"),
            ("ir_r1_k3_s1_e3_c8_q7", "unknown part 'q7'"),
            ("ir_r1_k3_s1_e3_c8_nrelu", "unknown part 'nrelu'"),
            ("ir_r1_k3_k5_c8", "kernel twice"),
            ("ir_r1_s1_e3", "does not say kernel and channels"),
            ("ir_r1_k3_s1_e3_c0", "c must be above 0"),
            ("ir_r1_k3_s1_e0_c8", "e must be above 0"),
            ("ir_r1_k3.5_s1_e3_c8", "k must be a whole number"),
            ("ir_r1000000000_k3_s1_e3_c8", "r must be above 0 and at most 100"),
            ("ir_r1_k3_s1_e3_c" + "9" * 5000, "unknown part"),
            ("ir_r1_k3_s1_e3_c9999999", "c must be above 0 and at most"),
            ("ir_r1_k-3_s1_e3_c8", "unknown part 'k-3'"),
            ("ir_r1_k٣_s1_e3_c8", "unknown part"),
            ("", "starts with ''"),
        ],
    )
    def test_blocks(self, text: str, message: str) -> None:
        with pytest.raises(ArchitectureError, match=message):
            parse_block(text)

    @pytest.mark.parametrize(
        "text",
        ["", "[", "{}", "['a']", "[[1]]", "[[['a']]]", "[['ir_r1_k3_c8']", "[" * 50_000, "x" * 100_001],
    )
    def test_networks(self, text: str) -> None:
        with pytest.raises(ArchitectureError, match="the network string is"):
            parse_network(text)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("['cn_r1_k1_s1_c960']", "['cn_r1_k1_s1_c1152']", "fixed parts .*cn_r1_k1_s1_c960"),
            ("['ds_r1_k3_s1_e1_c16_nre'], ", "", "fixed parts"),
            (
                "e3_c24_nre'",
                "e5_c24_nre'",
                "block 1 of stage 's1' cannot be .*allowed are ir_r1_k3_s2_e3_c24_nre, ",
            ),
            ("s2_e3_c24", "s1_e3_c24", "block 1 of stage 's1' cannot be"),
            (
                ", 'ir_r1_k3_s1_e3_c24_nre_se0.25'",
                "",
                "stage 's1' has 1 blocks in the string; allowed are 2, 3, 4",
            ),
            (
                "['ir_r1_k5_s1_e4_c112_se0.25', 'ir_r1_k5_s1_e4_c112_se0.25'], ",
                "",
                "block 1 of stage 's4' cannot be",
            ),
            (", ['cn_r1", ", ['ir_r1_k3_s1_e3_c8'], ['cn_r1", "1 more stages than the space"),
        ],
    )
    def test_networks_of_another_space(self, old: str, new: str, message: str) -> None:
        text = PUBLISHED["BINAS A"][0]
        assert old in text
        with pytest.raises(ArchitectureError, match=message):
            from_block_string(load_space("imagenet-mbconv"), text.replace(old, new))

    @pytest.mark.parametrize("text", ["[]", "[['ds_r1_k3_s1_e1_c16_nre'], ['cn_r1_k1_s1_c960']]"])
    def test_networks_that_end_early(self, text: str) -> None:
        with pytest.raises(ArchitectureError, match=r"fixed parts|ends before stage 's1'"):
            from_block_string(load_space("imagenet-mbconv"), text)

    def test_one_list_is_not_both_stem_and_head(self) -> None:
        stage = Stage("s", (0, 1), ((Config("a"),),), (("channels", 8),))
        space = SearchSpace("ends", (stage,), stem=("cn_r1_k3_c8", "cn_r1_k1_c8"), head=("cn_r1_k1_c8",))
        assert str(from_block_string(space, "[['cn_r1_k1_s1_c8'], ['cn_r1_k1_s1_c8']]")) == "0"
        with pytest.raises(ArchitectureError, match="fixed parts"):
            from_block_string(space, "[['cn_r1_k1_s1_c8']]")


class TestSpacesWithoutBlockStrings:
    def test_refused_with_a_reason(self) -> None:
        space = load_space("nas-bench-macro")
        with pytest.raises(SpaceError, match="config 'id' of stage 's1' has no block string"):
            to_block_string(space, space.extreme(heaviest=False))
        with pytest.raises(SpaceError, match="no block string"):
            from_block_string(space, "[['ir_r1_k3_c8'], ['ir_r1_k3_c8'], ['ir_r1_k3_c8']]")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ((("kernel", "three"),), "kernel must be a whole number"),
            ((("kernel", 2.5),), "kernel must be a whole number"),
            ((("kernel", True),), "kernel must be a whole number"),
            ((("expansion", "wide"),), "expansion must be a number above 0"),
            ((("expansion", -1),), "expansion must be a number above 0"),
            ((("channels", 0),), "channels must be a whole number"),
            ((("activation", "gelu"),), "activation 'gelu'; block strings know re, r6, hs, sw"),
            ((("se", True), ("se_ratio", 0)), "se must be a number above 0"),
            ((("family", "transformer"),), "has no block string"),
        ],
    )
    def test_options_that_do_not_fit(self, options: tuple[tuple[str, object], ...], message: str) -> None:
        config = Config("odd", options)  # type: ignore[arg-type]
        with pytest.raises(SpaceError, match=message):
            block_code(Stage("s", (1,), ((config,),), (("channels", 8),)), 0, config)

    def test_squeeze_excite_as_a_ratio(self) -> None:
        config = Config("half", (("se", 0.5),))
        assert str(block_code(Stage("s", (1,), ((config,),), (("channels", 8),)), 0, config)) == (
            "ir_r1_k3_s1_e1_c8_se0.5"
        )

    def test_configs_that_block_strings_cannot_tell_apart(self) -> None:
        block = (Config("a", (("kernel", 3),)), Config("b", (("kernel", 3), ("groups", 2))))
        space = SearchSpace("same", (Stage("s", (1,), (block,), (("channels", 8),)),))
        assert to_block_string(space, space.parse("a")) == "[['ir_r1_k3_s1_e1_c8']]"
        with pytest.raises(BinasError, match="b has no block string of its own"):
            to_block_string(space, space.parse("b"))

    def test_foreign_architecture(self) -> None:
        with pytest.raises(ArchitectureError, match="has the unknown config"):
            to_block_string(load_space("small-28"), Architecture.of([["e9"], ["e9"], ["e9"]]))


def test_every_form_of_one_architecture() -> None:
    space = load_space("small-28")
    architecture = space.parse("e2k3_e3k5se-e4k3_e2k5")
    forms = [str(architecture), json.dumps(architecture.to_json()), to_block_string(space, architecture)]
    assert [read_architecture(space, f" {text}\n") for text in forms] == [architecture] * 3


@pytest.mark.parametrize("text", ["", "[", "{", "[]", "{}", "e9_e9_e9", "e2k3_e2k3"])
def test_text_in_no_form(text: str) -> None:
    with pytest.raises(BinasError):
        read_architecture(load_space("small-28"), text)


def test_json_of_another_space() -> None:
    foreign = json.dumps(load_space("nas-bench-macro").parse("id_id_id").to_json())
    with pytest.raises(BinasError, match="unknown config 'id'; allowed are e2k3, "):
        read_architecture(load_space("small-28"), foreign)
