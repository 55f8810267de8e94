import pytest
import torch
import torch.nn.functional as F

from binas.training.losses import distillation_loss, mixed_logits, soft_cross_entropy, targets

LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])
OTHER = torch.tensor([5, 4, 3, 2, 1, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy_is_torchs(smoothing):
    mine = soft_cross_entropy(LOGITS, targets(LABELS, 4, smoothing))
    assert torch.allclose(mine, F.cross_entropy(LOGITS, LABELS, label_smoothing=smoothing))


def test_mixup_targets_mix_the_losses():
    mine = soft_cross_entropy(LOGITS, targets(LABELS, 4, 0.1, OTHER, 0.3))
    both = [F.cross_entropy(LOGITS, labels, label_smoothing=0.1) for labels in (LABELS, LABELS[OTHER])]
    assert torch.allclose(mine, 0.3 * both[0] + 0.7 * both[1])


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_distillation_is_zero_only_for_the_teachers_own_probabilities(temperature):
    assert float(distillation_loss(LOGITS + 3, LOGITS, temperature)) == pytest.approx(0, abs=1e-6)
    assert float(distillation_loss(-LOGITS, LOGITS, temperature)) > 0.1


def test_distillation_is_kl_times_squared_temperature():
    student, teacher, heat = LOGITS, LOGITS.flip(0), 2.0
    p, q = (teacher / heat).softmax(1), (student / heat).softmax(1)
    wanted = heat**2 * (p * (p / q).log()).sum(1).mean()
    assert torch.allclose(distillation_loss(student, teacher, heat), wanted)


def test_teacher_of_a_mixed_image_is_the_mixture():
    mixed = mixed_logits(LOGITS, OTHER, 0.3).softmax(1)
    assert torch.allclose(mixed, 0.3 * LOGITS.softmax(1) + 0.7 * LOGITS[OTHER].softmax(1), atol=1e-6)
    assert mixed_logits(LOGITS, None, 1.0) is LOGITS
