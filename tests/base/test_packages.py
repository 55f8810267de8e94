"""Extras and the sentences about missing packages."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from binas.base.errors import MissingPackageError
from binas.base.packages import EXTRAS, explain_import, missing, need, pip_line
from binas.version import __version__

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


def test_the_citation_and_the_changelog_name_the_version():
    house = Path(__file__).parents[2]
    assert f"\nversion: {__version__}\n" in (house / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {__version__} " in (house / "CHANGELOG.md").read_text(encoding="utf-8")


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
