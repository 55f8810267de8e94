"""What commands show of what tasks made: a table for people, an object for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import FileError
from binas.base.files import listed, size_of, write_text
from binas.base.times import duration
from binas.cli.output import Reply, say, table, table_of_known
from binas.tasks._base import Task

if TYPE_CHECKING:
    from binas.estimators.choosing import Choice
    from binas.export import Exported
    from binas.report.data import ReportData
    from binas.run.config import Change
    from binas.run.run import Run
    from binas.run.status import Standing
    from binas.search.answers import AnswerRecord
    from binas.search.rivals import Verdict
    from binas.tables.contributions import Contributions, Extreme
    from binas.tables.costs import CostTable
    from binas.tables.samples import Samples
    from binas.tasks.finetune import TunedNetwork
    from binas.training.judgement import NetworkRecord


@dataclass(frozen=True)
class View:
    """How what a task made is shown: ``read`` finds it in a run."""

    read: Callable[[Run], Any] = lambda _: None
    show: Callable[[Any], None] = lambda _: None
    to_json: Callable[[Any], dict[str, Any]] = lambda _: {}


def task_reply(task: Task, folder: Path, changes: Iterable[Change], redo: bool, progress: Any) -> Reply:
    """Do a task of a run, and show what it made; of a task we do not know there is nothing to show but its files."""
    from binas.run.records import read_record
    from binas.run.start import do_task

    run, done = do_task(folder, task, changes, redo, progress)
    view = _VIEWS.get(task.name, View())
    value, records = view.read(run), [read_record(run.folder, step.name) for step in task.steps]
    files = [str(run.folder / name) for record in records if record is not None for name in record.files]

    def show() -> None:
        view.show(value)
        word = "done now" if done else "was done already with these inputs; nothing was changed"
        say(f"{task.name} {word}: {', '.join(files)}")

    known = {"run": str(run.folder), "task": task.name, "done": done, "files": files}
    return Reply({**known, **view.to_json(value)}, show)


def result_reply(task: Task, result: Any, out: Path | None) -> Reply:
    """The answer to a question of one's own."""
    view = _VIEWS.get(task.name, View())

    def show() -> None:
        view.show(result)
        if out is not None:
            say(f"Written to {out}.")

    return Reply({**({} if out is None else {"out": str(out)}), **view.to_json(result)}, show)


def training_reply(run: Run) -> Reply:
    """The accuracy of the trained supernet."""
    from binas.contributions.strata import odds_around
    from binas.training.config import TrainSettings
    from binas.training.phases import supernet_metrics

    odds = odds_around(run.space, run.settings(TrainSettings).supernet.around)
    metrics, images = supernet_metrics(run.supernet(), run.data, odds=odds), len(run.data.validation)

    def show() -> None:
        rows = [(name, f"{value:.2f} %") for name, value in metrics.items()]
        table(("sub-network", f"accuracy on {images} validation images"), rows)
        say(f"Supernet of {run.space.name} in {run.folder}. Next: binas run --out {run.folder}")

    return Reply({"run": str(run.folder), "images": images, "validation": metrics}, show)


def show_costs(costs: CostTable) -> None:
    """A row for each cost of a table, and for each variant of it."""
    from binas.tables.conditions import describe
    from binas.tables.units import format_quantity

    rows = []
    for variant, part in {"": costs.costs, **costs.variants}.items():
        for name, cost in part.items():
            if variant == "" and any(name in other for other in costs.variants.values()):
                continue
            numbers = [format_quantity(value, cost.unit) for value in (cost.fixed, *cost.range(costs.space))]
            about = cost.provenance
            known = (describe(about) or "-", about.source or "-", about.date or "-")
            rows.append((name, variant or "-", cost.combine, *numbers, *known))
    ranges = ("combined by", "fixed part", "least network", "most network")
    table_of_known(("cost", "variant", *ranges, "measured on", "source", "date"), rows)
    for name, cost in costs.costs.items():
        if cost.provenance.verification is not None:
            say(f"{name} {cost.provenance.verification.sentence()}")


def _costs_json(costs: CostTable) -> dict[str, Any]:
    about = {name: cost.provenance.to_data() for name, cost in costs.costs.items()}
    return {"costs": list(costs.costs), "variants": list(costs.variants), "provenance": about}


def check_plot(plot: Path | None, samples: int = 1) -> None:
    """Refuse before measuring what could not be drawn after it; ``samples`` networks will be there to draw."""
    if plot is not None and plot.suffix not in (".html", ".png"):
        raise FileError(f"cannot draw {plot}: name a file that ends in .html or .png.")
    if plot is not None and samples == 0:
        raise FileError(f"there is nothing to draw to {plot} without networks: measure with --samples.")


def with_plot(reply: Reply, costs: CostTable, plot: Path | None) -> Reply:
    """Draw predicted against measured networks of the first cost that was verified, and say so."""
    if plot is None:
        return reply
    from binas.report.plots import plot_verification

    verified = [cost for cost in costs.costs.values() if cost.provenance.verification is not None]
    check_plot(plot, len(verified))
    plot_verification(verified[0], plot)
    return reply.and_drew(plot)


def _show_contributions(answer: Contributions) -> None:
    def shown(item: Extreme) -> tuple[str, str]:
        return item.choice, f"{item.points:+.2f} ± {item.error:.2f}"

    rows = [(name, *shown(best), *shown(worst)) for name, best, worst in answer.extremes()]
    table(("decision", "best", "points", "worst", "points"), rows)
    say(f"{answer.sentence()}.")


def _contributions_json(answer: Contributions) -> dict[str, Any]:
    about = answer.provenance.to_data()
    return {"base": answer.base, "base_stderr": answer.base_stderr, **about}


def _samples_json(samples: Samples) -> dict[str, Any]:
    summary = {name: float(getattr(samples.accuracy, name)()) for name in ("min", "mean", "max")}
    return {"count": len(samples), **summary, "provenance": samples.provenance.to_data()}


def show_judgements(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """A row per set of predictions, as judgements are written in JSON."""
    limits = list(rows[0]["regret"]) if rows else []
    names = {"spearman": "Spearman", "pearson": "Pearson", "mse": "MSE", "r2": "R2"}
    columns = ("predictions", "Kendall tau-b", *names.values(), *(f"regret {x}" for x in limits))
    cells = [
        (
            str(row["name"]),
            _interval(row["kendall"]),
            *(_number(row[key]) for key in names),
            *(_interval(row["regret"][limit]) for limit in limits),
        )
        for row in rows
    ]
    table(columns, cells, title=title)


def _number(interval: Mapping[str, float | None] | None) -> str:
    value = None if interval is None else interval["value"]
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Mapping[str, float | None]) -> str:
    low, high = interval["low"], interval["high"]
    bounds = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return "-" if interval["value"] is None else f"{_number(interval)}{bounds}"


def _show_choice(choice: Choice) -> None:
    """Every estimator that was judged, what they must be compared with, and which one was chosen."""
    from binas.estimators.judging import describe_ceiling

    data = choice.model_dump(mode="json")
    rows = [*data["estimators"], *data["ablation"], *([data["macs_only"]] if data["macs_only"] else [])]
    if rows:
        show_judgements(rows, f"{choice.samples} samples")
        say(describe_ceiling(data["noise_ceiling"]))
    judged = choice.judgement()
    shown = (
        [] if judged is None or judged.calibration is None else [f"Shown: {judged.calibration.sentence()}"]
    )
    say(*(f"{name} left out: {why}" for name, why in choice.left_out.items()), choice.why, *shown)


def _show_answers(run: Run) -> None:
    """A row per limit: predicted, measured, tuned as far as there is anything to show."""
    answers, networks = run.answers, run.networks
    accuracies = ("accuracy predicted", "confirmed", "over random of any cost", "one-shot", "tuned")
    columns = ("limit", "absolute", "predicted", "measured", *accuracies)
    rows = [_answer_row(answer, networks.get(answer.question)) for answer in answers]
    table_of_known((*columns, "parameters", "variant", "architecture"), rows)
    say(
        *(
            f"{answer.question}: {text}"
            for answer in answers
            for text in (answer.why, *answer.remarks)
            if text
        )
    )


def _answer_row(answer: AnswerRecord, network: NetworkRecord | None) -> tuple[str, ...]:
    cost = answer.limits[0].cost
    broken = next((item for item in answer.unconfirmed if item.cost == cost), None)
    predicted, reading = answer.costs.get(cost), answer.measured(cost) or broken
    costs = (
        "-" if predicted is None else f"{predicted.value:.4g} {predicted.unit}",
        "-"
        if reading is None
        else f"{reading.measured:.4g} {reading.unit}{'' if reading.kept else ', not confirmed'}",
    )
    tuned: tuple[str, ...] = ("-", "-", "-")
    if network is not None:
        held = (network.judgement.one_shot, network.judgement.tuned)
        tuned = (*(_percent(item.test.percent) for item in held), f"{network.parameters:,}")
    known = (answer.question, answer.limits_text, *costs, *_believed(answer), *tuned)
    return *known, answer.variant or "-", answer.architecture or "none"


def _believed(answer: AnswerRecord) -> tuple[str, str, str]:
    """Accuracy as predicted, on images that chose nothing, and the lead over random networks."""
    predicted = _percent(answer.accuracy, answer.accuracy_stderr)
    held = answer.confirmed
    if held is None:
        return predicted, "-", "-"
    return predicted, f"{_percent(held.accuracy, held.error)} ({held.images_of})", _points(held.lead)


def _percent(value: float | None, error: float | None = None) -> str:
    shown = "" if error is None else f" ± {error:.2f}"
    return "-" if value is None else f"{value:.2f}{shown} %"


def answers_json(run: Run) -> dict[str, Any]:
    """Each limit with its answer, what it was measured to cost, its tuned network, and what it was compared with."""
    from binas.tasks.artefacts import COMPARISONS

    networks, entries = run.networks, []
    for answer in run.answers:
        known = {
            "network": networks.get(answer.question),
            "on_device": answer.measured(answer.limits[0].cost),
            "compared": COMPARISONS.find(run, answer.question),
        }
        data = {key: None if item is None else item.model_dump(mode="json") for key, item in known.items()}
        entries.append({**answer.model_dump(mode="json"), **data})
    return {"networks": entries}


def _show_comparisons(run: Run) -> None:
    """What the search bought, a row per limit; accuracies on the same test images."""
    from binas.tasks.artefacts import COMPARISONS

    columns = (
        "limit",
        "found",
        "random",
        "ahead by",
        "beats",
        "best random",
        "ahead by",
        "hand-scaled",
        "ahead by",
    )
    shown = [(item.question, item.verdict) for item in COMPARISONS.read(run)]
    for how in dict.fromkeys(verdict.how for _, verdict in shown):
        rows = [_verdict_row(question, item) for question, item in shown if item.how == how]
        title = f"Compared with networks under the same limit, {how}: the same test images, points ± standard error"
        table_of_known(columns, rows, title)


def _verdict_row(question: str, item: Verdict) -> tuple[str, ...]:
    return (
        question,
        _percent(item.found),
        _mean(item.random),
        _points(item.leads.over_random),
        f"{item.beaten} of {len(item.random)}" if item.random else "-",
        _percent(item.best_random),
        _points(item.leads.over_best),
        _percent(item.hand_scaled),
        _points(item.leads.over_hand_scaled),
    )


def _mean(values: Sequence[float]) -> str:
    """Mean and range of accuracies."""
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{sum(values) / len(values):.2f} %{spread}" if values else "-"


def _points(difference: tuple[float, float] | None) -> str:
    return "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"


def show_run(run: Run) -> None:
    """What a finished run found: networks, what the search bought, files."""
    from binas.tasks.artefacts import EXPORT, network_folder

    _show_answers(run)
    _show_comparisons(run)
    for question, record in run.networks.items():
        folder = network_folder(run.folder, record.name) / EXPORT
        say(f"{question}: {', '.join(str(path) for path in listed(folder, 'model*.onnx')) or folder}")
    say(f"Report: {run.report}")


def status_reply(run: Run) -> Reply:
    """A row per step, and how to go on."""
    from binas.run.status import total_left

    standings = run.status
    left, unknown = total_left(standings)

    def show() -> None:
        table(("step", "state", "took", "left", "what, and why"), map(_status_row, standings))
        rest = f", and {', '.join(unknown)}, whose time is unknown" if unknown else ""
        if all(item.state.word == "done" for item in standings):
            say(f"All is done in {run.folder}.")
        else:
            say(f"About {duration(left)} left{rest}. Resume with: binas run --out {run.folder}")

    steps = [item.to_json() for item in standings]
    return Reply({"run": str(run.folder), "steps": steps, "left_seconds": left, "unknown": unknown}, show)


def _status_row(item: Standing) -> tuple[str, ...]:
    state = item.state
    why = f": {'; '.join(state.reasons)}" if state.reasons else ""
    left = "unknown" if item.left is None else duration(item.left)
    took = "-" if item.took is None else duration(item.took)
    return state.step.name, state.word, took, "-" if state.word == "done" else left, f"{state.step.does}{why}"


def tuned_reply(network: TunedNetwork) -> Reply:
    """A network that was fine-tuned by name."""
    data = {**network.record.model_dump(mode="json"), "folder": str(network.folder), "new": network.new}
    return Reply(data, lambda: _show_tuned(network))


def _show_tuned(network: TunedNetwork) -> None:
    record, held = network.record, network.tuned
    how = "trained from scratch" if record.from_scratch else "fine-tuned"
    judged = {"the supernet's weights, recalibrated": network.one_shot, how: held}
    rows = [
        (weights, *(f"{part.percent:.2f} ± {part.error:.2f} %" for part in (item.validation, item.test)))
        for weights, item in judged.items()
    ]
    say(f"{record.architecture}:")
    table(("weights", f"{held.validation.images} validation images", f"{held.test.images} test images"), rows)
    done = f"done in {record.seconds:g} s" if network.new else "was done already; nothing was changed"
    say(
        f"{record.parameters:,} parameters, {record.macs:,} MACs. Epoch {record.judgement.epoch} was kept (0 is the "
        f"start). {network.folder}: {done}.",
        f"Next: binas export {network.folder.parents[1]} --network {record.name}",
    )


def export_reply(done: Exported) -> Reply:
    """The files of one exported network."""
    names, model = [path.name for path in done.files], done.model.model_dump(mode="json", exclude={"space"})
    data = {"folder": str(done.folder), "files": names, "written": done.written, "model": model}
    return Reply(data, lambda: _show_export(done))


def _show_export(done: Exported) -> None:
    say(f"{done.folder}:")
    table(("file", "bytes"), [(path.name, f"{size_of(path):,}") for path in done.files])
    for name, entry in done.model.graphs.items():
        worst = max((item.difference for item in entry.parity), default=0.0)
        say(f"{name} computes what PyTorch computes: logits differ by at most {worst:.2g}.")
    if done.model.int8 is not None:
        say(done.model.int8.verdict)
    takes = "bytes (uint8, 0 to 255)" if done.model.input.graphs == "bytes" else "normalised float32 images"
    say(f"Input of ONNX and torch files: {takes}; see {done.folder / 'README.md'}.")
    if not done.written:
        say("Everything was there already; nothing was changed.")


def report_reply(data: ReportData, path: Path, png: Path | None) -> Reply:
    """Write a page, and say what is on it."""
    from binas.report.figures import figures
    from binas.report.numbers import report_numbers, summary
    from binas.report.page import page

    numbers = report_numbers(data)
    write_text(path, page(numbers))
    files = [str(path), *([] if png is None else map(str, figures(numbers, png)))]
    lines = [*summary(numbers, data), *(f"wrote {file}" for file in files)]
    return Reply({**numbers, "files": files}, lambda: say(*lines))


def with_figures(reply: Reply, folder: Path, png: Path) -> Reply:
    """The same reply after the figures of a run's page were drawn into a folder."""
    from binas.report.figures import write_figures
    from binas.run.run import open_run
    from binas.tasks.report import run_report

    return reply.and_drew(*write_figures(run_report(open_run(folder)), png))


_VIEWS: dict[str, View] = {
    "measure": View(lambda run: run.tables.costs, show_costs, _costs_json),
    "estimate": View(lambda run: run.tables.contributions, _show_contributions, _contributions_json),
    "sample": View(
        lambda run: run.tables.samples, lambda samples: say(f"{samples.sentence()}."), _samples_json
    ),
    "check": View(lambda run: run.tables.choice, _show_choice, lambda choice: choice.model_dump(mode="json")),
    "search": View(lambda run: run, _show_answers, answers_json),
    "finetune": View(lambda run: run, _show_answers, answers_json),
    "compare": View(lambda run: run, _show_comparisons),
}
