"""Whole runs in processes of a launcher: the same as in one process, also after one of them was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from small_data import bars

from tiny_run import final, write_config

PARTS = ("train.heaviest", "train.supernet", "finetune")
SHARDS = [f"--set={part}.shards=2" for part in PARTS]
CALL = ["-m", "binas"]


def environment(**more):
    """That of a process of its own, which computes with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def slurm(*command):
    """Two processes as srun would start them; the first one first."""
    job = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": str(os.getpid()), "SLURM_NNODES": "1"}
    return [
        subprocess.Popen(
            [sys.executable, *CALL, *map(str, command)],
            env=environment(**job, SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def ended(processes):
    """Exit codes, and what each has said on stdout and stderr."""
    said = [process.communicate() for process in processes]
    return [process.returncode for process in processes], said


LAUNCHERS = {
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"],
    "accelerate": [
        *("-m", "accelerate.commands.launch", "--cpu", "--num_processes=2", "--num_machines=1"),
        *("--mixed_precision=no", "--dynamo_backend=no", "--num_cpu_threads_per_process=1"),
        "--main_process_port=0",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_a_run_under_a_launcher_is_that_of_one_process(tmp_path, launcher):
    config = write_config(tmp_path, compare={"random": 2, "tune": 1})
    for out, before in (("alone", []), ("launched", launcher)):
        command = [sys.executable, *before, *CALL, "run", config, "--out", tmp_path / out, *SHARDS, "--quiet"]
        done = subprocess.run(
            [str(word) for word in command], env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("Report: ") == 1  # only the first process speaks
    assert final(tmp_path / "alone") == final(tmp_path / "launched")


def photos(folder):
    """The bars of the tiny run as a folder of images."""
    arrays = bars(160)
    for number, (image, label) in enumerate(zip(arrays["images"], arrays["labels"], strict=True)):
        place = folder / f"class{label}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(place / f"{number}.png")
    return folder


@pytest.mark.slow
def test_images_that_stay_in_their_files_are_shared_out(tmp_path):
    data = {"kind": "folder", "path": str(photos(tmp_path / "photos")), "size": 12, "cache": False}
    config = write_config(tmp_path, data=data)
    for out, before in (("alone", []), ("launched", LAUNCHERS["torchrun"])):
        command = [
            sys.executable,
            *before,
            *CALL,
            "train",
            tmp_path / out,
            "--config",
            config,
            *SHARDS[:2],
            "--quiet",
        ]
        done = subprocess.run(
            [str(word) for word in command], env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    weights = [
        sorted(path.relative_to(tmp_path / out).as_posix() for path in (tmp_path / out).glob("*/weights-*"))
        for out in ("alone", "launched")
    ]
    assert len(weights[0]) == 2
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_process_is_killed_and_the_same_command_goes_on(tmp_path):
    config = write_config(tmp_path)
    longer = ["--set=train.heaviest.epochs=4", "--set=train.checkpoint_seconds=0"]
    command = ["--config", config, "--quiet", *SHARDS[:2], *longer]
    processes = slurm("train", tmp_path / "launched", *command)
    while not (tmp_path / "launched" / "heaviest" / "progress.json").exists():
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)
    processes[1].kill()
    codes, said = ended(processes)
    assert codes == [2, -signal.SIGKILL]
    assert said[0][1].count("error: ") == 1
    assert "process 1 of this job is gone" in said[0][1]
    codes, said = ended(slurm("train", tmp_path / "launched", *command))
    assert codes == [0, 0], said
    assert not said[1][0]
    alone = subprocess.run(
        [sys.executable, *CALL, "train", str(tmp_path / "alone"), *map(str, command)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 0, alone.stderr
    weights = [
        sorted(path.relative_to(tmp_path / out).as_posix() for path in (tmp_path / out).glob("*/weights-*"))
        for out in ("alone", "launched")
    ]
    assert len(weights[0]) == 2
    assert weights[0] == weights[1]  # files are named by their content


@pytest.mark.slow
@pytest.mark.parametrize("everyone", [False, True])
def test_a_launcher_that_is_gone_takes_the_run_with_it(tmp_path, everyone):
    """torchrun dies of SIGUSR1, which a cluster sends before it takes the machine, and passes it on to nobody.

    A cluster may send it to all processes itself: then each has one signal to obey, not a second one that is impatient.
    """
    config, heaviest = write_config(tmp_path), tmp_path / "run" / "heaviest"
    longer = ["--quiet", "--set=train.heaviest.epochs=5000", "--set=train.checkpoint_seconds=0"]
    command = [*LAUNCHERS["torchrun"], *CALL, "train", tmp_path / "run", "--config", config, *longer]
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (heaviest / "within.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split() if everyone else []
    for number in (*map(int, started), process.pid):
        os.kill(number, signal.SIGUSR1)
    said = process.communicate()[1]  # to the end, when none of them is left
    assert process.returncode == -signal.SIGUSR1
    assert "what started the processes of this job is gone" in said or everyone
    assert said.count("interrupted by SIGUSR1" if everyone else "interrupted by SIGTERM") == 1
    assert [*heaviest.glob("within.json"), *heaviest.glob("progress.json")]
