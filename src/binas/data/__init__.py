"""Labelled images to train, validate and test with, and their augmentation. All but the settings needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.data.arrays import from_arrays as from_arrays
    from binas.data.augment import Augmentation as Augmentation
    from binas.data.augment import Augmented as Augmented
    from binas.data.augment import default_augmentation as default_augmentation
    from binas.data.augment import normalise as normalise
    from binas.data.config import AugmentConfig as AugmentConfig
    from binas.data.config import DataConfig as DataConfig
    from binas.data.dataset import ImageData as ImageData
    from binas.data.dividing import Division as Division
    from binas.data.fashion_mnist import embedded as embedded
    from binas.data.fashion_mnist import fashion_mnist as fashion_mnist
    from binas.data.file_images import FileImages as FileImages
    from binas.data.images import ArrayImages as ArrayImages
    from binas.data.images import Batch as Batch
    from binas.data.images import Images as Images
    from binas.data.loading import load_data as load_data
    from binas.data.splitting import stratified_sample as stratified_sample
    from binas.data.splitting import stratified_split as stratified_split
    from binas.data.stream_images import StreamImages as StreamImages

__getattr__, __all__ = lazy_names(__name__, __file__)
