"""The blocks of docs/own-model.md work, one after another."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "own-model.md"


def test_the_blocks_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python([^\n]*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    blocks = [text for title, text in found if "Not run by the tests" not in title]
    assert len(blocks) == 3
    names: dict[str, object] = {"__name__": "__docs__"}
    for text in blocks:
        exec(compile(text, str(PAGE), "exec"), names)
    loaded, space, supernet = names["loaded"], names["space"], names["supernet"]
    assert loaded.layout == "torchvision-mobilenetv2"
    assert loaded.description.classes == 5
    assert supernet.head.classifier.out_features == space.classes == 3
