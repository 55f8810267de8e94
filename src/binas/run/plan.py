"""A time budget instead of epochs: what a run will take, and the settings that fill a given time.

Each step declares the seconds it takes and the settings those grow with (:mod:`binas.tasks.outlook`). A plan starts with
the least sensible value of each that the user did not give, and raises whichever is furthest below its share of the time
until nothing more fits. The chosen values are ordinary settings of the run's configuration; ``RUN/plan.json`` keeps what
was chosen and the seconds of each step, for the bar and for ``binas status``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from binas.base.errors import ConfigError
from binas.base.files import exists
from binas.base.identity import flattened
from binas.base.progress import Progress
from binas.base.settings import FileRecord
from binas.base.times import Seconds, duration, short_duration
from binas.base.typed import read_typed
from binas.run.config import RunConfig
from binas.tasks import all_steps
from binas.tasks._base import Step
from binas.tasks.artefacts import DATA
from binas.tasks.outlook import Amount, Images, Outlook, Rates, guessed_rates
from binas.training.config import FinetuneSettings, TrainSettings

if TYPE_CHECKING:
    from binas.data.dataset import ImageData
    from binas.run.run import Run

FILE = "plan.json"
FILLED = 0.97  # share of the budget that is planned; the rest is for what no formula knows
LIMIT = "data.limit"
# Where images are limited to save time, this share of them is left, so many of each class, and so many batches.
SHARE, PER_CLASS, BATCHES = 0.1, 20, 4

Values = dict[str, int | float]


@dataclass(frozen=True)
class Budget:
    """A time in seconds, of which some are ``spent``, and the settings that the user gave: they stay."""

    seconds: float
    given: frozenset[str] = frozenset()
    spent: float = 0.0

    @property
    def room(self) -> float:
        """Seconds that may be planned."""
        return FILLED * self.seconds - self.spent


class Plan(FileRecord):
    """What was chosen for a time budget, and the seconds of work and fixed ones that each step is expected to take.

    ``spent`` are the seconds before it was made, for reading images and probing; ``chosen`` has the settings that time
    depends on, those that were ``given`` included.
    """

    budget: float
    spent: float
    size: tuple[int, int]
    space: str
    images: Images
    rates: Rates
    chosen: Values
    given: tuple[str, ...]
    steps: dict[str, tuple[float, float]]

    @property
    def expected(self) -> dict[str, Seconds]:
        """Seconds of each step."""
        return {name: Seconds(*seconds) for name, seconds in self.steps.items()}

    @property
    def total(self) -> float:
        """Seconds of the whole run, as expected."""
        return self.spent + sum(seconds.total for seconds in self.expected.values())

    @property
    def own(self) -> Values:
        """The settings that the plan chose."""
        return {name: value for name, value in self.chosen.items() if name not in self.given}

    def lines(self) -> list[str]:
        """The plan for people: a line per step that takes time, and what it is for."""
        height, width = self.size
        about = [
            f"Plan for {short_duration(self.budget)}: the space {self.space!r} at {height} x {width} pixels; "
            f"{self.images.train:,} images to train with, {self.images.validation:,} to validate, {self.images.test:,} to "
            f"test; {1 / self.rates.heaviest:,.0f} images/s when training the heaviest network, "
            f"{1 / self.rates.supernet:,.0f} when training the supernet"
        ]
        if LIMIT in self.own:
            about.append(
                f"  only {self.own[LIMIT]:,} images to train and validate: the time is too short for all"
            )
        rows = [("before", "images read, speed probed", duration(self.spent)), *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        table = [f"  {row[0]:{widths[0]}}  {row[2]:>{widths[2]}}  {row[1]}".rstrip() for row in rows]
        return [*about, *table, f"  together {duration(self.total)}"]

    def _rows(self) -> list[tuple[str, str, str]]:
        """Step, what it does, and how long it takes."""
        amounts = {step.name: step.amounts for step in all_steps()}
        return [
            (name, ", ".join(map(self._amount, amounts.get(name, ()))), duration(seconds.total))
            for name, seconds in self.expected.items()
            if seconds.total >= 0.5
        ]

    def _amount(self, amount: Amount) -> str:
        mark = " (as given)" if amount.setting in self.given else ""
        return f"{self.chosen[amount.setting]:g} {amount.unit}{mark}"


def make_plan(outlook: Outlook, budget: Budget, steps: Sequence[Step] | None = None) -> Plan:
    """Choose the settings that fill the time; an error that names the least possible where it is too short.

    ``steps`` are those to be done, all unless given.
    """
    left = all_steps() if steps is None else steps
    known = flattened(outlook.config.model_dump(mode="json"))
    free = [
        item
        for step in left
        for item in step.amounts
        if item.share and item.setting not in budget.given and known.get(item.unless or "") is None
    ]
    lowest = _limit(changed(outlook, {item.setting: item.least for item in free}), budget, left)
    chosen = _fill(lowest, free, budget.room, left)
    values = flattened(chosen.config.model_dump(mode="json"))
    settings = [item.setting for step in all_steps() for item in step.amounts]
    settings += [LIMIT] if values.get(LIMIT) is not None else []
    return Plan(
        budget=budget.seconds,
        spent=round(budget.spent, 1),
        size=chosen.size,
        space=chosen.space,
        images=chosen.images,
        rates=chosen.rates,
        chosen={name: values[name] for name in settings},
        given=tuple(name for name in settings if name in budget.given),
        steps={
            name: (round(seconds.work, 1), round(seconds.fixed, 1))
            for name, seconds in expected_seconds(chosen, left).items()
        },
    )


def expected_seconds(outlook: Outlook, steps: Iterable[Step] | None = None) -> dict[str, Seconds]:
    """The seconds of each step."""
    return {step.name: step.seconds(outlook) for step in (all_steps() if steps is None else steps)}


def total_seconds(outlook: Outlook, steps: Iterable[Step] | None = None) -> float:
    """The seconds of all of them."""
    return sum(seconds.total for seconds in expected_seconds(outlook, steps).values())


def changed(outlook: Outlook, values: Mapping[str, int | float]) -> Outlook:
    """The same with other values of settings; ``data.limit`` also changes the numbers of images."""
    limit = values.get(LIMIT)
    images = outlook.images.limited(None if limit is None else int(limit))
    return replace(outlook, config=with_values(outlook.config, values), images=images)


def with_values(config: RunConfig, values: Mapping[str, int | float]) -> RunConfig:
    """A configuration with single numbers changed, by their dotted names."""
    for name, value in values.items():
        config = _with_value(config, name.split("."), value)
    return config


def _with_value(model: Any, path: list[str], value: int | float) -> Any:
    first, *rest = path
    old = getattr(model, first)
    new = _with_value(old, rest, value) if rest else float(value) if isinstance(old, float) else value
    return model.model_copy(update={first: new})


def _limit(outlook: Outlook, budget: Budget, steps: Sequence[Step]) -> Outlook:
    """Fewer images where even the least takes too long with all of them; an error where too few would be left."""

    def fits(count: int) -> bool:
        return total_seconds(changed(outlook, {LIMIT: count}), steps) <= budget.room

    if total_seconds(outlook, steps) <= budget.room:
        return outlook
    low, high = _fewest(outlook), outlook.images.train + outlook.images.validation
    able = LIMIT not in budget.given and low < high
    if not able or not fits(low):
        raise ConfigError(_too_short(changed(outlook, {LIMIT: low}) if able else outlook, budget, steps))
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return changed(outlook, {LIMIT: low})


def _fewest(outlook: Outlook) -> int:
    """Images to train and validate with, at the least: a share of them, some of every class, and some batches."""
    train, finetune, images = (
        outlook.settings(TrainSettings),
        outlook.settings(FinetuneSettings),
        outlook.images,
    )
    batch = max(phase.batch_size for phase in (train.heaviest, train.supernet, finetune))
    both = images.train + images.validation
    return max(round(SHARE * both), PER_CLASS * outlook.classes, round(BATCHES * batch * both / images.train))


def _too_short(outlook: Outlook, budget: Budget, steps: Sequence[Step]) -> str:
    """The least that a run takes, what takes most of it, and what the user could leave to the plan."""
    least = 1.01 * (total_seconds(outlook, steps) + budget.spent) / FILLED
    unit = 60 if least > 300 else 10
    needed = short_duration(unit * -(-least // unit))
    longest = sorted(expected_seconds(outlook, steps).items(), key=lambda item: -item[1].total)[:3]
    most = ", ".join(f"{name} {duration(seconds.total)}" for name, seconds in longest)
    images = outlook.images.train + outlook.images.validation
    given = sorted(budget.given & {LIMIT, *(item.setting for step in steps for item in step.amounts)})
    yours = (
        f" {', '.join(given)} stay as you gave them; leave them out to have them planned." if given else ""
    )
    return (
        f"{short_duration(budget.seconds)} is too short: the least this run can take here is about {needed}, with "
        f"{images:,} images to train and validate ({most}). Give --time {needed} or more.{yours} Nothing was changed."
    )


def _fill(outlook: Outlook, free: Iterable[Amount], room: float, steps: Sequence[Step]) -> Outlook:
    """Raise what is furthest below its share of the time, until nothing more fits."""
    values, total = flattened(outlook.config.model_dump(mode="json")), total_seconds(outlook, steps)
    now = {item: int(values[item.setting]) for item in free}
    added = dict.fromkeys(now, 0.0)
    while now:
        item = min(now, key=lambda item: added[item] / item.share)
        higher = changed(outlook, {item.setting: now[item] + item.by})
        longer = total_seconds(higher, steps)
        beyond = item.within and added[item] + longer - total > item.share * room
        if now[item] + item.by > item.most or longer > room or beyond:
            del now[item]
            continue
        added[item] += max(longer - total, 1e-9)
        outlook, total, now[item] = higher, longer, now[item] + item.by
    return outlook


def plan_run(
    run: Run, old: Run | None, budget: Budget, started: float, progress: Progress
) -> tuple[Run, Plan]:
    """The run with the settings of a plan, probed now; one that ``old`` has for the same time is followed further.

    Steps of ``old`` that have begun keep their settings, and those that are done take no more time. ``started`` is when the
    time began, on the clock of ``time.monotonic``.
    """
    known = None if old is None else plan_of(old)
    if known is not None and known.budget == budget.seconds:
        own = {name: value for name, value in known.own.items() if name not in budget.given}
        progress.say(f"goes on with the plan for {short_duration(known.budget)}")
        return run.changed(with_values(run.config, own)), known
    run, given, left = _as_begun(run, old, budget.given)
    from binas.run.probe import probe

    data = run.data
    with progress.during("probing the speed of this machine"):
        rates = probe(run.space, data, run.config)
    outlook = Outlook(run.config, images_of(data), rates, len(data.classes), data.size, run.space.name)
    spent = time.monotonic() - started
    plan = make_plan(outlook, replace(budget, given=given, spent=budget.spent + spent), left)
    from binas.run.starter import smaller_start

    for line in filter(None, (*plan.lines(), smaller_start(run, outlook, plan))):
        progress.say(line)
    return run.changed(with_values(run.config, plan.own)), plan


def _as_begun(run: Run, old: Run | None, given: frozenset[str]) -> tuple[Run, frozenset[str], list[Step]]:
    """The run with the settings of steps that have begun in ``old``, all that stays as given, and the steps to do."""
    from binas.run.engine import judge
    from binas.run.records import read_record

    steps = all_steps()
    begun = [] if old is None else [step for step in steps if read_record(old.folder, step.name)]
    if old is None or not begun:
        return run, given, steps
    fixed = {LIMIT, *(item.setting for step in begun for item in step.amounts)} - given
    values = flattened(old.config.model_dump(mode="json"))
    run = run.changed(with_values(run.config, {name: values[name] for name in sorted(fixed)}))
    left = [step for step in steps if step not in begun or judge(run, step).word != "done"]
    return run, given | fixed, left


def plan_of(run: Run) -> Plan | None:
    """The plan a run was started with; None where it was given no time."""
    path = run.folder / FILE
    return read_typed(Plan, path, "Delete it; it only says how long steps take.") if exists(path) else None


def expectation(run: Run, steps: Sequence[Step]) -> dict[str, Seconds]:
    """The seconds of each step: those of the run's plan, else by a guess of which the ratios count."""
    plan = plan_of(run)
    known = {} if plan is None else plan.expected
    images = Images(**DATA.read(run).images) if exists(run.folder / DATA.file) else images_of(run.data)
    guessed = expected_seconds(Outlook(run.config, images, guessed_rates(run.space)), steps)
    return {name: known.get(name, seconds) for name, seconds in guessed.items()}


def images_of(data: ImageData) -> Images:
    """Numbers of images."""
    return Images(train=len(data.train), validation=len(data.validation), test=len(data.test))
