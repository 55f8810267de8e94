"""The reference page says what the declarations say."""

import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent


def test_the_reference_is_what_the_declarations_say():
    tool = HOUSE / "tools" / "make_reference.py"
    checked = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_reference_names_every_task_and_every_one_of_its_settings():
    from binas.tasks import BUILTIN

    page = (HOUSE / "docs" / "settings.md").read_text(encoding="utf-8")
    for task in BUILTIN:
        assert f"\n### `binas {task.name} " in page
        for name in task.settings.model_fields:
            assert f"| `{task.name}.{name}" in page
