"""Hypothesis strategies: random small spaces, their architectures and their tables."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from hypothesis import strategies as st

from binas.space import Architecture, Config, SearchSpace, Stage
from binas.space.space import Options
from binas.tables import Column, Contributions, Cost, CostTable, Provenance, parse_unit

CONFIG_LETTERS = "abkes0123456789.+"
RESERVED = {"name", "depths", "configs", "blocks"}

config_names = st.text(CONFIG_LETTERS, min_size=1, max_size=6).filter(lambda name: name != "0")
stage_names = st.text(string.ascii_letters + string.digits + ".+-", min_size=1, max_size=6)
space_names = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=8)
finite = st.floats(-1e100, 1e100)
option_keys = st.text(min_size=1, max_size=6).filter(lambda key: key not in RESERVED)
option_values = st.booleans() | st.integers(-(10**6), 10**6) | finite | st.text(max_size=8)


def options(most: int = 3) -> st.SearchStrategy[Options]:
    """Any options or attributes, in any order."""
    return st.dictionaries(option_keys, option_values, max_size=most).map(lambda data: tuple(data.items()))


def blocks(most: int) -> st.SearchStrategy[tuple[Config, ...]]:
    """The configs of one block."""
    configs = st.builds(Config, config_names, options(2))
    return st.lists(configs, min_size=1, max_size=most, unique_by=lambda config: config.name).map(tuple)


@st.composite
def depth_sets(draw: st.DrawFn, most: int) -> tuple[int, ...]:
    """Allowed depths: any set of 0..most, not only a range."""
    largest = draw(st.integers(0, most))
    smaller = draw(st.sets(st.integers(0, largest)))
    return tuple(sorted(smaller | {largest}))


@st.composite
def stages(draw: st.DrawFn, name: str, max_blocks: int, max_configs: int) -> Stage:
    """A stage whose blocks have their own configs or share one list."""
    depths = draw(depth_sets(max_blocks))
    count = depths[-1]
    shared = draw(st.none() | blocks(max_configs))
    own = st.lists(blocks(max_configs), min_size=count, max_size=count).map(tuple)
    return Stage(name, depths, (shared,) * count if shared else draw(own), draw(options()))


@st.composite
def spaces(draw: st.DrawFn, max_stages: int = 3, max_blocks: int = 3, max_configs: int = 3) -> SearchSpace:
    """A small space: unequal blocks, any depths, any options, sometimes a stem and a head."""
    names = draw(st.lists(stage_names, min_size=1, max_size=max_stages, unique=True))
    sizes = st.none() | st.integers(1, 10_000)
    return SearchSpace(
        draw(space_names),
        tuple(draw(stages(name, max_blocks, max_configs)) for name in names),
        description=draw(st.text(max_size=20)),
        channels=draw(sizes),
        resolution=draw(sizes),
        stem=draw(st.sampled_from([(), ("cn_r1_k3_s2_c16_nre", "ds_r2_k3_s1_e1_c8")])),
        head=draw(st.sampled_from([(), ("cn_r1_k1_s1_c64",)])),
        features=draw(sizes),
        classes=draw(sizes),
    )


@st.composite
def plain_spaces(draw: st.DrawFn, max_stages: int = 3, max_blocks: int = 3) -> SearchSpace:
    """A small space without options or fixed parts: all that decisions are about, and quick to draw."""
    names = st.lists(st.sampled_from(["a", "b.5", "c+", "00", "e3k5se"]), min_size=1, max_size=3, unique=True)
    made = []
    for s in range(draw(st.integers(1, max_stages))):
        depths = draw(depth_sets(max_blocks))
        made.append(
            Stage(f"s{s + 1}", depths, tuple(tuple(map(Config, draw(names))) for _ in range(depths[-1])))
        )
    return SearchSpace("plain", tuple(made))


@st.composite
def mbconv_spaces(draw: st.DrawFn) -> SearchSpace:
    """A space of MBConv blocks, so that every architecture has block strings. Few distinct values, so that
    stages look alike and may vanish between lookalikes.
    """
    count = draw(st.integers(1, 3))
    return SearchSpace(
        "mbconv",
        tuple(draw(_mbconv_stage(f"s{s}")) for s in range(1, count + 1)),
        stem=draw(st.sampled_from([(), ("cn_r1_k3_s2_c16_nre", "ds_r1_k3_s1_e1_c8_nre")])),
        head=draw(st.sampled_from([(), ("cn_r1_k1_s1_c64",)])),
    )


@st.composite
def _mbconv_stage(draw: st.DrawFn, name: str) -> Stage:
    depths = draw(depth_sets(2))
    attributes: Options = (
        ("channels", draw(st.sampled_from([8, 16]))),
        ("stride", draw(st.integers(1, 2))),
        ("activation", draw(st.sampled_from(["re", "hs"]))),
    )
    expansions = st.sampled_from([1, 3, 2.5]) | st.floats(0.001, 1000)
    choices = st.tuples(st.sampled_from([3, 5]), expansions, st.booleans())
    lists = st.lists(choices, min_size=1, max_size=3, unique_by=lambda c: (c[0], float(c[1]), c[2]))
    made = tuple(
        tuple(
            Config(f"c{i}", (("kernel", kernel), ("expansion", expansion), ("se", se)))
            for i, (kernel, expansion, se) in enumerate(draw(lists))
        )
        for _ in range(depths[-1])
    )
    return Stage(name, depths, made, attributes)


@st.composite
def architectures(draw: st.DrawFn, space: SearchSpace) -> Architecture:
    """Any architecture of ``space``."""
    picked = []
    for stage in space.stages:
        depth = draw(st.sampled_from(stage.depths))
        picked.append([draw(st.sampled_from(configs)).name for configs in stage.blocks[:depth]])
    return Architecture.of(picked)


@st.composite
def spaces_with_architecture(draw: st.DrawFn) -> tuple[SearchSpace, Architecture]:
    """A small space and one of its architectures."""
    space = draw(plain_spaces())
    return space, draw(architectures(space))


@st.composite
def columns(draw: st.DrawFn, space: SearchSpace, depths: Any, configs: Any) -> Column:
    """A column with values from one strategy for depths and one for configs."""

    def some(values: Any, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=np.float64)

    return Column(
        tuple(some(depths, len(stage.depths)) for stage in space.stages),
        tuple(tuple(some(configs, len(block)) for block in stage.blocks) for stage in space.stages),
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@st.composite
def provenances(draw: st.DrawFn) -> Provenance:
    """Known and unknown keys."""
    more = draw(st.dictionaries(st.sampled_from(["note", "host", "clock GHz", "µ"]), json_values, max_size=2))
    return Provenance.model_validate(
        {
            "source": draw(st.text(max_size=20)),
            "device": draw(st.none() | st.text(max_size=5)),
            "threads": draw(st.none() | st.integers(1, 64)),
            "dispersion": draw(st.none() | finite),
            **more,
        }
    )


unknown_or_positive = st.just(np.nan) | st.floats(0, 1e100)


@st.composite
def contributions(draw: st.DrawFn, space: SearchSpace) -> Contributions:
    """Contributions with or without standard errors and counts, known for some or all entries."""
    return Contributions(
        space,
        draw(finite),
        draw(columns(space, finite, finite)),
        draw(unknown_or_positive),
        draw(st.none() | columns(space, unknown_or_positive, unknown_or_positive)),
        draw(st.none() | columns(space, unknown_or_positive, unknown_or_positive)),
        draw(provenances()),
        draw(unknown_or_positive),
    )


@st.composite
def cost_tables(draw: st.DrawFn, space: SearchSpace) -> CostTable:
    """One or two costs, with or without a part per depth."""
    names = draw(
        st.lists(st.sampled_from(["latency", "macs", "a.b-c_d", "Z9"]), min_size=1, max_size=2, unique=True)
    )
    return CostTable(space, {name: draw(_costs(space, name)) for name in names})


@st.composite
def _costs(draw: st.DrawFn, space: SearchSpace, name: str) -> Cost:
    positive = st.floats(0, 1e100)
    per_depth = finite if draw(st.booleans()) else st.just(0.0)
    unit = draw(st.sampled_from(["ms", "MMACs", "params", "1", "MiB", "mJ", "%"]))
    return Cost(
        name,
        parse_unit(unit),
        draw(positive),
        draw(columns(space, per_depth, positive)),
        draw(unknown_or_positive),
        draw(st.none() | columns(space, unknown_or_positive, unknown_or_positive)),
        draw(provenances()),
        draw(st.sampled_from(["sum", "max"])),
    )
