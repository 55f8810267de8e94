from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from binas.costs.analytic import analytic_costs
from binas.space import SearchSpace, builtin_names, enumerate_all, load_space, space_from_yaml, space_to_yaml
from binas.space.rules import DEFAULT_RULES

COUNTS = {
    # (12**2 + 12**3 + 12**4)**5: depths 2 to 4 with 12 configs a block, five stages
    "imagenet-mbconv": 22_608**5,
    "imagenet-mbconv-e236": 22_608**5,
    "ofa-mbv3": (9**2 + 9**3 + 9**4) ** 5,
    "nas-bench-macro": 3_969,
    "demo": (4 + 4**2) * (4 + 4**2 + 4**3) * (3 + 3 * 4 + 3 * 4**2) ** 2,
    "small-28": (12 + 12**2 + 12**3) ** 3,
    "fused-28": (3 + 3**2 + 3**3) * (3 + 3**2 + 3**3 + 3**4) ** 2,
    "small-32": (3 + 3**2) * (6 + 6**2 + 6**3) * (6 + 6**2 + 6**3 + 6**4),
    "photos-96": (12 + 12**2 + 12**3) ** 3 * (12 + 12**2 + 12**3 + 12**4),
    "photos-160": (12 + 12**2 + 12**3) ** 5,
}


def attribute(space: SearchSpace, key: str) -> list[object]:
    return [stage.get(key) for stage in space.stages]


def test_every_builtin_is_tested_here() -> None:
    assert set(builtin_names()) == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_count_is_exact(name: str) -> None:
    assert load_space(name).count == COUNTS[name]
    assert load_space(name).name == name


@pytest.mark.parametrize("name", COUNTS)
def test_round_trip(name: str) -> None:
    assert space_from_yaml(space_to_yaml(load_space(name))) == load_space(name)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("imagenet-mbconv", 240, 15),
        ("imagenet-mbconv-e236", 240, 15),
        ("ofa-mbv3", 180, 15),
        ("nas-bench-macro", 5 + 7 + 7, 8),
        ("demo", 42, 11),
        ("small-28", 108, 9),
        ("fused-28", 33, 11),
        ("small-32", 48, 9),
        ("photos-96", 156, 13),
        ("photos-160", 180, 15),
    ],
)
def test_numbers_of_binaries(name: str, alpha: int, beta: int) -> None:
    space = load_space(name)
    assert (space.alpha_size, space.beta_size) == (alpha, beta)


@pytest.mark.parametrize("name", ["imagenet-mbconv", "imagenet-mbconv-e236"])
def test_layout_of_the_paper(name: str) -> None:
    space = load_space(name)
    assert attribute(space, "channels") == [24, 40, 80, 112, 192]
    assert attribute(space, "stride") == [2, 2, 2, 1, 2]
    assert attribute(space, "activation") == ["re", "re", "hs", "hs", "hs"]
    assert {stage.depths for stage in space.stages} == {(2, 3, 4)}
    assert space.stem == ("cn_r1_k3_s2_c32_nre", "ds_r1_k3_s1_e1_c16_nre")
    assert space.head == ("cn_r1_k1_s1_c960",)
    assert (space.channels, space.resolution, space.features, space.classes) == (3, 224, 1280, 1000)


@pytest.mark.parametrize(
    ("name", "expansions"), [("imagenet-mbconv", (3, 4, 6)), ("imagenet-mbconv-e236", (2, 3, 6))]
)
def test_configs_are_indexed_as_in_the_appendix(name: str, expansions: tuple[int, ...]) -> None:
    """The table of configurations: expansion varies slowest, then kernel, then squeeze-excite."""
    expected = list(itertools.product(expansions, (3, 5), (False, True)))
    for stage in load_space(name).stages:
        for block in stage.blocks:
            assert [
                tuple(dict(c.options)[k] for k in ("expansion", "kernel", "se")) for c in block
            ] == expected


def test_once_for_all() -> None:
    space = load_space("ofa-mbv3")
    assert attribute(space, "channels") == [24, 40, 80, 112, 160]
    assert attribute(space, "stride") == [2, 2, 2, 1, 2]
    assert attribute(space, "activation") == ["re", "re", "hs", "hs", "hs"]
    assert attribute(space, "se") == [False, True, False, True, True]
    assert {config.name for config in space.stages[0].blocks[0]} == {
        f"k{k}e{e}" for k in (3, 5, 7) for e in (3, 4, 6)
    }


def test_features_of_once_for_all_have_no_bias() -> None:
    """Its feature_mix_layer has neither BatchNorm nor a bias; with one there were 1,280 parameters too many."""
    space = load_space("ofa-mbv3")
    ours, biased = (
        analytic_costs(item)["params"].fixed for item in (space, replace(space, rules=DEFAULT_RULES))
    )
    assert biased - ours == 1280
    assert space.fingerprint != replace(space, rules=DEFAULT_RULES).fingerprint
    assert space_from_yaml(space_to_yaml(space)) == space


def test_only_the_first_block_of_a_stage_has_its_stride() -> None:
    stage = load_space("imagenet-mbconv").stages[0]
    strides = [stage.block_options(b, stage.blocks[b][0])["stride"] for b in range(4)]
    assert strides == [2, 1, 1, 1]


def test_nas_bench_macro_has_no_two_equal_networks() -> None:
    listed = enumerate_all(load_space("nas-bench-macro"))
    assert len(set(listed)) == len(listed) == 3_969
    assert all("id" not in stage[1:] for architecture in listed for stage in architecture.stages)


@pytest.mark.parametrize("name", ["fused-28", "small-32", "photos-96", "photos-160"])
def test_spaces_for_photos_build_at_every_size_they_are_chosen_for(name: str) -> None:
    """The lightest and the heaviest network: logits of every class, and the MACs that docs/howto/space.md states."""
    import torch

    from binas.costs.analytic import architecture_work
    from binas.supernet import StaticNetwork

    space, documented = (
        load_space(name),
        (Path(__file__).parents[2] / "docs" / "howto" / "space.md").read_text(),
    )
    works = [architecture_work(space, space.extreme(largest)) for largest in (False, True)]
    assert f"{works[0].macs / 1e6:.1f} to {works[1].macs / 1e6:.1f} MMACs" in documented
    for channels, size in (
        (3, space.resolution),
        (1, {"fused-28": 28, "small-32": 28, "photos-96": 64, "photos-160": 128}[name]),
    ):
        fitted = replace(space, channels=channels, resolution=size, classes=7)
        network = StaticNetwork.from_architecture(fitted, fitted.extreme(False)).eval()
        with torch.inference_mode():
            assert network(torch.zeros(2, channels, size, size)).shape == (2, 7)
