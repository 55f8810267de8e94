"""Analytic costs against what torch really does: parameters, MACs, folded weights, live tensors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import OFA, SPACES  # noqa: E402
from torch_counts import counted, folded, measured_peak  # noqa: E402

from binas.costs import analytic_costs, architecture_work, peak_activation  # noqa: E402
from binas.costs.analytic import Work, block_trace, trace_peak, trace_work  # noqa: E402
from binas.space import Architecture, SearchSpace, parse_block, sample_many  # noqa: E402
from binas.supernet import NetworkRules, SqueezeRule, StaticNetwork, Supernet, extract, plain_block  # noqa: E402

BY_INPUT = NetworkRules(squeeze=SqueezeRule(of="input", divisor=1, gate="sigmoid"))
CODES = [
    "ir_k3_s1_e3_c8_nre",
    "ir_k5_s2_e2.5_c12_se0.25",
    "ir_k7_s1_e2_c8_se0.5_noskip",
    "ds_k3_s2_c12",
    "ds_k5_s1_c8_se0.25_nr6",
    "dsa_k3_s1_c8_nsw",
    "er_k3_s1_e2_c8",
    "er_k5_s2_e4_c16_se0.25",
    "cn_k3_s2_c24_nre",
    "cn_k1_c8",
    "bt_k3_s1_e0.5_c8_nre",
    "bt_k5_s2_e0.25_c32",
    "bt_k3_s1_e2_c16_nsw",
]


@pytest.mark.parametrize("rules", [NetworkRules(), BY_INPUT], ids=["v3", "input"])
@pytest.mark.parametrize("code", CODES)
def test_blocks_of_every_kind(code: str, rules: NetworkRules) -> None:
    block, trace = (
        plain_block(parse_block(code), 8, rules).eval(),
        block_trace(parse_block(code), 8, 7, rules),
    )
    images = torch.randn(1, 8, 7, 7)
    assert trace_work(trace) == counted(block, images)
    assert trace_peak(trace) == measured_peak(folded(block), images)
    assert trace.steps[-1].writes.elements == block(images).numel()


def peak_of(space: SearchSpace, architecture: Architecture) -> int:
    """Peak elements of a whole network: the largest of the fixed part and its blocks, as int8 bytes."""
    fixed, table = peak_activation(space, "int8")
    return max(
        fixed,
        *(
            table[s][b][space.config_index(s, b, name)]
            for s, names in enumerate(architecture.stages)
            for b, name in enumerate(names)
        ),
    )


def stored(space: SearchSpace, architecture: Architecture) -> float:
    cost = analytic_costs(space)["weight_bytes"]
    return cost.fixed + sum(
        cost.values.configs[s][b][space.config_index(s, b, name)]
        for s, names in enumerate(architecture.stages)
        for b, name in enumerate(names)
    )


@pytest.mark.parametrize("space", [*SPACES.values(), OFA], ids=lambda s: s.name)
def test_whole_networks_of_both_families(space: SearchSpace) -> None:
    net = Supernet(space)
    size = space.resolution
    images = torch.randn(1, space.channels or 1, size, size)
    chosen = [space.extreme(), space.extreme(heaviest=False), *sample_many(space, 3, seed=0)]
    for architecture in chosen:
        network = extract(net, architecture).eval()
        assert architecture_work(space, architecture) == counted(network, images)
        plain = folded(network)
        assert stored(space, architecture) == sum(4 * p.numel() for p in plain.parameters())
        assert peak_of(space, architecture) == measured_peak(plain, images)


def test_networks_from_strings() -> None:
    network = StaticNetwork.from_string(str([CODES]), stem="cn_k3_c8", classes=3, features=6).eval()
    expected, width, size = Work(), 3, 64
    for code in map(parse_block, ["cn_k3_c8", *CODES]):
        trace = block_trace(code, width, size)
        expected += trace_work(trace)
        width, size = trace.steps[-1].writes.channels, trace.steps[-1].writes.size
    head = Work(width * 6 + 6 * 3, (width + 1) * 6 + 7 * 3)
    assert counted(network, torch.randn(1, 3, 64, 64)) == expected + head
