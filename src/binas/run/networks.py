"""The networks of a run: fine-tuned, judged once, and exported, one folder each."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from binas.base.errors import ConfigError, FileError
from binas.base.files import dump_json, exists, read_json, read_text, write_text
from binas.base.identity import flattened
from binas.costs.analytic import architecture_work
from binas.export import (
    FORMATS,
    AccuracyFact,
    Exported,
    LatencyFact,
    ModelFacts,
    Quantisation,
    export_network,
)
from binas.export.exporting import Format
from binas.export.graph import InputKind
from binas.export.model_file import JSON, ModelFile, read_model_file
from binas.run.config import FILE, load_config
from binas.run.network_record import (
    EXPORT,
    RECORD,
    NetworkRecord,
    network_folder,
    network_name,
    read_record,
    record_of,
    tuned_names,
)
from binas.run.run import Run, open_run
from binas.space.architecture import Architecture
from binas.space.reading import read_architecture
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet
from binas.supernet.static import StaticNetwork
from binas.training.checkpoint import load_checkpoint, load_weights, weights_digest
from binas.training.evaluation import Accuracy
from binas.training.loop import WEIGHTS, make_accelerator
from binas.training.losses import Teacher
from binas.training.phases import Bench, check_training, fine_tune, teacher_of
from binas.training.reporting import Reporter
from binas.training.tuned import HeldOut, Judgement, judge

DATA_LICENCES = dict.fromkeys(("embedded", "fashion-mnist"), "MIT, Zalando SE")


@dataclass(frozen=True)
class TunedNetwork:
    """A fine-tuned network of a run; ``new`` says whether this call finished it."""

    folder: Path
    record: NetworkRecord
    network: StaticNetwork
    new: bool

    @property
    def one_shot(self) -> HeldOut:
        """Accuracy with the supernet's weights, BatchNorm re-estimated."""
        return self.record.judgement.one_shot

    @property
    def tuned(self) -> HeldOut:
        """Accuracy after fine-tuning."""
        return self.record.judgement.tuned


def run_to_tune(folder: Path, changes: Iterable[str] = ()) -> Run:
    """A run with settings of ``training.finetune`` changed for this call; its configuration stays as it is."""
    opened = open_run(folder)
    config = load_config(folder / FILE, changes)
    kept = config.training.model_copy(update={"finetune": opened.config.training.finetune})
    if config.model_copy(update={"training": kept}) != opened.config:
        raise ConfigError(
            "only settings that begin with training.finetune. can be changed here: the supernet of this run was made "
            "with the others. Nothing was changed."
        )
    run = Run(folder, config, opened.space)
    check_training(config.training, run.data)
    return run


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning of several networks of one run: supernet, teacher and the teacher's logits are made once."""

    run: Run

    @cached_property
    def supernet(self) -> Supernet:
        """The weights networks start from."""
        return self.run.supernet()

    @cached_property
    def heaviest(self) -> Supernet:
        """The weights they are taught by."""
        return self.run.supernet("heaviest")

    @cached_property
    def teacher(self) -> Teacher:
        """The heaviest network with its logits."""
        settings = self.run.config.training.finetune.distillation
        return teacher_of(self.heaviest, self.run.data, settings)

    def tune(
        self, architecture: Architecture, name: str | None = None, reporter: Reporter | None = None
    ) -> TunedNetwork:
        """Fine-tune one architecture, and judge it once; what is finished is only read.

        An interrupted call is gone on with. A folder of another architecture, or of other settings, is refused.
        """
        run, config = self.run, self.run.config.training
        run.space.check(architecture)
        name = name or network_name(architecture, config.finetune.from_scratch)
        folder = network_folder(run.folder, name)
        old = record_of(folder, architecture)
        accelerator = make_accelerator(config)
        heard = reporter if reporter and accelerator.is_main_process else Reporter()
        bench = Bench(run.data, config, folder, accelerator, heard)
        start = time.monotonic()
        network = fine_tune(self.supernet, self.heaviest, architecture, bench, self.teacher)
        if old is not None and old.weights == weights_digest(network):
            return TunedNetwork(folder, old, network, new=False)
        judgement = judge(network, self.supernet, architecture, bench)
        record = _record(name, run, architecture, network, judgement, time.monotonic() - start)
        if accelerator.is_main_process:
            write_text(folder / RECORD, dump_json(record.model_dump(mode="json")))
        return TunedNetwork(folder, record, network, new=True)


def tune(
    run: Run, architecture: Architecture, name: str | None = None, reporter: Reporter | None = None
) -> TunedNetwork:
    """Fine-tune one architecture of a trained run; see :meth:`Tuning.tune`, which suits several."""
    return Tuning(run).tune(architecture, name, reporter)


def _record(
    name: str,
    run: Run,
    architecture: Architecture,
    network: StaticNetwork,
    judgement: Judgement,
    seconds: float,
) -> NetworkRecord:
    work, settings = architecture_work(run.space, architecture), run.config.training.finetune
    return NetworkRecord(
        name=name,
        architecture=str(architecture),
        from_scratch=settings.from_scratch,
        settings=flattened(settings.model_dump(mode="json")),
        weights=weights_digest(network),
        judgement=judgement,
        parameters=work.params,
        macs=work.macs,
        seconds=round(seconds, 2),
    )


def open_tuned(run: Run, network: str | Path) -> TunedNetwork:
    """A fine-tuned network of a run, by its name or its folder."""
    folder = Path(network) if exists(Path(network) / RECORD) else network_folder(run.folder, str(network))
    if not exists(folder / RECORD):
        known = ", ".join(tuned_names(run.folder)) or "none yet"
        raise FileError(
            f"{run.folder} has no finished network {str(network)!r} (it has: {known}). `binas finetune {run.folder} "
            "--arch ...` makes one."
        )
    record = read_record(folder / RECORD)
    built = StaticNetwork.from_architecture(run.space, run.space.parse(record.architecture))
    load_weights(built, load_checkpoint(folder / "finetune", WEIGHTS).tensors, str(folder))
    if weights_digest(built) != record.weights:
        raise FileError(
            f"{folder / RECORD} belongs to other weights than those in {folder / 'finetune'}: fine-tuning was done again "
            "and not finished. `binas finetune` with the same settings finishes it."
        )
    return TunedNetwork(folder, record, built.eval(), new=False)


def find_tuned(run: Run, architecture: Architecture) -> TunedNetwork:
    """The fine-tuned network of an architecture, whatever its name; one trained from scratch only if there is no other."""
    records = [read_record(network_folder(run.folder, name) / RECORD) for name in tuned_names(run.folder)]
    fitting = [record for record in records if record.architecture == str(architecture)]
    usual = network_name(architecture)
    if not fitting:
        raise FileError(
            f"{architecture} is not fine-tuned in {run.folder}. `binas finetune {run.folder} --arch {architecture}` "
            "does it."
        )
    best = min(fitting, key=lambda record: (record.from_scratch, record.name != usual))
    return open_tuned(run, best.name)


def export_tuned(
    run: Run,
    tuned: TunedNetwork,
    folder: Path | None = None,
    formats: Collection[Format] = FORMATS,
    int8: bool = False,
    graph_input: InputKind = "bytes",
    limits: Sequence[str] | None = None,
    latency: Sequence[LatencyFact] | None = None,
    command: str | None = None,
) -> Exported:
    """Write a fine-tuned network as files for others, by default into its folder; what is there is not made again.

    ``limits``, ``latency`` and ``command`` go into the card; those not given stay as an earlier export says. Without any
    the command is that of fine-tuning and exporting this one network.
    """
    folder = folder or tuned.folder / EXPORT
    known = next((path for path in (folder / JSON, tuned.folder / EXPORT / JSON) if exists(path)), None)
    old = None if known is None else read_model_file(known)
    facts = _facts(run, tuned, old, limits, latency, command)
    quantisation = Quantisation(run.data) if int8 else None
    return export_network(tuned.network, facts, folder, formats, graph_input, quantisation)


def _facts(
    run: Run,
    tuned: TunedNetwork,
    old: ModelFile | None,
    limits: Sequence[str] | None,
    latency: Sequence[LatencyFact] | None,
    command: str | None,
) -> ModelFacts:
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
        accuracy=tuple(_accuracy_facts(tuned)),
        command=command or (old.command if old else _commands(run, tuned.record)),
    )


def _commands(run: Run, record: NetworkRecord) -> str:
    """How to make the network again from the trained run."""
    usual = flattened(run.config.training.finetune.model_dump(mode="json"))
    changed = [
        f"{key}={json.dumps(value)}" for key, value in record.settings.items() if usual.get(key) != value
    ]
    options = [part for change in changed for part in ("--set", f"training.finetune.{change}")]
    folder = str(run.folder)
    first = ["binas", "finetune", folder, "--arch", record.architecture, "--name", record.name, *options]
    return f"{shlex.join(first)} && {shlex.join(['binas', 'export', folder, '--network', record.name])}"


def _accuracy_facts(tuned: TunedNetwork) -> Iterable[AccuracyFact]:
    how = "trained from scratch" if tuned.record.from_scratch else "fine-tuned"
    shared = "with the supernet's weights, BatchNorm re-estimated"
    for weights, found in ((shared, tuned.one_shot), (how, tuned.tuned)):
        yield _fact(weights, "validation", found.validation)
        yield _fact(weights, "test", found.test)


def _fact(weights: str, part: Literal["validation", "test"], found: Accuracy) -> AccuracyFact:
    return AccuracyFact(weights, part, found.percent, found.images)


def read_choice(space: SearchSpace, text: str) -> Architecture:
    """An architecture as a user names it: ``heaviest``, ``lightest``, in any written form, or a file.

    A file holds an architecture in a written form, or a JSON object that says its ``architecture``, such as
    ``binas search --json`` prints.
    """
    named = {"heaviest": True, "lightest": False}
    if text in named:
        return space.extreme(named[text])
    path = Path(text)
    if not exists(path):
        return read_architecture(space, text)
    content = read_text(path).strip()
    data = read_json(path) if content.startswith("{") else None
    if isinstance(data, dict) and isinstance(data.get("architecture"), str):
        content = data["architecture"]
    return read_architecture(space, content)
