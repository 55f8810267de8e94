"""What benchmarks/shrink.py says of its numbers, and the models it makes smaller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from earnest import write_between
from shrink import missed, table
from trained_models import lite0, resnet20


def result(leads: list[float], found: float = 0.29, seconds: tuple[float, float] = (100.0, 200.0)) -> Any:
    """Three limits at which found is ahead of one tool by these points, each ± 0.5, and of another by 9."""
    rows = [
        {
            "limit": limit,
            "found": {"accuracy": 80.0, "latency": found},
            "built": 2,
            "readings": 3,
            "columns": {
                "FastNAS": {"accuracy": 80.0 - lead, "latency": limit, "lead": [lead, 0.5]},
                "uniform width": {"accuracy": 71.0, "latency": limit, "lead": [9.0, 0.5]},
            },
        }
        for limit, lead in zip((0.75, 0.5, 0.3), leads, strict=True)
    ]
    times = {name: {"seconds": value} for name, value in zip(("found", "FastNAS"), seconds, strict=True)}
    return {"limits": rows, "seconds": times, "model": {"accuracy": 81.0, "latency": 1.5}}


def test_targets_that_are_met() -> None:
    assert list(missed(result([1.0, 2.0, -0.4]))) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (result([1.0, 0.9, 0.9]), "by 1 point or more at 1 of 3 limits"),
        (result([2.0, 2.0, -0.6]), "0.60 ± 0.50 points behind FastNAS at 30 %"),
        (result([2.0, 2.0, 2.0], found=0.31), "31.0 % of the model's latency, limit 30 %"),
        (result([2.0, 2.0, 2.0], seconds=(201.0, 200.0)), "201 CPU seconds until the answer, FastNAS 200"),
    ],
)
def test_targets_that_are_missed(given: Any, words: str) -> None:
    (said,) = missed(given)
    assert words in said


def test_the_table_has_a_row_for_each_limit() -> None:
    lines = list(table("resnet20", result([1.0, 2.0, 3.0])))
    assert (
        lines[2]
        == "| 75 % | **80.00** at 29.0 % | 79.00 (+1.00 ± 0.50) at 75.0 % | 71.00 (+9.00 ± 0.50) at 75.0 % |"
    )
    assert "found 100, FastNAS 200" in lines[-1]


def test_text_is_put_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    write_between(page, "a", "one")
    write_between(page, "b", "other")
    write_between(page, "a", "two")
    text = page.read_text()
    assert "two" in text
    assert "one" not in text
    assert text.index("two") < text.index("other")


@torch.no_grad()
def test_the_models_are_those_published() -> None:
    """Parameters of He et al. 2015 (0.27 million) and of the package's Lite0."""
    assert 0.27e6 < sum(item.numel() for item in resnet20().parameters()) < 0.28e6
    network = lite0(1000).eval()
    assert sum(item.numel() for item in network.parameters()) == 4_652_008
    assert network(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
