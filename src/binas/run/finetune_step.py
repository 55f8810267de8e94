"""Every architecture a run has found as a network of its own, fine-tuned (paper appendix "Overview", phase 3).

A network's folder is named by its architecture, not by a limit: limits that have the same answer share it, and a new
limit trains only what is new.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.files import dump_json, exists, read_json, write_text
from binas.base.identity import file_digest, flattened
from binas.base.progress import Progress
from binas.run.engine import keep_old
from binas.run.network_record import RECORD, NetworkRecord, network_folder, network_name, read_record
from binas.run.networks import Tuning
from binas.run.search_step import read_results
from binas.space.architecture import Architecture
from binas.training.reporting import Reporter

if TYPE_CHECKING:
    from binas.run.run import Run

INPUTS = "inputs.json"
INDEX = "networks.json"


def finetune_step(run: Run, progress: Progress) -> None:
    """Tune the answer to every limit; ``networks.json`` says which network answers which."""
    found = found_architectures(run)
    records = tune_all(run, list(dict.fromkeys(found.values())), progress)
    index = [{"question": question, "network": records[text].name} for question, text in found.items()]
    write_text(run.folder / INDEX, dump_json(index))


def tune_all(run: Run, wanted: list[Architecture], progress: Progress) -> dict[Architecture, NetworkRecord]:
    """Fine-tune architectures one after the other; what is done with the same settings and weights is read."""
    tuning, records = Tuning(run), {}
    for number, architecture in enumerate(wanted):
        told = progress.part(number, len(wanted), f"network {number + 1} of {len(wanted)}")
        records[architecture] = _tuned(tuning, architecture, told)
    return records


def found_architectures(run: Run) -> dict[str, Architecture]:
    """The architecture that answers each of ``search.limits``; limits without an answer are left out."""
    found = {item["question"]: item["architecture"] for item in read_results(run)}
    return {question: run.space.parse(text) for question, text in found.items() if text}


def read_networks(run: Run) -> dict[str, NetworkRecord]:
    """The fine-tuned network of each of ``search.limits`` that has an answer."""
    return {
        question: read_record(_folder(run, architecture) / RECORD)
        for question, architecture in found_architectures(run).items()
    }


def _folder(run: Run, architecture: Architecture) -> Path:
    name = network_name(architecture, run.config.training.finetune.from_scratch)
    return network_folder(run.folder, name)


def _tuned(tuning: Tuning, architecture: Architecture, progress: Progress) -> NetworkRecord:
    """One network; what is there of other settings or weights is set aside first."""
    run, folder = tuning.run, _folder(tuning.run, architecture)
    identity = _identity(run)
    if exists(folder) and not (exists(folder / INPUTS) and read_json(folder / INPUTS) == identity):
        name = folder.relative_to(run.folder).as_posix()
        place = keep_old(run.folder, "finetune", [name])
        progress.say(f"{name} of before moved to {place.relative_to(run.folder)}")
    elif exists(folder / RECORD):
        return read_record(folder / RECORD)
    write_text(folder / INPUTS, dump_json(identity))
    found = tuning.tune(architecture, reporter=Reporter(folder, progress))
    progress.say(
        f"{architecture}: {found.one_shot.validation.percent:.2f} % one-shot, "
        f"{found.tuned.validation.percent:.2f} % tuned (validation images)"
    )
    return found.record


def _identity(run: Run) -> dict[str, Any]:
    """What a tuned network depends on beside its architecture."""
    training = run.config.training
    weights = {
        phase: file_digest(run.folder / phase / "weights.json")[:16] for phase in ("heaviest", "supernet")
    }
    general = {"seed": training.seed, "mixed_precision": training.mixed_precision}
    return {**general, **flattened(training.finetune.model_dump(mode="json")), **weights}
