"""Packages whose names are imported when first used."""

import importlib
import pkgutil

import pytest


def test_lazy_names_are_those_imported_for_type_checking(tmp_path, monkeypatch):
    package = tmp_path / "made_up_lazy"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from binas.base.lazy import lazy_names\n"
        "if TYPE_CHECKING:\n"
        "    from made_up_lazy.part import one as one\n"
        "    from json import dumps as dumps\n"
        "__getattr__, __all__ = lazy_names(__name__, __file__)\n"
    )
    (package / "part.py").write_text("one = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("made_up_lazy")
    assert made.__all__ == ["dumps", "one"]
    assert "one" not in vars(made)
    assert made.one == 1
    assert vars(made)["one"] == 1
    with pytest.raises(AttributeError, match="no attribute 'two'"):
        made.two  # noqa: B018


@pytest.mark.parametrize("room", ["data", "training", "export"])
def test_lazy_rooms_have_all_their_names_and_none_is_a_module_too(room):
    package = importlib.import_module(f"binas.{room}")
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert not set(package.__all__) & {module.name for module in pkgutil.iter_modules(package.__path__)}
