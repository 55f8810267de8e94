"""What a network costs, counted while torch runs it: independent of the analytic costs it is compared with."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.utils._python_dispatch import TorchDispatchMode

from binas.costs.analytic import Work


def counted(network: nn.Module, images: Tensor) -> Work:
    """Parameters, and MACs from the shapes that pass through convolutions and linear layers."""
    macs = []

    def count(layer: nn.Module, _: object, out: Tensor) -> None:
        macs.append(out.numel() * layer.weight[0].numel())

    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        network(images)
    for hook in hooks:
        hook.remove()
    return Work(sum(macs), sum(parameter.numel() for parameter in network.parameters()))


def folded(network: nn.Module) -> nn.Module:
    """A copy in eval mode whose convolutions have swallowed their BatchNorm."""
    network = copy.deepcopy(network).eval()
    for module in [m for m in network.modules() if hasattr(m, "conv") and hasattr(m, "norm")]:
        module.conv, module.norm = fuse_conv_bn_eval(module.conv, module.norm), nn.Identity()
    return network


class Recorder(TorchDispatchMode):
    """Writes down which memory each operation reads and writes; keeps every tensor, so no address comes twice."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.weights = {address(parameter) for parameter in network.parameters()}
        self.kept: list[Tensor] = []
        self.calls: list[tuple[list[int], int, int, bool]] = []
        self.margins: dict[int, int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        out = (
            result[0] if isinstance(result, tuple) else result
        )  # pooling gives places too, which nothing reads
        memory = address(out)
        sources = [address(arg) for arg in args if isinstance(arg, Tensor)]
        sources = [self.margins.get(source, source) for source in sources]
        sources = [source for source in sources if source not in self.weights]
        self.kept.append(out)
        if func.overloadpacket.__name__ == "constant_pad_nd":  # margins live inside the convolution
            self.margins[memory] = sources[0]
            return result
        if memory not in self.weights:
            new = memory not in sources  # a view or an operation in place makes no tensor
            joins = func.overloadpacket.__name__ in ("add", "mul")
            self.calls.append((sources, memory, out.numel() if new else 0, joins))
        return result


def address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def measured_peak(network: nn.Module, images: Tensor) -> int:
    """Largest sum of live tensors over the operations torch ran, by brute force.

    Memory lives from the first call that names it to the last that reads it. torch has no operation in place
    for a sum or product of layers; its output takes the place of an operand that is not read later. Gates of
    squeeze-excite are activated out of place in torch, on vectors that do not decide a peak.
    """
    with torch.no_grad(), Recorder(network) as recorder:
        network(images)
    calls = recorder.calls
    sizes = {address(images): images.numel(), **{memory: n for _, memory, n, _ in calls if n}}
    last = {memory: max(i for i, c in enumerate(calls) if memory in (*c[0], c[1])) for memory in sizes}
    first = {memory: min(i for i, c in enumerate(calls) if memory in (*c[0], c[1])) for memory in sizes}
    peaks = []
    for i, (sources, _, n, joins) in enumerate(calls):
        live = sum(sizes[m] for m in sizes if first[m] <= i <= last[m])
        reused = joins and any(last[m] == i and sizes[m] == n for m in sources)
        peaks.append(live - n if reused else live)
    return max(peaks)
