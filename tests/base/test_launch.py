"""What launchers say, read from the environment and taken out of it."""

import os

import pytest

from binas.base.errors import ConfigError
from binas.base.launch import Launch, first_machine, take_launch

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29401",
}
SLURM = {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "123456", "SLURM_NNODES": "4"}


def test_torchrun_and_accelerate():
    environment = {**TORCHRUN, "HOME": "/root", "PMI_SIZE": "4"}
    assert take_launch(environment) == Launch(3, 4, 1, 2, "node1", 29401)
    assert environment == {"HOME": "/root", "MASTER_ADDR": "node1", "MASTER_PORT": "29401"}
    assert take_launch(environment) is None  # what is started from here is alone


def test_who_started_a_process_is_known_where_it_watches_it():
    assert take_launch({**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}).agent == os.getppid()
    assert take_launch({**TORCHRUN}).agent == 0


@pytest.mark.parametrize("size", [{"SLURM_NTASKS": "8"}, {"SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "9"}])
def test_slurm_on_several_machines(size):
    environment = {**SLURM, **size, "SLURM_JOB_NODELIST": "gpu[07-09,12],big1"}
    assert take_launch(environment) == Launch(5, 8, 1, 1, "gpu07", 20_000 + 123456 * 101 % 20_000)
    assert environment["MASTER_ADDR"] == "gpu07"


def test_steps_and_jobs_beside_each_other_meet_at_ports_of_their_own():
    def port(job, step):
        more = {"SLURM_NTASKS": "8", "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step)}
        return take_launch({**SLURM, **more}).port

    ports = [port(job, step) for job in range(123456, 123466) for step in range(100)]
    assert len(set(ports)) == len(ports)
    assert port(7, 3) == port(7, 3)


def test_what_is_started_from_here_is_alone_in_a_slurm_job_too():
    environment = {**SLURM, "SLURM_NTASKS": "8"}
    assert take_launch(environment) is not None
    assert take_launch(environment) is None


def test_slurm_on_one_machine_and_with_an_address_of_ones_own():
    one = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NNODES": "1"}
    assert take_launch({**one}) == Launch(1, 2, 1, 2, "127.0.0.1", 20_000)
    own = {**SLURM, "SLURM_NTASKS": "8", "MASTER_ADDR": "here", "MASTER_PORT": "1234"}
    assert take_launch(own) == Launch(5, 8, 1, 1, "here", 1234)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WORLD_SIZE": "8"},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "ENVIRONMENT": "BATCH"},  # a batch script without srun
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "ENVIRONMENT": "BATCH", "SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_one_process_is_alone(environment):
    assert take_launch(environment) is None


def test_torchrun_inside_a_slurm_job_counts():
    launch = take_launch({**TORCHRUN, **SLURM, "SLURM_STEP_NUM_TASKS": "2"})
    assert launch is not None
    assert launch.size == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"RANK": "4"}, "RANK=4, but 4 processes"),
        ({"RANK": "x"}, "RANK='x'"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE='0'"),
        ({"MASTER_PORT": "-1"}, "MASTER_PORT='-1'"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, words):
    with pytest.raises(ConfigError, match=words):
        take_launch({**TORCHRUN, **change})


@pytest.mark.parametrize(
    ("machines", "first"),
    [("n1", "n1"), ("n[3,5-7]", "n3"), ("a-[01-04]-x,b", "a-01-x"), ("x,y[1-2]", "x")],
)
def test_the_first_machine_of_a_list(machines, first):
    assert first_machine(machines) == first
