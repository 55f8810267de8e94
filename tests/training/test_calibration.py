import pytest
import torch
from small_data import bar_data
from small_networks import BOTTLENECK, MBCONV
from torch import nn

from binas.contributions.strata import odds_around
from binas.supernet import Supernet, extract
from binas.supernet.layers import ElasticNorm
from binas.training import Accuracy, accuracy, evaluate_architecture, recalibrate
from binas.training.calibration import brisk_statistics, recalibrate_supernet
from binas.training.evaluation import calibrate_multipath, calibration_batches, normalised_batches

CPU = torch.device("cpu")


def test_statistics_are_those_of_all_images_together():
    torch.manual_seed(0)
    network = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3)).eval()
    images = torch.randn(10, 3, 4, 4) * 3 + 1
    recalibrate(network, [images[:7], images[7:]])
    variance, mean = torch.var_mean(images, (0, 2, 3))
    assert torch.allclose(network[0].running_mean, mean, atol=1e-6)
    assert torch.allclose(network[0].running_var, variance, rtol=1e-5)
    assert not network.training
    assert torch.equal(network[0].weight, torch.ones(3))


def test_rows_of_features_have_statistics_too():
    network, rows = nn.Sequential(nn.BatchNorm1d(4)).eval(), torch.arange(24.0).view(6, 4)
    recalibrate(network, [rows[:2], rows[2:]])
    assert torch.allclose(network[0].running_mean, rows.mean(0))
    assert torch.allclose(network[0].running_var, rows.var(0))


def test_single_values_are_pooled_too():
    """A config that one image of a pass takes, where the image is one pixel by then."""
    norm, rows = ElasticNorm(4), torch.arange(24.0).view(6, 4, 1, 1)
    recalibrate(nn.Sequential(norm), [rows[k : k + 1, :3] for k in range(6)])
    assert torch.allclose(norm.running_mean, torch.tensor([10.0, 11.0, 12.0, 0.0]))
    assert torch.allclose(norm.running_var, torch.tensor([*[float(rows[:, 0].var())] * 3, 1.0]))


def test_statistics_keep_up_with_a_short_phase_and_a_long_one_is_left_alone():
    network = nn.Sequential(
        nn.BatchNorm2d(1, momentum=0.01), nn.BatchNorm2d(1), nn.BatchNorm2d(1, momentum=None)
    )
    for batches, least in ((50, 0.1), (200, 0.05), (100_000, 0.01)):
        with brisk_statistics(network, batches):
            assert [norm.momentum for norm in network] == [least, 0.1, None]
    assert [norm.momentum for norm in network] == [0.01, 0.1, None]


@pytest.mark.parametrize("space", [MBCONV, BOTTLENECK], ids=lambda space: space.name)
def test_only_what_was_used_changes(space):
    torch.manual_seed(0)
    net = Supernet(space).eval()
    norms = {name: module for name, module in net.named_modules() if isinstance(module, ElasticNorm)}
    before = {name: norm.running_mean.clone() for name, norm in norms.items()}
    data, lightest = bar_data(60), space.extreme(False)
    recalibrate_supernet(net, [lambda: net(next(calibration_batches(data, 30, CPU)), lightest)])
    changed = {name for name, norm in norms.items() if not torch.equal(norm.running_mean, before[name])}
    used = extract(net, lightest)
    assert len(changed) == sum(isinstance(m, nn.BatchNorm2d) for m in used.blocks.modules())
    assert not net.training


@pytest.mark.parametrize("space", [MBCONV, BOTTLENECK], ids=lambda space: space.name)
def test_with_the_statistics_of_a_batch_eval_is_what_train_was(space):
    torch.manual_seed(0)
    net, largest = Supernet(space).eval(), space.extreme()
    images = next(calibration_batches(bar_data(), 128, CPU))
    recalibrate_supernet(net, [lambda: net(images, largest)])
    with torch.no_grad():
        normed = net(images, largest)
        wanted = net.train()(images, largest)
    assert torch.allclose(normed, wanted, atol=0.05 * float(wanted.abs().max()))


def test_multipath_calibration_reaches_every_norm_and_forgets_the_old_statistics():
    torch.manual_seed(0)
    net = Supernet(MBCONV).eval()
    norms = [module for module in net.modules() if isinstance(module, ElasticNorm | nn.BatchNorm2d)]
    for norm in norms:
        norm.running_mean.fill_(1e6)
    calibrate_multipath(net, bar_data(), 200)
    assert all(float(norm.running_mean.abs().max()) < 100 for norm in norms)


def test_accuracy_counts_right_answers_and_has_its_binomial_error():
    data = bar_data()
    labels = torch.cat([labels for _, labels in normalised_batches(data, data.test, CPU)])
    always_two = accuracy(lambda x: torch.eye(5)[torch.full((len(x),), 2)], data, data.test, CPU)
    assert always_two == Accuracy(100 * int((labels == 2).sum()) / len(labels), len(labels))
    assert Accuracy(80.0, 400).error == pytest.approx(2.0)


def test_evaluating_leaves_the_supernet_alone():
    torch.manual_seed(0)
    net, data = Supernet(MBCONV).eval(), bar_data()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    plain = evaluate_architecture(net, MBCONV.extreme(), data, data.validation)
    recalibrated = evaluate_architecture(net, MBCONV.extreme(), data, data.validation, recalibration=64)
    assert plain.images == recalibrated.images == len(data.validation)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_multipath_calibration_follows_the_odds_that_training_drew_by():
    """Statistics of paths near the heaviest are nearer to those of the heaviest than those of uniform paths are."""
    batch, largest = next(calibration_batches(bar_data(), 200, CPU)), MBCONV.extreme()
    nets = []
    for calibrate in (
        lambda net: recalibrate_supernet(net, [lambda: net(batch, largest)]),
        lambda net: calibrate_multipath(net, bar_data(), 200),
        lambda net: calibrate_multipath(net, bar_data(), 200, odds=odds_around(MBCONV, [1.0])),
    ):
        torch.manual_seed(0)
        nets.append(Supernet(MBCONV).eval())
        calibrate(nets[-1])
    heaviest, uniform, near = (net.head.state_dict().values() for net in nets)
    gaps = [
        sum(float((a - b).abs().sum()) for a, b in zip(heaviest, x, strict=True)) for x in (near, uniform)
    ]
    assert gaps[0] < 0.5 * gaps[1]
