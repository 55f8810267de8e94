"""What is said of networks that were measured."""

from binas.space.sampling import enumerate_all
from binas.tables.samples import Sample, Samples
from binas.tasks.sample import untrained
from tiny_run import SPACE


def samples(*percents: float) -> Samples:
    drawn = zip(enumerate_all(SPACE), percents, strict=False)
    return Samples(SPACE, tuple(Sample(item, percent) for item, percent in drawn))


def test_networks_that_know_nothing_are_told():
    chance = 100 / SPACE.classes
    assert "guessing would be" in untrained(samples(chance, chance + 5))
    assert untrained(samples(chance + 20, 90.0)) == ""
