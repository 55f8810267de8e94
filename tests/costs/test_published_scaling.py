"""Published networks scaled by width, and with fewer strides for small images."""

import pytest
import torch

from binas.costs.published.build import build, count
from binas.costs.published.scaling import rounded, scaled
from binas.space.published import published_networks

NETWORKS = published_networks()


@pytest.mark.parametrize(
    ("channels", "found"),
    [(1, 8), (11.9, 16), (12, 16), (8.8, 8), (18, 24), (16, 16), (96.0, 96), (67.2, 64)],
)
def test_channels_are_multiples_of_eight_and_at_most_a_tenth_below(channels, found):
    assert rounded(channels) == found
    assert found >= min(8, channels) * 0.9


@pytest.mark.parametrize("name", ["MobileNetV2", "MobileNetV3-Small", "EfficientNet-B0"])
def test_width_one_is_the_network_itself(name):
    network = NETWORKS[name]
    one, own = (count(build(item), (3, 224, 224)) for item in (scaled(network), network))
    assert (one.params, one.macs) == (own.params, own.macs)


@pytest.mark.parametrize("name", ["MobileNetV2", "MobileNetV3-Small"])
def test_wider_networks_compute_more_and_every_layer_is_scaled(name):
    shape, counts = (3, 32, 32), []
    last = int(NETWORKS[name].blocks.rsplit("_c", 1)[1].partition("_")[0].partition("'")[0])
    for width in (0.25, 0.5, 1.0):
        small = scaled(NETWORKS[name], width, unstrided=2)
        assert f"_c{rounded(width * last)}" in small.blocks
        assert small.features in (None, 1024 * width)
        network = build(small, 3, 10).eval()
        counts.append(count(network, shape).macs)
        assert network(torch.zeros(2, *shape)).shape == (2, 10)
    assert counts == sorted(set(counts))


@pytest.mark.parametrize(("name", "sides"), [("MobileNetV2", (1, 2, 4)), ("MobileNetV3-Small", (1, 2, 4))])
def test_the_first_strides_are_left_out(name, sides):
    """Five halvings of 32 pixels leave 1; without the first one 2, without the first two 4."""
    for unstrided, side in enumerate(sides):
        network = build(scaled(NETWORKS[name], 0.25, unstrided), 1, 10)
        features = network.blocks(network.stem(torch.zeros(1, 1, 32, 32)))
        assert features.shape[2:] == (side, side)
