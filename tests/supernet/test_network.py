"""Paths per image, gradients, BatchNorm, the relaxed forward, and bad input."""

from __future__ import annotations

import itertools
import platform
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import MIXED, SPACES, fresh, images, make, scrambled, stage  # noqa: E402

from binas.base.errors import ArchitectureError, BinasError, SpaceError  # noqa: E402
from binas.contributions.strata import odds_around  # noqa: E402
from binas.space import SearchSpace, load_space, sample_many  # noqa: E402
from binas.supernet import (  # noqa: E402
    Supernet,
    extract,
    family_names,
    paths_of,
    sample_paths,
    sample_relaxed,
)
from binas.supernet.layers import ElasticConv, typical_size  # noqa: E402
from binas.supernet.network import keep_memory  # noqa: E402


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class TestPaths:
    @pytest.mark.parametrize("count", [1, 5, 40])
    @pytest.mark.parametrize("name", SPACES)
    def test_a_mixed_batch_equals_one_image_at_a_time(self, name: str, count: int) -> None:
        """With gradients and without: the two take different ways through a block."""
        net, space = scrambled(name), SPACES[name]
        batch, paths = images(space, count), sample_paths(space, count, generator(count))
        recorded = net(batch, paths)
        with torch.inference_mode():
            together = net(batch, paths)
            for i in range(count):
                architecture = space.from_indices(paths[0][i].tolist(), paths[1][i].tolist())
                alone = extract(net, architecture)(batch[i : i + 1])
                torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(recorded[i : i + 1], alone, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("name", ["small", "bottleneck"])
    def test_changed_weights_count_at_once(self, name: str) -> None:
        """Whatever way they change: nothing folded is kept."""
        net, batch = fresh(SPACES[name]).eval(), images(SPACES[name], 4)
        paths, seen = sample_paths(net.space, 4, generator()), []

        def check() -> None:
            with torch.no_grad():
                seen.append(net(batch, paths))
                for i in range(4):
                    architecture = net.space.from_indices(paths[0][i].tolist(), paths[1][i].tolist())
                    alone = extract(net, architecture)(batch[i : i + 1])
                    torch.testing.assert_close(seen[-1][i : i + 1], alone, rtol=1e-5, atol=1e-5)

        check()
        for value in [*net.stages.parameters(), *net.stages.buffers()]:
            value.data.mul_(1.2)
        check()
        net.load_state_dict(fresh(SPACES[name]).state_dict())
        check()
        net.train()(images(net.space, 8), sample_paths(net.space, 8, generator()))
        net.eval()
        check()
        assert all(not torch.allclose(a, b) for a, b in itertools.pairwise(seen))

    @pytest.mark.parametrize("name", ["small", "mixed"])
    def test_mixed_precision(self, name: str) -> None:
        net, space = fresh(SPACES[name]), SPACES[name]
        batch, paths = images(space, 16), sample_paths(space, 16, generator())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            net.train()(batch, paths).float().square().mean().backward()
            with torch.no_grad():
                rough = net.eval()(batch, paths).float()
        with torch.no_grad():
            exact = net(batch, paths)
        assert (rough - exact).abs().max() < 0.1 * exact.abs().max()
        assert all(torch.isfinite(p.grad).all() for p in net.parameters() if p.grad is not None)

    def test_layout_and_order_of_images_do_not_matter(self) -> None:
        net = scrambled("small")
        batch, (depths, configs) = images(net.space, 9), sample_paths(net.space, 9, generator())
        turn = torch.arange(9).flip(0)
        with torch.no_grad():
            expected = net(batch, (depths, configs))
            last = net(batch.contiguous(memory_format=torch.channels_last), (depths.int(), configs.int()))
            turned = net(batch[turn], (depths[turn], configs[turn]))
        torch.testing.assert_close(last, expected)
        torch.testing.assert_close(turned[turn], expected)

    def test_images_past_their_depth_are_not_computed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        net, rows = scrambled("small"), []
        block = net.block(0, 1)
        run = block.run
        monkeypatch.setattr(block, "run", lambda x, groups: rows.append(len(x)) or run(x, groups))
        paths = paths_of(net.space, sample_many(net.space, 20, seed=2))
        with torch.no_grad():
            net(images(net.space, 20), paths)
        assert rows == [int((paths[0][:, 0] > 1).sum())]
        assert rows[0] < 20

    def test_nothing_remembers_a_path(self) -> None:
        net, batch = scrambled("small"), images(SPACES["small"], 2)
        with torch.no_grad():
            before = net(batch, net.space.extreme())
            net(batch, net.space.extreme(heaviest=False))
            assert torch.equal(net(batch, net.space.extreme()), before)


class TestSampling:
    def test_every_decision_is_about_equally_likely(self) -> None:
        space = SPACES["small"]
        depths, configs = sample_paths(space, 6000, generator())
        assert set(depths[:, 0].tolist()) == {1, 3}
        shares = torch.bincount(configs[:, 0, 0], minlength=12) / 6000
        assert (shares - 1 / 12).abs().max() < 0.02
        assert abs((depths[:, 0] == 3).float().mean().item() - 0.5) < 0.03

    def test_blocks_past_the_depth_have_no_config(self) -> None:
        depths, configs = sample_paths(SPACES["small"], 50, generator())
        active = torch.arange(3)[None, None] < depths[:, :, None]
        assert torch.equal(configs >= 0, active)

    @pytest.mark.parametrize("groups", [1, 3])
    def test_groups_are_an_even_partition(self, groups: int) -> None:
        _, configs = sample_paths(SPACES["small"], 30, generator(), groups)
        sizes = torch.bincount(configs[:, 0, 0])
        assert sizes[sizes > 0].tolist() == [30 // groups] * groups

    def test_groups_reach_every_config_in_time(self) -> None:
        one = generator()
        seen = torch.cat([sample_paths(SPACES["small"], 4, one, 2)[1][:, 0, 0] for _ in range(100)])
        assert len(seen.unique()) == 12

    def test_groups_by_odds_are_few_and_as_likely_as_the_odds_say(self) -> None:
        space, one = SPACES["small"], generator()
        odds = odds_around(space, [0.2, 0.4])
        drawn = [sample_paths(space, 16, one, 2, odds)[1][:, 0, 0] for _ in range(2000)]
        assert max(len(configs.unique()) for configs in drawn) == 2
        shares = torch.bincount(torch.cat(drawn), minlength=12) / (16 * 2000)
        wanted = torch.tensor([sum(item.share((0, 0), c) for item in odds) / 2 for c in range(12)])
        assert (shares - wanted).abs().max() < 0.03

    def test_seeds(self) -> None:
        first, again, other = (sample_paths(MIXED, 20, generator(seed))[1] for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


def gradients(blocks: torch.nn.Module, logits: torch.Tensor) -> torch.Tensor:
    """All gradients that are not zero, sorted."""
    blocks.zero_grad()
    logits.square().sum().backward()
    found = torch.cat([p.grad.flatten() for p in blocks.parameters() if p.grad is not None])
    return found[found.abs() > 1e-9].sort().values


class TestGradients:
    @pytest.mark.parametrize("name", SPACES)
    def test_they_reach_exactly_the_weights_in_use(self, name: str) -> None:
        """Gradients in the shared weights are those of the extracted network: none missing, none besides."""
        net, space = fresh(SPACES[name]).eval().double(), SPACES[name]
        batch = images(space, 4).double()
        for architecture in sample_many(space, 4, seed=4):
            plain = extract(net, architecture)
            if not len(plain.blocks):
                continue
            ours, theirs = (
                gradients(net.stages, net(batch, architecture)),
                gradients(plain.blocks, plain(batch)),
            )
            assert len(ours) > 0.5 * sum(p.numel() for p in plain.blocks.parameters())
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("name", SPACES)
    def test_of_a_mixed_batch_are_the_sum_over_images(self, name: str) -> None:
        net, space = fresh(SPACES[name]).eval().double(), SPACES[name]
        batch, paths = images(space, 9).double().requires_grad_(), sample_paths(space, 9, generator())
        net(batch, paths).square().sum().backward()
        ours = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
        pixels = batch.grad
        net.zero_grad()
        batch.grad = None
        for i in range(9):
            architecture = space.from_indices(paths[0][i].tolist(), paths[1][i].tolist())
            net(batch[i : i + 1], architecture).square().sum().backward()
        torch.testing.assert_close(batch.grad, pixels, rtol=1e-9, atol=1e-9)
        theirs = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
        assert ours.keys() == theirs.keys()
        for key, gradient in theirs.items():
            torch.testing.assert_close(ours[key], gradient, rtol=1e-9, atol=1e-9)

    def test_a_private_norm_sees_all_its_images_whatever_their_kernel(self) -> None:
        net = fresh(SPACES["small"]).train()
        chosen = [net.space.parse(text) for text in ("e2k3_e2k3", "e2k5_e2k3")] * 4
        norm = net.block(0, 0).project.norm("w16se0")
        calls = []
        norm.register_forward_hook(lambda _, args, out: calls.append(len(args[0])))
        net(images(net.space, 8), paths_of(net.space, chosen))
        assert calls == [8]

    def test_kernels_larger_than_the_image(self) -> None:
        """Training pads them by hand; the numbers stay the same, also where the image is one pixel."""
        layer = ElasticConv(4, 4, [5, 7], ["a"], depthwise=True).double()
        for size in (1, 2, 4, 6):
            x = images(SPACES["small"], 3, size=size).double()[:, :1].repeat(1, 4, 1, 1).requires_grad_()
            for kernel in (5, 7):
                weight = layer.weight(4, 4, kernel)
                plain = torch.nn.functional.conv2d(x, weight, None, 1, kernel // 2, 1, 4)
                torch.testing.assert_close(layer.train().convolve(x, 4, kernel), plain)

    def test_private_statistics_move_only_for_used_configs(self) -> None:
        net = fresh(SPACES["small"]).train()
        before = {name: value.clone() for name, value in net.named_buffers()}
        net(images(net.space, 8), net.space.parse("e2k5_e2k3"))
        moved = {name for name, value in net.named_buffers() if not torch.equal(value, before[name])}
        norms = {name.rsplit(".", 1)[0] for name in moved if name.startswith("stages")}
        block = "stages.{}.0.{}.norms.{}"
        assert norms == {
            block.format(0, "expand", "shared"),
            block.format(0, "depthwise", "k5"),
            block.format(0, "project", "w16se0"),
            block.format(1, "expand", "shared"),
            block.format(1, "depthwise", "k3"),
            block.format(1, "project", "w16se8"),
        }
        changed = net.stages[0][0].expand.norms["shared"].running_mean
        assert torch.equal(changed[16:], before["stages.0.0.expand.norms.shared.running_mean"][16:])

    def test_eval_moves_no_statistics(self) -> None:
        net = fresh(SPACES["mixed"]).eval()
        before = {name: value.clone() for name, value in net.named_buffers()}
        net(images(net.space, 4), sample_paths(net.space, 4, generator()))
        assert all(torch.equal(value, before[name]) for name, value in net.named_buffers())

    def test_a_single_value_per_channel_trains(self) -> None:
        """One image of one pixel has no variance; it must not poison the statistics."""
        net = fresh(SPACES["small"]).train()
        net.stem.eval()
        net.head.eval()
        logits = net(images(net.space, 1, size=1), net.space.extreme())
        assert torch.isfinite(logits).all()
        assert all(torch.isfinite(value).all() for value in net.buffers())

    @pytest.mark.parametrize("name", ["small", "bottleneck"])
    def test_multi_path_training_learns(self, name: str) -> None:
        """Each class is a pattern of its own under noise."""
        torch.manual_seed(0)
        space, one = SPACES[name], generator()
        net, labels = Supernet(space).train(), torch.arange(40) % 5
        batch = images(space, 5, seed=9)[labels] + 0.3 * images(space, 40)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        losses = []
        for _ in range(40):
            loss = torch.nn.functional.cross_entropy(net(batch, sample_paths(space, 40, one, 2)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])

    def test_small_kernels_start_as_the_centre_of_large_ones(self) -> None:
        weights = Supernet(load_space("ofa-mbv3")).block(0, 0).depthwise.weights
        assert torch.equal(weights["k5"], weights["k7"][:, :, 1:-1, 1:-1])
        assert torch.equal(weights["k3"], weights["k5"][:, :, 1:-1, 1:-1])


class TestRelaxed:
    @pytest.mark.parametrize("name", SPACES)
    def test_one_hot_vectors_are_the_architecture(self, name: str) -> None:
        net, space = scrambled(name), SPACES[name]
        batch = images(space, 3)
        for architecture in sample_many(space, 3, seed=6):
            alpha, beta = map(torch.from_numpy, space.layout.encode(architecture))
            alpha, beta = alpha.float().requires_grad_(), beta.float().requires_grad_()
            logits = net.relaxed(batch, alpha, beta)
            with torch.no_grad():
                torch.testing.assert_close(logits, net(batch, architecture), rtol=1e-5, atol=1e-5)
            logits.square().sum().backward()
            assert (
                int((alpha.grad[: len(space.stages[0].blocks[0])] != 0).sum()) > 1 or 0 in architecture.depths
            )
            assert (beta.grad != 0).all()

    def test_rows_of_vectors_are_images(self) -> None:
        net, space = scrambled("mixed"), MIXED
        chosen = sample_many(space, 4, seed=1)
        rows = [space.layout.encode(architecture) for architecture in chosen]
        alpha, beta = (torch.tensor(np.stack(part), dtype=torch.float32) for part in zip(*rows, strict=True))
        batch = images(space, 4)
        with torch.no_grad():
            expected = net(batch, paths_of(space, chosen))
            torch.testing.assert_close(net.relaxed(batch, alpha, beta), expected, rtol=1e-5, atol=1e-5)

    def test_straight_through_samples(self) -> None:
        space = SPACES["small"]
        logits = [torch.zeros(size, requires_grad=True) for size in (space.alpha_size, space.beta_size)]
        alpha, beta = sample_relaxed(space, *logits, generator())
        space.layout.decode(alpha.detach().numpy(), beta.detach().numpy(), tolerance=1e-6)
        (alpha * torch.randn(space.alpha_size, generator=generator(1))).sum().backward()
        assert (logits[0].grad != 0).all()
        soft, _ = sample_relaxed(space, *logits, generator(), hard=False)
        assert soft.min() > 0
        assert soft.max() < 1

    def test_samples_follow_the_logits(self) -> None:
        space = SPACES["small"]
        scores = torch.zeros((2000, space.alpha_size))
        scores[:, 3] = 2.0
        alpha, _ = sample_relaxed(space, scores, torch.zeros((2000, space.beta_size)), generator())
        expected = float(np.exp(2) / (np.exp(2) + 11))
        assert abs(alpha[:, 3].mean().item() - expected) < 0.04


def pair(space: SearchSpace, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return sample_paths(space, count, generator())


class TestBadInput:
    def test_images(self) -> None:
        net = scrambled("small")
        for wrong in (torch.zeros(2, 1, 12, 12), torch.zeros(3, 12, 12), torch.zeros(0, 3, 12, 12)):
            with pytest.raises(ArchitectureError, match="images have shape"):
                net(wrong, net.space.extreme())

    def test_paths_of_wrong_shape_or_type(self) -> None:
        net = scrambled("small")
        batch, (depths, configs) = images(net.space, 3), pair(net.space, 3)
        for wrong in ((depths[:2], configs[:2]), (depths, configs[..., :1]), (depths.T, configs)):
            with pytest.raises(ArchitectureError, match="paths have shapes"):
                net(batch, wrong)
        for odd in ((depths.float(), configs), depths, "e3k3", (depths, configs, configs), None):
            with pytest.raises(ArchitectureError, match="pair of integer tensors"):
                net(batch, odd)

    def test_paths_outside_the_space(self) -> None:
        net = scrambled("small")
        depths, configs = pair(net.space, 3)
        with pytest.raises(ArchitectureError, match="depth of stage 's1' that is not one of 1, 3"):
            net(images(net.space, 3), (torch.full_like(depths, 2), configs.clamp(min=0)))
        for value in (12, -1):
            bad = configs.clone()
            bad[0, 0, 0] = value
            with pytest.raises(ArchitectureError, match="block 1 of stage 's1'"):
                net(images(net.space, 3), (depths, bad))

    def test_architecture_of_another_space(self) -> None:
        with pytest.raises(ArchitectureError):
            scrambled("small")(images(SPACES["small"], 1), MIXED.extreme())

    def test_vectors_and_settings(self) -> None:
        net = scrambled("small")
        with pytest.raises(ArchitectureError, match="alpha and beta have shapes"):
            net.relaxed(images(net.space, 1), torch.zeros(3), torch.zeros(net.space.beta_size))
        vectors = torch.zeros(net.space.alpha_size), torch.zeros(net.space.beta_size)
        with pytest.raises(ArchitectureError, match="temperature"):
            sample_relaxed(net.space, *vectors, temperature=0.0)
        for count, groups in ((0, None), (3, 0)):
            with pytest.raises(ArchitectureError, match="at least one"):
                sample_paths(net.space, count, generator(), groups)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"family": "unheard"}, "unknown block family 'unheard'; known are bottleneck, mbconv"),
            ({"channels": 16, "depths": [0, 1]}, "may vanish"),
            ({"configs": {"kernel": [4]}}, "odd"),
            ({"configs": [{"name": "a", "channels": 9}]}, "changes its channels or stride"),
            ({"configs": [{"name": "a", "stride": 2}]}, "changes its channels or stride"),
            ({"configs": [{"name": "a", "activation": "tanh"}]}, "activation"),
            ({"family": "bottleneck", "configs": [{"name": "a", "ratio": "wide"}]}, "needs a ratio"),
            ({"family": "bottleneck", "configs": [{"name": "a", "kernel": 2}]}, "odd"),
        ],
    )
    def test_spaces(self, changes: dict[str, object], message: str) -> None:
        entry = {**stage("s1", [1], 8, {"kernel": [3]}), **changes}
        with pytest.raises(BinasError, match=message):
            Supernet(make("bad", [entry]))

    def test_spaces_that_do_not_say_enough(self) -> None:
        for space in (load_space("nas-bench-macro"), replace(MIXED, classes=None)):
            with pytest.raises(SpaceError, match="does not say channels, resolution and classes"):
                Supernet(space)

    def test_known_families(self) -> None:
        assert family_names() == ("bottleneck", "mbconv")


def test_keeping_memory_is_possible_where_glibc_is():
    assert keep_memory() is (sys.platform == "linux" and "glibc" in platform.libc_ver()[0])


def test_the_typical_size_of_a_channel_is_that_of_normal_values_after_relu():
    norm = torch.nn.BatchNorm2d(5)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 0.5, 1.0, 1e-9]))
        norm.bias.copy_(torch.tensor([0.0, 1.0, -1.0, -50.0, 3.0]))
    drawn = torch.randn(200_000, 5, generator=torch.Generator().manual_seed(0)) * norm.weight + norm.bias
    wanted = drawn.relu().square().mean(0).sqrt().detach()
    assert torch.allclose(typical_size(norm), wanted, rtol=0.03, atol=1e-3)
    assert typical_size(torch.nn.BatchNorm2d(2, affine=False)).tolist() == pytest.approx([0.5**0.5] * 2)
