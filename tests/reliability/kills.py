"""Runs that are killed again and again, with SIGKILL, until they get to their end; they must end as if nothing had been.

    python tests/reliability/kills.py --kills 300

Moments are drawn from a seed: some a number of seconds after the start, some right before the n-th change of a file, and
with several processes some hit a worker instead. This process loads everything once and forks; what is killed is the fork.
A finished run must have the files of one that nobody killed and no others, byte for byte but for recorded times.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    TESTS = Path(__file__).parents[1]
    sys.path[:0] = [str(TESTS / name) for name in (".", "supernet", "training")]

import numpy as np
import torch
from small_data import bars

from binas.base.errors import BinasError
from binas.cli.main import app
from binas.report import frontier_numbers
from binas.run.log import read_log
from tiny_run import PHASE, TAUGHT, write_config

TIMES = ("seconds", "date", "time")  # keys of recorded times
LEFT_OUT = ("log.jsonl", ".lock", "tensorboard")  # what happened when
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
LOADED = ("report.page", "training.phases", "search.highs", "export.exporting", "contributions.factorial")
HUNG = 300.0  # seconds after which a process that should have ended is given up


@dataclass(frozen=True)
class Scenario:
    """A tiny run: how many images, settings beside those of ``tiny_run``, and the seconds within which a kill falls.

    ``turns`` are options, by which settings change one after the other, each once the run has got to its end before.
    """

    name: str
    images: int = 160
    changes: dict[str, Any] = field(default_factory=dict)
    within: float = 1.5
    turns: tuple[tuple[str, ...], ...] = ((),)


def _train(processes: int = 1, **settings: Any) -> dict[str, Any]:
    """The training part of a configuration with checkpoints at every batch."""
    phase = {**PHASE, **settings}
    return {
        "train": {
            "device": "cpu",
            "processes": processes,
            "checkpoint_seconds": 0,
            "heaviest": phase,
            "supernet": {**TAUGHT, **settings, "groups": 2},
        },
        "finetune": {**TAUGHT, **settings},
    }


CHANGED = ("--redo", "--set", "train.supernet.learning_rate=0.02")
BACK = ("--set", "train.supernet.learning_rate=0.01")
NO_ROOM = ("--set", "train.old_gib=0")
SCENARIOS = (
    Scenario("plain"),
    Scenario("every batch", 400, _train(epochs=2, ema=0.9)),
    Scenario(
        "long validation",
        1200,
        {**_train(), "data": {"kind": "arrays", "path": "bars.npz", "validation_share": 0.8}},
    ),
    Scenario("two processes", 400, _train(processes=2, shards=2), 12.0),
    Scenario("changed back", turns=((), CHANGED, BACK)),
    Scenario("changed back, no room", turns=(NO_ROOM, (*CHANGED, *NO_ROOM), ("--redo", *BACK, *NO_ROOM))),
)


def prepare(scenario: Scenario, folder: Path) -> Path:
    """The configuration of a scenario, with its files."""
    config = write_config(folder, **scenario.changes)
    np.savez(folder / "bars.npz", **bars(scenario.images))
    return config


def start(arguments: list[str], output: Path, dies: Callable[[], None] = lambda: None) -> int:
    """Fork a process that does a command; its id. ``dies`` is called in it first."""
    child = os.fork()
    if child:
        return child
    try:
        with output.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115 (not pytest's)
        torch.set_num_threads(1)
        frontier_numbers.RUNNER_SECONDS = HUNG  # a page holds as many runners-up as fit into a time
        dies()
        os._exit(_do(arguments))
    finally:
        os._exit(70)


def _do(arguments: list[str]) -> int:
    """The exit code of a command, its error printed as the real command does."""
    from binas.base.workers import dismiss

    try:
        app(arguments, standalone_mode=False)
        return 0
    except BinasError as error:
        print(f"error: {error}", flush=True)
        return 2
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        dismiss()


def dying_at(number: int, folder: Path) -> Callable[[], None]:
    """Kill this process right before its n-th change of a file in a folder."""
    left, inside = [number], str(folder)

    def watch(event: str, values: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
        if (opened or event in CHANGES) and str(values[0]).startswith(inside):
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.addaudithook(watch)


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    try:
        return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


@dataclass
class Killer:
    """Kills one run after the other; ``kills`` counts them, ``problems`` says what was not as it should be."""

    rng: random.Random
    work: Path
    kills: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)

    def run(self, scenario: Scenario, most: int) -> None:
        """One run of a scenario, killed at most ``most`` times on its way, compared with one that nobody killed."""
        place = self.work / f"{self.runs:03d} {scenario.name}"
        config, before = prepare(scenario, self.work / scenario.name), self.kills
        whole = self.work / scenario.name / "whole" / "run"
        if not whole.exists():
            for turn in scenario.turns:
                self._finish(command_of(config, whole, turn), self.work / scenario.name / "output.txt")
        for number, turn in enumerate(scenario.turns, 1):
            command = command_of(config, place / "run", turn)
            self._killed(scenario, command, place, before + most * number // len(scenario.turns))
            self._finish(command, place / "output.txt")
        self.runs += 1
        found = differences(whole, place / "run")
        self.problems += [f"run {self.runs - 1} ({scenario.name}): {problem}" for problem in found]
        print(
            f"{time.strftime('%H:%M:%S')} run {self.runs}, {scenario.name}: {self.kills - before} kills, "
            f"{self.kills} in all, {found or 'as it should be'}",
            flush=True,
        )
        if not found:
            shutil.rmtree(place)

    def _killed(self, scenario: Scenario, command: list[str], place: Path, most: int) -> None:
        """Start and resume until there were ``most`` kills in all, or it got to its end."""
        patience, finished = 1.0, 0
        while self.kills < most and self._killed_once(scenario, command, place, patience) is not None:
            steps = sum(event["event"] in ("finished", "brought back") for event in read_log(place / "run"))
            patience, finished = (1.0 if steps > finished else patience * 1.3), steps

    def _killed_once(
        self, scenario: Scenario, command: list[str], place: Path, patience: float
    ) -> int | None:
        """Start or resume, and kill; None where the process got to the end before that."""
        (place / "run").mkdir(parents=True, exist_ok=True)
        moment = self.rng.uniform(0, scenario.within * patience)
        by_file, by_worker = self.rng.random() < 0.5, self.rng.random() < 0.3
        number = self.rng.randint(1, round(40 * patience))
        dies = dying_at(number, place / "run") if by_file else lambda: None
        process = start(command, place / "output.txt", dies)
        ends = time.monotonic() + (HUNG if by_file else moment)
        status = wait_for(process, ends)
        if status is None:
            workers = children(process) if by_worker else []
            victim = self.rng.choice(workers) if workers else process
            os.kill(victim, signal.SIGKILL)
            status = wait_for(process, time.monotonic() + HUNG)
        if status is None:
            self.problems.append(f"{place.name}: a process did not end")
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return -1
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return None
        self.kills += 1
        if code != -signal.SIGKILL and "worker process" not in last_words(place / "output.txt"):
            self.problems.append(f"{place.name}: exit code {code}: {last_words(place / 'output.txt')}")
        return code

    def _finish(self, command: list[str], output: Path) -> None:
        """Let a run get to its end."""
        output.parent.mkdir(parents=True, exist_ok=True)
        status = wait_for(start(command, output), time.monotonic() + HUNG)
        if status is None or os.waitstatus_to_exitcode(status) != 0:
            self.problems.append(f"{' '.join(command)} did not get to its end: {last_words(output)}")


def command_of(config: Path, folder: Path, options: Sequence[str] = ()) -> list[str]:
    """A run from its beginning to its end."""
    return ["run", str(config), "--out", str(folder), "--quiet", *options]


def wait_for(process: int, until: float) -> int | None:
    """The status of a process that has ended; None where it has not at that time."""
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    return None


def last_words(output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines() if output.exists() else []
    return lines[-1] if lines else "nothing was said"


def differences(whole: Path, other: Path) -> list[str]:
    """How the files of a run differ from those of another that must be the same."""
    was, now = dict(run_contents(whole)), dict(run_contents(other))
    lost = [f"{name} is missing" for name in sorted(was.keys() - now.keys())]
    more = [f"{name} was left behind" for name in sorted(now.keys() - was.keys())]
    return [
        *lost,
        *more,
        *(f"{name} differs" for name in sorted(was.keys() & now.keys()) if was[name] != now[name]),
    ]


def run_contents(folder: Path) -> Iterator[tuple[str, Any]]:
    """The files of a run without recorded times and without where the run is; those in ``old/`` by their step."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_dir() or set(name.parts) & set(LEFT_OUT):
            continue
        data = path.read_bytes().replace(str(folder).encode(), b"RUN")
        content: Any = data
        if path.suffix == ".json":
            content = _timeless(json.loads(data), "steps" in name.parts)
        elif path.suffix == ".html":
            content = _without_times(data)
        yield _without_moment(name.as_posix(), content), content


def _without_moment(name: str, content: Any) -> str:
    """The name of a file; one in ``old/`` by its step and content instead of the time it was set aside."""
    found = re.fullmatch(r"old/[0-9T-]+-([a-z.]+)(?:-[0-9]+)?/(.*)", name)
    digest = hashlib.sha256(repr(content).encode()).hexdigest()[:8]
    return name if found is None else f"old/{found[1]}/{found[2]} ({digest})"


def _timeless(value: Any, record: bool = False) -> Any:
    """A value without times; of a record also without hashes of files with times in them."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in TIMES}
        hashed = [key for key in kept if record and (key == "identity" or key.startswith("files of "))]
        return {key: _timeless(item, record) for key, item in kept.items() if key not in hashed}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _without_times(page: bytes) -> bytes:
    steps = re.sub(rb'"times":\s*\[[^]]*\]', b"", page)  # in the order in which they were done
    return re.sub(rb'"(seconds|date|time)":\s*("[^"]*"|[0-9.e+-]+)', b"", steps)


def main() -> int:
    """Kill until there were enough kills; the exit code says whether all ended as they should."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--each", type=int, default=15, help="kills of one run at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one scenario by its name")
    given = parser.parse_args()
    for module in LOADED:
        importlib.import_module(f"binas.{module}")  # once, before any fork
    chosen = [item for item in SCENARIOS if given.only in (None, item.name)]
    killer = Killer(random.Random(given.seed), Path(tempfile.mkdtemp(prefix="binas-kills-")))
    while killer.kills < given.kills:
        killer.run(chosen[killer.runs % len(chosen)], min(given.each, given.kills - killer.kills))
    for problem in killer.problems:
        print(problem)
    print(f"{killer.kills} kills in {killer.runs} runs; {len(killer.problems)} problems; {killer.work}")
    return 1 if killer.problems else 0


if __name__ == "__main__":
    sys.exit(main())
