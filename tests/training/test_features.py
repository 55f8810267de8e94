"""Weights that were given as teacher of features."""

import pytest
import torch
from safetensors.torch import save_file
from small_data import bench, quick, quick_tuning
from small_networks import MBCONV
from torch import nn

from binas.base.errors import TrainingError
from binas.supernet import extract
from binas.training import train_heaviest
from binas.training.features import Features, FeatureTeacher
from binas.training.phases import check_training, fresh_network


def test_the_loss_is_how_far_features_are_from_those_given():
    given, own = (nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Linear(3, 2)) for _ in range(2))
    images = torch.randn(5, 4)
    teacher = FeatureTeacher(given, given, own, 2.0)
    own(images)
    loss = teacher.loss(images)
    f, g = own[1](images), given[1](images)
    torch.testing.assert_close(loss, 2 * ((f - g) ** 2).sum(1).mean() / (g**2).sum(1).mean())
    loss.backward()
    assert own[1].weight.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in given.parameters())
    own.load_state_dict(given.state_dict())
    own(images)
    assert teacher.loss(images).item() == 0.0


@pytest.fixture
def start(tmp_path):
    """Weights to start from, as `binas shrink` writes them."""
    path = tmp_path / "start.safetensors"
    save_file(fresh_network(MBCONV, MBCONV.extreme(), 5).state_dict(), path)
    return path


def test_features_stay_nearer_with_a_teacher(start, tmp_path):
    largest, away = MBCONV.extreme(), {}
    original = fresh_network(MBCONV, largest, 5).eval()
    images = torch.rand(32, MBCONV.channels, MBCONV.resolution, MBCONV.resolution)
    for weight in (0.0, 30.0):
        settings = quick(heaviest={"features": weight}, start=start)
        trained = train_heaviest(MBCONV, bench(tmp_path / f"{weight}", settings))
        found = [original, extract(trained, largest).eval()]
        seen = [Features(network.head) for network in found]
        for network in found:
            network(images)
        away[weight] = (seen[1].seen - seen[0].seen).square().mean().item()
    assert away[30.0] < 0.5 * away[0.0]


def test_without_given_weights_or_a_linear_classifier_there_is_nothing_to_keep(tmp_path):
    settings = quick(heaviest={"features": 1.0})
    with pytest.raises(TrainingError, match=r"train\.start"):
        check_training(settings, quick_tuning(), bench(tmp_path).data)
    with pytest.raises(TrainingError, match="linear classifier"):
        Features(nn.Conv2d(1, 1, 1))
