"""What the processor gives; the number of cores is tested with the workers."""

import signal

import pytest

from binas.base import cores
from binas.base.errors import TrainingError
from binas.costs.backends import make_backend
from binas.costs.settings import Settings


@pytest.fixture
def shows_amx(tmp_path, monkeypatch):
    monkeypatch.delenv(cores.ISA, raising=False)
    cores.no_bf16.cache_clear()
    path = tmp_path / "cpuinfo"
    path.write_text("flags\t\t: fpu avx512_bf16 amx_bf16 amx_tile amx_int8\n")
    yield path
    cores.no_bf16.cache_clear()


def dies():
    return -signal.SIGILL


def test_matrix_units_that_end_a_process_are_told(shows_amx):
    reason = cores.no_bf16(shows_amx, dies)
    assert reason is not None
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in reason


@pytest.mark.parametrize("code", [0, 1, -signal.SIGKILL])
def test_other_ends_of_the_child_are_no_reason(shows_amx, code):
    assert cores.no_bf16(shows_amx, lambda: code) is None


@pytest.mark.parametrize(
    ("isa", "told"), [("AVX512_CORE_FP16", False), ("ALL", True), ("AVX10_1_512_AMX", True)]
)
def test_the_environment_may_exclude_them(shows_amx, monkeypatch, isa, told):
    monkeypatch.setenv(cores.ISA, isa)
    assert (cores.no_bf16(shows_amx, dies) is not None) == told


def test_it_is_tried_once_and_only_where_there_are_such_units(shows_amx, tmp_path):
    calls = []

    def tried():
        calls.append(1)
        return 0

    for _ in range(3):
        assert cores.no_bf16(shows_amx, tried) is None
    assert calls == [1]
    assert cores.no_bf16(tmp_path / "none", tried) is None
    plain = tmp_path / "plain"
    plain.write_text("flags: fpu avx2\n")
    assert cores.no_bf16(plain, tried) is None
    assert calls == [1]


def test_training_and_measuring_refuse_it(monkeypatch):
    from binas.base.errors import MeasureError
    from binas.training import phases
    from binas.training.config import FinetuneSettings, TrainSettings, fill_from_recipe

    monkeypatch.setattr(phases, "no_bf16", lambda: "it would end")
    monkeypatch.setattr("binas.costs.backends.torch.no_bf16", lambda: "it would end")
    filled = fill_from_recipe({"train": {"device": "cpu", "mixed_precision": "bf16"}})
    train, tune = (
        TrainSettings.model_validate(filled["train"]),
        FinetuneSettings.model_validate(filled["finetune"]),
    )
    with pytest.raises(TrainingError, match=r"mixed_precision is bf16: it would end.*mixed_precision=no"):
        phases.check_training(train, tune, None)
    with pytest.raises(MeasureError, match="it would end"):
        make_backend(Settings(backend="torch", dtype="bfloat16"))
