"""What ``pip install binas`` brings is enough to search tables and write their page; what else is needed is named.

Every module that comes from a package outside the dependencies of the core is made impossible to import.
"""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from binas.base.packages import EXTRAS
from binas.estimators import BilinearEstimator
from binas.space import load_space, sample_many
from binas.tables import Sample, Samples
from binas.testing.paper_example import paper_contributions, write_paper_example

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SCRIPT = """
import contextlib, io, json, sys
blocked, commands = json.loads(sys.argv[1]), json.loads(sys.argv[2])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from binas.cli.main import main
for words in commands:
    sys.argv, out, err, code = ["binas", *words], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def core_distributions():
    """Names of the distributions that the core's dependencies bring with them."""
    names, waiting = {"binas"}, [Requirement(text).name for text in PROJECT["dependencies"]]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in names:
            names.add(name)
            lines = map(Requirement, importlib.metadata.requires(name) or [])
            waiting += [
                line.name for line in lines if line.marker is None or line.marker.evaluate({"extra": ""})
            ]
    return names


@pytest.fixture(scope="module")
def blocked():
    core = core_distributions()
    homes = importlib.metadata.packages_distributions()
    names = {
        module for module, dists in homes.items() if not core & {d.lower().replace("_", "-") for d in dists}
    }
    assert {"torch", "scipy"} <= names
    assert not names & {"numpy", "highspy", "pydantic", "typer", "rich", "yaml", "binas"}
    return sorted({*names, *EXTRAS})


@pytest.fixture
def run(blocked, tmp_path):
    """Runs commands one after the other without those modules: exit code, output and errors of each."""

    def outcomes(*commands):
        words = [[str(word) for word in command] for command in commands]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(blocked), json.dumps(words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return outcomes


def test_the_core_searches_and_writes_its_page(run, tmp_path):
    outcomes = run(
        ["example", "paper", "ex"],
        ["search", "ex", "-l", "latency=45ms"],
        ["search", "ex", "-l", "latency=45ms", "--solver", "milp"],
        ["search", "ex", "-l", "latency=45ms", "-l", "params=5M", "--solver", "bcfw"],
        ["frontier", "ex", "--cost", "latency", "--plot", "frontier.html"],
        ["report", "ex", "-l", "latency=45ms"],
        ["insights", "ex"],
        ["solvers"],
        ["doctor"],
    )
    assert [(code, err) for code, _, err in outcomes] == [(0, "")] * len(outcomes)
    assert (tmp_path / "ex" / "report.html").stat().st_size > 100_000
    assert "networks" in (tmp_path / "frontier.html").read_text(encoding="utf-8")
    assert "pip install 'binas[scip]'" in outcomes[-2][1].replace("\n", " ")


def test_the_core_explains_compares_and_learns(run, tmp_path):
    """Tables of costs, spaces, judging and learning estimators, limits that nothing keeps."""
    space, rng = load_space("imagenet-mbconv"), np.random.default_rng(0)
    architectures = list(dict.fromkeys(sample_many(space, 60, 0)))
    truth = BilinearEstimator(paper_contributions(space)).predict(architectures)
    rows = [
        (item, (value + 0.1 * rng.normal(size=2)).tolist())
        for item, value in zip(architectures, truth, strict=True)
    ]
    samples = tuple(Sample(item, sum(halves) / 2, 0.1, 1000, tuple(halves)) for item, halves in rows)
    write_paper_example(tmp_path / "ex")
    Samples(space, samples).save(tmp_path / "ex" / "samples.json")
    outcomes = run(
        ["explain", "ex", str(architectures[0]), "-l", "latency=60ms"],
        ["costs", "show", "ex/costs.json"],
        ["costs", "diff", "ex/costs.json", "ex/costs.json"],
        ["costs", "merge", "ex/costs.json", "--out", "merged.json"],
        ["space", "show", "ex/space.yaml"],
        ["check", "ex", "--resamples", 5],
        [
            "predictors",
            "ex",
            "--fit",
            "additive",
            "--fit",
            "within-stage",
            "--samples",
            40,
            "--test",
            15,
        ],
        ["search", "ex", "-l", "latency=10ms", "-l", "params=1M"],
    )
    *fine, (code, _, err) = outcomes
    assert [(code, err) for code, _, err in fine] == [(0, "")] * len(fine)
    assert code == 2
    assert "The smallest change that works" in err


def test_what_is_missing_is_named_with_its_pip_line(run):
    outcomes = run(
        ["example", "paper", "ex"],
        ["train", "run"],
        ["frontier", "ex", "--plot", "frontier.png"],
        ["search", "ex", "-l", "latency=45ms", "--solver", "miqcp"],
    )
    lines = ("'binas[train]'", "'binas[plot]'", "'binas[scip]'")
    for (code, _, err), line in zip(outcomes[1:], lines, strict=True):
        assert code == 2, err
        assert err.startswith("error: ")
        assert f"pip install {line}" in err
        assert len(err.splitlines()) == 1


def test_names_of_the_python_interface_say_what_they_lack(blocked):
    script = SCRIPT.split("from binas.cli")[0] + (
        "import binas\n"
        "from binas.data import DataConfig\n"  # settings need nothing
        "from binas.run.config import RunConfig\n"
        "for get in (lambda: binas.load_model, lambda: __import__('binas.training').training.fine_tune):\n"
        "    try: get()\n"
        "    except binas.base.errors.MissingPackageError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(blocked), "[]"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "binas.load_model needs torch, which is not installed: pip install 'binas[train]'"
    assert second.startswith("binas.training.fine_tune needs ")


def test_the_package_can_be_run():
    done = subprocess.run(
        [sys.executable, "-m", "binas", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("binas ")
