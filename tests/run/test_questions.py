"""Limits of a configuration, checked before there is a table."""

from pathlib import Path

import pytest

from binas.base.errors import ConfigError, ProblemError
from binas.run.config import load_config
from binas.run.run import Run
from binas.tasks.search import check_questions
from tiny_run import SPACE


def check(*changes):
    check_questions(Run(Path("nowhere"), load_config(None, changes), SPACE))


def test_limits_are_checked_before_there_is_a_table():
    check("search.limits=[latency=45ms@batch=1, params=40% and macs=3M]")
    with pytest.raises(ProblemError, match="no cost 'latency'"):
        check("measure.backend=none", "search.limits=[latency=45ms]")
    with pytest.raises(ConfigError, match="say the same"):
        check("search.limits=[latency=5ms, latency = 5ms]")
