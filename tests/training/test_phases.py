"""Real training, short: small networks on bars, and the demo space on the embedded images."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from small_data import bench, quick, quick_tuning
from small_networks import BOTTLENECK, MBCONV

from binas.base.errors import CheckpointError
from binas.costs.analytic import architecture_work
from binas.data import embedded
from binas.data.augment import normalise
from binas.data.division import Division
from binas.space import load_space
from binas.space.sampling import sample_many
from binas.supernet import StaticNetwork, Supernet, extract
from binas.supernet.paths import PathTables, nearer_heaviest, paths_of, sample_paths
from binas.training import (
    Bench,
    Reporter,
    TrainSettings,
    accuracy,
    evaluate_architecture,
    fill_from_recipe,
    fine_tune,
    judge,
    make_accelerator,
    multipath_accuracy,
    phases,
    train_heaviest,
    train_supernet,
)
from binas.training.checkpoint import weights_digest
from binas.training.config import Distillation
from binas.training.loop import Step
from binas.training.losses import Teacher
from binas.training.phases import fresh_network, teacher_of, train_from_scratch
from binas.training.reporting import read_metrics
from binas.training.team import Team

CPU = torch.device("cpu")
LONGER = {"epochs": 8, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Heaviest network and supernet of both families."""
    found = {}
    for space in (MBCONV, BOTTLENECK):
        where = bench(tmp_path_factory.mktemp(space.name), quick(heaviest=LONGER, supernet=LONGER))
        heaviest = train_heaviest(space, where)
        found[space.name] = heaviest, train_supernet(heaviest, where), where
    return found


@pytest.mark.parametrize("space", [MBCONV, BOTTLENECK], ids=lambda space: space.name)
def test_both_families_learn(trained, space):
    heaviest, supernet, where = trained[space.name]
    data = where.data
    alone = accuracy(lambda x: heaviest(x, space.extreme()), data, data.test, CPU)
    assert alone.percent > 60  # chance is 20
    assert multipath_accuracy(supernet, data, data.test).percent > 50
    lightest = evaluate_architecture(supernet, space.extreme(False), data, data.test, recalibration=128)
    assert lightest.percent > 40


@pytest.mark.parametrize("space", [MBCONV, BOTTLENECK], ids=lambda space: space.name)
def test_fine_tuning_starts_where_validation_images_say(trained, space, tmp_path):
    heaviest, supernet, _ = trained[space.name]
    ruined = phases.start_supernet(heaviest, 0)
    for value in ruined.parameters():
        value.data.zero_()
    here, largest = bench(tmp_path), space.extreme()
    settings = quick_tuning(epochs=1, blends=1, learning_rate=1e-9)
    kept = fine_tune(ruined, heaviest, largest, here, settings)  # nothing is learned
    assert _percent(kept, here) >= _percent(extract(heaviest, largest), here) - 2
    own = phases._starting_network(supernet, ruined, largest, here, settings)
    expected = extract(supernet, largest).state_dict()
    assert all(torch.equal(expected[name], value) for name, value in own.named_parameters())


def _percent(network, where):
    return accuracy(network.eval(), where.data, where.data.validation, CPU).percent


def test_blended_weights(trained):
    heaviest, supernet, _ = trained[MBCONV.name]
    one, two = (extract(given, MBCONV.extreme()) for given in (heaviest, supernet))
    for share, expected in ((0.0, one), (1.0, two)):
        mixed = phases.blended(one, two, share)
        assert all(map(torch.allclose, mixed.parameters(), expected.parameters()))
    quarter = phases.blended(one, two, 0.25)
    for a, b, c in zip(one.parameters(), two.parameters(), quarter.parameters(), strict=True):
        assert torch.allclose(c, 0.75 * a + 0.25 * b, atol=1e-6)
    assert weights_digest(two) == weights_digest(extract(supernet, MBCONV.extreme()))  # as it was


def test_networks_come_to_differ_from_the_heaviest_one_gradually(tmp_path, monkeypatch):
    seen = []

    def note(network, images, paths, scores=None):
        if network.training and torch.is_grad_enabled():
            seen.append(float((paths[0] == deepest).all(1).double().mean()))
        return forward(network, images, paths)

    forward, deepest = Supernet.forward, paths_of(MBCONV, [MBCONV.extreme()])[0]
    for gradual in (0.0, 0.5):
        where = bench(tmp_path / str(gradual), quick(supernet={"epochs": 4, "gradual": gradual}))
        heaviest = train_heaviest(MBCONV, where)
        with monkeypatch.context() as patched:
            patched.setattr(Supernet, "forward", note)
            seen.clear()
            train_supernet(heaviest, where)
        first, last = seen[0], float(np.mean(seen[len(seen) // 2 :]))
        assert (first > 0.6) == (gradual > 0)  # the share of images on paths as deep as can be
        assert last < 0.5


def test_paths_nearer_the_heaviest():
    drawn = torch.Generator().manual_seed(0)
    paths, heaviest = sample_paths(MBCONV, 400, drawn), paths_of(MBCONV, [MBCONV.extreme()])
    none, all_ = (nearer_heaviest(MBCONV, paths, share, drawn) for share in (0.0, 1.0))
    assert all(torch.equal(part, most.expand_as(part)) for part, most in zip(none, heaviest, strict=True))
    assert torch.equal(all_[0], paths[0])
    half = nearer_heaviest(MBCONV, paths, 0.5, drawn)
    PathTables.of(MBCONV).check(half, 400)
    smaller = [(depths < heaviest[0]).double().mean() for depths, _ in (half, paths)]
    assert float(smaller[0] / smaller[1]) == pytest.approx(0.5, abs=0.1)


def test_fine_tuning_starts_from_the_supernet_and_keeps_the_best_epoch(trained, tmp_path):
    heaviest, supernet, where = trained["small"]
    data, lightest = where.data, MBCONV.extreme(False)
    tuned = fine_tune(supernet, heaviest, lightest, bench(tmp_path / "a"), quick_tuning(epochs=4))
    before = evaluate_architecture(supernet, lightest, data, data.validation, recalibration=128)
    after = accuracy(tuned, data, data.validation, CPU)
    assert after.percent >= before.percent - 5
    again = fine_tune(supernet, heaviest, lightest, bench(tmp_path / "a"), quick_tuning(epochs=4))
    assert accuracy(again, data, data.validation, CPU) == after
    with pytest.raises(CheckpointError, match="supernet was"):
        fine_tune(heaviest, heaviest, lightest, bench(tmp_path / "a"), quick_tuning(epochs=4))
    scratch = quick_tuning(epochs=1, from_scratch=True)
    fresh = fine_tune(supernet, heaviest, lightest, bench(tmp_path / "b"), scratch)
    assert not torch.equal(fresh.head.classifier.weight, tuned.head.classifier.weight)


def test_fine_tuning_returns_the_epoch_with_the_best_validation_accuracy(trained, tmp_path):
    """Of the averaged weights; with a rate that ruins them, the start (epoch 0)."""
    heaviest, supernet, where = trained["small"]
    data, lightest = where.data, MBCONV.extreme(False)
    for name, rate, expected in (("calm", 0.005, None), ("wild", 5.0, 0)):
        settings = quick_tuning(epochs=3, learning_rate=rate, ema=0.9, clip=None)
        here = bench(tmp_path / name, reporter=Reporter(tmp_path / name))
        tuned = fine_tune(supernet, heaviest, lightest, here, settings)
        found = judge(tuned, supernet, lightest, here, settings.recalibration)
        seen = [line["accuracy"] for line in read_metrics(tmp_path / name)]
        start = found.one_shot.validation.percent
        assert found.tuned.validation.percent == pytest.approx(max(start, *seen))
        assert found.epoch == [start, *seen].index(max(start, *seen))
        assert expected in (None, found.epoch)
        assert found.tuned.test == accuracy(tuned, data, data.test, CPU)
        assert found.tuned.test.images == len(data.test)


def test_from_scratch_differs_only_in_its_start(trained, tmp_path):
    heaviest, supernet, _ = trained["small"]
    lightest, steps = MBCONV.extreme(False), []
    for name, scratch in (("a", False), ("b", True)):
        here = bench(tmp_path / name, reporter=Reporter(tmp_path / name))
        fine_tune(supernet, heaviest, lightest, here, quick_tuning(from_scratch=scratch))
        steps.append([(line["step"], line["learning_rate"]) for line in read_metrics(tmp_path / name)])
    assert steps[0] == steps[1]
    one, two = (fresh_network(MBCONV, lightest, seed) for seed in (1, 1))
    other = fresh_network(MBCONV, lightest, 2)
    assert torch.equal(one.head.classifier.weight, two.head.classifier.weight)
    assert not torch.equal(one.head.classifier.weight, other.head.classifier.weight)


def test_all_processes_have_looked_before_the_first_writes(tmp_path, monkeypatch):
    """Without an epoch a slow process once found the weights of the first, and left the others waiting."""
    seen = []

    class Watched(Team):
        def wait(self):
            seen.append("wait")

    save = phases.save_checkpoint
    monkeypatch.setattr(phases, "save_checkpoint", lambda *given: (seen.append("save"), save(*given)))
    torch.manual_seed(0)
    network = StaticNetwork.from_string(
        "[['ds_k3_s2_c8_nre']]", stem="cn_k3_s1_c8_nre", channels=3, classes=5
    )
    phase = quick().heaviest.model_copy(update={"epochs": 0})
    train_from_scratch(network, replace(bench(tmp_path), team=Watched()), phase, {})
    assert seen == ["wait", "save", "wait"]


def test_any_network_is_trained_from_scratch_and_read_when_finished(tmp_path):
    """A network of no space, as published ones are."""
    where, phase = bench(tmp_path), quick().heaviest
    text = "[['ds_k3_s2_c8_nre'], ['ir_k3_s2_e2_c16_nre']]"

    def fresh():
        torch.manual_seed(0)
        return StaticNetwork.from_string(text, stem="cn_k3_s1_c8_nre", channels=3, classes=5)

    done = train_from_scratch(fresh(), where, phase, {"network": text})
    data = where.data
    before, after = (accuracy(item.eval(), data, data.validation, CPU).percent for item in (fresh(), done))
    assert after >= before
    again = train_from_scratch(fresh(), where, phase, {"network": text})
    assert weights_digest(again) == weights_digest(done)
    with pytest.raises(CheckpointError, match="network"):
        train_from_scratch(fresh(), where, phase, {"network": "another"})


def test_a_teacher_is_shared_and_not_asked_when_nothing_is_left_to_do(trained, tmp_path, monkeypatch):
    heaviest, supernet, where = trained["small"]
    asked, real = [], Teacher._all_logits
    monkeypatch.setattr(Teacher, "_all_logits", lambda self, data: asked.append(1) or real(self, data))
    settings, lightest = quick_tuning(), MBCONV.extreme(False)
    teacher = teacher_of(heaviest, where.data, settings.distillation)
    for name in ("a", "b"):
        shared = fine_tune(supernet, heaviest, lightest, bench(tmp_path / name), settings, teacher)
    assert asked == [1]
    own = fine_tune(supernet, heaviest, lightest, bench(tmp_path / "c"), settings)
    assert torch.equal(own.head.classifier.weight, shared.head.classifier.weight)
    assert asked == [1, 1]
    fine_tune(supernet, heaviest, lightest, bench(tmp_path / "c"), settings)
    assert asked == [1, 1]


def test_cached_teacher_equals_the_network_on_plain_images(trained):
    heaviest, _, where = trained["small"]
    data = where.data
    network = extract(heaviest, MBCONV.extreme())
    batch = next(data.train.batches(16, seed=3))
    images = normalise(batch.images, data.mean, data.std)
    step = Step(0, 0, images, batch.labels, batch.indices, None, 1.0)
    cached, online = (Teacher(network, data, Distillation(share=0.5, cache=how)) for how in ("yes", "no"))
    assert cached.cached is not None
    assert online.cached is None
    assert torch.allclose(cached(step), online(step), atol=1e-4)
    assert Teacher(network, data, Distillation(share=0.0)).cached is None


@pytest.mark.slow
def test_half_a_minute_on_the_embedded_images(tmp_path):
    """Accuracy well above chance (10), and larger sub-networks are better ones."""
    space, data = load_space("small-28"), embedded(Division(limit=2400))
    short = {"batch_size": 32, "learning_rate": 0.008}
    phases = {phase: {**short, "epochs": 2} for phase in ("heaviest", "supernet")}
    config = TrainSettings.model_validate(fill_from_recipe({"train": {"device": "cpu", **phases}})["train"])
    where = Bench(data, config, tmp_path, make_accelerator(config))
    supernet = train_supernet(train_heaviest(space, where), where)
    assert multipath_accuracy(supernet, data, data.test).percent > 50
    chosen = [space.extreme(), space.extreme(False), *sample_many(space, 5, 0)]
    macs = [architecture_work(space, a).macs for a in chosen]
    found = [evaluate_architecture(supernet, a, data, data.test, recalibration=512).percent for a in chosen]
    assert spearmanr(macs, found).statistic > 0.3
    assert found[0] > found[1]
