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
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/binas", "configs", "docs", "benchmarks", "tests", "tools")
SHARED, PINS = "share/binas", "constraints.txt"
COMMANDS = (
    ("--version",),
    ("space", "list"),
    ("example", "paper", "example"),
    ("search", "example", "--limit", "latency=45ms"),
    ("report", "example"),
)


def main() -> int:
    """Everything; the first thing that is wrong ends it."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        archive, direct = _build(work / "dist", ROOT)
        with tarfile.open(archive) as packed:
            packed.extractall(work / "source", filter="data")
        source = next((work / "source").iterdir())
        tracked = _tracked()
        _complete(source, tracked)
        _, wheel = _build(work / "again", source)
        _same(direct, wheel, tracked)
        _use(wheel, work / "installed", work / "elsewhere")
    print("the source archive and the wheel are complete, and the wheel works outside the checkout")
    return 0


def _build(out: Path, source: Path) -> tuple[Path, Path]:
    """Source archive and wheel of a folder, made by the build backend itself."""
    out.mkdir()
    code = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
    copy = out / "copy"  # the backend leaves files behind in the folder that it builds
    names = _tracked() if source == ROOT else []
    for path in [source / name for name in names] or [item for item in source.rglob("*") if item.is_file()]:
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=copy, check=True, capture_output=True)
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def _tracked() -> list[str]:
    """All that git has; in a copy without it, the files of our folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    if listed:
        return [name for name in listed.decode().split("\0") if name]
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    found = [path for path in (*ROOT.iterdir(), *found) if path.is_file() and "__pycache__" not in path.parts]
    return [path.relative_to(ROOT).as_posix() for path in found]


def _complete(source: Path, tracked: Sequence[str]) -> None:
    """All that git has, but for what is of this place alone, is in the source archive, and the same."""
    wanted = [name for name in tracked if not any(part.startswith(".") for part in Path(name).parts)]
    wrong = [name for name in wanted if _content(source / name) != _content(ROOT / name)]
    if wrong:
        raise SystemExit(f"the source archive lacks, or has otherwise, {', '.join(wrong[:10])}")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _same(one: Path, two: Path, tracked: Sequence[str]) -> None:
    """The wheels of the checkout and of the source archive hold the same: modules, data, pages, settings, constraints."""
    first, second = _held(one), _held(two)
    own = {name: name.removeprefix("src/") for name in tracked if name.startswith("src/binas/")}
    shared = {name: f"{SHARED}/{name}" for name in tracked if name.startswith("configs/") or name == PINS}
    wanted = {place: (ROOT / name).read_bytes() for name, place in (own | shared).items()}
    wrong = [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]
    wrong += [name for name, content in wanted.items() if second.get(name) != content]
    if wrong:
        raise SystemExit(f"the wheels lack, or have otherwise, {', '.join(sorted(wrong)[:10])}")


def _held(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, those for the environment under their places in it; without the list of them all."""
    with zipfile.ZipFile(wheel) as packed:
        names = {name: name.partition(".data/data/")[2] or name for name in packed.namelist()}
        return {place: packed.read(name) for name, place in names.items() if not name.endswith("/RECORD")}


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
