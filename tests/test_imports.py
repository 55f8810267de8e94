"""The rooms of the house: imports point one way, and searching tables stays light."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import binas
from binas.base.plugins import GROUPS

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


SEES_ALL = ["run", "tasks", "reproduce", "cli", "testing"]

# The one deliberate edge against the order: a block family is declared in one piece in ``space``, and names the
# functions of ``supernet`` that build it as text, so that nothing of ``supernet`` (and torch) is loaded before a network
# is built. See ``binas.space.families.Family``.
TEXT_EDGES = {("space", "supernet")}

# Text such as "binas.supernet.plain:described_block" or "binas.data.loading"; formats of files are "binas/space".
_MODULE_TEXT = re.compile(r"binas(\.[a-z_0-9]+)+(:\w+)?")


def syntax(path: Path) -> list[ast.AST]:
    """All nodes of a file, also inside functions, but not those for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = [
        n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    skipped = {id(child) for block in typing_only for child in ast.walk(block)}
    return [node for node in ast.walk(tree) if id(node) not in skipped]


def imported(path: Path) -> set[str]:
    """Names of all modules a file imports by a statement."""
    names: set[str] = set()
    for node in syntax(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def named(path: Path) -> set[str]:
    """Names of the modules of binas that stand in a file as text, by which they could be imported."""
    nodes = syntax(path)
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {text.partition(":")[0] for text in texts - {*GROUPS} if _MODULE_TEXT.fullmatch(text)}


def rooms_of(names: set[str]) -> set[str]:
    return {parts[1] for name in names if (parts := name.split("."))[0] == "binas" and len(parts) > 1}


def sources(room: str) -> list[Path]:
    """The modules of a room, and the stubs that declare names imported when first used."""
    return [path for path in (ROOT / room).rglob("*.py*") if path.suffix in (".py", ".pyi")]


@pytest.mark.parametrize("room", [room for room in ORDER if (ROOT / room).is_dir()])
def test_imports_point_one_way(room):
    later = {*ORDER[ORDER.index(room) + 1 :], *SEES_ALL}
    for path in sources(room):
        wrong = rooms_of(imported(path)) & later
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("room", [room for room in ORDER if (ROOT / room).is_dir()])
def test_modules_named_as_text_point_the_same_way(room):
    later = {*ORDER[ORDER.index(room) + 1 :], *SEES_ALL}
    edges = {(room, other) for path in sources(room) for other in rooms_of(named(path)) & later}
    assert edges == {edge for edge in TEXT_EDGES if edge[0] == room}


def test_modules_named_as_text_exist():
    for path in ROOT.rglob("*.py"):
        for name in named(path):
            place = ROOT.joinpath(*name.split(".")[1:])
            assert place.is_dir() or place.with_suffix(".py").is_file(), f"{path}: {name}"


def test_modules_are_imported_by_name_in_few_places():
    """Names that are put together while running escape the test above, so only these may import by name."""
    allowed = {"base/lazy.py", "base/plugins.py", "data/huggingface.py"}
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if re.search(r"\bimport_module\(|__import__\(", path.read_text(encoding="utf-8"))
    }
    assert found <= allowed


def test_every_room_has_its_place():
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert rooms <= {*ORDER, *SEES_ALL}


@pytest.mark.parametrize("room", [room for room in LIGHT if (ROOT / room).is_dir()])
def test_light_rooms_never_import_torch(room):
    for path in {*sources(room)} - HEAVY_FILES:
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
    heavy = {"torch", "scipy", "pyscipopt", "cplex", "gurobipy", "matplotlib", "pandas"}
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
