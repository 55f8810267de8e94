"""A run: a folder that holds a configuration and everything made by it (:mod:`binas.tasks.artefacts` lists it)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from binas.base.errors import CheckpointError, DataError, FileError
from binas.base.files import exists
from binas.base.settings import Settings
from binas.run.config import FILE, Change, RunConfig, load_config
from binas.run.folder import Folder
from binas.run.records import read_record, settings_of
from binas.search.answers import AnswerRecord
from binas.space.architecture import Architecture
from binas.space.files import load_space
from binas.space.space import SearchSpace
from binas.tasks.artefacts import ANSWERS, COMPARISONS, DATA, MODEL, PAGE, SPACE, network_name, read_networks
from binas.tasks.search import SearchSettings
from binas.training.config import FinetuneSettings, TrainSettings
from binas.training.judgement import NetworkRecord

if TYPE_CHECKING:
    from binas.data.dataset import ImageData
    from binas.run.status import Standing
    from binas.search.frontier import Frontier
    from binas.supernet.network import Supernet
    from binas.training.judgement import Accuracy

Part = TypeVar("Part", bound=Settings)


@dataclass(frozen=True)
class Run:
    """A run's folder, its configuration and its space, and what was made there.

    With ``look_again`` the images are read even where a record says what they are.
    """

    folder: Path
    config: RunConfig
    space: SearchSpace
    look_again: bool = False

    def settings(self, kind: type[Part]) -> Part:
        """The settings of one task, by their type."""
        return self.config.part(kind)

    @property
    def questions(self) -> tuple[str, ...]:
        """The limits to search for, as they are written."""
        return self.settings(SearchSettings).limits

    @property
    def answers(self) -> list[AnswerRecord]:
        """The answers to ``search.limits``, in order; those without an architecture say why."""
        return ANSWERS.read(self)

    @property
    def networks(self) -> dict[str, NetworkRecord]:
        """The fine-tuned network of each limit that has one."""
        return read_networks(self)

    @property
    def story(self) -> list[str]:
        """What was found, in three sentences for those who do not read tables."""
        from binas.report.story import tell

        return [*self.removed, *tell(self.answers, self.networks, COMPARISONS.read(self))]

    @property
    def removed(self) -> list[str]:
        """Of a model that was trained before: how good it is, and for each limit what was removed, where, at what price."""
        from binas.report.removal import about_model, removals

        if self.settings(TrainSettings).start is None:
            return []
        tables, lines = self.tables, list[str]()
        if exists(self.folder / MODEL.file) and self.answers:
            cost = tables.costs[self.answers[0].limits[0].cost]
            lines.append(about_model(MODEL.read(self).judgement.test, cost, self.space))
        for answer in self.answers:
            if answer.architecture:
                cost, found = tables.costs[answer.limits[0].cost], self.space.parse(answer.architecture)
                parts = removals(self.space, tables.contributions, cost, found)
                sentences = [part.sentence(cost.unit.name) for part in parts]
                lines.append(f"{answer.question}: {'; '.join(sentences)} (points before fine-tuning).")
        return lines

    @property
    def tables(self) -> Folder:
        """Contributions, costs, samples and the estimator they lead to, as the files are now."""
        return Folder(self.folder, self.space, self.recorded_images)

    @property
    def frontier(self) -> Frontier:
        """The best network for every value of the first limit's cost."""
        from binas.tasks.search import read_frontier

        return read_frontier(self)

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / PAGE

    @property
    def status(self) -> list[Standing]:
        """How every step stands."""
        from binas.run.status import standings

        return standings(self)

    @cached_property
    def data(self) -> ImageData:
        """The images, checked against the space and against the record of the run's first look at them."""
        from binas.data.loading import load_data

        data = load_data(self.config.data).for_space(self.space)
        if self.recorded_images not in (None, data.fingerprint()):
            raise DataError(
                f"the images of {self.folder / FILE} are no longer those this run was made with, so held-out images may "
                "have been trained on. Bring them back, give another --out, or train anew with --redo."
            )
        return data

    @property
    def images(self) -> str:
        """The fingerprint of the images; read from the record where there is one, since images take long to read."""
        return self.recorded_images or self.data.fingerprint()

    @cached_property
    def recorded_images(self) -> str | None:
        """The fingerprint recorded by the first look at the images, if the configuration still describes the same."""
        record = None if self.look_again else read_record(self.folder, "train.data")
        if record is None or record.state != "finished" or not exists(self.folder / DATA.file):
            return None
        was, now = (
            {key: value for key, value in values.items() if key.startswith("data.")}
            for values in (record.inputs, settings_of(self))
        )
        return DATA.read(self).fingerprint if was == now else None

    def changed(self, config: RunConfig) -> Run:
        """The same run with another configuration; images that are read already and stay the same are kept."""
        other = replace(self, config=config)
        if "data" in self.__dict__ and config.data == self.config.data:
            other.__dict__["data"] = self.data
        return other

    def network_name(self, architecture: Architecture | str) -> str:
        """The name of an architecture's network in this run."""
        known = self.space.parse(architecture) if isinstance(architecture, str) else architecture
        return network_name(known, self.settings(FinetuneSettings).from_scratch)

    def supernet(self, phase: str = "supernet") -> Supernet:
        """The trained weights of ``supernet`` or ``heaviest``, in eval mode, where training would be done."""
        from binas.supernet.network import Supernet, keep_memory
        from binas.training.checkpoint import has_checkpoint, load_checkpoint, load_weights
        from binas.training.loop import WEIGHTS
        from binas.training.team import on_cpu

        folder = self.folder / phase
        if not has_checkpoint(folder, WEIGHTS):
            raise CheckpointError(
                f"{self.folder} holds no trained {phase} yet. `binas train {self.folder}` does it."
            )
        keep_memory()
        checkpoint = load_checkpoint(folder, WEIGHTS)
        self._check_weights(folder, checkpoint.values.get("identity"))
        supernet = Supernet(self.space)
        load_weights(supernet, checkpoint.tensors, str(folder))
        return supernet.eval().to("cpu" if on_cpu(self.settings(TrainSettings)) else "cuda")

    def evaluate(
        self,
        architectures: Sequence[Architecture],
        part: Literal["validation", "test"] = "validation",
        weights: Literal["supernet", "heaviest"] = "supernet",
        recalibrate: bool = False,
    ) -> tuple[dict[Architecture, Accuracy], int]:
        """Accuracy of each, as a network of its own with shared weights, on ``part`` of the images.

        And the number of training images that its BatchNorm was re-estimated on, with ``recalibrate``.
        """
        from binas.training.evaluation import evaluate_architecture

        supernet, data = self.supernet(weights), self.data
        recalibration = self.settings(FinetuneSettings).recalibration if recalibrate else 0
        count, images = min(recalibration, len(data.train)), getattr(data, part)
        found = {x: evaluate_architecture(supernet, x, data, images, count) for x in architectures}
        return found, count

    def _check_weights(self, folder: Path, identity: object) -> None:
        """Refuse weights of another space or of other images."""
        known = identity if isinstance(identity, dict) else {}
        if known.get("space") != self.space.fingerprint:
            raise CheckpointError(
                f"the weights in {folder} were trained for another space (fingerprint {known.get('space')}, this space "
                f"{self.space.name!r} has {self.space.fingerprint}). Use the space.yaml they were trained with."
            )
        if known.get("data") != self.data.fingerprint():
            raise CheckpointError(
                f"the weights in {folder} were trained on other images, or on another split of them, than "
                f"{self.folder / FILE} now describes, so held-out images may have been trained on. Bring the data "
                "back to what it was, or train anew in another folder."
            )


def open_run(folder: str | Path, changes: Iterable[Change] = ()) -> Run:
    """The run in a folder; ``changes`` of settings hold for this value, and the configuration stays as it is."""
    folder = Path(folder)
    if not exists(folder / FILE):
        raise FileError(
            f"there is no run in {folder} (no {FILE}). Check the path; `binas run CONFIG --out FOLDER` starts one "
            "in a new folder."
        )
    return Run(folder, load_config(folder / FILE, changes), load_space(folder / SPACE.file))
