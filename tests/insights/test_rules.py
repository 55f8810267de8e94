import pytest
from test_effects import SPACE, cost_of, table

from binas.insights import find_insights, per_unit
from binas.tables import Column, Cost, parse_unit


@pytest.mark.parametrize(
    ("unit", "typical", "name", "scale"),
    [
        ("ms", 2e6, "ms", 1.0),
        ("MACs", 3e6, "MMACs", 1e6),
        ("MACs", 30.0, "MACs", 1.0),
        ("kMACs", 5e6, "GMACs", 1e6),
        ("MMACs", 3.0, "MMACs", 1.0),
        ("params", 2e4, "kparams", 1e3),
        ("M", 0.5, "M", 1.0),
        ("B", 3.0 * 2**20, "MiB", 2.0**20),
        ("1", 5.0, "unit of latency", 1.0),
        ("%", 5.0, "%", 1.0),
    ],
)
def test_the_unit_fits_the_typical_block(unit, typical, name, scale):
    cost = Cost("latency", parse_unit(unit), 0.0, Column.full(SPACE, typical))
    found = per_unit(cost)
    assert (found.unit, found.scale) == (name, pytest.approx(scale))


def test_sentences_are_told_per_readable_unit():
    def value(s, b, c=None):
        return 0.5 * s * b if c is None else 0.0

    cost = cost_of(per_config=lambda s, b, c: 2e6)
    cost = Cost("macs", parse_unit("MACs"), 0.0, cost.values)
    text = "\n".join(find_insights(table(value=value, stderr=0.001), cost).sentences)
    assert "Per MMACs, depth 1 to 2 pays best in s3: +0.5 against +0.25 points in s2." in text
