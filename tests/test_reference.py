"""The reference pages say what the declarations say."""

import re
import runpy
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent


def test_the_reference_is_what_the_declarations_say(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make_reference.py", "--check"])
    tool = runpy.run_path(str(HOUSE / "tools" / "make_reference.py"))
    assert tool["main"]() == 0, capsys.readouterr().err


def test_the_reference_names_every_task_and_every_one_of_its_settings():
    from binas.tasks import BUILTIN

    reference = HOUSE / "docs" / "reference"
    settings, commands = (
        (reference / name).read_text(encoding="utf-8") for name in ("settings.md", "commands.md")
    )
    for task in BUILTIN:
        assert f"\n## `binas {task.name} " in commands
        for name in task.settings.model_fields:
            assert f"| `{task.name}.{name}" in settings


def test_every_public_name_and_every_format_has_its_place():
    import binas
    from binas import search
    from binas.tables.schema import SCHEMAS

    reference = HOUSE / "docs" / "reference"
    for package in (binas, search):
        page = (reference / "api" / f"{package.__name__}.md").read_text(encoding="utf-8")
        classes = [name for name in package.__all__ if hasattr(getattr(package, name), "__qualname__")]
        assert classes
        assert [name for name in classes if not re.search(rf"^(?:## |::: .*\.){name}$", page, re.M)] == []
    formats = (reference / "schemas.md").read_text(encoding="utf-8")
    assert all(f"\n## {kind}\n" in formats for kind in SCHEMAS)
