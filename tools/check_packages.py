"""Build the source archive and the wheel, look whether they are complete, and use the wheel outside the checkout.

    python tools/check_packages.py

Nothing is fetched: setuptools and the packages that binas needs must be there already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    ("--version",),
    ("space", "list"),
    ("example", "paper", "example"),
    ("search", "example", "--limit", "latency=45ms"),
)


def main() -> int:
    """Everything; the first thing that is wrong ends it."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        archive, direct = _build(work / "dist", ROOT)
        with tarfile.open(archive) as packed:
            packed.extractall(work / "source", filter="data")
        source = next((work / "source").iterdir())
        _complete(source)
        _, wheel = _build(work / "again", source)
        _same(direct, wheel)
        _use(wheel, work / "installed", work / "elsewhere")
    print("the source archive and the wheel are complete, and the wheel works outside the checkout")
    return 0


def _build(out: Path, source: Path) -> tuple[Path, Path]:
    """Source archive and wheel of a folder, made by the build backend itself."""
    out.mkdir()
    code = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
    copy = out / "copy"  # the backend leaves files behind in the folder that it builds
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=source, capture_output=True, check=False).stdout
    names = [name for name in listed.decode().split("\0") if name] if source == ROOT else []
    for path in [source / name for name in names] or [item for item in source.rglob("*") if item.is_file()]:
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=copy, check=True, capture_output=True)
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def _complete(source: Path) -> None:
    """All that git has of these folders is in the source archive."""
    wanted = [
        "constraints.txt",
        *(path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").glob("*.yaml")),
    ]
    missing = [name for name in wanted if not (source / name).is_file()]
    if missing:
        raise SystemExit(f"the source archive lacks {', '.join(missing)}")


def _same(one: Path, two: Path) -> None:
    """The wheel of the checkout and that of the source archive hold the same files, settings and data included."""
    first, second = (set(zipfile.ZipFile(path).namelist()) for path in (one, two))
    data = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "binas").rglob("*.yaml")}
    lacking = (first ^ second) | (data - second)
    if lacking or not any(name.endswith("configs/imagenet.yaml") for name in second):
        raise SystemExit(f"the wheels are not complete: {', '.join(sorted(lacking)[:10]) or 'no configs'}")


def _use(wheel: Path, target: Path, elsewhere: Path) -> None:
    """Commands of the wheel, in a folder that knows nothing of the checkout."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(target)
    elsewhere.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(target)}
    for command in COMMANDS:
        asked = [sys.executable, "-P", "-m", "binas", *command]
        done = subprocess.run(
            asked, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"binas {' '.join(command)} of the wheel fails: {done.stderr[-2000:]}")
    where = "import binas; print(binas.__file__)"
    found = subprocess.run(
        [sys.executable, "-P", "-c", where], cwd=elsewhere, env=environment, capture_output=True, text=True
    )
    if not found.stdout.startswith(str(target)):
        raise SystemExit(f"binas was loaded from {found.stdout.strip()}, not from the wheel")


if __name__ == "__main__":
    sys.exit(main())
