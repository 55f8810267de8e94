import importlib.metadata
import importlib.util

import pytest
import torch
from torch import nn

from binas.base.errors import MeasureError
from binas.base.packages import installed_version
from binas.costs.backends import BACKENDS, backend_class, make_backend
from binas.costs.backends.torch import fold_norms, random_inputs
from binas.costs.onnx_graph import to_onnx
from binas.costs.settings import PRESETS, Settings, preset, settings_of
from binas.costs.workloads import control_workload
from binas.space import load_space
from binas.supernet import StaticNetwork
from binas.tables.entries import Provenance

HERE = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(name) is None, reason=f"the package {name} is not installed"
        ),
    )
    for name in BACKENDS
]


class TwoInputs(nn.Module):
    def forward(self, first, second):
        return first.mean((1, 2, 3)), second * 2


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_prepared_module_runs_as_often_as_asked(name, batch):
    backend = make_backend(Settings(backend=name, batch=batch))
    workload = control_workload()
    with backend.pinned():
        one = backend.prepare(workload.module, workload.shapes)
        two = backend.prepare(TwoInputs(), ((3, 4, 4), (2, 2, 2)))
        for runner in (one, two, one):
            assert runner() is None


@pytest.mark.parametrize("name", HERE)
def test_threads_are_pinned_and_put_back(name):
    before = torch.get_num_threads()
    with make_backend(Settings(backend=name, threads=1)).pinned():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_onednn_is_switched_and_put_back():
    before = torch.backends.mkldnn.enabled
    with make_backend(preset("paper-cpu")).pinned():
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled == before


@pytest.mark.parametrize("change", [{"memory_format": "channels_last"}, {"dtype": "bfloat16"}])
def test_torch_takes_layouts_and_number_types(change):
    backend = make_backend(Settings("torch", **change))
    workload = control_workload()
    assert backend.prepare(workload.module, workload.shapes)() is None


def test_folding_keeps_the_function_and_leaves_no_batch_norm():
    torch.manual_seed(0)
    space = load_space("small-28")
    network = StaticNetwork.from_architecture(space, space.extreme()).eval()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
    images = torch.randn(2, 1, 28, 28)
    plain = fold_norms(network)
    with torch.inference_mode():
        torch.testing.assert_close(plain(images), network(images), rtol=1e-3, atol=1e-4)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in plain.modules())
    assert any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())


def test_the_onnx_graph_computes_the_module():
    onnxruntime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    space = load_space("small-28")
    network = StaticNetwork.from_architecture(space, space.extreme(heaviest=False)).eval()
    inputs = random_inputs(((1, 28, 28),), 2)
    session = onnxruntime.InferenceSession(to_onnx(network, inputs), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x0": inputs[0].numpy()})
    with torch.inference_mode():
        torch.testing.assert_close(torch.from_numpy(found), network(*inputs), rtol=1e-3, atol=1e-4)


class TestUnavailable:
    def test_unknown_backend(self):
        with pytest.raises(
            MeasureError, match="there is no backend 'tvm'; choose one of onnxruntime, torch, openvino"
        ):
            make_backend(Settings(backend="tvm"))

    def test_a_missing_package_is_named(self, monkeypatch):
        monkeypatch.setattr(backend_class("openvino"), "requires", "no_such_package")
        with pytest.raises(MeasureError, match="the package no_such_package is not installed"):
            make_backend(Settings(backend="openvino"))
        assert backend_class("openvino").version() is None

    def test_a_device_or_number_type_it_does_not_take(self):
        with pytest.raises(MeasureError, match="it runs on cpu, not on cuda"):
            make_backend(Settings(backend="openvino", device="cuda"))
        with pytest.raises(MeasureError, match="it is measured in float32, not in float16"):
            make_backend(Settings(backend="onnxruntime", dtype="float16"))

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
    @pytest.mark.parametrize("name", ["torch", "onnxruntime"])
    def test_no_gpu(self, name):
        with pytest.raises(MeasureError, match="CUDA"):
            make_backend(Settings(backend=name, device="cuda"))


def test_a_package_may_come_in_a_distribution_of_another_name():
    assert installed_version("yaml") == importlib.metadata.version("PyYAML")
    assert installed_version("no_such_package") is None
    assert installed_version("tiny") == "unknown"  # a module of these tests


class TestSettings:
    def test_the_settings_of_the_paper_have_names(self):
        assert preset("paper-cpu") == Settings("torch", "cpu", 1, 1, onednn=False)
        assert preset("paper-gpu") == Settings("torch", "cuda", 1, 64)
        assert set(PRESETS) == {"paper-cpu", "paper-gpu"}
        with pytest.raises(MeasureError, match="known are paper-cpu, paper-gpu"):
            preset("paper-tpu")

    @pytest.mark.parametrize(
        "change",
        [{"device": "tpu"}, {"dtype": "int3"}, {"memory_format": "blocked"}, {"threads": 0}, {"batch": -1}],
    )
    def test_senseless_values_are_refused(self, change):
        with pytest.raises(MeasureError, match=next(iter(change))):
            Settings(**change)

    @pytest.mark.parametrize("settings", [Settings(), *PRESETS.values(), Settings("openvino", threads=4)])
    def test_a_table_remembers_them(self, settings):
        assert settings_of(Provenance(**settings.to_data()), "the table") == settings

    def test_a_table_of_others_does_not(self):
        with pytest.raises(MeasureError, match="the table of latency does not say how it was measured"):
            settings_of(Provenance(device="Pixel 9", threads=1), "the table of latency")

    def test_they_read_well(self):
        assert preset("paper-cpu").describe() == "torch on cpu, 1 thread, batch 1, float32, oneDNN off"
        assert preset("paper-gpu").describe() == "torch on cuda, batch 64, float32"
        assert "channels_last" in Settings(memory_format="channels_last", threads=2).describe()
