"""The place of this process among those that a launcher started: torchrun, ``accelerate launch``, SLURM's ``srun``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from binas.base.errors import ConfigError

# What launchers say to each process. Whoever reads it later would take itself for one of several once more.
TOLD = (
    "SLURM_PROCID",
    *(
        f"{prefix}{name}"
        for prefix in ("", "PMI_", "OMPI_COMM_WORLD_", "MV2_COMM_WORLD_")
        for name in ("RANK", "SIZE", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "LOCAL_WORLD_SIZE")
    ),
)
AGENT = "TORCHELASTIC_RUN_ID"  # is there where torchrun's agent started us, which accelerate has too
FIRST_PORT, PORTS = 20_000, 20_000  # where processes of a SLURM job meet, by its number and that of its step
STEPS = 101  # of a job before a port is that of the next job; no divisor of PORTS, so that jobs take all ports in turn


@dataclass(frozen=True, slots=True)
class Launch:
    """Process ``rank`` of ``size``, number ``local`` of ``together`` on its machine; they meet at ``address:port``."""

    rank: int
    size: int
    local: int
    together: int
    address: str
    port: int
    agent: int = 0  # the process of torchrun or accelerate that started this one; 0 without one


def take_launch(environment: MutableMapping[str, str]) -> Launch | None:
    """The place that ``environment`` names, taken out of it, so that nothing started from here looks for it again.

    None where this process is alone. torchrun and accelerate say RANK and WORLD_SIZE, srun SLURM_PROCID and
    SLURM_STEP_NUM_TASKS; a launcher inside a SLURM job counts more than SLURM itself.
    """
    launch = _told(environment) if "RANK" in environment else _slurm(environment)
    for name in TOLD:
        environment.pop(name, None)
    if launch is None or launch.size == 1:
        return None
    environment["MASTER_ADDR"], environment["MASTER_PORT"] = launch.address, str(launch.port)
    return launch


def refuse_launch(function: str, command: str) -> None:
    """Refuse a function of ``binas`` called in each of several processes, all of which would do the whole work."""
    launch = take_launch({**os.environ})
    if launch is not None:
        raise ConfigError(
            f"binas.{function} does everything in one process, and this is process {launch.rank} of {launch.size} that a "
            "launcher started: start the script without the launcher, or put the launcher in front of the command "
            f"(`torchrun ... -m binas {command}`), whose processes share the work. Nothing was changed."
        )


def _told(environment: Mapping[str, str]) -> Launch | None:
    """What torchrun and ``accelerate launch`` say."""
    size = _number(environment, "WORLD_SIZE", 1)
    rank = _place(environment, "RANK", size)
    together = _number(environment, "LOCAL_WORLD_SIZE", size)
    local = _number(environment, "LOCAL_RANK", rank % together, 0)
    address = environment.get("MASTER_ADDR", "127.0.0.1")
    port = _number(environment, "MASTER_PORT", 29_500)
    return Launch(rank, size, local, together, address, port, os.getppid() if AGENT in environment else 0)


def _slurm(environment: Mapping[str, str]) -> Launch | None:
    """What ``srun`` says; a batch script that calls us without it is one process, whatever it has asked for."""
    if "SLURM_PROCID" not in environment:
        return None
    step = "SLURM_STEP_NUM_TASKS" in environment
    if not step and environment.get("ENVIRONMENT") == "BATCH":
        return None
    size = _number(environment, "SLURM_STEP_NUM_TASKS" if step else "SLURM_NTASKS", 1)
    rank = _place(environment, "SLURM_PROCID", size)
    machines = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    alone = _number(environment, "SLURM_STEP_NUM_NODES", _number(environment, "SLURM_NNODES", 1)) == 1
    address = environment.get("MASTER_ADDR") or (
        "127.0.0.1" if alone or not machines else first_machine(machines)
    )
    job, number = (_number(environment, f"SLURM_{name}_ID", 0, 0) for name in ("JOB", "STEP"))
    port = FIRST_PORT + (job * STEPS + number) % PORTS
    local = _number(environment, "SLURM_LOCALID", rank, 0)
    return Launch(rank, size, local, size if alone else 1, address, _number(environment, "MASTER_PORT", port))


def first_machine(machines: str) -> str:
    """The first name of a SLURM list: ``gpu[07-09,12],big1`` begins with ``gpu07``."""
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", re.split(r",(?![^\[]*\])", machines)[0])


def _number(environment: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = environment.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise ConfigError(
            f"the environment says {name}={text!r}, which is no whole number from {least} on. It is set by what "
            "launches several processes (torchrun, accelerate, srun); unset it to run in one."
        )
    return int(text)


def _place(environment: Mapping[str, str], name: str, size: int) -> int:
    """A rank: less than the number of processes."""
    rank = _number(environment, name, 0, 0)
    if rank >= size:
        raise ConfigError(
            f"the environment says {name}={rank}, but {size} processes were launched: ranks are 0 to {size - 1}. Unset it "
            "to run in one process."
        )
    return rank
