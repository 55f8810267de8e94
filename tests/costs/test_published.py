"""Published networks: their counts against published figures, digit by digit as far as those go."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from binas.costs import architecture_work
from binas.costs.published.build import Counts, build, count
from binas.space import from_block_string, load_space, parse_network
from binas.space.blockstrings import format_network
from binas.space.published import published_networks, quoted_rows
from binas.supernet import StaticNetwork

NETWORKS = published_networks()
SHAPE = (3, 224, 224)
# Parameters as published with the implementations (timm's models at 1000 classes), exactly.
PARAMETERS = {
    "MobileNetV2": 3_504_872,
    "MobileNetV3-Large": 5_483_032,
    "MobileNetV3-Small": 2_542_856,
    "MnasNet-A1": 3_887_038,
    "MnasNet-B1": 4_383_312,
    "FBNet-C": 5_572_200,
    "SPNASNet": 4_421_616,
    "EfficientNet-B0": 5_288_548,
    "FairNAS-C": 4_397_864,
    "HardCoRe-NAS-A": 5_260_232,
}
# Multiply-accumulates in millions as the papers print them: MobileNetV2 (arXiv:1801.04381, table 4), MobileNetV3
# (arXiv:1905.02244, table 3), MnasNet-A1 (tensorflow/tpu, models/official/mnasnet), EfficientNet (arXiv:1905.11946),
# FairNAS-C (arXiv:1907.01845, version 1).
MACS_IN_PAPERS = {
    "MobileNetV2": 300,
    "MobileNetV3-Large": 219,
    "MobileNetV3-Small": 56,
    "MnasNet-A1": 312,
    "EfficientNet-B0": 390,
    "FairNAS-C": 321,
}


@cache
def counted(name: str) -> Counts:
    return count(build(NETWORKS[name]), SHAPE)


def test_all_are_there() -> None:
    letters = [f"{family}-{letter}" for family in ("HardCoRe-NAS", "BINAS") for letter in "ABCDEF"]
    assert list(NETWORKS) == [
        "MobileNetV2",
        "MobileNetV3-Large",
        "MobileNetV3-Small",
        "MnasNet-A1",
        "MnasNet-B1",
        "FBNet-C",
        "SPNASNet",
        "EfficientNet-B0",
        "FairNAS-C",
        *letters,
    ]


@pytest.mark.parametrize("name", [name for name, network in NETWORKS.items() if network.counts])
def test_counts_are_the_published_ones(name: str) -> None:
    """timm's figures have two decimals, and count two operations per normalised element as multiply-accumulates."""
    found, published = counted(name), NETWORKS[name].counts
    assert round(found.params / 1e6, 2) == published.params
    assert round((found.macs + 2 * found.normalised) / 1e9, 2) == published.gmacs
    assert found.activations / 1e6 == pytest.approx(published.activations, abs=0.011)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_exactly(name: str) -> None:
    assert counted(name).params == PARAMETERS[name]


@pytest.mark.parametrize("name", MACS_IN_PAPERS)
def test_macs_of_the_papers(name: str) -> None:
    assert counted(name).macs / 1e6 == pytest.approx(MACS_IN_PAPERS[name], rel=0.015)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name.startswith(("HardCoRe", "BINAS"))])
def test_networks_of_the_papers_space(name: str) -> None:
    """They are architectures of imagenet-mbconv, whose analytic counts agree with the network that is built."""
    space = load_space("imagenet-mbconv")
    text = format_network(parse_network(NETWORKS[name].blocks))
    work = architecture_work(space, from_block_string(space, text))
    assert (counted(name).params, counted(name).macs) == (work.params, work.macs)


@pytest.mark.parametrize("name", NETWORKS)
def test_figures_say_where_they_come_from(name: str) -> None:
    network = NETWORKS[name]
    assert 65 < network.top1 < 80
    assert network.source
    assert network.top1_source


def test_rows_that_are_quoted_say_why() -> None:
    """What the paper's table 1 has and no network here: a row is measured or quoted, never both."""
    rows = {row.name: row for row in quoted_rows()}
    assert {"OFA CPU", "TF-NAS-CPU-A", "TF-NAS-CPU-B", "BINAS(40)", "BINAS(60)"} < set(rows)
    assert not set(rows) & set(NETWORKS)
    printed = [
        (rows[f"HardCoRe {name}, as printed"].xeon_ms, rows[f"HardCoRe {name}, as printed"].top1)
        for name in "ABCDE"
    ]
    assert printed == [(40, 75.8), (44, 76.4), (50, 77.1), (55, 77.6), (61, 78.0)]
    assert (rows["FBNet, as printed"].top1, NETWORKS["FBNet-C"].top1) == (75.7, 74.9)
    assert all(row.reason and 65 < row.top1 < 80 for row in rows.values())


@pytest.mark.parametrize("name", ["MobileNetV3-Large", "EfficientNet-B0"])
def test_they_run(name: str) -> None:
    network = build(NETWORKS[name])
    assert not network.training
    with torch.inference_mode():
        logits = network(torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    assert logits.shape == (1, 1000)
    assert torch.isfinite(logits).all()


def test_counting_leaves_the_module_as_it_was() -> None:
    module = StaticNetwork.from_string("[['ir_k3_e2_c8']]", stem="cn_k3_c8", classes=3).eval()
    found = count(module, (3, 4, 4))
    stem, block, head = 16 * 27 * 8, 16 * (8 * 16 + 9 * 16 + 16 * 8), 8 * 3
    assert found.macs == stem + block + head
    assert found.normalised == 16 * (8 + 16 + 16 + 8)
    assert found.activations == found.normalised + 3
    assert not any(layer._forward_hooks for layer in module.modules())
