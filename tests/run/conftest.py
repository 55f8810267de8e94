"""Two runs that many tests look at, made once: one only trained, one finished. Who changes a run takes a copy."""

import shutil

import pytest

import binas
from binas.training.team import one_thread
from tiny_run import call, small_pages, write_config


@pytest.fixture(autouse=True, scope="module")
def few_numbers():
    """Pages of runs are made often here, and are read in the folder of the report."""
    with small_pages():
        yield


@pytest.fixture(scope="session")
def config(tmp_path_factory):
    return write_config(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def trained(config, tmp_path_factory):
    """A run of which only the supernet was trained, by its command."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    code, said = call("train", folder, "--config", config, "--quiet")
    assert (code, "lightest" in said) == (0, True)
    return folder


@pytest.fixture(scope="session")
def finished(config, tmp_path_factory):
    """A run nobody interrupted, made from Python."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with one_thread():
        run = binas.run(config, out=folder, search={"limits": ["latency=30%", "latency=70%"]})
    assert run.folder == folder
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")
