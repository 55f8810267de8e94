import pytest
import torch
from tiny import TINY
from torch import nn

from binas.base.errors import SpaceError
from binas.base.files import parse_yaml
from binas.costs.job import FIXED
from binas.costs.workloads import control_workload, network_workload, space_workloads
from binas.space import load_space, sample_many, space_from_data
from binas.testing import make_space


@pytest.fixture(scope="module")
def tiny():
    return space_from_data(parse_yaml(TINY).data)


@pytest.fixture(scope="module")
def found(tiny):
    return space_workloads(tiny)


def run(workload):
    with torch.inference_mode():
        return workload.module.eval()(*(torch.zeros(2, *shape) for shape in workload.shapes))


def test_every_choice_has_an_entry_and_equal_blocks_share_one(found):
    assert set(found.places) == {(0, b, c) for b in (0, 1) for c in range(4)} | {
        (1, b, c) for b in (0, 1) for c in range(2)
    }
    # Both blocks of s1 keep 8 channels at stride 1; the blocks of s2 differ in input and stride.
    assert all(found.places[0, 0, c] == found.places[0, 1, c] for c in range(4))
    assert all(found.places[1, 0, c] != found.places[1, 1, c] for c in range(2))
    assert set(found.places.values()) == set(found.blocks)
    assert len(found.blocks) == 8
    assert list(found.all()) == [*found.blocks, FIXED]


def test_the_demo_space_has_sixty_distinct_blocks():
    assert len(space_workloads(load_space("small-28")).blocks) == 60


def test_blocks_run_on_the_inputs_they_get_in_a_network(tiny, found):
    assert found.blocks[found.places[0, 0, 0]].shapes == ((8, 8, 8),)
    assert found.blocks[found.places[1, 0, 0]].shapes == ((8, 8, 8),)
    assert found.blocks[found.places[1, 1, 0]].shapes == ((16, 4, 4),)
    for name, workload in found.blocks.items():
        assert run(workload).shape[1] == (8 if name.startswith("s1") else 16)


def test_the_blocks_of_a_network_are_these_blocks(tiny, found):
    """The parts measured alone are, layer for layer, what a network is made of."""
    for architecture in sample_many(tiny, 5, 0):
        network = network_workload(tiny, architecture).module
        names = [
            found.places[s, b, tiny.config_index(s, b, name)]
            for s, stage in enumerate(architecture.stages)
            for b, name in enumerate(stage)
        ]
        parts = [found.blocks[name].module for name in names]
        assert [repr(block) for block in network.blocks] == [repr(part) for part in parts]
        assert repr(network.stem) == repr(found.fixed.module.stem)
        assert repr(network.head) == repr(found.fixed.module.head)


def test_the_fixed_part_is_stem_and_head_in_one(tiny, found):
    assert found.fixed.shapes == ((3, 16, 16), (16, 4, 4))
    first, logits = run(found.fixed)
    assert first.shape == (2, 8, 8, 8)
    assert logits.shape == (2, 5)


def test_networks_take_images(tiny):
    workload = network_workload(tiny, tiny.extreme())
    assert workload.shapes == ((3, 16, 16),)
    assert run(workload).shape == (2, 5)


def test_the_control_is_the_same_for_every_space():
    one, two = control_workload(), control_workload()
    assert repr(one.module) == repr(two.module)
    assert isinstance(run(one), torch.Tensor)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in one.module.modules())


def test_a_space_without_layers_cannot_be_measured():
    with pytest.raises(SpaceError):
        space_workloads(make_space(2, 2, 2))
