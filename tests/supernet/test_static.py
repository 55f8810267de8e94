"""Networks from strings: published parameter counts, every kind of block, and the analytic counts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from small_networks import OFA, SPACES  # noqa: E402
from torch import nn  # noqa: E402

from binas.base.errors import ArchitectureError, BinasError  # noqa: E402
from binas.costs import architecture_work  # noqa: E402
from binas.space import load_space, sample_many, to_block_string  # noqa: E402
from binas.supernet import NetworkRules, SqueezeRule, StaticNetwork, Supernet, extract  # noqa: E402

BY_INPUT = NetworkRules(squeeze=SqueezeRule(of="input", divisor=1, gate="sigmoid"))
SWISH_BY_INPUT = NetworkRules(squeeze=SqueezeRule(of="input", divisor=1, gate="sigmoid", activation="sw"))

# Blocks as in the papers' tables; parameters at 1000 classes as published with their implementations.
PUBLISHED = {
    "MobileNetV3-Large": (
        "[['ds_k3_s1_e1_c16_nre'], ['ir_k3_s2_e4_c24_nre', 'ir_k3_s1_e3_c24_nre'], "
        "['ir_r3_k5_s2_e3_c40_se0.25_nre'], ['ir_k3_s2_e6_c80', 'ir_k3_s1_e2.5_c80', 'ir_r2_k3_s1_e2.3_c80'], "
        "['ir_r2_k3_s1_e6_c112_se0.25'], ['ir_r3_k5_s2_e6_c160_se0.25'], ['cn_k1_s1_c960']]",
        {"stem": "cn_k3_s2_c16", "features": 1280},
        5_483_032,
    ),
    "MobileNetV2": (
        "[['ds_k3_s1_c16_nr6'], ['ir_r2_k3_s2_e6_c24_nr6'], ['ir_r3_k3_s2_e6_c32_nr6'], "
        "['ir_r4_k3_s2_e6_c64_nr6'], ['ir_r3_k3_s1_e6_c96_nr6'], ['ir_r3_k3_s2_e6_c160_nr6'], "
        "['ir_k3_s1_e6_c320_nr6'], ['cn_k1_c1280_nr6']]",
        {"stem": "cn_k3_s2_c32_nr6"},
        3_504_872,
    ),
    "MnasNet-B1": (
        "[['ds_k3_s1_c16_nre_noskip'], ['ir_r3_k3_s2_e3_c24_nre'], ['ir_r3_k5_s2_e3_c40_nre'], "
        "['ir_r3_k5_s2_e6_c80_nre'], ['ir_r2_k3_s1_e6_c96_nre'], ['ir_r4_k5_s2_e6_c192_nre'], "
        "['ir_k3_s1_e6_c320_nre_noskip'], ['cn_k1_c1280_nre']]",
        {},
        4_383_312,
    ),
    "MnasNet-A1": (
        "[['ds_k3_s1_c16_nre_noskip'], ['ir_r2_k3_s2_e6_c24_nre'], ['ir_r3_k5_s2_e3_c40_se0.25_nre'], "
        "['ir_r4_k3_s2_e6_c80_nre'], ['ir_r2_k3_s1_e6_c112_se0.25_nre'], ['ir_r3_k5_s2_e6_c160_se0.25_nre'], "
        "['ir_k3_s1_e6_c320_nre'], ['cn_k1_c1280_nre']]",
        {"rules": BY_INPUT},
        3_887_038,
    ),
    "FBNet-C": (
        "[['ir_k3_s1_e1_c16_nre'], ['ir_k3_s2_e6_c24_nre', 'ir_r2_k3_s1_e1_c24_nre'], "
        "['ir_k5_s2_e6_c32_nre', 'ir_k5_s1_e3_c32_nre', 'ir_k5_s1_e6_c32_nre', 'ir_k3_s1_e6_c32_nre'], "
        "['ir_k5_s2_e6_c64_nre', 'ir_k5_s1_e3_c64_nre', 'ir_r2_k5_s1_e6_c64_nre'], "
        "['ir_r3_k5_s1_e6_c112_nre', 'ir_k5_s1_e3_c112_nre'], ['ir_r4_k5_s2_e6_c184_nre'], "
        "['ir_k3_s1_e6_c352_nre'], ['cn_k1_c1984_nre']]",
        {"stem": "cn_k3_s2_c16_nre"},
        5_572_200,
    ),
    "SPNASNet": (
        "[['ds_k3_s1_c16_nre_noskip'], ['ir_r3_k3_s2_e3_c24_nre'], "
        "['ir_k5_s2_e6_c40_nre', 'ir_r3_k3_s1_e3_c40_nre'], ['ir_k5_s2_e6_c80_nre', 'ir_r3_k3_s1_e3_c80_nre'], "
        "['ir_k5_s1_e6_c96_nre', 'ir_r3_k5_s1_e3_c96_nre'], ['ir_r4_k5_s2_e6_c192_nre'], "
        "['ir_k3_s1_e6_c320_nre_noskip'], ['cn_k1_c1280_nre']]",
        {},
        4_421_616,
    ),
    "EfficientNet-B0": (
        "[['ds_k3_s1_e1_c16_se0.25_nsw'], ['ir_r2_k3_s2_e6_c24_se0.25_nsw'], ['ir_r2_k5_s2_e6_c40_se0.25_nsw'], "
        "['ir_r3_k3_s2_e6_c80_se0.25_nsw'], ['ir_r3_k5_s1_e6_c112_se0.25_nsw'], "
        "['ir_r4_k5_s2_e6_c192_se0.25_nsw'], ['ir_k3_s1_e6_c320_se0.25_nsw'], ['cn_k1_c1280_nsw']]",
        {"stem": "cn_k3_s2_c32_nsw", "rules": SWISH_BY_INPUT},
        5_288_548,
    ),
}


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_networks(name: str) -> None:
    text, settings, count = PUBLISHED[name]
    network = StaticNetwork.from_string(text, **settings).eval()
    assert parameters(network) == count
    with torch.no_grad():
        logits = network(torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert logits.shape == (1, 1000)
    assert torch.isfinite(logits).all()
    assert logits.std() > 0


class TestCounts:
    @pytest.mark.parametrize("heaviest", [True, False])
    def test_extremes_of_the_paper_space(self, heaviest: bool) -> None:
        space = load_space("imagenet-mbconv")
        architecture = space.extreme(heaviest)
        expected = architecture_work(space, architecture).params
        assert parameters(StaticNetwork.from_architecture(space, architecture)) == expected
        assert parameters(extract(Supernet(space), architecture)) == expected

    @pytest.mark.parametrize("space", [SPACES["small"], SPACES["some-squeeze"], OFA], ids=lambda s: s.name)
    def test_random_networks(self, space) -> None:
        net = Supernet(space)
        for architecture in sample_many(space, 5, seed=0):
            assert parameters(extract(net, architecture)) == architecture_work(space, architecture).params

    @pytest.mark.parametrize(
        "space", [load_space("imagenet-mbconv"), SPACES["bottleneck"], SPACES["mixed"]], ids=lambda s: s.name
    )
    def test_architectures_through_their_strings(self, space) -> None:
        for architecture in sample_many(space, 3, seed=2):
            text = to_block_string(space, architecture)
            network = StaticNetwork.from_string(
                text, stem=space.stem[0], features=space.features, classes=space.classes
            )
            twin = StaticNetwork.from_architecture(space, architecture)
            shapes = [parameter.shape for parameter in network.parameters()]
            assert shapes == [parameter.shape for parameter in twin.parameters()]


class TestKinds:
    """One block 8 -> 8 channels on a 5 x 5 image after a stem with the identity's shape."""

    @staticmethod
    def block(code: str) -> nn.Module:
        return StaticNetwork.from_string(f"[['{code}']]", stem="cn_k1_c8", classes=2).eval().blocks[0]

    @pytest.mark.parametrize(
        "code", ["ir_k3_e2_c8", "ds_k5_c8", "dsa_k3_c8", "er_k3_e2_c8", "ir_k3_e2_c8_se0.5"]
    )
    def test_residual_connections(self, code: str) -> None:
        x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(0))
        with_skip, without = self.block(code), self.block(code + "_noskip")
        without.load_state_dict(with_skip.state_dict())
        with torch.no_grad():
            torch.testing.assert_close(with_skip(x), without(x) + x)

    @pytest.mark.parametrize("code", ["ir_k3_s2_e2_c8", "ds_k3_c16", "er_k3_s2_e2_c8", "cn_k3_c8"])
    def test_no_residual_where_the_shape_changes_nor_for_convolutions(self, code: str) -> None:
        x = torch.randn(1, 8, 5, 5, generator=torch.Generator().manual_seed(0))
        block = self.block(code)
        for parameter in block.parameters():
            nn.init.zeros_(parameter)
        assert not block(x).any()

    def test_only_dsa_ends_with_an_activation(self) -> None:
        x = torch.randn(4, 8, 5, 5, generator=torch.Generator().manual_seed(0))
        assert self.block("dsa_k3_c16_nre")(x).min() >= 0
        assert self.block("ds_k3_c16_nre")(x).min() < 0

    def test_edge_residual_counts(self) -> None:
        assert parameters(self.block("er_k3_e2_c8")) == 9 * 8 * 16 + 32 + 16 * 8 + 16

    @pytest.mark.parametrize(
        ("code", "layer"), [("re", nn.ReLU), ("r6", nn.ReLU6), ("hs", nn.Hardswish), ("sw", nn.SiLU)]
    )
    def test_activations(self, code: str, layer: type) -> None:
        assert any(isinstance(module, layer) for module in self.block(f"ir_k3_e2_c8_n{code}").modules())

    def test_squeeze_rules(self) -> None:
        assert SqueezeRule().reduced(0.25, expanded=72, inputs=24) == 24
        assert BY_INPUT.squeeze.reduced(0.25, expanded=72, inputs=24) == 6
        assert SqueezeRule().reduced(0.0, expanded=72, inputs=24) == 0


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "settings"),
        [
            ("[['xx_k3_c8']]", {}),
            ("not a network", {}),
            ("[['ir_k4_c8']]", {}),
            ("[['ir_k3_c8']]", {"classes": 0}),
            ("[['ir_k3_c8']]", {"channels": -1}),
        ],
    )
    def test_strings_and_settings(self, text: str, settings: dict[str, object]) -> None:
        with pytest.raises(BinasError):
            StaticNetwork.from_string(text, **settings)

    def test_architecture_of_another_space(self) -> None:
        with pytest.raises(ArchitectureError):
            StaticNetwork.from_architecture(SPACES["small"], OFA.extreme())
