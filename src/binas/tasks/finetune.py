"""Fine-tune every architecture a run has found, as a network of its own (paper appendix "Overview", phase 3).

A network's folder is named by its architecture, not by a limit: limits that have the same answer share it, and a new
limit trains only what is new.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import CheckpointError, ConfigError, ExplodedError, FileError
from binas.base.files import dump_json, exists, move, read_json, write_text
from binas.base.identity import changes, file_digest, flattened, only_lower
from binas.base.lock import locked
from binas.base.progress import Progress
from binas.base.times import Seconds
from binas.space.architecture import Architecture
from binas.space.blockstrings import read_choice
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import (
    HEAVIEST,
    NETWORK,
    NETWORKS,
    SUPERNET,
    network_folder,
    network_names,
    read_network,
)
from binas.tasks.outlook import Amount, Outlook
from binas.tasks.train import EPOCH, STARTING, bench
from binas.training.config import EASING, FinetuneSettings, TrainSettings
from binas.training.judgement import HeldOut, Judgement, NetworkRecord

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.run.config import Change
    from binas.run.run import Run
    from binas.supernet.network import Supernet
    from binas.supernet.static import StaticNetwork
    from binas.training.losses import Teacher
    from binas.training.team import Team

INPUTS = "inputs.json"
EXPLODED = "exploded"  # beside the inputs, where training ended so
EMPTY: Mapping[str, Any] = {}


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


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning of several networks of one run: supernet, teacher and the teacher's logits are made once."""

    run: Run
    team: Team

    @property
    def settings(self) -> FinetuneSettings:
        """How networks are tuned."""
        return self.run.settings(FinetuneSettings)

    @cached_property
    def supernet(self) -> Supernet:
        """The weights networks start from."""
        return self.run.supernet()

    @cached_property
    def heaviest(self) -> Supernet:
        """The weights they are taught by."""
        return self.run.supernet(HEAVIEST)

    @cached_property
    def teacher(self) -> Teacher:
        """The heaviest network with its logits."""
        from binas.training.phases import teacher_of

        where = self.run.folder / HEAVIEST
        return teacher_of(self.heaviest, self.run.data, self.settings.distillation, where, self.team)

    def tune(
        self, architecture: Architecture, name: str | None = None, progress: Progress | None = None
    ) -> TunedNetwork:
        """Fine-tune one architecture, and judge it once; what is finished is only read.

        An interrupted call resumes. A folder of another architecture, or of other settings, is refused.
        """
        from binas.training.checkpoint import weights_digest
        from binas.training.phases import fine_tune
        from binas.training.tuned import judge

        run = self.run
        run.space.check(architecture)
        folder = network_folder(run.folder, name or run.network_name(architecture))
        old, start = _own_record(folder, architecture), time.monotonic()
        if old is None:
            self._begin(folder)
        where = bench(run, progress, self.team, folder)
        try:
            network = fine_tune(
                self.supernet, self.heaviest, architecture, where, self.settings, self.teacher
            )
        except ExplodedError:
            self._note(folder, {EXPLODED: True})
            raise
        if old is not None and old.weights == weights_digest(network):
            return TunedNetwork(folder, old, network, new=False)
        judgement = judge(network, self.supernet, architecture, where, self.settings.recalibration)
        record = self._record(folder.name, architecture, network, judgement, time.monotonic() - start)
        if self.team.first:
            record.save(folder / NETWORK)
        return TunedNetwork(folder, record, network, new=True)

    def _begin(self, folder: Path) -> None:
        """Note what the network in a folder is made of, by which the run knows its own; or refuse to go on."""
        stored, exploded = inputs_of(folder)
        if not can_go_on(folder, identity := _identity(self.run)):
            differences = "; ".join(changes(stored, identity)[:3])
            raise CheckpointError(
                f"{folder} holds a network that was begun with other settings: {differences}. Give another --name, or "
                "delete that folder to train anew. It was left as it is."
            )
        again = exploded and stored == identity
        self._note(
            folder, {EXPLODED: True} if again else EMPTY
        )  # it may be killed before it explodes once more

    def _note(self, folder: Path, more: Mapping[str, Any] = EMPTY) -> None:
        if self.team.first:
            write_text(folder / INPUTS, dump_json({**_identity(self.run), **more}))

    def _record(
        self,
        name: str,
        architecture: Architecture,
        network: StaticNetwork,
        judgement: Judgement,
        seconds: float,
    ) -> NetworkRecord:
        from binas.costs.analytic import architecture_work
        from binas.training.checkpoint import weights_digest

        work = architecture_work(self.run.space, architecture)
        return NetworkRecord(
            name=name,
            architecture=str(architecture),
            from_scratch=self.settings.from_scratch,
            settings=flattened(self.settings.model_dump(mode="json")),
            weights=weights_digest(network),
            judgement=judgement,
            parameters=work.params,
            macs=work.macs,
            seconds=round(seconds, 2),
        )


def _own_record(folder: Path, architecture: Architecture) -> NetworkRecord | None:
    """The record in a folder, if there is one; an error where it is another architecture's."""
    if not exists(folder / NETWORK):
        return None
    record = read_network(folder)
    if record.architecture != str(architecture):
        raise FileError(
            f"{folder} holds the network {record.architecture}, not {architecture}. Give another name. "
            "Nothing was changed."
        )
    return record


def open_tuned(run: Run, network: str | Path) -> TunedNetwork:
    """A fine-tuned network of a run, by its name or its folder."""
    from binas.supernet.static import StaticNetwork
    from binas.training.checkpoint import load_checkpoint, load_weights, weights_digest
    from binas.training.loop import WEIGHTS
    from binas.training.phases import FINETUNE

    folder = Path(network) if exists(Path(network) / NETWORK) else network_folder(run.folder, str(network))
    if not exists(folder / NETWORK):
        known = ", ".join(network_names(run.folder)) or "none yet"
        raise FileError(
            f"{run.folder} has no finished network {str(network)!r} (it has: {known}). `binas finetune {run.folder} "
            "--arch ...` makes one."
        )
    record = read_network(folder)
    built = StaticNetwork.from_architecture(run.space, run.space.parse(record.architecture))
    load_weights(built, load_checkpoint(folder / FINETUNE, WEIGHTS).tensors, str(folder))
    if weights_digest(built) != record.weights:
        raise FileError(
            f"{folder / NETWORK} belongs to other weights than those in {folder / FINETUNE}: fine-tuning was done again "
            "and not finished. `binas finetune` with the same settings finishes it."
        )
    return TunedNetwork(folder, record, built.eval(), new=False)


def find_tuned(run: Run, architecture: Architecture) -> TunedNetwork:
    """The fine-tuned network of an architecture, whatever its name; one trained from scratch only if there is no other."""
    records = [read_network(network_folder(run.folder, name)) for name in network_names(run.folder)]
    fitting = [record for record in records if record.architecture == str(architecture)]
    if not fitting:
        raise FileError(
            f"{architecture} is not fine-tuned in {run.folder}. `binas finetune {run.folder} --arch {architecture}` "
            "does it."
        )
    usual = run.network_name(architecture)
    best = min(fitting, key=lambda record: (record.from_scratch, record.name != usual))
    return open_tuned(run, best.name)


def run_to_tune(folder: Path, changes: Iterable[Change] = ()) -> Run:
    """A run with settings of ``finetune`` changed for this call; its configuration stays as it is."""
    from binas.run.run import open_run
    from binas.training.phases import check_training

    run, own = open_run(folder, changes), open_run(folder)
    if run.config.model_copy(update={"finetune": own.settings(FinetuneSettings)}) != own.config:
        raise ConfigError(
            "only settings that begin with finetune. can be changed here: the supernet of this run was made "
            "with the others. Nothing was changed."
        )
    check_training(run.settings(TrainSettings), run.settings(FinetuneSettings), run.data)
    return run


def tune_one(
    folder: Path, architecture: str, name: str | None, changes: Iterable[Change], progress: Progress
) -> TunedNetwork:
    """Fine-tune one architecture as a user names it."""
    from binas.run.workers import train_shared

    run = run_to_tune(folder, changes)
    chosen = read_choice(run.space, architecture)
    shards = run.settings(FinetuneSettings).shards
    with locked(folder), progress.during("finetune"):
        tuned: TunedNetwork = train_shared(run, do_tune, [str(chosen), name], shards, progress)
        return tuned


def do_tune(run: Run, team: Team, progress: Progress, architecture: str, name: str | None) -> TunedNetwork:
    """Fine-tune one architecture in one process of a team."""
    return Tuning(run, team).tune(run.space.parse(architecture), name, progress)


def tune_all(
    run: Run, architectures: Sequence[Architecture], progress: Progress
) -> dict[Architecture, NetworkRecord]:
    """Fine-tune architectures, each in one process; what is done with the same settings and weights is read.

    The last ones, where they would leave processes without work, are tuned by all of them together.
    """
    from binas.run.workers import map_shared, train_shared
    from binas.training.team import processes_of

    left = [str(item) for item in architectures if not _is_tuned(run, item, progress)]
    processes, shards = processes_of(run.settings(TrainSettings)), run.settings(FinetuneSettings).shards
    rest = len(left) % processes
    alone = len(left) - rest if rest < min(processes, shards or 1) else len(left)
    parts = [progress.part(0, 2), progress.part(1, 2)] if 0 < alone < len(left) else [progress, progress]
    sentences = map_shared(run, tuner, (), left[:alone], parts[0], "network")
    for text, said in zip(left[:alone], sentences, strict=True):
        progress.say(f"{text}: {said}")
    for number, text in enumerate(left[alone:]):
        part = parts[1].part(number, len(left) - alone, "last network")
        progress.say(f"{text}: {_sentence(train_shared(run, do_tune, [text, None], shards, part))}")
    return {item: read_network(_folder(run, item)) for item in architectures}


def tuner(run: Run) -> Work:
    """What fine-tunes a network of the run and says in a sentence how good it was and is."""
    from binas.training.team import Team

    tuning = Tuning(run, Team())

    def tune(architecture: str, progress: Progress) -> str:
        return _sentence(tuning.tune(run.space.parse(architecture), progress=progress))

    return tune


def _sentence(tuned: TunedNetwork) -> str:
    shares = tuned.one_shot.validation.percent, tuned.tuned.validation.percent
    return "{:.2f} % one-shot, {:.2f} % tuned (validation images)".format(*shares)


def _is_tuned(run: Run, architecture: Architecture, progress: Progress) -> bool:
    """Whether a network of the run is finished; what is there of other settings or weights is set aside.

    One that was set aside with the same ones is brought back.
    """
    from binas.run.old import keep_old, places

    folder, identity = _folder(run, architecture), _identity(run)
    name = folder.relative_to(run.folder).as_posix()
    if exists(folder) and not (has_inputs if exists(folder / NETWORK) else can_go_on)(folder, identity):
        place = keep_old(run.folder, "finetune", [name])
        progress.say(f"{name} of before moved to {place.relative_to(run.folder)}")
    for place in () if exists(folder) else places(run.folder, "finetune"):
        if exists(place / name / NETWORK) and has_inputs(place / name, identity):
            move(place / name, folder)
            progress.say(f"{name} brought back from {place.relative_to(run.folder)}")
            break
    return exists(folder / NETWORK)


def inputs_of(folder: Path) -> tuple[dict[str, Any], bool]:
    """What a network in a folder was made of, or begun with, and whether its training exploded."""
    stored = read_json(folder / INPUTS) if exists(folder / INPUTS) else {}
    found = dict(stored) if isinstance(stored, dict) else {}
    return found, found.pop(EXPLODED, False) is True


def has_inputs(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether what is in a network's folder was made, or begun, with these settings and weights."""
    return inputs_of(folder)[0] == identity


def can_go_on(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether training in a folder may begin or go on: nothing was trained there, or with the same inputs.

    Where it exploded also with a lower rate or clip.
    """
    from binas.training.checkpoint import has_checkpoint
    from binas.training.loop import UNFINISHED, WEIGHTS
    from binas.training.phases import FINETUNE

    if not any(has_checkpoint(folder / FINETUNE, name) for name in (*UNFINISHED, WEIGHTS)):
        return True
    stored, exploded = inputs_of(folder)
    return stored == identity or (exploded and only_lower(stored, identity, EASING))


def _folder(run: Run, architecture: Architecture) -> Path:
    return network_folder(run.folder, run.network_name(architecture))


def _identity(run: Run) -> dict[str, Any]:
    """What a tuned network depends on beside its architecture."""
    train = run.settings(TrainSettings)
    weights = {phase: file_digest(run.folder / phase / "weights.json")[:16] for phase in (HEAVIEST, SUPERNET)}
    general = {"seed": train.seed, "mixed_precision": train.mixed_precision}
    return {**general, **flattened(run.settings(FinetuneSettings).model_dump(mode="json")), **weights}


def _work(run: Run, progress: Progress) -> None:
    """Tune the answer to every limit."""
    from binas.tasks.search import read_answers

    texts = dict.fromkeys(answer.architecture for answer in read_answers(run) if answer.architecture)
    tune_all(run, [run.space.parse(text) for text in texts], progress)


def tuning_seconds(outlook: Outlook, networks: int) -> Seconds:
    """Every network in one process: where it starts, epochs, each validated, and judging; the teacher's logits are there."""
    phase, rates, images = outlook.settings(FinetuneSettings), outlook.rates, outlook.images
    epoch = outlook.trained(phase) * rates.network + images.validation * rates.forward + EPOCH
    judging = outlook.evaluated(2 * images.validation) + outlook.evaluated(
        images.validation + 2 * images.test
    )
    starts = (phase.blends + 1) * outlook.evaluated(images.validation) if phase.blends else 0.0
    work = outlook.spread(networks, starts + phase.epochs * epoch + judging)
    return Seconds(work, STARTING if networks else 0.0)


FINETUNE = Task(
    "finetune",
    FinetuneSettings,
    (
        Step(
            "finetune",
            "fine-tune what was found",
            _work,
            (f"{NETWORKS}/*/{NETWORK}",),
            ("train.seed", "train.mixed_precision", "finetune"),
            after=("train.heaviest", "train.supernet", "search"),
            sorts=True,
            seconds=lambda outlook: tuning_seconds(outlook, outlook.questions),
            amounts=(Amount("finetune.epochs", "epochs", 0.15),),
        ),
    ),
    examples=(
        "binas finetune runs/first",
        "binas finetune runs/first --arch best.json --name best --epochs 10",
        "binas finetune runs/first --arch best.json --from-scratch",
    ),
)
