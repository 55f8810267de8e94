from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.base.errors import ArchitectureError
from binas.space import Architecture, Choice, Config, SearchSpace, Stage, load_space
from strategies import plain_spaces, spaces_with_architecture

Pair = tuple[SearchSpace, Architecture]
INACTIVE = ["zero", "first", "uniform"]


def small_space() -> SearchSpace:
    a, b, c = Config("a"), Config("b"), Config("c")
    return SearchSpace(
        "small", (Stage("s1", (0, 2), ((a, b), (a, b, c))), Stage("s2", (1, 2, 3), ((a, b), (c,), (b, c))))
    )


class TestOrder:
    def test_stage_then_block_then_config(self) -> None:
        """The order of the paper: alpha by stage, block, config; beta by stage, depth."""
        layout = small_space().layout
        alpha, beta = layout.encode(Architecture.parse("b-c_a-c"), inactive="zero")
        #                          s1b1  s1b2     s2b1  s2b2 s2b3
        assert alpha.tolist() == [0, 1, 0, 0, 1, 1, 0, 1, 0, 0]
        #                         s1 0,2  s2 1,2,3
        assert beta.tolist() == [0, 1, 0, 1, 0]

    @pytest.mark.parametrize(
        ("inactive", "expected"),
        [("zero", [0, 0]), ("first", [1, 0]), ("uniform", [0.5, 0.5])],
    )
    def test_blocks_past_the_depth(self, inactive: str, expected: list[float]) -> None:
        alpha, _ = small_space().layout.encode(Architecture.parse("0_b"), inactive=inactive)  # type: ignore[arg-type]
        assert alpha[:2].tolist() == expected
        assert alpha[-2:].tolist() == expected
        assert alpha[5:7].tolist() == [0, 1]

    def test_slices_cover_everything_once(self) -> None:
        layout = load_space("imagenet-mbconv").layout
        slices = [where for row in layout.config_slices for where in row]
        assert np.concatenate([np.arange(240)[where] for where in slices]).tolist() == list(range(240))
        assert np.concatenate([np.arange(15)[where] for where in layout.beta_slices]).tolist() == list(
            range(15)
        )
        assert len(slices) == 20


class TestRows:
    def test_what_each_entry_stands_for(self) -> None:
        layout = small_space().layout
        assert (layout.size, len(layout.choices)) == (15, 15)
        assert layout.choices[4] == Choice(stage=0, block=1, index=2)
        assert layout.choices[11] == Choice(stage=0, block=None, index=1)
        assert layout.names[4] == "c in block 2 of stage 's1'"
        assert layout.names[11] == "depth 2 of stage 's1'"
        assert layout.stage_entries(1).tolist() == [5, 6, 7, 8, 9, 12, 13, 14]

    @given(spaces_with_architecture())
    def test_positions_rows_and_vectors_agree(self, pair: Pair) -> None:
        space, architecture = pair
        layout = space.layout
        z = np.concatenate(layout.encode(architecture, inactive="zero"))
        positions = layout.positions_of([architecture, architecture])
        assert positions.shape == (2, len(space.stages) + sum(len(stage.blocks) for stage in space.stages))
        assert positions[1][positions[1] < layout.size].tolist() == np.flatnonzero(z).tolist()
        for where, entry in zip(layout.slices, positions[0].tolist(), strict=True):
            assert where.start <= entry < where.stop or (entry == layout.size and not z[where].any())
        assert layout.rows([architecture]).tolist() == [z.tolist()]

    @given(spaces_with_architecture())
    def test_entries_of_z_stand_for_their_choices(self, pair: Pair) -> None:
        """Straight from the names, without any slice."""
        space, architecture = pair
        ones = {
            *(
                (s, None, stage.depths.index(len(architecture.stages[s])))
                for s, stage in enumerate(space.stages)
            ),
            *(
                (s, b, space.config_index(s, b, name))
                for s, names in enumerate(architecture.stages)
                for b, name in enumerate(names)
            ),
        }
        chosen = np.flatnonzero(space.layout.rows([architecture]))
        choices = [space.layout.choices[i] for i in chosen]
        assert {(item.stage, item.block, item.index) for item in choices} == ones

    def test_the_space_keeps_its_layout(self) -> None:
        space = small_space()
        assert space.layout is space.layout
        assert space == small_space()
        assert hash(space) == hash(small_space())

    def test_no_architectures(self) -> None:
        assert small_space().layout.rows([]).shape == (0, 15)

    def test_a_foreign_architecture_is_refused(self) -> None:
        with pytest.raises(ArchitectureError, match="unknown config 'c'"):
            small_space().layout.rows([Architecture.parse("0_c")])


class TestOneHot:
    @given(spaces_with_architecture(), st.sampled_from(INACTIVE))
    def test_round_trip(self, pair: Pair, inactive: str) -> None:
        space, architecture = pair
        layout = space.layout
        alpha, beta = layout.encode(architecture, inactive=inactive)  # type: ignore[arg-type]
        assert (alpha.shape, beta.shape) == ((space.alpha_size,), (space.beta_size,))
        assert layout.decode(alpha, beta) == architecture
        assert layout.round(alpha, beta) == architecture

    @given(spaces_with_architecture())
    def test_equalities_of_the_paper_hold(self, pair: Pair) -> None:
        """sum_c alpha = 1 in every block and sum_b beta = 1 in every stage."""
        space, architecture = pair
        layout = space.layout
        alpha, beta = layout.encode(architecture)
        assert all(alpha[where].sum() == 1 for row in layout.config_slices for where in row)
        assert all(beta[where].sum() == 1 for where in layout.beta_slices)
        assert set(alpha.tolist()) | set(beta.tolist()) <= {0.0, 1.0}

    @given(spaces_with_architecture())
    def test_zeros_count_the_active_blocks(self, pair: Pair) -> None:
        space, architecture = pair
        alpha, _ = space.layout.encode(architecture, inactive="zero")
        assert alpha.sum() == sum(architecture.depths)

    def test_foreign_architecture(self) -> None:
        with pytest.raises(ArchitectureError, match="unknown config 'c'; allowed are a, b"):
            small_space().layout.encode(Architecture.parse("0_c"))


class TestRelaxed:
    @given(spaces_with_architecture(), st.randoms(use_true_random=False))
    def test_rounding_undoes_small_noise(self, pair: Pair, random: object) -> None:
        space, architecture = pair
        layout = space.layout
        alpha, beta = layout.encode(architecture, inactive="uniform")
        rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
        noisy = [vector * 0.6 + rng.uniform(0, 0.39, vector.shape) for vector in (alpha, beta)]
        assert layout.round(*noisy) == architecture

    @given(plain_spaces())
    def test_uniform_point(self, space: SearchSpace) -> None:
        layout = space.layout
        alpha, beta = layout.uniform()
        assert all(np.ptp(alpha[where]) == 0 for row in layout.config_slices for where in row)
        sums = [alpha[where].sum() for row in layout.config_slices for where in row]
        np.testing.assert_allclose(
            sums + [beta[where].sum() for where in layout.beta_slices], 1.0, rtol=1e-15
        )
        firsts = Architecture.of(
            [configs[0].name for configs in stage.blocks[: stage.depths[0]]] for stage in space.stages
        )
        assert layout.round(alpha, beta) == firsts

    def test_largest_entry_wins(self) -> None:
        layout = small_space().layout
        alpha = [0.4, 0.6, 0.2, 0.3, 0.5, 0.9, 0.1, 1.0, 0.5, 0.5]
        assert str(layout.round(alpha, [0.3, 0.7, 0.2, 0.2, 0.6])) == "b-c_a-c-b"
        assert str(layout.round(alpha, [0.7, 0.3, 0.6, 0.2, 0.2])) == "0_a"


class TestBadVectors:
    @pytest.mark.parametrize(
        ("alpha_change", "beta_change"),
        [
            ((0, 0.5), None),
            ((0, 1.0), None),
            ((1, 0.999), None),
            (None, (0, 1.0)),
            (None, (1, 0.0)),
            ((3, -1e-3), None),
        ],
    )
    def test_not_one_hot(
        self, alpha_change: tuple[int, float] | None, beta_change: tuple[int, float] | None
    ) -> None:
        layout = small_space().layout
        alpha, beta = layout.encode(Architecture.parse("b-c_a-c"))
        for vector, change in ((alpha, alpha_change), (beta, beta_change)):
            if change:
                vector[change[0]] = change[1]
        with pytest.raises(ArchitectureError, match=r"not one-hot; use round\(\)"):
            layout.decode(alpha, beta)

    def test_tolerance_is_for_rounding_only(self) -> None:
        layout = small_space().layout
        alpha, beta = layout.encode(Architecture.parse("b-c_a-c"))
        assert str(layout.decode(alpha + 1e-12, beta - 1e-12)) == "b-c_a-c"

    def test_shape(self) -> None:
        with pytest.raises(ArchitectureError, match=r"shapes \(3,\) and \(5,\).*needs \(10,\) and \(5,\)"):
            small_space().layout.round(np.zeros(3), np.zeros(5))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value: float) -> None:
        layout = small_space().layout
        alpha, beta = layout.uniform()
        alpha[0] = value
        with pytest.raises(ArchitectureError, match="NaN or infinity"):
            layout.round(alpha, beta)


def test_options_shared_by_configs_and_two_of_them_together() -> None:
    configs = tuple(
        Config(f"e{e}k{k}", (("expansion", e), ("kernel", k))) for e, k in ((3, 3), (3, 5), (6, 3))
    )
    layout = SearchSpace("s", (Stage("a", (1, 2), (configs, configs[:2])),)).layout
    values = ["expansion 3", "expansion 6", "kernel 3", "kernel 5"]
    assert layout.shared_options.shape == (layout.size, len(values))
    rows = {name: row.tolist() for name, row in zip(layout.names, layout.shared_options, strict=True)}
    assert rows["e3k5 in block 1 of stage 'a'"] == rows["e3k5 in block 2 of stage 'a'"] == [1, 0, 0, 1]
    assert rows["e6k3 in block 1 of stage 'a'"] == [0, 1, 1, 0]
    assert rows["depth 2 of stage 'a'"] == [0, 0, 0, 0]
    pairs = layout.in_any_block(layout.option_pairs)
    assert layout.option_pairs.shape == (layout.size, 3 * 2)  # 3 and 3, 3 and 5, 6 and 3; never 6 and 5
    assert pairs.shape == (layout.size, 3)
    assert pairs.sum() == layout.option_pairs.sum() == 5  # one for every config of a block
