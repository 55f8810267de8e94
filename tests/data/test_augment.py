import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError
from small_images import pixels

from binas.base.errors import DataError
from binas.data import Augmentation, AugmentConfig, default_augmentation, embedded, from_arrays, normalise
from binas.data.augment import cutout, erase, flip, mixup, shift

EVERYTHING = AugmentConfig(
    resized_crop=0.3, flip=True, auto="randaugment", cutout=4, erasing=0.5, mixup=0.4, policies=3
)
CONFIGS = [
    AugmentConfig(),
    AugmentConfig(crop=2, flip=True),
    AugmentConfig(crop=2, erasing=0.5, cutout=5, mixup=0.2),
    AugmentConfig(auto="autoaugment", policies=4),
    EVERYTHING,
]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def batch(count=12, channels=3, side=16, seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (count, channels, side, side), dtype=np.uint8)
    return torch.from_numpy(images)


def made(config, channels=3, side=16):
    return Augmentation(config, (side, side), (0.4,) * channels, (0.3,) * channels)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_same_seed_gives_the_same_images_and_leaves_the_global_state(config, channels):
    images, augmentation = batch(channels=channels), made(config, channels)
    before = images.clone()
    torch.manual_seed(1)
    first = augmentation(images, 5)
    state = torch.random.get_rng_state()
    again = made(config, channels)(images, 5)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first.images, again.images)
    assert first.weight == again.weight
    assert torch.equal(images, before)
    assert first.images.shape == images.shape
    assert first.images.dtype == torch.float32
    assert first.images.is_contiguous(memory_format=torch.channels_last)
    assert not first.images.requires_grad
    assert first.images.isfinite().all()
    if config != AugmentConfig():
        assert not torch.equal(first.images, augmentation(images, 6).images)


def test_nothing_but_normalising_by_default():
    images = batch()
    augmented = made(AugmentConfig())(images, 0)
    assert torch.equal(augmented.images, normalise(images, (0.4,) * 3, (0.3,) * 3))
    assert (augmented.other, augmented.weight) == (None, 1.0)


def test_normalising_bytes_and_numbers():
    images = batch()
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    expected = (images / 255 - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)
    assert torch.allclose(normalise(images, mean, std), expected, atol=1e-6)
    assert torch.allclose(normalise(images / 255, mean, std), expected, atol=1e-6)


@given(padding=st.integers(1, 5), seed=st.integers(0, 1000))
def test_shift_moves_each_image_by_at_most_the_padding(padding, seed):
    images = batch(6, 2, 9) | 1  # no black pixel but the border
    moved = shift(images, padding, seeded(seed))
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    places = [(top, left) for top in range(2 * padding + 1) for left in range(2 * padding + 1)]
    for image, whole in zip(moved, padded, strict=True):
        found = [place for place in places if torch.equal(image, whole[:, place[0] :, place[1] :][:, :9, :9])]
        assert len(found) == 1


def test_shift_reaches_every_place():
    images = torch.zeros(600, 1, 3, 3, dtype=torch.uint8)
    images[:, 0, 1, 1] = 1
    assert shift(images, 1, seeded()).sum(0).flatten().count_nonzero() == 9


def test_half_of_the_images_are_flipped():
    images = batch(400, 1, 4)
    flipped = flip(images, seeded())
    kept = (flipped == images).all(dim=(1, 2, 3))
    assert torch.equal(flipped[~kept], images[~kept].flip(3))
    assert 150 < int(kept.sum()) < 250


def test_cutout_sets_a_square_to_zero_also_over_the_border():
    images = torch.ones(500, 2, 8, 8)
    blank = cutout(images, 4, seeded()) == 0
    assert torch.equal(blank[:, 0], blank[:, 1])
    areas = blank[:, 0].sum((1, 2))
    assert set(areas.tolist()) <= {a * b for a in range(2, 5) for b in range(2, 5)}
    assert areas.max() == 16
    assert blank.any(0).all()  # every pixel is hit now and then
    assert images.min() == 1


def test_erasing_follows_its_probability_and_stays_in_its_range():
    images = torch.ones(1000, 1, 20, 20)
    areas = (erase(images, 0.3, seeded()) == 0).sum((1, 2, 3))
    assert 230 < areas.count_nonzero() < 370
    erased = areas[areas > 0] / 400
    assert erased.min() > 0.01
    assert erased.max() < 0.36
    assert (erase(images, 0.0, seeded()) == 1).all()
    whole = erase(torch.ones(200, 1, 3, 50), 1.0, seeded())
    assert ((whole == 0).sum((1, 2, 3)) > 0).all()


def test_mixup_mixes_each_image_with_its_other():
    images = torch.randn(20, 1, 4, 4)
    mixed = mixup(images, 0.5, seeded())
    assert sorted(mixed.other.tolist()) == list(range(20))
    expected = mixed.weight * images + (1 - mixed.weight) * images[mixed.other]
    assert torch.allclose(mixed.images, expected, atol=1e-6)
    weights = [mixup(images, 2.0, seeded(seed)).weight for seed in range(300)]
    assert np.mean(weights) == pytest.approx(0.5, abs=0.05)
    assert np.var(weights) == pytest.approx(1 / 20, abs=0.015)  # 1 / (4 (2 alpha + 1))
    assert mixup(images[:1], 0.5, seeded()).other.tolist() == [0]


def test_policies_differ_within_a_batch_and_keep_to_the_range():
    images = batch(1, side=32).expand(32, -1, -1, -1)
    few, many = (
        made(AugmentConfig(auto="randaugment", operations=1, policies=policies), side=32)(images, 2).images
        for policies in (1, 32)
    )
    assert len(torch.unique(few.flatten(1), dim=0)) <= 2  # one operation, to one side or the other
    assert len(torch.unique(many.flatten(1), dim=0)) > 8
    pixels = many * 0.3 + 0.4
    assert pixels.min() > -1e-5
    assert pixels.max() < 1 + 1e-5


def test_grey_images_stay_grey_under_a_policy():
    augmented = made(AugmentConfig(auto="randaugment", operations=1, magnitude=5), 1)(batch(9, 1), 3)
    assert augmented.images.shape == (9, 1, 16, 16)


def test_a_resized_crop_is_a_part_of_the_image():
    ramp = torch.arange(16, dtype=torch.uint8).repeat(16, 1).expand(8, 3, 16, 16) * 16
    cropped = made(AugmentConfig(resized_crop=0.1))(ramp, 1).images
    widths = cropped[:, 0, 8, -1] - cropped[:, 0, 8, 0]
    assert widths.max() <= 240 / 255 / 0.3 + 1e-4
    assert widths.unique().numel() > 4


def test_defaults_by_size_and_channels():
    small = default_augmentation(embedded())
    assert (small.crop, small.flip, small.auto, small.resized_crop) == (2, True, "none", None)
    labels = np.arange(12) % 2
    colour = default_augmentation(from_arrays(pixels(12, 32, 32), labels))
    assert (colour.crop, colour.auto, colour.cutout) == (4, "autoaugment", 16)
    large = default_augmentation(from_arrays(pixels(12, 224, 224), labels))
    assert (large.resized_crop, large.flip, large.auto, large.cutout) == (0.08, True, "autoaugment", 56)


def test_an_augmentation_is_made_for_a_dataset():
    data = from_arrays(pixels(30, 16, 16), np.arange(30) % 3)
    images = next(data.train.batches(8)).images
    augmented = Augmentation.of(data, AugmentConfig())(images, 0)
    assert torch.equal(augmented.images, normalise(images, data.mean, data.std))
    assert Augmentation.of(data).config == default_augmentation(data)


@settings(max_examples=20)
@given(count=st.integers(1, 5))
def test_the_last_batch_may_be_small(count):
    assert made(EVERYTHING)(batch(count), 1).images.shape == (count, 3, 16, 16)


@pytest.mark.parametrize(
    "wrong",
    [
        {"crop": -1},
        {"crop": 2, "resized_crop": 0.5},
        {"auto": "magic"},
        {"erasing": 1.5},
        {"mixup": float("inf")},
        {"colour": True},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        AugmentConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"crop": 17}, {"cutout": 17}])
def test_settings_larger_than_the_image_are_refused(wrong):
    with pytest.raises(DataError, match="16 x 16"):
        made(AugmentConfig(**wrong))
