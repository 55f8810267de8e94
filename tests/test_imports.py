"""The rooms of the house: imports point one way, and searching tables stays light."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import binas

ROOT = Path(binas.__file__).parent
ORDER = [
    "base",
    "space",
    "tables",
    "supernet",
    "data",
    "training",
    "costs",
    "contributions",
    "estimators",
    "search",
    "insights",
    "report",
    "export",
]
LIGHT = ["base", "space", "tables", "estimators", "search", "insights"]
HEAVY_FILES = {ROOT / "estimators" / "mlp.py"}  # the one predictor that is a network


def imported(path: Path) -> set[str]:
    """Names of all modules a file imports, also inside functions, but not for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = [
        n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    skipped = {id(child) for block in typing_only for child in ast.walk(block)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", [room for room in ORDER if (ROOT / room).is_dir()])
def test_imports_point_one_way(room):
    later = {
        f"binas.{other}" for other in [*ORDER[ORDER.index(room) + 1 :], "run", "tasks", "cli", "testing"]
    }
    for path in (ROOT / room).rglob("*.py"):
        wrong = {name for name in imported(path) if any(name == x or name.startswith(x + ".") for x in later)}
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("room", [room for room in LIGHT if (ROOT / room).is_dir()])
def test_light_rooms_never_import_torch(room):
    for path in {*(ROOT / room).rglob("*.py")} - HEAVY_FILES:
        assert not any(name.split(".")[0] == "torch" for name in imported(path)), path


def test_a_search_on_tables_loads_nothing_heavy(tmp_path):
    script = (
        "import sys, json\n"
        "sys.argv = ['binas', 'search', sys.argv[1], '--limit', 'latency=45ms', '--json']\n"
        "from binas.cli.main import app\n"
        "from binas.testing.paper_example import write_paper_example\n"
        "from pathlib import Path\n"
        "write_paper_example(Path(sys.argv[2]))\n"
        "app(standalone_mode=False)\n"
        "print(json.dumps(sorted(m for m in sys.modules if '.' not in m)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "ex")], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    heavy = {"torch", "scipy", "pyscipopt", "cplex", "gurobipy", "plotly", "matplotlib", "pandas"}
    assert not loaded & heavy


def test_closed_form_predictors_work_without_torch():
    script = (
        "import sys\n"
        "from binas.estimators import QuadraticPredictor, WithinStageEstimator, report\n"
        "from binas.space import enumerate_all, load_space\n"
        "from binas.tables import Sample, Samples\n"
        "space = load_space('nas-bench-macro')\n"
        "rows = [Sample(a, 50 + len(str(a))) for a in enumerate_all(space)[::100]]\n"
        "samples = Samples(space, tuple(rows))\n"
        "assert not {'torch', 'scipy'} & set(sys.modules)\n"
        "for kind in (QuadraticPredictor, WithinStageEstimator):\n"
        "    predicted = kind().fit(samples).predict(samples.architectures)\n"
        "    report({'one': predicted}, samples, None, resamples=2)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_public_names_exist_and_unknown_ones_do_not():
    for name in binas.__all__:
        assert getattr(binas, name) is not None
    assert set(binas.__all__) == set(dir(binas))
    with pytest.raises(AttributeError):
        binas.no_such_thing  # noqa: B018
