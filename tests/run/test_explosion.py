"""Training that explodes: the advice of its error can be followed."""

import json
import math

from binas.training import phases
from binas.training.checkpoint import load_checkpoint
from tiny_run import call


def test_clipping_goes_on_where_training_exploded_and_a_higher_rate_is_refused(config, tmp_path, monkeypatch):
    folder, loss, begun = tmp_path / "run", phases._taught_loss, []

    def explodes(logits, step, *others):
        begun.append(step.epoch)
        return loss(logits, step, *others) * (math.nan if (step.epoch, step.batch) == (1, 1) else 1.0)

    monkeypatch.setattr(phases, "_taught_loss", explodes)
    train = ["train", folder, "--quiet", "--config", config, "--set", "train.supernet.epochs=2"]
    code, said = call(*train)
    assert (
        code,
        "train.supernet.clip=1: with that the same command goes on from the end of epoch 1" in said,
    ) == (
        2,
        True,
    )
    assert json.loads((folder / "steps" / "train.supernet.json").read_text())["exploded"]
    monkeypatch.setattr(phases, "_taught_loss", lambda *given: begun.append(given[1].epoch) or loss(*given))
    code, said = call("train", folder, "--quiet", "--set", "train.supernet.learning_rate=0.02")
    assert (code, "--redo" in said) == (2, True)
    begun.clear()
    assert call("train", folder, "--quiet", "--set", "train.supernet.clip=1")[0] == 0
    assert set(begun) == {1}
    record = json.loads((folder / "steps" / "train.supernet.json").read_text())
    assert (record["state"], record["exploded"], record["inputs"]["train.supernet.clip"]) == (
        "finished",
        False,
        1,
    )
    assert load_checkpoint(folder / "supernet", "weights").values["identity"]["clip"] == 1
