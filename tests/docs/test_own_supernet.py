"""The page about supernets of one's own is executed as it stands, and is as short as it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own-supernet.md"


def test_a_foreign_supernet_to_an_answer_in_under_40_lines(capsys):
    theirs, ours = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert "binas" not in theirs.replace("written without binas", "")
    assert len([line for line in ours.splitlines() if line.strip()]) < 40
    names: dict = {}
    for block in (theirs, ours):
        exec(compile(block, str(PAGE), "exec"), names)
    result, space = names["result"], names["space"]
    assert space.count == 39**2 == 1521
    assert result.status == "optimal"
    assert result.evaluation.costs["latency"] <= 4.0
    assert "proven optimal" in capsys.readouterr().out
    known = names["samples"]
    within = [row for row in known.rows if names["latency"].of(space, [row.architecture])[0] <= 4.0]
    assert names["accuracy"](result.architecture) > sum(row.accuracy for row in within) / len(within)
