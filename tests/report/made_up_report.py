"""A report with every section, of made-up tables: the demo space with errors that depend on each other."""

from __future__ import annotations

from functools import cache

import numpy as np

from binas.base.interval import Interval
from binas.costs import analytic_costs
from binas.report.data import Chosen, Reference, ReportData, StepTime
from binas.search import Limit, SearchProblem, evaluate, solve
from binas.space import load_space
from binas.space.sampling import sample_many
from binas.tables import (
    Column,
    Contributions,
    Cost,
    CostTable,
    NetworkCheck,
    Sample,
    Samples,
    Verification,
    parse_unit,
)

SPACE = load_space("small-28")
METRICS = [
    {"phase": "heaviest", "epoch": 1, "step": 200, "loss": 0.90, "learning_rate": 0.006, "heaviest": 81.9},
    {"phase": "heaviest", "epoch": 2, "step": 400, "loss": 0.40, "learning_rate": 0.0, "heaviest": 87.2},
    *(
        {
            "phase": "supernet",
            "epoch": epoch,
            "step": 200 * epoch,
            "loss": 0.25 + 0.7 / epoch,
            "learning_rate": 0.004 / epoch,
            "heaviest": 86 - 5 / epoch,
            "lightest": 80 - 20 / epoch,
            "random": 84 - 9 / epoch,
        }
        for epoch in range(1, 7)
    ),
]
TIMES = {
    "heaviest": 31.0,
    "supernet": 118.0,
    "costs": 40.0,
    "contributions": 22.0,
    "search": 0.08,
    "fine-tune": 64.0,
}


def contributions() -> Contributions:
    """Wider, larger kernels and squeeze-excite bring points, later stages more; with a full covariance."""
    rng = np.random.default_rng(3)

    def config(s: int, b: int, c: int) -> float:
        options = dict(SPACE.stages[s].blocks[b][c].options)
        gain = (
            0.10 * (options["expansion"] - 3) + 0.04 * (options["kernel"] - 4) + 0.2 * (options["se"] - 0.5)
        )
        return float(gain * (0.5 + 0.5 * s) / (1 + b) + rng.normal(scale=0.01))

    values = Column.build(SPACE, lambda s, i: 0.5 * (s + 1) * (i - 1), config)
    root = rng.normal(size=(1 + SPACE.alpha_size + SPACE.beta_size, 40)) * 0.004
    return Contributions(SPACE, 82.0, values, covariance=root @ root.T)


def costs() -> CostTable:
    """Latency that grows with the MACs, and everything that can be counted."""
    counted = analytic_costs(SPACE)
    macs = counted["macs"]
    values = Column(
        macs.values.depths, tuple(tuple(b / 4e6 + 0.01 for b in row) for row in macs.values.configs)
    )
    return CostTable(SPACE, {"latency": Cost("latency", parse_unit("ms"), 0.2, values), **counted.costs})


def verification(problem: SearchProblem) -> Verification:
    rng = np.random.default_rng(5)
    checks = []
    for i, architecture in enumerate(sample_many(SPACE, 30, 1)):
        predicted = problem.cost("latency", architecture)
        measured = predicted * (1 + rng.normal(scale=0.015))
        part = "fit" if i < 12 else "held-out"
        checks.append(
            NetworkCheck(
                architecture=str(architecture),
                predicted=predicted,
                measured=measured,
                low=measured * 0.99,
                high=measured * 1.01,
                part=part,
            )
        )
    return Verification(
        networks=18,
        bias_percent=Interval(value=0.2, low=-0.4, high=0.8),
        mape_percent=Interval(value=1.2, low=0.9, high=1.5),
        worst_percent=3.4,
        spearman=Interval(value=0.995, low=0.99, high=0.998),
        kendall=Interval(value=0.96, low=0.93, high=0.98),
        retest_percent=0.9,
        sum_percent=37.0,
        macs_percent=12.0,
        date="2026-01-01",
        checks=tuple(checks),
    )


def samples(problem: SearchProblem) -> Samples:
    rng = np.random.default_rng(6)
    rows = []
    for architecture in sample_many(SPACE, 60, 2):
        truth = evaluate(problem, architecture).accuracy + rng.normal(scale=0.2)
        halves = truth + rng.normal(scale=0.3, size=2)
        rows.append(
            Sample(architecture, float(halves.mean()), 0.21, 4000, (float(halves[0]), float(halves[1])))
        )
    return Samples(SPACE, tuple(rows))


def chosen(problem: SearchProblem, limit: float, i: int) -> Chosen:
    found = solve(problem.with_limits([Limit("latency", limit)])).evaluation
    assert found is not None
    cost = found.costs["latency"]
    return Chosen(
        f"latency <= {limit:g} ms",
        found.architecture,
        found.accuracy,
        found.accuracy_stderr,
        cost,
        Interval(value=cost * 1.01, low=cost, high=cost * 1.02),
        found.accuracy - 0.3,
        found.accuracy + 2.0,
        found.costs["params"],
        (f"network-{i}.onnx", f"network-{i}.safetensors"),
    )


@cache
def full_report() -> ReportData:
    """Every section filled."""
    problem = SearchProblem.build(contributions(), costs())
    rng = np.random.default_rng(7)
    others = [
        Reference(str(a), "random", found.accuracy + rng.normal(scale=0.2) - 0.2, found.costs["latency"])
        for a in sample_many(SPACE, 40, 4)
        for found in [evaluate(problem, a)]
    ]
    by_hand = [
        Reference(f"uniform {w}", "hand-scaled", 80.6 + 1.2 * i, 0.5 + 0.4 * i)
        for i, w in enumerate(("small", "medium", "large"))
    ]
    return ReportData(
        SPACE,
        contributions(),
        costs(),
        "latency",
        "The demo: clothes in a millisecond",
        tuple(chosen(problem, limit, i) for i, limit in enumerate((0.6, 0.9, 1.2), 1)),
        (*others, *by_hand),
        verification(problem),
        samples(problem),
        tuple(METRICS),
        tuple(StepTime(name, seconds) for name, seconds in TIMES.items()),
        "space: demo\ntraining:\n  recipe: small\n  seed: 0\n",
        ("binas demo", "binas report runs/demo --png figures"),
    )
