"""Before the supernet is trained all configs start from the heaviest network's weights."""

import pytest
import torch
from small_networks import BOTTLENECK, MBCONV, MIXED, SOME_SQUEEZE

from binas.supernet import Supernet
from binas.supernet.layers import reading_weight, typical_size

SPACES = [MBCONV, BOTTLENECK, MIXED, SOME_SQUEEZE]


def supernet(space, size=12):
    torch.manual_seed(0)
    net = Supernet(space)
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if name.endswith(("running_var", "norm.weight")):
                value.uniform_(0.5, 2.0)
            elif name.endswith(("running_mean", "bias")):
                value.normal_()
    return net.eval()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_the_heaviest_network_computes_what_it_did(space):
    net, images = supernet(space), torch.randn(4, 3, 12, 12)
    with torch.no_grad():
        before = net(images, space.extreme())
        net.start_from(space.extreme())
        assert torch.allclose(net(images, space.extreme()), before, atol=1e-4)


@pytest.mark.parametrize(
    ("space", "norm", "layer"), [(MBCONV, "depthwise", "project"), (BOTTLENECK, "middle", "restore")]
)
def test_channels_are_sorted_by_their_size_and_what_the_next_layer_takes_of_them(space, norm, layer):
    net = supernet(space)
    block = net.block(0, 0)
    largest = block.choices[-1]
    passed = getattr(block, norm).norm(f"k{largest.kernel}" if space is MBCONV else largest.norm)
    torch.nn.init.uniform_(passed.weight)

    def importance():
        read = list(getattr(block, layer).weights.values())[-1]
        return reading_weight(read) * typical_size(passed)

    before = importance()
    assert not torch.equal(before, before.sort(descending=True).values)
    net.start_from(space.extreme())
    assert torch.allclose(importance(), before.sort(descending=True).values)


def test_small_kernels_and_private_norms_start_from_the_large_ones():
    net = supernet(MBCONV)
    net.start_from(MBCONV.extreme())
    block = net.block(0, 0)
    kernels = block.depthwise.weights
    assert torch.equal(kernels["k3"], kernels["k5"][:, :, 1:-1, 1:-1])
    norms = [norm.state_dict() for norm in block.project.norms.values()]
    assert len(norms) > 1
    assert all(torch.equal(norms[0][key], norm[key]) for norm in norms for key in norm)
