"""What other packages add: the example package is put on the path as if pip had installed it; then a broken one."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from binas.base.errors import DataError, MeasureError, PluginError, ProblemError, SpaceError
from binas.base.plugins import GROUPS, Registry, import_name, installed
from binas.search import SearchProblem, Status, solve, solver_class
from binas.search.solvers import SOLVERS
from binas.space import load_space, parse_block, space_from_data, to_block_string
from binas.space.families import _base, family_names
from binas.testing.paper_example import paper_contributions, paper_costs

EXAMPLE = Path(__file__).parent / "example_package"
STAGE = {"name": "s1", "depths": [1, 2], "channels": 8, "configs": {"kernel": [3, 5]}, "family": "plain-conv"}
SPACE = {
    "format": "binas/space",
    "version": 1,
    "name": "plugged",
    "channels": 3,
    "resolution": 12,
    "classes": 5,
    "stem": ["cn_r1_k3_s2_c8_nre"],
    "stages": [STAGE],
    "head": ["pc_k3_c8_nre"],
}


def install(folder, name, groups):
    """What pip leaves of a package beside its modules."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in own.items()) for group, own in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages; families that it adds are forgotten afterwards."""
    monkeypatch.setattr(_base, "_FAMILIES", dict(_base._FAMILIES))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def example(site, monkeypatch):
    """The example package, with the entry points that its project file declares."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install(site, project["name"], project["entry-points"])
    monkeypatch.syspath_prepend(EXAMPLE)
    return project["entry-points"]


def paper_problem():
    space = load_space("imagenet-mbconv")
    return SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=45ms"])


def test_there_is_one_of_each_kind_and_all_can_be_loaded(example):
    assert set(example) == set(GROUPS)
    for group, own in example.items():
        loaders = installed(group)
        assert set(own) <= set(loaders)
        for name, text in own.items():
            assert loaders[name]() is import_name(text)


def test_a_solver(example):
    assert "cheapest" in SOLVERS
    result = solve(paper_problem(), "cheapest")  # its claim is verified like that of any other
    assert result.status is Status.FEASIBLE
    assert list(SOLVERS)[-1] == "cheapest"
    assert solver_class("cheapest").missing() is None


def test_a_family_has_strings_costs_and_networks(example):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from binas.costs import architecture_work
    from binas.supernet import Supernet, extract

    assert "plain-conv" in family_names()
    space = space_from_data(SPACE)
    network = extract(Supernet(space), space.extreme())
    assert network.eval()(torch.zeros(1, 3, 12, 12)).shape == (1, 5)
    counted = sum(p.numel() for p in network.parameters())
    assert counted == architecture_work(space, space.extreme()).params
    assert "pc_r1_k5_s1" in to_block_string(space, space.extreme())


def test_the_kind_of_a_family_is_found_before_a_stage_names_it(example):
    assert parse_block("pc_k3_c8").kind == "pc"


def test_a_backend_measures(example):
    pytest.importorskip("torch", reason="torch is not installed")
    from binas.costs.backends import BACKENDS
    from binas.costs.doctor import noise_of
    from binas.costs.settings import Settings

    assert list(BACKENDS) == ["onnxruntime", "torch", "openvino", "stopwatch"]
    assert noise_of(Settings("stopwatch"), samples=12).value > 0


def test_a_data_set(example):
    pytest.importorskip("torch", reason="torch is not installed")
    from binas.data import DataConfig, load_data

    data = load_data(DataConfig(kind="stripes", size=10, seed=3))
    assert (data.name, data.classes, data.size) == ("stripes", ("across", "down"), (10, 10))
    with pytest.raises(ValueError, match="does not use streaming"):
        DataConfig(kind="stripes", streaming=True)


def test_an_estimator_is_judged_and_searched_with(example):
    from binas.estimators import candidates, choose_estimator, make_estimator
    from binas.space import sample_many
    from binas.tables import Sample, Samples

    space = load_space("imagenet-mbconv")
    contributions = paper_contributions(space)
    drawn = sample_many(space, 30, 0)
    truth, _ = contributions.predict(drawn)
    samples = Samples(
        space, tuple(Sample(item, float(value)) for item, value in zip(drawn, truth, strict=True))
    )
    assert next(iter(candidates())) == "constant"
    choice = choose_estimator(contributions, samples, resamples=20)
    assert "constant" in [item.name for item in choice.estimators]
    assert choice.chosen == "additive"
    problem = SearchProblem.build(
        make_estimator("constant", None, samples), paper_costs(space), ["latency=45ms"]
    )
    assert solve(problem).accuracy == pytest.approx(float(truth.mean()))


def test_a_task_is_a_step_a_setting_and_a_command(example, tmp_path):
    """In a process of its own: what tasks there are is looked up once."""
    script = (
        "import sys; sys.path[:0] = sys.argv[1:3]; folder = sys.argv[3]\n"
        "from typer.testing import CliRunner\n"
        "from binas.cli.main import app\n"
        "from binas.run.config import load_config\n"
        "from binas.tasks import all_steps\n"
        "config = load_config(changes=['greet.name=Ada'])\n"
        "assert config.greet.name == 'Ada', config\n"
        "assert all_steps()[-1].name == 'greet'\n"
        "said = CliRunner().invoke(app, ['greet', '--help']).output\n"
        "assert '--name' in said and 'whom to greet' in said.lower(), said\n"
    )
    places = [str(tmp_path), str(EXAMPLE), str(tmp_path / "run")]
    subprocess.run([sys.executable, "-c", script, *places], check=True)


def test_names_choose_only_among_what_is_installed():
    from binas.costs.backends import backend_class
    from binas.data.config import KINDS, DataConfig

    for text in ("os:system", "binas_example.solver:Cheapest", "cheapest"):
        with pytest.raises(ProblemError, match="there is no solver"):
            solver_class(text)
        with pytest.raises(MeasureError, match="there is no backend"):
            backend_class(text)
        with pytest.raises(DataError, match="there is no kind of data"):
            KINDS.load(text)
        with pytest.raises(ValueError, match="must be one of embedded, "):
            DataConfig(kind=text)
    with pytest.raises(SpaceError, match="unknown block family 'plain-conv'"):
        to_block_string(
            space_from_data({**SPACE, "head": []}), space_from_data({**SPACE, "head": []}).extreme()
        )


class TestBroken:
    @pytest.fixture(autouse=True)
    def broken(self, site):
        names = {"absent": "no_such_package:thing", "wrong": "json:dumps", "milp": "json:dumps"}
        groups = ("binas.solvers", "binas.backends", "binas.families")
        install(site, "broken-package", dict.fromkeys(groups, names))

    def test_it_is_named_where_it_is_used(self):
        with pytest.raises(
            PluginError,
            match=r"the plugin 'absent' \(binas.solvers\) of the package 'broken-package' cannot be loaded "
            r"\(ModuleNotFoundError: No module named 'no_such_package'\); repair the package or uninstall it",
        ):
            solve(paper_problem(), "absent")
        with pytest.raises(PluginError, match=r"'wrong' .* is no Solver class"):
            solve(paper_problem(), "wrong")
        with pytest.raises(PluginError, match=r"'wrong' .* is no Family"):
            to_block_string(space := space_from_data(self.space_of("wrong")), space.extreme())

    @staticmethod
    def space_of(family):
        return {**SPACE, "head": [], "stages": [{**STAGE, "family": family}]}

    def test_it_cannot_take_a_name_of_binas(self):
        assert solver_class("milp").__module__ == "binas.search.solvers.milp"
        assert list(SOLVERS).count("milp") == 1

    def test_the_others_are_not_broken_by_it(self, caplog):
        assert solve(paper_problem()).status is Status.OPTIMAL
        assert [name for name, _ in SOLVERS.load_all()] == list(SOLVERS.builtin)
        assert [record.message.split(" of the ")[0].split(") ")[0] for record in caplog.records] == [
            "the plugin 'absent' (binas.solvers)",
            "the plugin 'wrong' (binas.solvers",
        ]

    def test_an_unknown_kind_of_block_is_still_one_sentence(self, caplog):
        from binas.base.errors import ArchitectureError

        with pytest.raises(ArchitectureError, match="starts with 'zz'; known are"):
            parse_block("zz_k3_c8")
        assert len(caplog.records) == 3


def test_of_two_packages_with_one_name_the_first_has_it(site, caplog):
    install(site, "b-package", {"binas.solvers": {"same": "json:loads"}})
    install(site, "a-package", {"binas.solvers": {"same": "json:dumps"}})
    assert installed("binas.solvers")["same"]() is import_name("json:dumps")
    assert "the package 'b-package' is ignored" in caplog.text


def test_plugins_are_looked_for_only_where_a_name_is_not_ours(monkeypatch):
    monkeypatch.setattr("binas.base.plugins.installed", lambda group: pytest.fail(f"looked for {group}"))
    things = Registry("thing", "binas.things", {"one": "json:dumps"}, lambda thing: None, ProblemError)
    assert "one" in things
    assert things.load("one") is import_name("json:dumps")


@pytest.mark.slow
def test_pip_installs_the_example_package(tmp_path):
    """The project file is one that pip accepts, and the command line sees what it installs."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    subprocess.run([*command, "--target", str(tmp_path / "site"), str(source)], check=True)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); sys.argv = ['binas', 'solvers', '--json']\n"
        "from binas.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert '"cheapest"' in done.stdout
