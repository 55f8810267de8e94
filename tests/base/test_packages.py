"""Extras and the sentences about missing packages."""

import importlib
import pkgutil
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from binas.base.errors import MissingPackageError
from binas.base.packages import EXTRAS, explain_import, lazy_names, missing, need, pip_line

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {"PIL": "pillow"}  # where it is not called like the module


def test_the_extras_are_those_of_the_project_file():
    declared = PROJECT["optional-dependencies"]
    for extra in set(EXTRAS.values()):
        names = {Requirement(text).name for text in declared[extra]} - {"binas"}
        assert names == {DISTRIBUTIONS.get(module, module) for module, own in EXTRAS.items() if own == extra}
    core = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert not core & {DISTRIBUTIONS.get(module, module) for module in EXTRAS}


def test_all_and_dev_have_every_extra_that_needs_no_licence():
    declared = PROJECT["optional-dependencies"]
    (everything,) = map(Requirement, declared["all"])
    assert everything.extras == set(EXTRAS.values()) - {"cplex", "gurobi"}
    assert "binas[all]" in declared["dev"]


def test_the_pip_line_names_each_extra_once():
    assert pip_line("torch", "onnx", "openvino") == "pip install 'binas[train]' 'binas[openvino]'"
    assert pip_line("no_such_module") == "pip install no_such_module"


def test_what_is_there_is_not_missing():
    assert missing(["json", "numpy"]) is None
    need("numpy", "a sum")
    assert missing(["numpy", "no_such_module"]) == "pip install no_such_module"
    with pytest.raises(
        MissingPackageError, match="a sum needs no_such_module, which is not installed: pip inst"
    ):
        need("no_such_module", "a sum")


def test_only_packages_of_extras_that_are_absent_are_explained(monkeypatch):
    assert explain_import(ModuleNotFoundError(name="numpy.nothing")) is None  # there, so it is a bug
    assert explain_import(ModuleNotFoundError(name="binas.nothing")) is None
    assert explain_import(ModuleNotFoundError()) is None
    monkeypatch.setitem(EXTRAS, "no_such_module", "train")
    error = explain_import(ModuleNotFoundError(name="no_such_module.part"), "this command")
    assert (
        str(error) == "this command needs no_such_module, which is not installed: pip install 'binas[train]'"
    )


def test_lazy_names_are_those_of_the_stub(tmp_path, monkeypatch):
    package = tmp_path / "made_up_lazy"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from binas.base.packages import lazy_names\n"
        "__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)\n"
    )
    (package / "__init__.pyi").write_text("from made_up_lazy.part import one\nfrom json import dumps\n")
    (package / "part.py").write_text("one = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("made_up_lazy")
    assert dir(made) == made.__all__ == ["dumps", "one"]
    assert "one" not in vars(made)
    assert made.one == 1
    assert vars(made)["one"] == 1
    with pytest.raises(AttributeError, match="no attribute 'two'"):
        made.two  # noqa: B018


@pytest.mark.parametrize("room", ["data", "training", "export"])
def test_lazy_rooms_have_all_their_names_and_none_is_a_module_too(room):
    package = importlib.import_module(f"binas.{room}")
    names, _, _ = lazy_names(package.__name__, package.__file__)
    for name in package.__all__:
        assert names(name) is not None
    assert not set(package.__all__) & {module.name for module in pkgutil.iter_modules(package.__path__)}
