"""Labelled images to train, validate and test with, and their augmentation. Needs torch."""

from binas.data.arrays import from_arrays
from binas.data.augment import (
    Augmentation,
    AugmentConfig,
    Augmented,
    default_augmentation,
    normalise,
)
from binas.data.config import DataConfig
from binas.data.dataset import ImageData
from binas.data.division import Division, stratified_sample, stratified_split
from binas.data.fashion_mnist import embedded, fashion_mnist
from binas.data.file_images import FileImages
from binas.data.images import ArrayImages, Batch, Images
from binas.data.loading import load_data
from binas.data.stream_images import StreamImages

__all__ = [
    "ArrayImages",
    "AugmentConfig",
    "Augmentation",
    "Augmented",
    "Batch",
    "DataConfig",
    "Division",
    "FileImages",
    "ImageData",
    "Images",
    "StreamImages",
    "default_augmentation",
    "embedded",
    "fashion_mnist",
    "from_arrays",
    "load_data",
    "normalise",
    "stratified_sample",
    "stratified_split",
]
