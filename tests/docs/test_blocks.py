"""Every block of the documentation is carried out, page by page, in a folder of its own.

Bash blocks call `binas` in this process; Python blocks of a page share their names. `RUN` and `runs/photos` are a finished
tiny run, `DIR` the paper's tables and `photos.yaml` the configuration of that run. What needs hours, a network
or a device says so in its title and is only read (test_pages.py); a page with a block that "Takes" long is slow.
"""

import contextlib
import re
import shutil
from io import StringIO
from pathlib import Path

import pytest
from pages import HOUSE, SLOW, blocks, commands, written_pages

from binas.testing.paper_example import write_paper_example
from binas.training.team import one_thread
from tiny_run import call, small_pages, write_config

JOURNAL = HOUSE / "benchmarks" / "results"  # records of what was run, not examples
FILE = re.compile(r"[\w.-]+\.(?:yaml|json|csv|py)")  # a block with the name of a file above it is that file
FAST = ("", "text", "csv", "json", "yaml", "toml")  # not carried out: test_pages.py reads them


def page_marks(page):
    return [pytest.mark.slow] if any(block.title.startswith(SLOW) for block in blocks(page)) else []


PAGES = [
    pytest.param(page, id=str(page.relative_to(HOUSE)), marks=page_marks(page))
    for page in written_pages()
    if page.parent != JOURNAL and any(block.run and block.language not in FAST for block in blocks(page))
]


@pytest.fixture(autouse=True, scope="module")
def few_numbers():
    """Pages of reports are made often here, and are read in the folder of the report."""
    with small_pages():
        yield


@pytest.fixture(scope="module")
def stage(few_numbers, tmp_path_factory):
    """What pages may take for granted, made once."""
    folder = tmp_path_factory.mktemp("stage")
    config = write_config(folder, sample={"count": 12})  # learned predictors want ten
    code, said = call("run", config, "--out", folder / "RUN", "--quiet")
    assert code == 0, said
    config.rename(folder / "photos.yaml")
    shutil.copytree(folder / "RUN", folder / "runs" / "photos")
    write_paper_example(folder / "DIR")
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_work(page, stage, tmp_path, monkeypatch):
    shutil.copytree(stage, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as `python` does for the files of a page
    names = {"__name__": "__docs__"}
    for block in blocks(page):
        if FILE.fullmatch(block.title):
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if not block.run or block.language in FAST:
            continue
        assert block.language in ("bash", "python"), f"{block.place}: what is {block.language}?"
        if block.language == "bash":
            carry_out(block)
        else:
            execute(block, names)


def carry_out(block):
    """The commands of a bash block, `> FILE` included."""
    for words in commands(block):
        assert words[0] == "binas", f"{block.place}: the tests run only binas; say why this is not run"
        words, _, file = (list(part) for part in partition(words[1:], ">"))
        code, said = call(*words)
        assert code == 0, f"{block.place}: binas {' '.join(words)}\n{said}"
        if file:
            Path(file[0]).write_text(said, encoding="utf-8")


def partition(words, mark):
    at = words.index(mark) if mark in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


def execute(block, names):
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with one_thread(), contextlib.redirect_stdout(StringIO()):
        exec(code, names)
