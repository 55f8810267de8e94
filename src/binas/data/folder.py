"""Images in folders: one subfolder per class, with or without parts for training, validation and test."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from binas.data.dividing import Parts
from binas.data.file_images import FileImages
from binas.errors import DataError

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pnm")
)
USUAL_NAMES = {"validation": ("validation", "val", "valid"), "test": ("test",)}


@dataclass(frozen=True)
class Files:
    """The image files of a folder, as a source of encoded images."""

    folder: Path
    files: tuple[Path, ...]

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
            digest.update(f"{file.relative_to(self.folder).as_posix()}\n{file.stat().st_size}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Names:
    """Subfolders (or splits) of the parts; None: found by their usual names, or split off."""

    train: str = "train"
    validation: str | None = None
    test: str | None = None

    def chosen(self, present: Sequence[str], where: str) -> dict[str, str]:
        """The part of each kind among those ``present``; a part that is named must be there, and only once."""
        asked = {"train": self.train, "validation": self.validation, "test": self.test}
        chosen = {kind: name for kind, name in asked.items() if name is not None}
        missing = [name for name in chosen.values() if name not in present]
        if missing or len(set(chosen.values())) < len(chosen):
            wrong = f"has no part {missing[0]!r}" if missing else "is given the same part twice"
            raise DataError(
                f"{where} {wrong}; it has {', '.join(present) or 'none'}. Name train, validation, test."
            )
        for kind, usual in USUAL_NAMES.items():
            free = [name for name in usual if name in present and name not in chosen.values()]
            if kind not in chosen and free:
                chosen[kind] = free[0]
        return chosen


def image_folder(
    folder: Path, names: Names, size: tuple[int, int], channels: int = 3, workers: int = 4
) -> Parts:
    """The images of ``folder``, not yet read: in parts with a subfolder per class each, or classes only.

    The classes are the subfolders of the training part, in the order of their names. Files that are not
    images by their suffix, and names that start with a dot, are passed over.
    """
    if not _children(folder / names.train):
        _refuse_parts_without_classes(folder, names)
        roots = {"train": folder}
    else:
        chosen = names.chosen([child.name for child in _children(folder)], str(folder))
        roots = {kind: folder / name for kind, name in chosen.items()}
    _check_apart(roots)
    classes = tuple(child.name for child in _children(roots["train"]))
    return Parts(
        **{kind: _labelled(folder, root, classes, size, channels, workers) for kind, root in roots.items()}
    )


def _labelled(
    folder: Path, root: Path, classes: tuple[str, ...], size: tuple[int, int], channels: int, workers: int
) -> FileImages:
    strange = [child.name for child in _children(root) if child.name not in classes]
    if strange:
        raise DataError(f"{root} has the class {strange[0]!r}, which the training images do not have.")
    found = [(file, label) for label, name in enumerate(classes) for file in _images(root / name)]
    if not found:
        raise DataError(f"{root} has no image files ({', '.join(sorted(SUFFIXES))}) in its class folders.")
    labels = torch.tensor([label for _, label in found])
    return FileImages(
        Files(folder, tuple(file for file, _ in found)), labels, classes, size, channels, workers
    )


def _children(folder: Path) -> list[Path]:
    """Subfolders by name."""
    try:
        return sorted(
            child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")
        )
    except OSError:
        return []


def _images(folder: Path) -> list[Path]:
    """Image files in a folder and its subfolders, by name; links to folders inside it are not followed."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(file for file in files if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))


def _refuse_parts_without_classes(folder: Path, names: Names) -> None:
    found = {child.name for child in _children(folder)}
    if not found:
        raise DataError(f"{folder} is not a folder with one subfolder of images per class. Check the path.")
    if found <= {names.train, names.validation, names.test, "train", "test", *USUAL_NAMES["validation"]}:
        raise DataError(
            f"{folder / names.train} has no subfolders. Sort the images into one subfolder per class."
        )


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
