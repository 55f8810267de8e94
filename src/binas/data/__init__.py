"""Labelled images to train, validate and test with. Needs torch."""

from binas.data.arrays import from_arrays
from binas.data.config import DataConfig
from binas.data.dataset import ImageData
from binas.data.fashion_mnist import embedded, fashion_mnist
from binas.data.images import ArrayImages, Batch, Images
from binas.data.loading import load_data
from binas.data.splitting import stratified_sample, stratified_split

__all__ = [
    "ArrayImages",
    "Batch",
    "DataConfig",
    "ImageData",
    "Images",
    "embedded",
    "fashion_mnist",
    "from_arrays",
    "load_data",
    "stratified_sample",
    "stratified_split",
]
