"""Every reader on a few changed files; ``tests/fuzz/long.py`` is the same, many times."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import BAD, Ground
from hypothesis import given, settings, strategies as st
from readers import READERS, Reader


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_changed_files_are_refused_in_words_or_do_no_harm(reader: Reader, tmp_path: Path) -> None:
    ground = Ground(reader, tmp_path)

    @settings(max_examples=8)
    @given(st.integers(0, 10**6))
    def changed(number: int) -> None:
        finding = ground.trial(number)
        assert finding.outcome not in BAD, (
            finding
        )  # a hang is 2 s of this process's processor time, not of the clock

    changed()
