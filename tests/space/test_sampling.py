from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from binas.base.errors import ArchitectureError, ProblemError
from binas.space import (
    Architecture,
    Config,
    SearchSpace,
    Stage,
    crossover,
    enumerate_all,
    load_space,
    mutate,
    sample,
    sample_many,
)
from binas.space.sampling import random_below
from strategies import architectures, plain_spaces

DRAWS = 10_000


def uneven_space() -> SearchSpace:
    """Depths of very unequal sizes: 1, 3 and 6 choices in the first stage, 2 and 8 in the second."""
    a, b, c, d = (Config(name) for name in "abcd")
    first = Stage("s1", (0, 1, 2), ((a, b, c), (a, b)))
    second = Stage("s2", (1, 2), ((a, b), (a, b, c, d)))
    return SearchSpace("uneven", (first, second))


def p_value(drawn: Iterable[Architecture], probability: dict[Architecture, float]) -> float:
    """Chi-square test of draws against the probability of each architecture."""
    counts = Counter(drawn)
    assert set(counts) <= set(probability)
    observed = np.array([counts[a] for a in probability])
    expected = np.array([p * observed.sum() for p in probability.values()])
    assert expected.min() > 5
    return float(stats.chisquare(observed, expected).pvalue)


def equal(space: SearchSpace) -> dict[Architecture, float]:
    listed = enumerate_all(space)
    return dict.fromkeys(listed, 1 / len(listed))


def by_decisions(space: SearchSpace) -> dict[Architecture, float]:
    """Every depth of a stage and every config of a block equally likely."""
    result = {}
    for architecture in enumerate_all(space):
        factors = [1 / len(stage.depths) for stage in space.stages]
        for stage, names in zip(space.stages, architecture.stages, strict=True):
            factors += [1 / len(configs) for configs in stage.blocks[: len(names)]]
        result[architecture] = float(np.prod(factors))
    return result


class TestDistributions:
    def test_uniform_over_architectures(self) -> None:
        space = uneven_space()
        drawn = sample_many(space, DRAWS, seed=1, how="architectures")
        assert p_value(drawn, equal(space)) > 0.001
        assert p_value(drawn, by_decisions(space)) < 1e-9

    def test_uniform_over_decisions(self) -> None:
        space = uneven_space()
        drawn = sample_many(space, DRAWS, seed=2)
        assert p_value(drawn, by_decisions(space)) > 0.001
        assert p_value(drawn, equal(space)) < 1e-9

    def test_depths_of_a_huge_space_by_counting(self) -> None:
        """Most architectures of the paper's space have four blocks in a stage: 12**4 of 22608."""
        depths = np.array(
            [a.depths for a in sample_many(load_space("imagenet-mbconv"), 2_000, 3, "architectures")]
        )
        observed = [int((depths == depth).sum()) for depth in (2, 3, 4)]
        expected = np.array([12**2, 12**3, 12**4]) / 22_608 * depths.size
        assert stats.chisquare(observed, expected).pvalue > 0.001

    @pytest.mark.parametrize("limit", [1, 2, 5, 7, 12, 255, 256, 257])
    def test_random_below(self, limit: int) -> None:
        rng = np.random.default_rng(limit)
        counts = Counter(random_below(limit, rng) for _ in range(limit * 30))
        assert set(counts) <= set(range(limit))
        assert limit == 1 or stats.chisquare([counts[i] for i in range(limit)]).pvalue > 0.001

    def test_random_below_a_huge_number(self) -> None:
        rng = np.random.default_rng(0)
        drawn = [random_below(10**40, rng) / 10**40 for _ in range(2_000)]
        assert stats.kstest(drawn, "uniform").pvalue > 0.001

    def test_random_below_nothing(self) -> None:
        with pytest.raises(ValueError, match="no whole number"):
            random_below(0, np.random.default_rng(0))


class TestReproducible:
    @pytest.mark.parametrize("how", ["decisions", "architectures"])
    def test_by_seed(self, how: str) -> None:
        space = load_space("imagenet-mbconv")
        drawn = [sample_many(space, 10, seed, how) for seed in (5, 5, 6)]  # type: ignore[arg-type]
        assert drawn[0] == drawn[1] != drawn[2]
        assert len(set(drawn[0])) == 10

    def test_unknown_way(self) -> None:
        with pytest.raises(ProblemError, match="'fair'; use 'decisions' or 'architectures'"):
            sample(load_space("small-28"), np.random.default_rng(0), "fair")  # type: ignore[arg-type]


@st.composite
def with_parents(draw: st.DrawFn) -> tuple[SearchSpace, Architecture, Architecture, np.random.Generator]:
    space = draw(plain_spaces())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return space, draw(architectures(space)), draw(architectures(space)), rng


Parents = tuple[SearchSpace, Architecture, Architecture, np.random.Generator]


class TestStaysInside:
    @given(with_parents(), st.sampled_from(["decisions", "architectures"]))
    def test_samples(self, parents: Parents, how: str) -> None:
        space, _, _, rng = parents
        assert sample(space, rng, how) in space  # type: ignore[arg-type]

    @given(with_parents(), st.floats(0, 1))
    def test_mutants(self, parents: Parents, probability: float) -> None:
        space, architecture, _, rng = parents
        assert mutate(space, architecture, rng, probability) in space

    @given(with_parents())
    def test_children(self, parents: Parents) -> None:
        space, one, two, rng = parents
        child = crossover(space, one, two, rng)
        assert child in space
        for mine, first, second in zip(child.stages, one.stages, two.stages, strict=True):
            assert len(mine) in (len(first), len(second))
            assert all(name in (*first[b : b + 1], *second[b : b + 1]) for b, name in enumerate(mine))


class TestMutation:
    @given(with_parents())
    def test_never_is_identity(self, parents: Parents) -> None:
        space, architecture, _, rng = parents
        assert mutate(space, architecture, rng, 0.0) == architecture

    def test_always_is_uniform_over_decisions(self) -> None:
        space, rng = uneven_space(), np.random.default_rng(4)
        start = space.extreme()
        assert p_value((mutate(space, start, rng, 1.0) for _ in range(DRAWS)), by_decisions(space)) > 0.001

    def test_share_of_changed_decisions(self) -> None:
        """A redrawn config differs with probability 11/12, so a tenth redrawn changes 0.1 * 11/12 of them."""
        space, rng = load_space("imagenet-mbconv"), np.random.default_rng(5)
        start = space.extreme(heaviest=False)
        changed = total = 0
        for _ in range(2_000):
            mutant = mutate(space, start, rng)
            pairs = [
                (a, b)
                for one, two in zip(start.stages, mutant.stages, strict=True)
                for a, b in zip(one, two, strict=False)
            ]
            changed, total = changed + sum(a != b for a, b in pairs), total + len(pairs)
        assert stats.binomtest(changed, total, 0.1 * 11 / 12).pvalue > 0.001


class TestCrossover:
    @given(with_parents())
    def test_with_itself_is_identity(self, parents: Parents) -> None:
        space, architecture, _, rng = parents
        assert crossover(space, architecture, architecture, rng) == architecture

    def test_both_parents_are_used_equally(self) -> None:
        space, rng = load_space("nas-bench-macro"), np.random.default_rng(6)
        one, two = space.parse("id_id_id"), space.parse("e6k5_e6k5_e6k5")
        children = [crossover(space, one, two, rng) for _ in range(4_000)]
        probability = {
            a: 1 / 8
            for a in enumerate_all(space)
            if set(sum(a.stages, ())) <= {"id", "e6k5"} and sum(a.depths) == 3
        }
        assert len(probability) == 8
        assert p_value(children, probability) > 0.001

    def test_foreign_parents(self) -> None:
        foreign = Architecture.parse("x_x_x")
        with pytest.raises(ArchitectureError, match="unknown config 'x'"):
            crossover(load_space("nas-bench-macro"), foreign, foreign, np.random.default_rng(0))
