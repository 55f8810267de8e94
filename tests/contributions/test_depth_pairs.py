"""Pairs of depths from recorded passes: found where they are, silent where they are not, kept in files."""

import json

import numpy as np
import pytest

from binas.base.errors import TableError
from binas.contributions import factorial_contributions
from binas.contributions.outcomes import Outcomes
from binas.tables import load_contributions
from binas.testing import make_space
from binas.testing.evaluators import KnownEvaluator, known_contributions

SPACE = make_space(3, 3, 4)
PAIR = np.array([[-2.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -1.0, 0.0]]) * 2


class Together:
    """A known evaluator in which the first two stages' depths also matter together, in points."""

    def __init__(self, inner, pair):
        self.inner, self.pair = inner, pair
        self.space, self.images, self.fingerprint = inner.space, inner.images, "together"

    def outcomes(self, images, depths, configs):
        plain = self.inner.outcomes(images, depths, configs)
        places = [np.searchsorted(stage.depths, depths[:, s]) for s, stage in enumerate(self.space.stages)]
        more = self.pair[places[0], places[1]] / 100
        chance = np.clip(np.exp(plain.log_probability) + more, 0.001, 0.999)
        u = np.random.default_rng(int(images[0]) + int(depths.sum())).random(len(images))
        return Outcomes((u < chance).astype(np.float32), np.log(chance).astype(np.float32))


def pair_of(space):
    return PAIR[: len(space.stages[0].depths), : len(space.stages[1].depths)]


def centred(pair):
    return pair - pair.mean(axis=0) - pair.mean(axis=1, keepdims=True) + pair.mean()


def test_pairs_are_found(record):
    truth, pair = known_contributions(SPACE, 0), centred(pair_of(SPACE))
    evaluator = Together(KnownEvaluator(truth, 300, 0), pair)
    answer, _ = factorial_contributions(record(evaluator, 16, "probability"))
    found = answer.depth_pairs
    assert set(found) == {(0, 1), (0, 2), (1, 2)}
    assert found[0, 1] == pytest.approx(pair, abs=0.8)
    assert np.abs(found[0, 2]).max() < 0.4
    for values in found.values():
        assert values.sum(axis=0) == pytest.approx(0)
        assert values.sum(axis=1) == pytest.approx(0)


def test_nothing_is_told_where_there_is_nothing(record):
    told = [
        factorial_contributions(
            record(KnownEvaluator(known_contributions(SPACE, s), 200, s), 8, "probability", s)
        )[0].depth_pairs
        for s in range(6)
    ]
    assert told == [None] * 6


def test_one_depth_per_stage_has_no_pairs(record):
    space = make_space(2, 2, 3, min_depth=2)
    answer, _ = factorial_contributions(record(KnownEvaluator(known_contributions(space, 0), 50, 0), 4))
    assert answer.depth_pairs is None


def test_file(record, tmp_path):
    evaluator = Together(KnownEvaluator(known_contributions(SPACE, 0), 300, 0), centred(pair_of(SPACE)))
    answer, _ = factorial_contributions(record(evaluator, 16, "probability"))
    answer.save(tmp_path / "c.json")
    again = load_contributions(tmp_path / "c.json", SPACE)
    assert list(again.depth_pairs) == list(answer.depth_pairs)
    for pair, values in answer.depth_pairs.items():
        assert (again.depth_pairs[pair] == values).all()
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["depth_pairs"][0]["stages"] == ["s1", "s2"]
    for change, message in [
        ({"stages": ["s2", "s1"]}, "two stages of the space in its order"),
        ({"stages": ["s1", "nowhere"]}, "two stages of the space in its order"),
        ({"points": {"1": {"1": 0.5}}}, "a number for all their depths"),
    ]:
        entry = {**data["depth_pairs"][0], **change}
        (tmp_path / "wrong.json").write_text(json.dumps({**data, "depth_pairs": [entry]}))
        with pytest.raises(TableError, match=message):
            load_contributions(tmp_path / "wrong.json", SPACE)
