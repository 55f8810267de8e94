"""Depth-wise filters in pieces give the gradients of the library's own, and trained networks use them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from binas.supernet import depthwise  # noqa: E402
from binas.supernet.depthwise import fast_filters, filter_channels  # noqa: E402
from binas.supernet.rows import joined, parts, side_by_side  # noqa: E402


def gradients(out: torch.Tensor, *of: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (out, *torch.autograd.grad(out.square().sum(), of))


@pytest.mark.parametrize("kernel", [5, 7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 4), (7, 5)])
def test_pieces_give_the_same_gradients(kernel: int, stride: int, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 6, *size, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 1, kernel, kernel, dtype=torch.float64, requires_grad=True)
    ours = filter_channels(x, weight, None, stride, kernel // 2)
    assert "InPieces" in type(ours.grad_fn).__name__
    library = F.conv2d(x, weight, None, stride, kernel // 2, 1, 6)
    for own, wanted in zip(gradients(ours, x, weight), gradients(library, x, weight), strict=True):
        torch.testing.assert_close(own, wanted)


@pytest.mark.parametrize("frozen", ["images", "weight"])
def test_only_what_is_asked_for_is_computed(frozen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = depthwise._gradient
    monkeypatch.setattr(depthwise, "_gradient", lambda *given: (asked.append(given[-1]), plain(*given))[1])
    x = torch.randn(2, 4, 4, 4, requires_grad=frozen == "weight")
    weight = torch.randn(4, 1, 5, 5, requires_grad=frozen == "images")
    filter_channels(x, weight, None, 1, 2).sum().backward()
    assert set(asked) == ({1} if frozen == "images" else set())


@pytest.mark.parametrize(
    ("kernel", "side", "bias"), [(3, 4, False), (5, 8, False), (5, 4, True)], ids=["k3", "large", "bias"]
)
def test_what_the_library_does_well_is_left_to_it(kernel: int, side: int, bias: bool) -> None:
    weight = torch.randn(4, 1, kernel, kernel, requires_grad=True)
    out = filter_channels(
        torch.randn(2, 4, side, side), weight, torch.zeros(4) if bias else None, 1, kernel // 2
    )
    assert "InPieces" not in type(out.grad_fn).__name__


class TestFastFilters:
    def network(self) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(4, 4, 5, padding=2, groups=4, bias=False),
            nn.Conv2d(4, 8, 5, padding=2, bias=False),
            nn.Conv2d(8, 8, 5, padding=0, groups=8, bias=False),
        )

    def test_depthwise_layers_are_trained_in_pieces_and_left_as_they_were(self) -> None:
        network, x = self.network(), torch.randn(2, 4, 6, 6)
        before = network(x)
        with fast_filters(network):
            assert ["forward" in vars(layer) for layer in network] == [True, False, False]
            assert "InPieces" in type(network[0](x).grad_fn).__name__
            torch.testing.assert_close(network(x), before)
        assert not any("forward" in vars(layer) for layer in network)

    def test_they_come_back_after_an_error(self) -> None:
        network = self.network()
        with pytest.raises(RuntimeError), fast_filters(network):
            network(torch.randn(2, 3, 6, 6))
        assert not any("forward" in vars(layer) for layer in network)


def test_grey_images_are_seen_as_channels_last() -> None:
    """One channel looks the same in both layouts; the first convolution must keep the right one."""
    grey = torch.randn(3, 1, 8, 8)
    for some in (grey, grey[1:], grey[::2], grey.transpose(2, 3)):
        assert torch.equal(side_by_side(some), some)
    assert F.conv2d(side_by_side(grey), torch.randn(4, 1, 3, 3)).is_contiguous(
        memory_format=torch.channels_last
    )


def test_a_part_that_is_all_costs_nothing() -> None:
    x = torch.randn(5, 3, requires_grad=True) * 1
    assert parts(x, [5])[0] is x
    assert joined([x]) is x
    assert torch.equal(joined(parts(x, [2, 3])), x)
