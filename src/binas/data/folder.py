"""Images in folders: one subfolder per class, with or without parts for training, validation and test."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

from binas.base.errors import DataError, several
from binas.base.files import is_folder, is_regular, listed, open_regular, size_of, walked
from binas.data.config import USUAL_NAMES, Format, Names
from binas.data.decoding import FORMATS
from binas.data.division import Parts
from binas.data.file_images import FileImages
from binas.data.images import check_names

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pnm")
)
LOOKED_AT = 200  # images whose sizes are read to describe a folder
GREY = ("1", "L", "I;16")
LOG = logging.getLogger("binas")


@dataclass(frozen=True)
class Files:
    """The image files of a folder, as a source of encoded images."""

    folder: Path
    files: tuple[Path, ...]
    on_disk: bool = True

    def opened(self, row: int) -> Path:
        """The path of a row."""
        return self.files[row]

    def name(self, row: int) -> str:
        """The path, for messages."""
        return str(self.files[row])

    def identity(self, rows: Sequence[int]) -> str:
        """Hash of names within the folder and sizes in bytes: moving the folder does not change it."""
        digest = hashlib.sha256()
        for row in rows:
            file = self.files[row]
            digest.update(os.fsencode(f"{file.relative_to(self.folder).as_posix()}\n{size_of(file)}\n"))
        return digest.hexdigest()


def image_folder(folder: Path, names: Names, form: Format) -> Parts:
    """The images of ``folder``, not yet read: in parts with a subfolder per class each, or classes only.

    The classes are the subfolders of the training part, in the order of their names. Files that are not
    images by their suffix, and names that start with a dot, are passed over.
    """
    if names != Names() or _children(folder / names.train):
        chosen = names.choose([child.name for child in _children(folder)], str(folder))
        roots = {kind: folder / name for kind, name in chosen.items()}
    else:
        roots = {"train": folder}
        _refuse_parts_without_classes(folder)
    _check_apart(roots)
    classes = tuple(child.name for child in _children(roots["train"]))
    check_names(classes, str(roots["train"]))
    return Parts(**{kind: _labelled(folder, root, classes, form) for kind, root in roots.items()})


def _labelled(folder: Path, root: Path, classes: tuple[str, ...], form: Format) -> FileImages:
    strange = [child.name for child in _children(root) if child.name not in classes]
    if strange:
        raise DataError(f"{root} has the class {strange[0]!r}, which the training images do not have.")
    labelled = [(file, label) for label, name in enumerate(classes) for file in _images(root / name)]
    if not labelled:
        raise DataError(f"{root} has no image files ({', '.join(sorted(SUFFIXES))}) in its class folders.")
    labels = torch.tensor([label for _, label in labelled])
    return FileImages(Files(folder, tuple(file for file, _ in labelled)), labels, classes, form)


def _children(folder: Path) -> list[Path]:
    """Subfolders by name."""
    if not is_folder(folder):
        return []
    return [child for child in listed(folder) if not child.name.startswith(".") and is_folder(child)]


def _images(folder: Path) -> list[Path]:
    """Image files in a folder and its subfolders, by name; links to folders inside it are refused, not followed.

    Followed, a link may lead round in a circle or out of the data; passed over, its images would be missed silently.
    A folder that is not there has none: a part need not have every class.
    """
    if not is_folder(folder):
        return []
    found = [
        entry
        for _, entries in walked(folder)
        for entry in entries
        if not entry.name.startswith(".") and not entry.is_dir(follow_symlinks=False)
    ]
    _refuse_links(found)
    images = [path for path in map(Path, found) if path.suffix.lower() in SUFFIXES]
    strange = [str(path) for path in images if not is_regular(path)]
    if strange:
        raise DataError(several("these are no files that can be read", strange, "Remove them."))
    return sorted(images)


def _refuse_links(found: Sequence[os.DirEntry[str]]) -> None:
    links = [entry.path for entry in found if entry.is_symlink() and is_folder(Path(entry))]
    if links:
        raise DataError(
            f"{links[0]} is a link to a folder; links inside a class are not followed. Copy the images, or remove the link."
        )


def tell_links_out(parts: Parts) -> None:
    """Warn of images that links bring in from outside their folder: shared images are common, but may not be meant."""
    found = [
        part.source for part in (parts.train, parts.validation, parts.test) if isinstance(part, FileImages)
    ]
    sources = [source for source in found if isinstance(source, Files)]
    folder, files = sources[0].folder, [file for source in sources for file in source.files]
    outside = _outside(folder, files)
    if outside:
        LOG.warning(
            "%s: %d of %d images are outside of it, reached by links, such as %s, which is %s. They are used like the "
            "others; remove the links if that is not meant.",
            *(folder, len(outside), len(files), outside[0], os.path.realpath(outside[0])),
        )


def _outside(folder: Path, files: Sequence[Path]) -> list[Path]:
    """The files that are links out of the folder, or are in a folder that is; one look at each file, none at the rest."""
    home = os.path.realpath(folder)

    def leaves(path: Path) -> bool:
        return not Path(os.path.realpath(path)).is_relative_to(home)

    away = {parent for parent in {file.parent for file in files} if leaves(parent)}
    return [file for file in files if file.parent in away or (file.is_symlink() and leaves(file))]


def _refuse_parts_without_classes(folder: Path) -> None:
    names = {child.name for child in _children(folder)}
    if not names:
        raise DataError(f"{folder} is not a folder with one subfolder of images per class. Check the path.")
    if names <= {"train", *USUAL_NAMES["validation"], *USUAL_NAMES["test"]}:
        raise DataError(f"{folder / 'train'} has no subfolders. Sort images into one subfolder per class.")


def _check_apart(roots: dict[str, Path]) -> None:
    """No class folder may be reached from two parts (by a link, say): then they would share images."""
    seen: dict[Path, Path] = {}
    for root in roots.values():
        for child in _children(root):
            if seen.setdefault(child.resolve(), child) != child:
                raise DataError(
                    f"{seen[child.resolve()]} and {child} are the same folder; training, validation and "
                    "test images must be different."
                )


@dataclass(frozen=True)
class Seen:
    """What a folder of images holds: numbers, the median of the shorter sides, and whether all are grey."""

    folder: Path
    images: int
    classes: int
    side: int
    grey: bool


def look(folder: Path) -> Seen:
    """Number of images and classes, and the sizes of some of the images."""
    parts = image_folder(folder, Names(), Format((1, 1)))
    train = parts.train
    assert isinstance(train, FileImages)  # what image_folder makes
    step = max(1, len(train) // LOOKED_AT)
    sides, modes = [], set()
    for row in range(0, len(train), step):
        path = Path(train.source.name(row))
        try:
            with open_regular(path) as file, Image.open(file, formats=FORMATS) as image:
                sides.append(min(image.size))
                modes.add(image.mode)
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path} is not an image that can be read: {error}. Remove or replace it."
            ) from error
    images = sum(len(part) for part in (train, parts.validation, parts.test) if part is not None)
    side = sorted(sides)[len(sides) // 2]
    return Seen(folder, images, len(train.classes), side, modes <= set(GREY))
