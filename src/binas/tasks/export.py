"""Export the networks of a run as files for others, each with what was asked, predicted and measured."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from binas.base.files import exists
from binas.base.identity import flattened
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import EXPORT as FOLDER, NETWORKS
from binas.training.config import FinetuneSettings
from binas.training.judgement import NetworkRecord

if TYPE_CHECKING:
    from binas.export import Exported, LatencyFact, ModelFacts
    from binas.export.model_file import ModelFile
    from binas.run.run import Run
    from binas.tasks.finetune import TunedNetwork

Format = Literal["onnx", "torch", "safetensors"]
DATA_LICENCES = dict.fromkeys(("embedded", "fashion-mnist"), "MIT, Zalando SE")


class ExportSettings(Settings):
    """What a finished network is written as."""

    formats: tuple[Format, ...] = Field(
        ("onnx", "safetensors"), min_length=1, description="kinds of files; torch is torch.export's"
    )
    int8: bool = Field(
        False, description="also an ONNX file quantised to 8 bits; both are measured on this machine"
    )
    normalised: bool = Field(False, description="ONNX and torch files take normalised images, not bytes")


def export_tuned(
    run: Run,
    tuned: TunedNetwork,
    folder: Path | None = None,
    formats: Collection[Format] | None = None,
    limits: Sequence[str] | None = None,
    latency: Sequence[LatencyFact] | None = None,
    command: str | None = None,
) -> Exported:
    """Write a fine-tuned network as files for others, by default into its folder; what is there is not made again.

    ``limits``, ``latency`` and ``command`` go into the card; those not given stay as an earlier export says. Without any
    the command is that of fine-tuning and exporting this one network.
    """
    from binas.export import Quantisation, export_network
    from binas.export.model_file import JSON, read_model_file

    settings = run.settings(ExportSettings)
    folder = folder or tuned.folder / FOLDER
    known = next((path for path in (folder / JSON, tuned.folder / FOLDER / JSON) if exists(path)), None)
    old = None if known is None else read_model_file(known)
    facts = _facts(run, tuned, old, limits, latency, command)
    quantisation = Quantisation(run.data) if settings.int8 else None
    kind: Literal["bytes", "normalised"] = "normalised" if settings.normalised else "bytes"
    return export_network(tuned.network, facts, folder, formats or settings.formats, kind, quantisation)


def _facts(
    run: Run,
    tuned: TunedNetwork,
    old: ModelFile | None,
    limits: Sequence[str] | None,
    latency: Sequence[LatencyFact] | None,
    command: str | None,
) -> ModelFacts:
    from binas.export.facts import ModelFacts, accuracy_facts

    data = run.data
    return ModelFacts(
        name=f"{run.space.name}-{tuned.record.name}",
        space=run.space,
        architecture=run.space.parse(tuned.record.architecture),
        mean=data.mean,
        std=data.std,
        classes=data.classes,
        data=data.name,
        data_licence=DATA_LICENCES.get(run.config.data.kind, ""),
        limits=tuple(limits) if limits is not None else old.limits if old else (),
        latency=tuple(latency) if latency is not None else old.latency if old else (),
        accuracy=accuracy_facts(tuned.record.judgement, tuned.record.from_scratch),
        command=command or (old.command if old else _commands(run, tuned.record)),
    )


def _commands(run: Run, record: NetworkRecord) -> str:
    """How to make the network again from the trained run."""
    usual = flattened(run.settings(FinetuneSettings).model_dump(mode="json"))
    changed = [
        f"{key}={json.dumps(value)}" for key, value in record.settings.items() if usual.get(key) != value
    ]
    options = [part for change in changed for part in ("--set", f"finetune.{change}")]
    folder = str(run.folder)
    first = ["binas", "finetune", folder, "--arch", record.architecture, "--name", record.name, *options]
    return f"{shlex.join(first)} && {shlex.join(['binas', 'export', folder, '--network', record.name])}"


def run_command(run: Run) -> str:
    """The command that makes a run again from its own configuration."""
    folder = run.folder.absolute()
    return shlex.join(["binas", "run", f"{folder.name}/config.yaml", "--out", f"{folder.name}-again"])


def _work(run: Run, progress: Progress) -> None:
    """Export the network of every limit; limits with the same answer share its folder and its card."""
    from binas.export.facts import latency_facts
    from binas.tasks.finetune import open_tuned
    from binas.tasks.search import open_problem, read_answers

    networks, problem = run.networks, open_problem(run)
    answers = {answer.question: answer for answer in read_answers(run, problem)}
    for name in dict.fromkeys(record.name for record in networks.values()):
        asked = [answers[question] for question, record in networks.items() if record.name == name]
        limits, cost = (
            [answer.limits_text for answer in asked],
            problem.of_variant(asked[0].variant).costs.get("latency"),
        )
        latency = () if cost is None else latency_facts(cost, asked[0])
        exported = export_tuned(
            run, open_tuned(run, name), limits=limits, latency=latency, command=run_command(run)
        )
        progress.say(f"{NETWORKS}/{name}/{FOLDER}: {', '.join(path.name for path in exported.files)}")


EXPORT = Task(
    "export",
    ExportSettings,
    (
        Step(
            "export",
            "write the networks as files for others",
            _work,
            (f"{NETWORKS}/*/{FOLDER}/model.*",),
            ("export",),
            after=("search", "finetune"),
            sorts=True,
            seconds=lambda outlook: Seconds(outlook.questions * (0.5 + outlook.rates.prepare)),
        ),
    ),
    examples=(
        "binas export runs/first",
        "binas export runs/first --network best --formats onnx --int8 --out deploy",
    ),
)
