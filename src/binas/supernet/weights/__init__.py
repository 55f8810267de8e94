"""Weights trained elsewhere: read from a file, matched to a network by name and shape, proved by equal logits.

loaded = load_network("efficientnet_lite0", "lite0.pth")      # names and rules of timm, torchvision, ... are data
check_equal(loaded, module)                                   # or recorded pairs of images and logits
space = space_from_network(loaded.description, classes=10)
supernet = Supernet(space)
supernet.absorb(loaded.network, new_classifier=True)
"""

from binas.supernet.weights.equality import Agreement, check_equal, check_recorded
from binas.supernet.weights.files import WeightFile, read_weights
from binas.supernet.weights.known import KnownNetwork, known_networks
from binas.supernet.weights.loading import LoadedNetwork, load_network

__all__ = [
    "Agreement",
    "KnownNetwork",
    "LoadedNetwork",
    "WeightFile",
    "check_equal",
    "check_recorded",
    "known_networks",
    "load_network",
    "read_weights",
]
