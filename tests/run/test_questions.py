"""Limits of a configuration, checked before there is a table."""

import pytest
from binas.run.limits import check_questions

from binas.base.errors import ConfigError, ProblemError
from binas.run.config import load_config
from tiny_run import SPACE


def test_limits_are_checked_before_there_is_a_table():
    check_questions(
        load_config(None, ["search.limits=[latency=45ms@batch=1, params=40% and macs=3M]"]), SPACE
    )
    counted = ["measuring.backend=none", "search.limits=[latency=45ms]"]
    with pytest.raises(ProblemError, match="no cost 'latency'"):
        check_questions(load_config(None, counted), SPACE)
    with pytest.raises(ConfigError, match="say the same"):
        check_questions(load_config(None, ["search.limits=[latency=5ms, latency = 5ms]"]), SPACE)
