"""Labelled images to train, validate and test with, and their augmentation. All but the settings needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.data.arrays import from_arrays as from_arrays
    from binas.data.augment import (
        Augmentation as Augmentation,
        Augmented as Augmented,
        default_augmentation as default_augmentation,
        normalise as normalise,
    )
    from binas.data.config import AugmentConfig as AugmentConfig, DataConfig as DataConfig
    from binas.data.dataset import ImageData as ImageData
    from binas.data.division import (
        Division as Division,
        stratified_sample as stratified_sample,
        stratified_split as stratified_split,
    )
    from binas.data.fashion import embedded as embedded, fashion_mnist as fashion_mnist
    from binas.data.file_images import FileImages as FileImages
    from binas.data.images import ArrayImages as ArrayImages, Batch as Batch, Images as Images
    from binas.data.loading import load_data as load_data
    from binas.data.stream_images import StreamImages as StreamImages

__getattr__, __all__ = lazy_names(__name__, __file__)
