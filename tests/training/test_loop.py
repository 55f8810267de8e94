import json
import math
import os
import signal
from dataclasses import replace

import pytest
import torch
from small_data import bar_data, bench, quick
from small_networks import BOTTLENECK, MBCONV
from torch import nn

from binas.base.errors import CheckpointError, ExplodedError, FileError, TrainingError
from binas.base.interrupts import SIGNALS, Interrupted, listening
from binas.base.progress import Progress
from binas.training import Reporter, make_accelerator, train_heaviest, train_supernet
from binas.training.checkpoint import first_not_finite, has_checkpoint, load_checkpoint
from binas.training.config import Phase
from binas.training.loop import PROGRESS, WITHIN, Average, Job, fit, image_side, learning_rate, make_optimizer
from binas.training.losses import soft_cross_entropy, targets
from binas.training.reporting import keep_figures, read_metrics


class Killed(Exception):
    pass


class KillAfter(Reporter):
    """Reports as usual, then ends the process, so to say, after some steps."""

    def __init__(self, folder, steps):
        super().__init__(folder)
        self.left = steps

    def advance(self, done, **values):
        super().advance(done, **values)
        self.left -= 1
        if self.left < 0:
            raise Killed


def both_phases(folder, config, reporter=None):
    where = bench(folder, config, reporter or Reporter(folder))
    return train_supernet(train_heaviest(MBCONV, where), where)


def same(one: nn.Module, two: nn.Module) -> bool:
    other = two.state_dict()
    return all(torch.equal(value, other[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize(
    ("optimizer", "ema", "accumulate"),
    [("sgd", 0.99, 1), pytest.param("adamw", None, 4, marks=pytest.mark.slow)],
    ids=["sgd with average", "adamw with accumulation"],
)
def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path, optimizer, ema, accumulate):
    """Six batches an epoch: with four accumulated, the last two make a step of their own."""
    augment = {"crop": 1, "flip": True, "mixup": 0.2}
    phase = {"optimizer": optimizer, "ema": ema, "accumulate": accumulate, "augment": augment}
    config = quick(heaviest=phase, supernet=phase, checkpoint_seconds=0.0)
    whole = both_phases(tmp_path / "whole", config)
    steps = (3, 5, 1, 7, 2, 100)
    killed = 0
    for left in steps:  # dies in the middle of both phases and just after an epoch's end
        try:
            resumed = both_phases(tmp_path / "parts", config, KillAfter(tmp_path / "parts", left))
        except Killed:
            torch.manual_seed(left)  # a new process starts with another state
            killed += 1
    assert killed == len(steps) - 1
    assert same(whole, resumed)
    assert read_metrics(tmp_path / "whole") == read_metrics(tmp_path / "parts")
    assert (
        both_phases(tmp_path / "parts", config, KillAfter(tmp_path / "parts", 0)) is not None
    )  # all read back


def test_without_interruption_two_runs_are_equal_and_seeds_matter(tmp_path):
    one = train_heaviest(MBCONV, bench(tmp_path / "1"))
    two = train_heaviest(MBCONV, bench(tmp_path / "2"))
    other = train_heaviest(MBCONV, bench(tmp_path / "3", quick(seed=1)))
    assert same(one, two)
    assert not same(one, other)


def test_other_settings_and_other_spaces_do_not_continue_a_run(tmp_path):
    train_heaviest(MBCONV, bench(tmp_path))
    with pytest.raises(CheckpointError, match=r"batch_size was 32, now 16"):
        train_heaviest(MBCONV, bench(tmp_path, quick(heaviest={"batch_size": 16})))
    with pytest.raises(CheckpointError, match=r"space was"):
        train_heaviest(BOTTLENECK, bench(tmp_path))


def test_learning_rate_warms_up_then_falls_as_a_cosine():
    phase = Phase(epochs=10, batch_size=1, learning_rate=2.0, warmup=1.0)
    rates = [learning_rate(phase, step, 100, 10) for step in range(100)]
    assert rates[:10] == pytest.approx([2 * (i + 1) / 11 for i in range(10)])
    assert rates[10] == 2.0
    assert rates[55] == pytest.approx(1.0)
    assert rates[99] < 0.01
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_step_of_adamw_is_that_of_torch_however_weights_lie_in_memory(layout):
    """Gradients lie row by row, as a team hands them out; a step in one call would mix up weights that do not."""
    phase = Phase(epochs=1, batch_size=1, optimizer="adamw", learning_rate=0.1, weight_decay=0.01)
    torch.manual_seed(0)
    network = nn.Conv2d(4, 8, 3).to(memory_format=layout)
    weight, bias = (nn.Parameter(p.detach().clone()) for p in (network.weight, network.bias))
    groups = [{"params": [weight], "weight_decay": 0.01}, {"params": [bias], "weight_decay": 0.0}]
    optimizer, reference = make_optimizer(network, phase), torch.optim.AdamW(groups, lr=0.1, fused=False)
    for step in range(3):
        for own, other in ((network.weight, weight), (network.bias, bias)):
            own.grad = (
                None if step == 0 and own is network.bias else torch.randn(own.shape)
            )  # one comes later
            other.grad = own.grad
        optimizer.step()
        reference.step()
    assert torch.allclose(network.weight, weight, atol=1e-6)
    assert torch.allclose(network.bias, bias, atol=1e-6)
    assert bool(optimizer.defaults["fused"]) is (layout is torch.contiguous_format)


def test_images_grow_to_their_full_size_and_stay_there():
    phase = Phase(epochs=10, batch_size=1, learning_rate=2.0, first_size=0.75)
    assert [image_side(phase, 32, done / 10) for done in range(10)] == [
        24,
        24,
        28,
        28,
        28,
        32,
        32,
        32,
        32,
        32,
    ]
    assert image_side(Phase(epochs=10, batch_size=1, learning_rate=2.0), 30, 0.0) == 30
    assert image_side(phase.model_copy(update={"first_size": 0.01}), 28, 0.0) == 4


@pytest.mark.parametrize("first", [0.25, 0.5, 1.0])
def test_the_mean_area_of_growing_images(first):
    phase = Phase(epochs=1, batch_size=1, learning_rate=1.0, first_size=first)
    sides = [image_side(phase, 400, step / 1000) for step in range(1000)]
    assert phase.mean_area == pytest.approx(sum((side / 400) ** 2 for side in sides) / 1000, rel=0.01)


def test_training_sees_images_of_the_size_of_the_moment(tmp_path):
    sides = []

    def loss_of(model, step):
        sides.append(tuple(step.images.shape[2:]))
        return model(step.images.mean((2, 3))).square().mean()

    job = replace(linear_job(tmp_path, epochs=2, first_size=0.5), network=nn.Linear(3, 2), loss_of=loss_of)
    fit(job)
    assert sides[0] < sides[-1] == job.data.size


def linear_job(folder, **phase):
    """A linear network: without BatchNorm two half batches are a whole one."""
    torch.manual_seed(0)
    config = quick(
        heaviest={"augment": {"crop": 0, "flip": False}, "learning_rate": 0.01, "optimizer": "sgd", **phase}
    )
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 12, 5))

    def loss_of(model, step):
        return soft_cross_entropy(model(step.images), targets(step.labels, 5, 0.0))

    return Job(
        "heaviest",
        network,
        loss_of,
        config.heaviest,
        bar_data(),
        config,
        folder,
        {},
        lambda network: {},
        make_accelerator(config),
    )


def test_accumulated_batches_make_the_step_of_one_large_batch(tmp_path):
    large = fit(linear_job(tmp_path / "1", batch_size=80, epochs=2))
    small = fit(linear_job(tmp_path / "2", batch_size=40, accumulate=2, epochs=2))
    assert torch.allclose(large[1].weight, small[1].weight, atol=1e-6)


def test_clipping_bounds_the_step(tmp_path):
    before = linear_job(tmp_path / "0").network[1].weight.detach().clone()
    free = fit(linear_job(tmp_path / "1", epochs=1, momentum=0.0, weight_decay=0))
    tight = fit(linear_job(tmp_path / "2", epochs=1, momentum=0.0, weight_decay=0, clip=1e-3))
    moved = [(network[1].weight - before).norm() for network in (free, tight)]
    assert moved[1] < 6 * 1e-3 * 0.01 * 1.01
    assert moved[0] > 100 * moved[1]


def test_a_loss_that_is_no_number_stops_with_advice(tmp_path):
    job = linear_job(tmp_path)
    broken = replace(job, loss_of=lambda model, step: job.loss_of(model, step) * math.nan)
    with pytest.raises(TrainingError, match=r"learning_rate"):
        fit(broken)


def identified(job):
    """The job with an identity that its rate and its clip are part of, as those of a run are."""
    return replace(job, identity={"learning_rate": job.phase.learning_rate, "clip": job.phase.clip})


def keeping(job, seconds):
    """The job with checkpoints within its epochs, after so many seconds."""
    return replace(job, config=job.config.model_copy(update={"checkpoint_seconds": seconds}))


OFTEN, NEVER = 0.0, 1e9


@pytest.mark.parametrize("seconds", [OFTEN, NEVER])
def test_after_an_explosion_a_lower_rate_or_clipping_goes_on_from_the_last_good_epoch(tmp_path, seconds):
    """Whatever was kept within the epoch that exploded: its weights may be past saving."""
    job = identified(keeping(linear_job(tmp_path, epochs=3), seconds))

    def explodes(model, step):
        return job.loss_of(model, step) * (math.nan if (step.epoch, step.batch) == (2, 2) else 1)

    with pytest.raises(ExplodedError, match=r"clip=1: .* goes on from the end of epoch 2"):
        fit(replace(job, loss_of=explodes))
    assert not has_checkpoint(tmp_path, WITHIN)
    with pytest.raises(CheckpointError, match=r"learning_rate was 0\.01, now 0\.02"):
        fit(identified(linear_job(tmp_path, epochs=3, learning_rate=0.02)))
    gentle = identified(linear_job(tmp_path, epochs=3, clip=1.0))
    began = []

    def loss_of(model, step):
        began.append((step.epoch, step.batch))
        return job.loss_of(model, step)

    fit(replace(gentle, loss_of=loss_of))
    assert began[0] == (2, 0)
    kept = load_checkpoint(tmp_path, PROGRESS).values
    was = {"learning_rate": 0.01, "clip": None}
    assert (kept["identity"], kept["eased"]) == (
        gentle.identity,
        [{"until_epoch": 2, "until_batch": 0, **was}],
    )


def test_weights_that_are_not_finite_are_neither_kept_nor_a_result(tmp_path):
    """The last step of all leaves them: no loss sees them any more."""
    job = linear_job(tmp_path, epochs=2)
    last = len(job.data.train) // job.phase.batch_size - 1

    def loss_of(model, step):
        grown = math.inf if (step.epoch, step.batch) == (1, last) else 1.0
        model[1].weight.register_hook(lambda gradient: gradient * grown)
        return job.loss_of(model, step)

    with pytest.raises(ExplodedError, match=r"1\.weight is no longer finite"):
        fit(replace(job, loss_of=loss_of))
    kept = load_checkpoint(tmp_path, PROGRESS)
    assert kept.values["place"]["epoch"] == 1
    assert first_not_finite(kept.tensors) is None


@pytest.mark.parametrize("seconds", [OFTEN, NEVER])
def test_an_explosion_that_validation_finds_is_no_dead_end(tmp_path, seconds):
    """Weights are finite, what they make of images is not; a checkpoint behind the last batch holds just these."""
    job, seen = identified(keeping(linear_job(tmp_path, epochs=3), seconds)), []

    def measure(network):
        seen.append(1)
        if len(seen) == 2:
            raise ExplodedError(
                "the logits of 3 of 5 images are not finite, so there is no accuracy. Train again."
            )
        return {"accuracy": 50.0}

    with pytest.raises(
        ExplodedError, match=r"epoch 2, the logits .* no accuracy\. Lower .* goes on from the end of epoch 1"
    ):
        fit(replace(job, measure=measure))
    assert load_checkpoint(tmp_path, PROGRESS).values["place"]["epoch"] == 1
    fit(replace(identified(keeping(linear_job(tmp_path, epochs=3, clip=1.0), seconds)), measure=measure))
    assert load_checkpoint(tmp_path, PROGRESS).values["place"]["epoch"] == 3


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_lets_the_batch_end_and_keeps_a_checkpoint(tmp_path, number):
    whole = fit(linear_job(tmp_path / "whole", epochs=2))

    class Signalled(Reporter):
        def advance(self, done, **values):
            if done == 3:
                os.kill(os.getpid(), number)

    job = linear_job(tmp_path / "run", epochs=2)
    with listening(), pytest.raises(Interrupted, match=number.name):
        fit(replace(job, reporter=Signalled()))
    assert load_checkpoint(tmp_path / "run", WITHIN).values["place"]["batch"] == 3
    resumed = fit(linear_job(tmp_path / "run", epochs=2))
    assert torch.equal(resumed[1].weight, whole[1].weight)


def test_a_signal_during_validation_keeps_the_epoch(tmp_path):
    job = linear_job(tmp_path, epochs=1)
    with listening(), pytest.raises(Interrupted):
        fit(replace(job, measure=lambda network: os.kill(os.getpid(), signal.SIGTERM) or {}))
    place = load_checkpoint(tmp_path, WITHIN).values["place"]
    assert (place["epoch"], place["batch"]) == (0, len(job.data.train) // job.phase.batch_size)
    trained = []
    resumed = linear_job(tmp_path, epochs=1)
    fit(replace(resumed, loss_of=lambda *_: trained.append(1), measure=lambda network: {}))
    assert trained == []


def test_a_batch_larger_than_the_data_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"larger than the \d+ training images"):
        fit(linear_job(tmp_path, batch_size=10_000))


def test_fewer_batches_than_are_accumulated_still_make_a_step(tmp_path):
    job = linear_job(tmp_path, accumulate=1000, epochs=1)
    before = job.network[1].weight.detach().clone()
    assert not torch.equal(fit(job)[1].weight, before)


def test_the_reporter_is_closed_when_a_step_fails(tmp_path):
    finished = []

    class Closing(Reporter):
        def finish(self):
            finished.append(True)

    job = linear_job(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fit(replace(job, loss_of=lambda model, step: 1 / 0, reporter=Closing()))
    assert finished == [True]


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "x"},
        {"epoch": 99},
        {"batch": 7},
        {"epoch": 2, "batch": 1},
        {"loss": None},
        {"batch": -1},
        {"more": 1},
    ],
)
def test_a_changed_position_is_refused(tmp_path, change):
    config = quick(checkpoint_seconds=0.0)
    with pytest.raises(Killed):
        train_heaviest(MBCONV, bench(tmp_path, config, KillAfter(tmp_path, 2)))
    path = tmp_path / "heaviest" / "within.json"
    data = json.loads(path.read_text())
    data["values"]["place"] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match=r"within\.json"):
        train_heaviest(MBCONV, bench(tmp_path, config))


@pytest.mark.parametrize("ema", [None, 0.5])
@pytest.mark.parametrize(("scores", "best"), [([1.0, 0.0, 5.0, 2.0], 2), ([3.0, 1.0, 2.0, 3.0], 0)])
def test_the_best_epoch_is_returned_when_asked(tmp_path, scores, best, ema):
    """Among what was measured: the averaged weights where there are any, the start being epoch 0."""
    job = linear_job(tmp_path, epochs=3, ema=ema)
    seen = []

    def measure(network):
        seen.append(network[1].weight.detach().clone())
        return {"score": scores[len(seen) - 1]}

    found = fit(replace(job, measure=measure, select="score"))
    assert len(seen) == 4
    assert torch.equal(found[1].weight, seen[best])
    assert load_checkpoint(tmp_path, "best").values == {"epoch": best}


class KillAtRecord(Reporter):
    """Writes the figures of an epoch, then ends the process, so to say, before the checkpoint of that epoch."""

    def record(self, epoch, step, metrics):
        super().record(epoch, step, metrics)
        if epoch == 2:
            raise Killed


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("moment", ["first validation", "last validation", "figures"])
def test_killed_between_the_last_batch_of_an_epoch_and_its_checkpoint(tmp_path, moment, accumulate):
    """A checkpoint after every step stands behind the last batch of an epoch while that is being validated."""

    def trained(name, reporter=Reporter, killed_in=None):
        job = linear_job(tmp_path / name, epochs=3, ema=0.5, accumulate=accumulate)
        measured = []

        def measure(network):
            measured.append(float(network[1].weight.sum()) + float(torch.rand(())))
            if len(measured) == killed_in:
                raise Killed
            return {"score": measured[-1]}

        config = job.config.model_copy(update={"checkpoint_seconds": 0.0})
        return fit(
            replace(
                job,
                config=config,
                measure=measure,
                select="score",
                reporter=reporter(tmp_path / name),
            )
        )

    whole = trained("whole")
    reporter = KillAtRecord if moment == "figures" else Reporter
    with pytest.raises(Killed):
        trained("parts", reporter, {"first validation": 2, "last validation": 4}.get(moment))
    resumed = trained("parts")
    assert same(whole, resumed)
    assert read_metrics(tmp_path / "whole") == read_metrics(tmp_path / "parts")
    assert not has_checkpoint(tmp_path / "parts", WITHIN)
    ends = [load_checkpoint(tmp_path / name, PROGRESS) for name in ("whole", "parts")]
    assert ends[0].values == ends[1].values
    assert all(torch.equal(value, ends[1].tensors[name]) for name, value in ends[0].tensors.items())


def test_the_average_follows_slowly():
    network = nn.Linear(2, 1)
    average = Average(network, 0.5)
    start = network.weight.detach().clone()
    with torch.no_grad():
        network.weight.add_(1.0)
    average.update(network)  # first decay is min(0.5, 1 / 10)
    assert torch.allclose(average.module.weight, start + 0.9)
    average.steps = 1000
    average.update(network)
    assert torch.allclose(average.module.weight, start + 0.95)


class TestReporter:
    def test_without_folder_and_progress_it_is_silent(self, capsys):
        reporter = Reporter()
        reporter.start("x", 1, 0)
        reporter.advance(1, loss=1.0)
        reporter.record(1, 1, {"loss": 1.0})
        reporter.finish()
        assert capsys.readouterr() == ("", "")

    def test_how_far_it_is_goes_to_the_progress_with_the_last_figures(self):
        shown = []

        class Heard(Progress):
            def show(self, done, doing="", left=None):
                shown.append((done, doing))

        reporter = Reporter(progress=Heard())
        reporter.start("supernet", 4, 2)
        reporter.advance(2)
        reporter.record(1, 2, {"loss": 1.23456, "learning_rate": 0.1})
        reporter.advance(3)
        assert shown == [(0.5, ""), (0.75, "epoch 1: loss 1.235")]

    def test_lines_that_are_written_again_are_dropped_and_torn_ones_passed_over(self, tmp_path):
        reporter = Reporter(tmp_path)
        reporter.start("supernet", 4, 0)
        for step in (2, 4):
            reporter.record(step // 2, step, {"loss": float(step)})
        reporter.finish()
        keep_figures(tmp_path, "check", {"tau": 0.5, "nothing": float("nan")})
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.write('{"phase": "che')
        again = Reporter(tmp_path)
        again.start("supernet", 4, 2)
        again.finish()
        assert read_metrics(tmp_path) == [
            {"phase": "supernet", "epoch": 1, "step": 2, "loss": 2.0},
            {"phase": "check", "epoch": 1, "step": 1, "tau": 0.5},
        ]

    @pytest.mark.parametrize("line", ["[]", '{"phase": "x"}', '{"phase": "x", "step": "1"}'])
    def test_a_line_without_a_place_is_named(self, tmp_path, line):
        (tmp_path / "metrics.jsonl").write_text(line + "\n")
        with pytest.raises(FileError, match="without phase and step"):
            read_metrics(tmp_path)
