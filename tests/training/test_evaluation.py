"""Held-out images shared out among processes: each reads its own, in batches that do not depend on their number."""

import pytest
import torch
from small_data import bar_data

from binas.training import evaluation
from binas.training.evaluation import calibration_batches, shared_batches
from binas.training.team import Team

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [2, 3, 7])
def test_processes_have_every_nth_batch_and_read_no_other(monkeypatch, size):
    data = bar_data(100)
    height, width = data.size
    monkeypatch.setattr(evaluation, "EVAL_PIXELS", 7 * height * width)
    alone = {rows.start: images for rows, images, _ in shared_batches(data, data.train, CPU)}
    found = {}
    for rank in range(size):
        for rows, images, labels in shared_batches(data, data.train, CPU, Team(rank, size)):
            assert rows.stop - rows.start == len(labels) == len(images)
            found[rows.start] = images
    assert sorted(found) == sorted(alone)
    assert all(torch.equal(found[start], images) for start, images in alone.items())


@pytest.mark.parametrize("count", [20, 21, 33, 1000])
def test_processes_share_the_images_that_re_estimate_batchnorm(count):
    """In rounds: in each every process has one batch, or None."""
    data = bar_data(100)
    alone = [batch for batch in calibration_batches(data, count, CPU, size=8) if batch is not None]
    each = [list(calibration_batches(data, count, CPU, size=8, team=Team(rank, 3))) for rank in range(3)]
    rounds = list(zip(*each, strict=True))
    found = [batch for round_ in rounds for batch in round_ if batch is not None]
    assert len(found) == len(alone)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))
