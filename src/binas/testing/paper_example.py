"""The paper's numbers as a complete example folder: ``binas example paper DIR``.

The paper prints averages (figure on design insights), not the 255 numbers themselves. They are
reconstructed here so that every printed average comes out exactly; what had to be assumed is written
into the provenance and in docs/reference/paper-example.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from binas.base.errors import FileError
from binas.base.files import exists
from binas.costs.analytic import analytic_costs, config_work, shapes
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Column, Provenance
from binas.tables.units import parse_unit

# Figure "insights", left: what a third and a fourth block add per stage in points; latency of a block in ms.
THIRD_BLOCK = (0.327805, 0.253799, 0.319214, 0.691796, 0.987206)
FOURTH_BLOCK = (0.077003, 0.116189, 0.113785, 0.312606, 0.363792)
BLOCK_LATENCY_MS = (6.5, 2.4, 1.9, 3.0, 1.9)

# Middle and right: average contribution of each step in points, per stage (over blocks) and per block (over
# stages).
PER_STAGE = {
    "expansion 3 to 4": (
        0.04170036315917969,
        0.029999256134033203,
        0.029224872589111328,
        0.07246255874633789,
        0.1118006706237793,
    ),
    "expansion 4 to 6": (
        0.06004810333251953,
        0.060211181640625,
        0.08327674865722656,
        0.14120054244995117,
        0.2086467742919922,
    ),
    "kernel 3 to 5": (
        0.008801142374674479,
        0.025275230407714844,
        0.03856658935546875,
        0.0424502690633138,
        0.0012760162353515625,
    ),
    "add SE": (
        0.024433135986328125,
        0.03580697377522787,
        0.05210049947102864,
        0.16463375091552734,
        0.20270792643229166,
    ),
}
PER_BLOCK = {
    "expansion 3 to 4": (0.0805816650390625, 0.09049797058105469, 0.04370002746582031, 0.013370513916015625),
    "expansion 4 to 6": (0.16334991455078124, 0.1725605010986328, 0.07890777587890624, 0.02788848876953125),
    "kernel 3 to 5": (0.027814229329427086, 0.04351882934570313, 0.0037096659342447918, 0.018052673339843752),
    "add SE": (0.09007975260416667, 0.2050000508626302, 0.0879992167154948, 0.0006668090820312498),
}
ASSUMED_BASE = 72.86

ASSUMPTIONS = (
    "Printed in the paper and reproduced exactly: what a third and fourth block add per stage; the "
    "average effect of expansion 3 to 4, 4 to 6, kernel 3 to 5 and squeeze-excite per stage and per "
    f"block; mean block latency per stage. Assumed: base accuracy {ASSUMED_BASE} %, so that the best "
    "network at 45 ms is predicted at the 75.3 % that the figure on optimisers shows there; depth "
    "contributions average zero over the depths of a stage; config contributions average zero over the "
    "configs of a block; the effect of a step in (stage, block) is the product of its stage and block "
    "averages over its grand mean, and steps add up without interaction; latency of a config is its "
    "stage's printed mean times its MACs over the stage's mean MACs; the fixed part has the mean "
    "latency per MAC of the searched blocks."
)


def write_paper_example(folder: Path, overwrite: bool = False) -> list[Path]:
    """Write space.yaml, contributions.json and costs.json; refuses to replace other files."""
    paths = [folder / name for name in ("space.yaml", "contributions.json", "costs.json")]
    present = [path.name for path in paths if exists(path)]
    if present and not overwrite:
        names = ", ".join(present)
        raise FileError(f"{folder} already holds {names}; choose another folder or pass --overwrite.")
    space = load_space("imagenet-mbconv")
    save_space(space, paths[0])
    paper_contributions(space).save(paths[1])
    paper_costs(space).save(paths[2])
    return paths


def _provenance(**more: object) -> Provenance:
    source = "RECONSTRUCTION from the averages printed in the BINAS paper, not measured tables"
    return Provenance.made(source, assumptions=ASSUMPTIONS, **more)


def paper_contributions(space: SearchSpace) -> Contributions:
    """Contributions of ``imagenet-mbconv`` whose averages are the printed ones."""
    effects = {name: _outer(PER_STAGE[name], PER_BLOCK[name]) for name in PER_STAGE}

    def depth(s: int, i: int) -> float:
        levels = np.cumsum([0.0, THIRD_BLOCK[s], FOURTH_BLOCK[s]])
        return float(levels[i] - levels.mean())

    def config(s: int, b: int, c: int) -> float:
        options = dict(space.stages[s].blocks[b][c].options)
        first, second = effects["expansion 3 to 4"][s, b], effects["expansion 4 to 6"][s, b]
        width = {3: 0.0, 4: first, 6: first + second}
        value = width[int(options["expansion"])] - (2 * first + second) / 3
        value += (0.5 if options["kernel"] == 5 else -0.5) * effects["kernel 3 to 5"][s, b]
        return float(value + (0.5 if options["se"] else -0.5) * effects["add SE"][s, b])

    return Contributions(space, ASSUMED_BASE, Column.build(space, depth, config), provenance=_provenance())


def _outer(per_stage: tuple[float, ...], per_block: tuple[float, ...]) -> np.ndarray:
    """Rank-one table whose row and column means are the given ones (their grand means agree)."""
    return np.outer(per_stage, per_block) / np.mean(per_block)


def paper_costs(space: SearchSpace) -> CostTable:
    """Latency with the printed mean per stage, and the exact MACs and parameters."""
    macs = [[[work.macs for work in block] for block in stage] for stage in config_work(space)]
    means = [float(np.mean([m for block in stage for m in block])) for stage in macs]
    per_mac = sum(BLOCK_LATENCY_MS) / sum(means)
    per_config = [BLOCK_LATENCY_MS[s] / means[s] for s in range(len(means))]
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: per_config[s] * macs[s][b][c])
    provenance = _provenance(device="Intel Xeon (as in the paper)", threads=1, batch=1, dtype="float32")
    latency = Cost(
        "latency", parse_unit("ms"), shapes(space).fixed.macs * per_mac, values, provenance=provenance
    )
    return CostTable(space, {"latency": latency, **analytic_costs(space).costs})
