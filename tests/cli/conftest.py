"""What the commands are tried on: the paper's example, a trained run and a finished one, each made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from calling import said

from binas.testing.paper_example import write_paper_example
from tiny_run import small_pages, write_config


@pytest.fixture(autouse=True, scope="module")
def few_numbers():
    """Pages of runs are made often here, and are read in the folder of the report."""
    with small_pages():
        yield


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the paper's example; nobody writes into it."""
    folder = tmp_path_factory.mktemp("example")
    write_paper_example(folder)
    return folder


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run whose supernet is trained; nobody writes into it."""
    folder = tmp_path_factory.mktemp("trained")
    said("train", folder / "run", "--config", write_config(folder), "--quiet")
    return folder / "run"


@pytest.fixture(scope="session")
def finished_once(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, done to the end; nobody writes into it."""
    run = tmp_path_factory.mktemp("finished") / "run"
    shutil.copytree(trained_once, run)
    said("run", "--out", run, "--quiet")
    return run


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    """A trained run of one's own."""
    return Path(shutil.copytree(trained_once, tmp_path / "trained"))


@pytest.fixture
def finished(finished_once: Path, tmp_path: Path) -> Path:
    """A finished run of one's own."""
    return Path(shutil.copytree(finished_once, tmp_path / "finished"))
