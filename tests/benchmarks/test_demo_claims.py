"""What benchmarks/demo.py says of accuracies that rise with the limit."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import demo
from binas.search.rivals import difference


def found(name, percent):
    verdict = SimpleNamespace(found=percent, tuned=True)
    return SimpleNamespace(found=SimpleNamespace(architecture=name), verdict=verdict, images=1000)


def test_a_rise_is_paired_where_outcomes_are_known():
    right = np.arange(10_000) < 8000
    more = np.arange(10_000) < 8020  # right on the same images and 20 more
    pair = [found("a", 80.0), found("b", 80.2)]
    ((points, error),) = demo.rises(pair, {"a": right, "b": more})
    assert (points, error) == pytest.approx(difference(more, right))
    ((same, wider),) = demo.rises(pair, {})
    assert same == pytest.approx(0.2)
    assert error < 0.1 < 0.5 < wider  # as if the images had nothing in common
