"""Fashion-MNIST: the sample that comes with binas, and the full set from its four idx files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from binas.base.errors import DataError
from binas.base.files import is_regular, read_json
from binas.data.dataset import ImageData
from binas.data.division import Division, Parts, divide
from binas.data.idx import idx_bytes, read_idx
from binas.data.images import ArrayImages

CLASSES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
TURNS = ("upright", "lying", "upside down")  # by 0, 1 and 2 quarters; mirror images are of the same class
EMBEDDED = Path(__file__).parent / "embedded"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # where the Debian package dataset-fashion-mnist puts it
IMAGES = "{part}-images-idx3-ubyte"
LABELS = "{part}-labels-idx1-ubyte"
PARTS = ("train", "t10k")
_USUAL = Division()


def embedded(how: Division = _USUAL, folder: Path = EMBEDDED, *, turned: bool = False) -> ImageData:
    """26,000 images of Fashion-MNIST that come with binas: 16,000 to train and validate, all 10,000 to test.

    Made by ``tools/make_embedded_data.py``; licence (MIT) beside the files. Checked against their hashes.
    With ``turned`` as :func:`turn` makes them.
    """
    written = read_json(folder / "sample.json")["sha256"]
    parts = [_part(folder, part, (".xz",), written) for part in PARTS]
    return _divided("embedded Fashion-MNIST sample", parts, how, turned)


def fashion_mnist(folder: Path | None = None, how: Division = _USUAL, *, turned: bool = False) -> ImageData:
    """All of Fashion-MNIST from a folder with its four idx files, plain or ``.gz``; t10k is the test set.

    Without a folder, the place of Debian's package ``dataset-fashion-mnist`` is tried. With ``turned`` see :func:`turn`.
    """
    parts = [_part(folder or DEBIAN, part, ("", ".gz"), {}) for part in PARTS]
    return _divided("Fashion-MNIST", parts, how, turned)


def turn(given: ArrayImages) -> ArrayImages:
    """Each image turned by 0 to 2 quarters: what it shows and which way up it is make 3 times as many classes.

    The k-th image of class c is turned by q = k mod 3 quarters, counter-clockwise, and its label is 3 c + q, as is that of
    its mirror image. Small networks find this hard, so their size matters.
    """
    quarters = torch.empty_like(given.labels, dtype=torch.int64)
    for label in range(len(given.classes)):
        own = given.labels == label
        quarters[own] = torch.arange(int(own.sum())) % len(TURNS)
    images = given.images.clone()
    for quarter in range(1, len(TURNS)):
        images[quarters == quarter] = given.images[quarters == quarter].rot90(quarter, (2, 3))
    classes = tuple(f"{name}, {way}" for name in given.classes for way in TURNS)
    return ArrayImages(images, len(TURNS) * given.labels.long() + quarters, classes)


def _divided(name: str, parts: list[ArrayImages], how: Division, turned: bool) -> ImageData:
    pool, test = map(turn, parts) if turned else parts
    return divide(f"{name}, turned" if turned else name, Parts(pool, test=test), how)


def _part(folder: Path, part: str, suffixes: tuple[str, ...], hashes: dict[str, str]) -> ArrayImages:
    arrays = []
    for pattern, dimensions in ((IMAGES, 3), (LABELS, 1)):
        name = pattern.format(part=part)
        array = read_idx(_find(folder, name, suffixes), dimensions)
        if name in hashes and hashlib.sha256(idx_bytes(array)).hexdigest() != hashes[name]:
            raise DataError(
                f"{folder / name} is not what was installed (its hash differs). Install binas again."
            )
        arrays.append(torch.from_numpy(array))
    return ArrayImages(arrays[0][:, None], arrays[1], CLASSES)


def _find(folder: Path, name: str, suffixes: tuple[str, ...]) -> Path:
    for suffix in suffixes:
        if is_regular(folder / (name + suffix)):
            return folder / (name + suffix)
    raise DataError(
        f"{folder} has no {' or '.join(name + suffix for suffix in suffixes)}. Name the folder with the four "
        "files of Fashion-MNIST (Debian: apt install dataset-fashion-mnist), or use the embedded sample."
    )
