"""Small spaces that differ in what a space may say, and supernets with statistics that are not trivial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from binas.space import SearchSpace, load_space, space_from_data
from binas.supernet import Supernet

SIZE = 12


def stage(name: str, depths: list[int], channels: int, configs: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "depths": depths, "channels": channels, "configs": configs, **attributes}


def make(name: str, stages: Sequence[dict[str, Any]], **fields: Any) -> SearchSpace:
    data = {"format": "binas/space", "version": 1, "name": name, "channels": 3, "resolution": SIZE}
    return space_from_data(
        {**data, "stem": ["cn_r1_k3_s2_c8_nre"], "classes": 5, "stages": list(stages), **fields}
    )


MBCONV = make(
    "small",
    [
        stage(
            "s1", [1, 3], 8, {"expansion": [1, 2, 3], "kernel": [3, 5], "se": [False, True]}, activation="re"
        ),
        stage("s2", [1, 2], 16, {"expansion": [2, 4], "kernel": [3, 7]}, stride=2, activation="sw", se=True),
    ],
    head=["cn_r1_k1_s1_c24"],
    features=12,
)
SOME_SQUEEZE = make(
    "some-squeeze",
    [
        {
            "name": "s1",
            "depths": [0, 2],
            "channels": 8,
            "activation": "r6",
            "blocks": [
                {
                    "configs": [
                        {"name": "a", "expansion": 3, "se": 0.5},
                        {"name": "b", "expansion": 2.5, "kernel": 7},
                    ]
                },
                {
                    "configs": [
                        {"name": "c", "expansion": 2, "kernel": 5, "se": 0.25},
                        {"name": "d", "se": 0.5},
                    ]
                },
            ],
        },
        stage("s2", [1, 2, 3], 12, {"kernel": [3, 5, 7], "expansion": [2, 6]}, stride=2),
    ],
)
BOTTLENECK = make(
    "bottleneck",
    [
        stage("s1", [1, 2], 16, {"ratio": [0.5, 1.0], "kernel": [1, 3]}, family="bottleneck"),
        stage("s2", [1, 2, 3], 32, {"ratio": [0.25, 0.5], "kernel": [3, 5]}, family="bottleneck", stride=2),
    ],
)
MIXED = make(
    "mixed",
    [
        stage("s1", [0, 1, 2], 8, {"ratio": [1, 2], "kernel": [3]}, family="bottleneck"),
        stage("s2", [1, 2], 16, {"expansion": [2, 3], "se": [False, True]}, family="mbconv", stride=2),
    ],
)
FUSED = make(
    "fused",
    [
        stage("s1", [1, 2], 8, {"expansion": [0.5, 1, 4], "kernel": [3, 5]}, fused=True, activation="re"),
        stage(
            "s2",
            [1, 2, 3],
            16,
            {"fused": [False, True], "expansion": [1, 3], "kernel": [3, 5], "se": [False, True]},
            stride=2,
        ),
    ],
)
TENSORFLOW = make(
    "tensorflow",
    [
        stage(
            "s1",
            [1, 2],
            8,
            {"expansion": [1, 2], "kernel": [3, 5], "se": [False, True]},
            stride=2,
            activation="r6",
        ),
        stage(
            "s2",
            [1, 2],
            16,
            {"ratio": [0.5, 1.0], "kernel": [3, 5]},
            family="bottleneck",
            stride=2,
            activation="sw",
        ),
    ],
    stem=["cn_r1_k5_s1_c8_nr6", "mp_r1_k3_s1_c8"],
    head=["cn_r1_k1_s1_c24_nsw"],
    features=12,
    resolution=16,
    rules={
        "padding": "same",
        "norm_epsilon": 0.05,
        "norm_momentum": 0.02,
        "squeeze": {"of": "input", "divisor": 1, "gate": "sigmoid", "activation": "sw"},
        "features_activation": "re",
        "mean": [0.5, 0.4, 0.3],
        "std": [0.2, 0.2, 0.2],
    },
)
OFA = replace(load_space("ofa-mbv3"), classes=5)
SPACES = {space.name: space for space in (MBCONV, SOME_SQUEEZE, BOTTLENECK, MIXED, FUSED, TENSORFLOW)}


def scramble(net: nn.Module, seed: int = 0) -> None:
    """Give every BatchNorm its own scale, shift and statistics, so that taking a wrong one shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if name.endswith(("running_var", "weight")) and value.ndim == 1:
                value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
            elif name.endswith(("running_mean", "bias")):
                value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
            elif value.ndim == 4 and value.shape[1] == 1:  # kernels of different sizes start alike
                value.add_(torch.randn(value.shape, generator=generator) * 0.2)


@cache
def scrambled(name: str) -> Supernet:
    """A supernet in eval mode; tests that change it take their own."""
    net = fresh(SPACES.get(name) or OFA)
    return net.eval()


def fresh(space: SearchSpace) -> Supernet:
    torch.manual_seed(1)
    net = Supernet(space)
    scramble(net)
    return net


def images(space: SearchSpace, count: int, seed: int = 0, size: int = SIZE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((count, space.channels or 1, size, size), generator=generator)


def onnx_logits(network: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    """What onnxruntime computes from the exported network."""
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    program = torch.onnx.export(network, (batch,), dynamo=True, verbose=False)
    assert program is not None
    model = program.model_proto.SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {session.get_inputs()[0].name: batch.numpy()})
    return torch.from_numpy(logits)
