"""The first step of a run: read the images, check them, and record what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binas.base.errors import FileError
from binas.base.files import dump_json, exists, read_json, write_text
from binas.base.identity import flattened
from binas.base.progress import Progress
from binas.run.step import FREE, read_record

if TYPE_CHECKING:
    from binas.run.run import Run

STEP = "data"
FILE = "data.json"


def record_data(run: Run, progress: Progress) -> None:
    """Write ``data.json``: the fingerprint of the images, their classes, size and numbers."""
    data = run.data
    height, width = data.size
    parts = {name: len(getattr(data, name)) for name in ("train", "validation", "test")}
    about = {"fingerprint": data.fingerprint(), "images": parts, "classes": list(data.classes)}
    form = {"channels": data.channels, "height": height, "width": width}
    write_text(run.folder / FILE, dump_json({**about, **form}))
    progress.say(
        f"{parts['train']:,} images to train with, {parts['validation']:,} to validate, {parts['test']:,} to test; "
        f"{len(data.classes)} classes of {data.channels} x {height} x {width}"
    )


def recorded_fingerprint(run: Run) -> str | None:
    """The fingerprint in ``data.json`` if it was written for the data the configuration describes now."""
    record = read_record(run.folder, STEP)
    if record is None or record.state != "finished" or not exists(run.folder / FILE):
        return None
    if _settings(record.inputs) != _settings(flattened(run.config.model_dump(mode="json"))):
        return None
    found = read_json(run.folder / FILE)
    if not isinstance(found, dict) or not isinstance(found.get("fingerprint"), str):
        raise FileError(
            f"{run.folder / FILE} does not say which images the run has. Delete it to read them again."
        )
    return str(found["fingerprint"])


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in values.items() if key.startswith("data.") and not key.startswith(FREE)
    }
