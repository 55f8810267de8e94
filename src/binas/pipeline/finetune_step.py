"""Every architecture a run has found as a network of its own, fine-tuned (paper appendix "Overview", phase 3).

A network's folder is named by its architecture, not by a limit: limits that have the same answer share it, and a new
limit trains only what is new.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from binas.errors import FileError
from binas.files import dump_json, exists, read_json, write_text
from binas.pipeline.engine import keep_old
from binas.pipeline.progress import TrainingProgress
from binas.pipeline.search_step import read_results
from binas.pipeline.step import file_digest
from binas.pipeline.teller import Share, Teller
from binas.resources.analytic import architecture_work
from binas.space.architecture import Architecture
from binas.training.evaluation import accuracy, device_of, evaluate_architecture
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, fine_tune, flattened

if TYPE_CHECKING:
    from binas.pipeline.run import Run

NETWORKS, RECORD = "networks", "network.json"
INPUTS = "inputs.json"
INDEX = "networks.json"


class Tuned(BaseModel):
    """A fine-tuned network of a run: ``network.json``.

    Accuracies are in percent: ``one_shot`` with the supernet's weights (BatchNorm re-estimated) and ``validation`` after
    tuning on the validation images, ``test`` after tuning on the test images, which nothing was chosen by.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    architecture: str
    one_shot: float
    validation: float
    test: float
    parameters: int
    macs: int
    seconds: float


def finetune_step(run: Run, teller: Teller) -> None:
    """Tune the answer to every limit; ``networks.json`` lists them."""
    found, tuned = found_architectures(run), {}
    wanted = list(dict.fromkeys(found.values()))
    for number, text in enumerate(wanted):
        told = Share(teller, number, len(wanted), f"network {number + 1} of {len(wanted)}")
        tuned[text] = tune(run, run.space.parse(text), told)
    index = [{"question": question, **tuned[text].model_dump()} for question, text in found.items()]
    write_text(run.folder / INDEX, dump_json(index))


def found_architectures(run: Run) -> dict[str, str]:
    """The architecture that answers each of ``search.limits``; limits without an answer are left out."""
    return {item["question"]: item["architecture"] for item in read_results(run) if item["architecture"]}


def read_networks(run: Run) -> dict[str, Tuned]:
    """The fine-tuned network of each of ``search.limits`` that has an answer."""
    return {
        question: _read(run.folder / NETWORKS / network_name(run.space.parse(text)) / RECORD)
        for question, text in found_architectures(run).items()
    }


def _read(path: Path) -> Tuned:
    try:
        return Tuned.model_validate(read_json(path))
    except ValidationError as error:
        raise FileError(
            f"{path} is damaged. Delete it; `binas run` writes it again from the weights."
        ) from error


def network_name(architecture: Architecture) -> str:
    """The name of a network's folder: a short digest of the architecture."""
    return hashlib.sha256(str(architecture).encode()).hexdigest()[:10]


def tune(run: Run, architecture: Architecture, teller: Teller) -> Tuned:
    """Fine-tune one architecture, or read what was found when it was done with the same settings and weights."""
    name = network_name(architecture)
    folder = run.folder / NETWORKS / name
    _begin(run, folder, teller)
    if exists(folder / RECORD):
        return _read(folder / RECORD)
    start = time.perf_counter()
    measured = _measured(run, architecture, folder, teller)
    seconds = time.perf_counter() - start
    tuned = Tuned(name=name, architecture=str(architecture), **measured, seconds=seconds)
    write_text(folder / RECORD, dump_json(tuned.model_dump()))
    teller.say(f"{architecture}: {tuned.one_shot:.2f} % one-shot, {tuned.validation:.2f} % tuned")
    return tuned


def _begin(run: Run, folder: Path, teller: Teller) -> None:
    """Record what the network depends on; what is there of another identity is set aside first."""
    identity = _identity(run)
    if exists(folder / INPUTS) and read_json(folder / INPUTS) != identity:
        name = folder.relative_to(run.folder).as_posix()
        place = keep_old(run.folder, "finetune", [name])
        teller.say(f"{name} of before moved to {place.relative_to(run.folder)}")
    write_text(folder / INPUTS, dump_json(identity))


def _identity(run: Run) -> dict[str, Any]:
    """What a tuned network depends on beside its architecture."""
    training = run.config.training
    weights = {
        phase: file_digest(run.folder / phase / "weights.json")[:16] for phase in ("heaviest", "supernet")
    }
    general = {"seed": training.seed, "mixed_precision": training.mixed_precision}
    return {**general, **flattened(training.finetune.model_dump(mode="json")), **weights}


def _measured(run: Run, architecture: Architecture, folder: Path, teller: Teller) -> dict[str, Any]:
    """Accuracies and size of a network tuned now."""
    supernet, data = run.supernet(), run.data
    training, work = run.config.training, architecture_work(run.space, architecture)
    reporter = TrainingProgress(folder, teller)
    bench = Bench(data, training, folder, make_accelerator(training), reporter)
    recalibration = training.supernet.recalibration
    one_shot = evaluate_architecture(supernet, architecture, data, data.validation, recalibration)
    network = fine_tune(supernet, run.supernet("heaviest"), architecture, bench)
    device = device_of(network)
    return {
        "one_shot": one_shot.percent,
        "validation": accuracy(network, data, data.validation, device).percent,
        "test": accuracy(network, data, data.test, device).percent,
        "parameters": work.params,
        "macs": work.macs,
    }
