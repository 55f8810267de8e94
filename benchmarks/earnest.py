"""A whole run in earnest, and what a sceptic would hold against its networks; for cifar10.py and fashion_mnist.py.

Columns, all on the same test images, which chose nothing; differences to the found network are paired over images:

* found: the network of the search, fine-tuned; its latency was measured within the limit;
* random: architectures of the space just below the limit: the best of them, chosen by validation images, fine-tuned in the
  same way; with ``compare.tune: N`` also the mean of the first N. The mean of all of them is below the table, one-shot: with
  the supernet's weights, as is found there;
* hand-scaled: one config and one depth for the whole network, the best by validation images, fine-tuned in the same way;
* MobileNetV2, MobileNetV3-Small: the published block lists with the strides of the stem and of the first strided stage
  set to 1, as is usual for images this small, and all channels times a width found by bisection, so that the latency
  measured in the run's own setting is just below the limit. Trained from scratch with the recipe of the run's heaviest
  network for the time of one found network's share of the run: (seconds of training, measuring, estimating, searching
  and fine-tuning) * processes / number of limits, in one process of one thread; an epoch is timed first, and kept. Seconds
  are the wall clock's: a busy machine gives the scaled networks more, unless ``--share`` says how many minutes at most.
  Find the widths on a quiet machine: beside other work latencies are uncertain, and what surely keeps the limit is narrower.

Everything is resumable: the run as any run, a scaled network by its folder (plan.json, checkpoints, outcome.json). With
``--limits N`` and ``--published NAME`` some of them are trained now, and those of earlier calls are in the table; with
``--limits N`` also only the rivals of the first N limits are fine-tuned, and the heaviest network is not.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from binas.base.cores import usable_cores
from binas.base.files import dump_json, exists, read_json, write_text
from binas.base.interval import Interval
from binas.base.progress import Progress, Terminal
from binas.base.workers import Work
from binas.costs.machine import cpu_name
from binas.run.records import read_record
from binas.run.run import Run, open_run
from binas.run.workers import map_shared
from binas.search.answers import AnswerRecord
from binas.search.rivals import Comparison, Difference, Outcome, difference, is_clear
from binas.tables.samples import pack, unpack
from binas.tasks.artefacts import COMPARISONS, COSTS
from binas.tasks.compare import tuned_outcomes
from binas.training.config import Phase, TrainSettings
from binas.training.judgement import Accuracy
from binas.training.team import processes_of

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = HERE / ".cache"
RESULTS = HERE / "results"
DOCS = ROOT / "docs" / "results.md"
PUBLISHED = ("MobileNetV2", "MobileNetV3-Small")
HAND_SCALED = "hand-scaled"  # a column, as are the published networks
UNSTRIDED = 2
WIDTHS = np.geomspace(0.05, 3.0, 60)
SEARCHED = (
    "train.heaviest",
    "train.supernet",
    "measure",
    "estimate",
    "sample",
    "check",
    "search",
    "finetune",
)
PROBED = 2048  # training images of the probe of an epoch's time
QUICK_SHARE = 20.0  # seconds of training a scaled network with --quick, at most
CLEAR_AT = 0.75  # share of the limits at which found must be clearly ahead of every other column


@dataclass(frozen=True)
class Setup:
    """One benchmark: its configuration, what ``--quick`` changes in it, the heaviest network's target in percent."""

    name: str
    config: Path
    quick: Mapping[str, Any]
    heaviest: float | None = None
    changes: Callable[[Path], Mapping[str, Any]] = field(default=lambda _: {})


@dataclass(frozen=True)
class Effort:
    """Seconds of one session of measuring widths, and at most of one training from scratch; of which networks, where.

    ``limits`` is the number of limits, the first ones, at which networks are trained and rivals tuned now; None = all.
    """

    session: float
    training: float
    published: tuple[str, ...] = PUBLISHED
    limits: int | None = None

    def trains(self, question: int, network: str) -> bool:
        """Whether a network is trained now at the limit of that number."""
        return network in self.published and (self.limits is None or question < self.limits)


def main(setup: Setup, text: str) -> int:
    """The command line of a benchmark; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few images, one epoch: does it run? Judges nothing"
    )
    parser.add_argument("--data", type=Path, help="where the images are, if not where the configuration says")
    parser.add_argument("--out", type=Path, help="folder of the run")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting of the configuration; the record names it",
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="time of one session of measuring widths")
    parser.add_argument(
        "--without-published",
        action="store_true",
        help="leave out the published networks, whose training takes hours: a target that is not judged counts as missed",
    )
    parser.add_argument(
        "--limits", type=int, help="train published networks and tune rivals at the first so many limits only"
    )
    parser.add_argument(
        "--published",
        choices=PUBLISHED,
        action="append",
        help="train only this one of them now; may be repeated",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=math.inf,
        help="core minutes of training for each published network at most: a run beside other work takes longer than its "
        "share is worth",
    )
    parser.add_argument(
        "--record", action="store_true", help="write docs/results.md, its picture and the JSON"
    )
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("figures of --quick mean nothing, so they are not recorded")
    changes = {
        **(setup.changes(options.data) if options.data else {}),
        **(setup.quick if options.quick else {}),
    }
    sets = [f"{key}={json.dumps(value)}" for key, value in changes.items()] + options.set
    folder = options.out or CACHE / (f"{setup.name}-quick" if options.quick else setup.name)
    start = time.perf_counter()
    do_run(setup, folder, sets)
    took = time.perf_counter() - start
    published = () if options.without_published else tuple(options.published or PUBLISHED)
    most = QUICK_SHARE if options.quick else 60 * options.share
    effort = Effort(options.seconds, most, published, options.limits)
    found = compare(open_run(folder), folder.with_name(f"{folder.name}-scaled"), effort)
    about = {"name": setup.name, "quick": options.quick, "set": options.set, "seconds_now": round(took)}
    about |= machine()
    result = {**about, **found}
    result["missed"] = [] if options.quick else missed(result, setup.heaviest)
    print(markdown(result))
    met = "Quick: nothing was judged." if options.quick else "All targets met."
    print("\n".join(f"MISSED: {line}" for line in result["missed"]) or met)
    if options.record:
        record(result)
    print(json.dumps(result))
    return 1 if result["missed"] else 0


def machine() -> dict[str, Any]:
    """Where and when."""
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "cpu": cpu_name(), "cores": usable_cores()}


def do_run(setup: Setup, folder: Path, sets: Sequence[str]) -> None:
    """``binas run``, in a process of its own; what is done already is not done again."""
    given = [part for item in sets for part in ("--set", item)]
    command = [sys.executable, "-m", "binas", "run", str(setup.config), "--out", str(folder), *given]
    done = subprocess.run(command, check=False)
    if done.returncode:
        sys.exit(done.returncode)


# The columns


def compare(run: Run, scaled_folder: Path, effort: Effort) -> dict[str, Any]:
    """The table's numbers: a row per limit, and the heaviest network."""
    answers = [answer for answer in run.answers if answer.architecture]
    compared, outcomes = tuned_comparisons(run, answers, effort.limits)
    rivals = scaled_networks(run, answers, scaled_folder, effort) if effort.published else {}
    left = {name: _untrained(name, scaled_folder, len(answers)) for name in PUBLISHED if effort.published}
    rows = []
    for number, answer in enumerate(answers):
        item = compared[answer.question]
        row = _row(answer, item, outcomes[str(answer.architecture)], rivals)
        later = [] if item.tuned else [_best_of(item.verdict.drawn), HAND_SCALED]
        later += [name for name, numbers in left.items() if number in numbers]
        rows.append({**row, "untrained": later})
    largest = outcomes.get(str(run.space.extreme()))
    return {
        "seed": run.settings(TrainSettings).seed,
        "images": len(run.data.test),
        "unit": answers[0].limits[0].unit,
        "share_core_minutes": round(min(share_seconds(run), effort.training) / 60, 1),
        "run_minutes": round(sum(_seconds(run, step) for step in SEARCHED) / 60, 1),
        "limits": rows,
        "heaviest": heaviest(run, largest and largest.percents.test),
        "published": [name for name, numbers in left.items() if not numbers],
    }


def tuned_comparisons(
    run: Run, answers: Sequence[AnswerRecord], limits: int | None
) -> tuple[dict[str, Comparison], dict[str, Outcome]]:
    """The run's comparisons by question, those of the first ``limits`` (None = all) with their rivals fine-tuned.

    And what the found networks, these rivals and, where all limits are asked for, the heaviest network get right, by
    architecture.
    """
    known = {item.question: (item, item.tuned.count if item.tuned else 0) for item in COMPARISONS.read(run)}
    first = [known[answer.question] for answer in answers[:limits]]
    names = [name for item, count in first for name in item.to_tune(count)]
    names += [str(answer.architecture) for answer in answers]
    names += [str(run.space.extreme())] if limits is None else []
    with Terminal().during("rivals") as progress:
        outcomes = tuned_outcomes(run, list(dict.fromkeys(names)), progress)
    tuned = {item.question: item.with_tuned(outcomes, count) for item, count in first}
    return {question: tuned.get(question, item) for question, (item, _) in known.items()}, outcomes


def _untrained(network: str, folder: Path, limits: int) -> list[int]:
    """The numbers of limits at which a published network is still to be trained; where none fits there is nothing to do."""
    plans = {number: folder / f"{network}-{number}" for number in range(limits)}
    return [
        number
        for number, where in plans.items()
        if read_json(where / "plan.json")["width"] is not None and not exists(where / "outcome.json")
    ]


def _row(
    answer: AnswerRecord, compared: Comparison, own: Outcome, rivals: Mapping[tuple[str, str], Any]
) -> dict[str, Any]:
    """One limit: the found network and every column with its lead over it."""
    limit = answer.limits[0]
    reading = answer.measured(limit.cost)
    columns = dict(_compared_columns(compared, len(own.correct))) if compared.tuned else {}
    for name in PUBLISHED:
        columns[name] = _scaled_column(rivals.get((answer.question, name)), own)
    return {
        "question": answer.question,
        "limit": limit.value,
        "found": {
            "accuracy": own.percents.test,
            "error": _error(own.percents.test, len(own.correct)),
            "cost": reading.measured if reading else answer.costs[limit.cost].value,
            "architecture": answer.architecture,
        },
        "one_shot": _one_shot(compared),
        "columns": {name: column for name, column in columns.items() if column is not None},
    }


def _one_shot(compared: Comparison) -> dict[str, Any] | None:
    """Found and the mean of all random networks with the supernet's weights, and the lead; None where none were drawn."""
    lead = compared.one_shot.over_random
    if lead is None:
        return None
    mean = float(np.mean([rival.one_shot.test for rival in compared.random]))
    return {
        "found": compared.found.one_shot.test,
        "random": mean,
        "of": len(compared.random),
        "lead": list(lead),
    }


def _best_of(drawn: int) -> str:
    return f"random, best of {drawn}"


def _compared_columns(compared: Comparison, images: int) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Random and hand-scaled networks of the space, after fine-tuning, on that many images."""
    verdict = compared.verdict
    leads, costs = verdict.leads, {rival.architecture: rival.cost for rival in compared.random}
    first = [rival.cost for rival in compared.random[: leads.count]]
    mean = float(np.mean(verdict.random)) if verdict.random else None
    entries = {
        "random, the first" if leads.count == 1 else f"random, mean of {leads.count}": (
            mean,
            float(np.mean(first or [0])),
            leads.over_random,
        ),
        _best_of(verdict.drawn): (
            verdict.best_random,
            costs.get(leads.best or "", 0.0),
            leads.over_best,
        ),
        HAND_SCALED: (
            verdict.hand_scaled,
            compared.hand_scaled.cost if compared.hand_scaled else 0.0,
            leads.over_hand_scaled,
        ),
    }
    for name, (accuracy, cost, lead) in entries.items():
        yield name, None if accuracy is None or lead is None else _column(accuracy, cost, lead, images)


def _scaled_column(known: Mapping[str, Any] | None, own: Outcome) -> dict[str, Any] | None:
    if known is None:
        return None
    correct = unpack(known["correct"], len(own.correct))
    column = _column(
        100 * float(correct.mean()), known["cost"], difference(own.correct, correct), len(correct)
    )
    return {**column, "width": known["width"], "epochs": known["epochs"]}


def _column(accuracy: float, cost: float, lead: Difference, images: int) -> dict[str, Any]:
    return {"accuracy": accuracy, "error": _error(accuracy, images), "cost": cost, "lead": list(lead)}


def _error(percent: float, images: int) -> float:
    return Accuracy(percent, images).error


def heaviest(run: Run, tuned: float | None) -> dict[str, Any]:
    """The heaviest network's test accuracy after the fine-tuning of all others, and as it was trained first; its cost.

    Not fine-tuned yet (None), what counts is the second.
    """
    from binas.supernet.network import extract
    from binas.training.evaluation import accuracy, device_of

    largest, trained = run.space.extreme(), run.supernet("heaviest")
    network = extract(trained, largest).eval()
    first = accuracy(network, run.data, run.data.test, device_of(network)).percent
    cost = COSTS.read(run).costs[run.answers[0].limits[0].cost].of(run.space, [largest])[0]
    shown = first if tuned is None else tuned
    return {
        "accuracy": shown,
        "error": _error(shown, len(run.data.test)),
        "first": first,
        "tuned": tuned is not None,
        "cost": float(cost),
    }


# Published networks, scaled to each limit and trained from scratch


def scaled_networks(
    run: Run, answers: Sequence[AnswerRecord], folder: Path, effort: Effort
) -> dict[tuple[str, str], dict[str, Any]]:
    """What the published networks reach at each limit, by (question, name); one that fits at no width is left out."""
    plans = widths(run, answers, folder, effort)
    work = [name for name, plan in plans.items() if plan["width"] is not None]
    numbers = {answer.question: number for number, answer in enumerate(answers)}
    wanted = [
        name for name in work if effort.trains(numbers[plans[name]["question"]], plans[name]["network"])
    ]
    left = [str(folder / name) for name in wanted if not exists(folder / name / "outcome.json")]
    with Terminal().during("published networks") as progress:
        list(map_shared(run, scaled_trainer, (), left, progress, "network"))
    known = [name for name in work if exists(folder / name / "outcome.json")]
    done = {name: {**plans[name], **read_json(folder / name / "outcome.json")} for name in known}
    return {(plan["question"], plan["network"]): plan for plan in done.values()}


def widths(
    run: Run, answers: Sequence[AnswerRecord], folder: Path, effort: Effort
) -> dict[str, dict[str, Any]]:
    """The width of each published network at each limit, by the name of its folder; measured once, then read."""
    wanted = {
        f"{network}-{number}": (answer.question, answer.limits[0].value, network)
        for number, answer in enumerate(answers)
        for network in PUBLISHED
    }
    if not all(exists(folder / name / "plan.json") for name in wanted):
        found = bisect(run, {name: value[1:] for name, value in wanted.items()}, effort.session)
        share = min(share_seconds(run), effort.training)
        for name, (question, limit, network) in wanted.items():
            width, cost = found[name]
            plan = {"question": question, "limit": limit, "network": network, "width": width, "cost": cost}
            write_text(folder / name / "plan.json", dump_json({**plan, "share_seconds": share}))
    return {name: read_json(folder / name / "plan.json") for name in wanted}


def share_seconds(run: Run) -> float:
    """One found network's share of the run, in seconds of one core (a busy machine lengthens it)."""
    processes = processes_of(run.settings(TrainSettings))
    return processes * sum(_seconds(run, step) for step in SEARCHED) / len(run.answers)


def _seconds(run: Run, step: str) -> float:
    record = read_record(run.folder, step)
    return 0.0 if record is None else record.seconds


def bisect(
    run: Run, wanted: Mapping[str, tuple[float, str]], seconds: float
) -> dict[str, tuple[float | None, float | None]]:
    """The greatest width of each (limit, network) whose measured cost keeps the limit, and that cost; None: none does.

    All that are still open are measured in one session, taking turns.
    """
    ladders = {name: ladder(name) for name in PUBLISHED}
    places = {key: (-1, len(ladders[network])) for key, (_, network) in wanted.items()}  # keeps, breaks
    known: dict[tuple[str, int], Interval] = {}
    while any(breaks - keeps > 1 for keeps, breaks in places.values()):
        middle = {
            key: (wanted[key][1], sum(place) // 2) for key, place in places.items() if place[1] - place[0] > 1
        }
        new = {entry for entry in middle.values() if entry not in known}
        known |= (
            measured(run, {entry: ladders[entry[0]][entry[1]] for entry in sorted(new)}, seconds)
            if new
            else {}
        )
        for key, entry in middle.items():
            keeps, breaks = places[key]
            kept = known[entry].high <= wanted[key][0]
            places[key] = (entry[1], breaks) if kept else (keeps, entry[1])
    found: dict[str, tuple[float | None, float | None]] = {}
    for key, (keeps, _) in places.items():
        network = wanted[key][1]
        found[key] = (None, None) if keeps < 0 else (ladders[network][keeps], known[network, keeps].value)
    return found


def ladder(name: str) -> list[float]:
    """Widths that give different networks, rising."""
    distinct = {scaled_network(name, float(width)).blocks: float(width) for width in WIDTHS[::-1]}
    return sorted(distinct.values())


def scaled_network(name: str, width: float) -> Any:
    """A published network at a width, for small images."""
    from binas.costs.published.scaling import scaled
    from binas.space.published import published_networks

    return scaled(published_networks()[name], width, UNSTRIDED)


def built(run: Run, name: str, width: float) -> tuple[Any, tuple[int, int, int]]:
    """The network for the run's images with fresh weights, in eval mode, and the shape of an image."""
    from binas.costs.published.build import build

    channels, (height, side) = run.data.channels, run.data.size
    return build(scaled_network(name, width), channels, len(run.data.classes)), (channels, height, side)


def measured(
    run: Run, entries: Mapping[tuple[str, int], float], seconds: float
) -> dict[tuple[str, int], Interval]:
    """The cost of networks, measured in one session as the run's table was."""
    from binas.costs.measure import measuring_again
    from binas.costs.session import Plan
    from binas.report.published import measure_networks

    cost = COSTS.read(run).costs[run.answers[0].limits[0].cost]
    how = measuring_again(cost, Plan(budget=seconds))
    builders = {
        f"{name} {width:.4f}": partial(built, run, name, width) for (name, _), width in entries.items()
    }
    found = measure_networks(how)(builders)
    for label, interval in found.items():
        print(f"  {label}: {interval.value:.4f} ({interval.low:.4f} to {interval.high:.4f})", flush=True)
    return dict(zip(entries, found.values(), strict=True))


# In a worker process: one network, from scratch, with one thread


def scaled_trainer(run: Run) -> Work:
    """What trains the network of a folder's plan."""

    def train(folder: str, progress: Progress) -> None:
        train_scaled(run, Path(folder), progress)

    return train


def train_scaled(run: Run, folder: Path, progress: Progress) -> None:
    """Train the network of a folder's plan for its share of time, and keep what it gets right."""
    import torch

    from binas.tasks.train import bench
    from binas.training.evaluation import correct
    from binas.training.phases import train_from_scratch
    from binas.training.randomness import derived_seed
    from binas.training.team import ALONE

    plan, settings = read_json(folder / "plan.json"), run.settings(TrainSettings)
    torch.manual_seed(derived_seed(settings.seed, "weights"))
    network, _ = built(run, plan["network"], plan["width"])
    if "epochs" not in plan:
        seconds = probe(run, settings.heaviest, network)
        plan |= {"epoch_seconds": seconds, "epochs": max(1, int(plan["share_seconds"] / seconds))}
        write_text(folder / "plan.json", dump_json(plan))
    phase = settings.heaviest.model_copy(update={"epochs": plan["epochs"]})
    origin = {"network": plan["network"], "width": str(plan["width"])}
    trained = train_from_scratch(network, bench(run, progress, ALONE, folder), phase, origin)
    sets = (run.data.validation, run.data.test)
    validation, test = (correct(trained, run.data, images, torch.device("cpu")) for images in sets)
    known = {"validation": 100 * float(validation.mean()), "correct": pack(test), "epochs": plan["epochs"]}
    write_text(folder / "outcome.json", dump_json(known))


def probe(run: Run, phase: Phase, network: Any) -> float:
    """Seconds of one epoch with its validation, from one over a small part of the images; a first part warms up."""
    import copy

    from binas.tasks.train import bench
    from binas.training.phases import train_from_scratch
    from binas.training.team import ALONE

    share, once = (
        min(1.0, PROBED / len(run.data.train)),
        phase.model_copy(update={"epochs": 1, "warmup": 0.0}),
    )

    def seconds(part: float) -> float:
        parts = {
            name: getattr(run.data, name).take(
                np.arange(max(phase.batch_size, int(part * len(getattr(run.data, name)))))
            )
            for name in ("train", "validation")
        }
        with tempfile.TemporaryDirectory() as folder:
            where = replace(bench(run, Progress(), ALONE, Path(folder)), data=replace(run.data, **parts))
            start = time.perf_counter()
            train_from_scratch(copy.deepcopy(network), where, once, {})
            return (time.perf_counter() - start) / part

    seconds(share / 8)
    return seconds(share)


# What is said of it


def missed(result: Mapping[str, Any], heaviest_target: float | None) -> list[str]:
    """Targets that are not reached."""
    rows, lines = result["limits"], []
    ahead = [
        row
        for row in rows
        if not row.get("untrained") and all(is_clear(tuple(item["lead"])) for item in row["columns"].values())
    ]
    if len(ahead) < CLEAR_AT * len(rows):
        lines.append(
            f"found is above every other column by two standard errors at {len(ahead)} of {len(rows)} limits"
            + (" (some columns are not there yet)" if any(row.get("untrained") for row in rows) else "")
        )
    accuracies = [row["found"]["accuracy"] for row in rows]
    if any(after <= before for before, after in pairwise(accuracies)):
        lines.append(
            "accuracy does not rise with the limit: " + ", ".join(f"{value:.2f}" for value in accuracies)
        )
    left = [name for name in PUBLISHED if name not in result["published"]]
    if left:
        lines.append(
            f"{' and '.join(left)} not trained at every limit, so found was not held against all of them"
        )
    if heaviest_target is not None and result["heaviest"]["accuracy"] < heaviest_target:
        lines.append(f"heaviest {result['heaviest']['accuracy']:.2f} %, target {heaviest_target:g} %")
    return lines


def markdown(result: Mapping[str, Any]) -> str:
    """The table, accuracies in percent of the test images, and points by which found is ahead ± standard error."""
    fullest = sorted(
        result["limits"], key=lambda row: -len(row["columns"])
    )  # so that columns keep their order
    names = list(dict.fromkeys(name for row in fullest for name in row["columns"]))
    unit, heavy = result["unit"], result["heaviest"]
    lines = [f"| limit | found | {' | '.join(names)} |", "| --- " * (len(names) + 2) + "|"]
    for row in result["limits"]:
        own = f"**{row['found']['accuracy']:.2f}** at {row['found']['cost']:.3g} {unit}"
        cells = [
            "not there yet" if name in row.get("untrained", ()) else _cell(row["columns"].get(name), unit)
            for name in names
        ]
        lines.append(f"| {row['limit']:.3g} {unit} | {own} | {' | '.join(cells)} |")
    when = (
        f"{heavy['first']:.2f} % before the supernet was trained" if heavy["tuned"] else "not fine-tuned yet"
    )
    reached = f"{heavy['accuracy']:.2f} ± {heavy['error']:.2f} % at {heavy['cost']:.3g} {unit} ({when})"
    shot = [row["one_shot"] for row in result["limits"] if row.get("one_shot")]
    means = "; ".join(
        f"{item['found']:.2f} against {item['random']:.2f} ({item['lead'][0]:+.2f} ± {item['lead'][1]:.2f})"
        for item in shot
    )
    before = (
        [f"Before fine-tuning, found against the mean of all {shot[0]['of']} random ones: {means}."]
        if shot
        else []
    )
    return "\n".join([*lines, "", *before, f"Heaviest network of the space: {reached}."])


def _cell(column: Mapping[str, Any] | None, unit: str) -> str:
    if column is None:
        return "none fits"
    points, error = column["lead"]
    scaled = f", width {column['width']:.2f}, {column['epochs']} epochs" if "width" in column else ""
    return f"{column['accuracy']:.2f} ({points:+.2f} ± {error:.2f}) at {column['cost']:.3g} {unit}{scaled}"


def record(result: Mapping[str, Any]) -> None:
    """Keep the numbers, draw the picture, and write the table between its marks in docs/results.md."""
    from binas.report.plots import plot_rivals

    name = result["name"]
    write_text(RESULTS / f"{name}.json", dump_json(dict(result)))
    plot_rivals(picture(result), DOCS.parent / "images" / f"{name}.png")
    given = [f"--set {item}" for item in result["set"]]
    command = " ".join([f"python benchmarks/{name.replace('-', '_')}.py", *given, "--record"])
    where = (
        f"{result['cpu']}, {result['cores']} cores, seed {result['seed']}, {result['images']:,} test images"
    )
    about = (
        f"`{command}`, {result['date']}, {where}; run {result['run_minutes']:g} minutes, "
        f"{result['share_core_minutes']:g} core minutes for each scaled network. In brackets: points that found is ahead."
    )
    goal = "; ".join(result["missed"]) or "all targets met"
    made = f"{about}\n\n{markdown(result)}\n\nTargets: {goal}.\n\n![{name}](images/{name}.png)"
    write_between(DOCS, name, made)


def write_between(path: Path, name: str, text: str) -> None:
    """Put a text between the marks of a name in a page; both are put at its end where it has none."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    write_text(path, f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


def picture(result: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the picture: a series per column, found first."""
    series = {"found": [row["found"] for row in result["limits"]]}
    for row in result["limits"]:
        for name, column in row["columns"].items():
            series.setdefault(name, []).append(column)
    heavy = result["heaviest"]
    series["heaviest" if heavy["tuned"] else "heaviest, not fine-tuned yet"] = [heavy]
    title = f"{result['name']}: {result['images']:,} test images"
    return {"title": title, "cost": "latency", "unit": result["unit"], "series": series}
