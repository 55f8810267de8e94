"""What commands show of what tasks made: a table for people, an object for programs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import FileError
from binas.base.progress import duration
from binas.cli.output import print_json, say, table
from binas.tasks._base import Task

if TYPE_CHECKING:
    from binas.estimators.choosing import Choice
    from binas.export import Exported
    from binas.report.data import ReportData
    from binas.run.run import Run
    from binas.run.status import Standing
    from binas.tables.contributions import Contributions
    from binas.tables.costs import CostTable
    from binas.tables.samples import Samples
    from binas.tasks.artefacts import Comparison, Rival
    from binas.tasks.finetune import TunedNetwork


@dataclass(frozen=True)
class View:
    """How what a task made is shown: ``read`` finds it in a run."""

    read: Callable[[Run], Any] = lambda _: None
    show_value: Callable[[Any], None] = lambda _: None
    json_of: Callable[[Any], dict[str, Any]] = lambda _: {}

    def show(self, run: Run) -> None:
        """For people."""
        self.show_value(self.read(run))

    def to_json(self, run: Run) -> dict[str, Any]:
        """For programs."""
        return self.json_of(self.read(run))


def of_task(task: Task) -> View:
    """The view of a task; of one we do not know there is nothing to show but its files."""
    return _VIEWS.get(task.name, View())


def show_result(task: Task, result: Any, out: Path | None, as_json: bool) -> None:
    """The answer to a question of one's own."""
    view = of_task(task)
    if as_json:
        print_json({**({} if out is None else {"out": str(out)}), **view.json_of(result)})
        return
    view.show_value(result)
    if out is not None:
        say(f"Written to {out}.")


def files_of(run: Run, task: Task) -> list[str]:
    """The files of a task's last finished steps."""
    from binas.run.records import read_record

    records = [read_record(run.folder, step.name) for step in task.steps]
    return [str(run.folder / name) for record in records if record is not None for name in record.files]


def show_training(run: Run, as_json: bool) -> None:
    """The accuracy of the trained supernet."""
    from binas.training.phases import supernet_metrics

    metrics, images = supernet_metrics(run.supernet(), run.data), len(run.data.validation)
    if as_json:
        print_json({"run": str(run.folder), "images": images, "validation": metrics})
        return
    rows = [(name, f"{value:.2f} %") for name, value in metrics.items()]
    table(("sub-network", f"accuracy on {images} validation images"), rows)
    say(f"Supernet of {run.space.name} in {run.folder}. Next: binas run --out {run.folder}")


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
    columns = ["cost", "variant", "combined by", "fixed part", "least network", "most network", "measured on"]
    kept = [k for k in range(9) if k != 1 or costs.variants]
    columns += ["source", "date"]
    table([columns[k] for k in kept], [tuple(row[k] for k in kept) for row in rows])
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


def plot_costs(costs: CostTable, plot: Path | None, as_json: bool) -> None:
    """Draw predicted against measured networks of the first cost that was verified."""
    if plot is None:
        return
    from binas.report.plots import plot_verification

    verified = [cost for cost in costs.costs.values() if cost.provenance.verification is not None]
    check_plot(plot, len(verified))
    plot_verification(verified[0], plot)
    if not as_json:
        say(f"Drawn to {plot}.")


def _show_contributions(answer: Contributions) -> None:
    from binas.tasks.estimate import describe_contributions

    table(("decision", "best", "points", "worst", "points"), _extremes(answer))
    say(f"{describe_contributions(answer)}.")


def _extremes(answer: Contributions) -> Iterator[tuple[str, ...]]:
    """Each decision's best and worst choice with their contributions."""
    assert answer.stderr is not None  # measured
    for s, stage in enumerate(answer.space.stages):
        depths = [f"depth {depth}" for depth in stage.depths]
        decisions = [(stage.name, depths, answer.values.depths[s], answer.stderr.depths[s])]
        for b, configs in enumerate(stage.blocks):
            names = [config.name for config in configs]
            block = (answer.values.configs[s][b], answer.stderr.configs[s][b])
            decisions.append((f"{stage.name} block {b + 1}", names, *block))
        for name, choices, values, errors in decisions:
            best, worst = int(values.argmax()), int(values.argmin())
            shown = [(choices[i], f"{values[i]:+.2f} ± {errors[i]:.2f}") for i in (best, worst)]
            yield name, *shown[0], *shown[1]


def _contributions_json(answer: Contributions) -> dict[str, Any]:
    about = answer.provenance.to_data()
    return {"base": answer.base, "base_stderr": answer.base_stderr, **about}


def _show_samples(samples: Samples) -> None:
    from binas.tasks.sample import describe_samples

    say(f"{describe_samples(samples)}.")


def _samples_json(samples: Samples) -> dict[str, Any]:
    summary = {name: float(getattr(samples.accuracy, name)()) for name in ("min", "mean", "max")}
    return {"count": len(samples), **summary, "provenance": samples.provenance.to_data()}


def show_judgements(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """A row per set of predictions, as judgements are written in JSON."""
    limits = list(rows[0]["regret"]) if rows else []
    columns = (
        "predictions",
        "Kendall tau-b",
        "Spearman",
        "Pearson",
        "MSE",
        "R2",
        *(f"regret {x}" for x in limits),
    )
    cells = [
        (
            str(row["name"]),
            _interval(row["kendall"]),
            *(_number(row[key]) for key in ("spearman", "pearson", "mse", "r2")),
            *(_interval(row["regret"][limit]) for limit in limits),
        )
        for row in rows
    ]
    table(columns, cells, title=title)


def _number(interval: Mapping[str, float | None] | None) -> str:
    value = None if interval is None else interval["value"]
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Mapping[str, float | None]) -> str:
    value, low, high = (interval[key] for key in ("value", "low", "high"))
    bounds = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return "-" if value is None else f"{value:.3f}{bounds}"


def describe_ceiling(ceiling: Mapping[str, Any] | None) -> str:
    """How well a perfect predictor would rank."""
    if ceiling is None:
        return "Noise ceiling: not known; the samples carry neither errors nor halves."
    split = f"from two halves of the images, whose tau is {ceiling['half'] or 0:.3f}"
    how = split if ceiling["how"] == "split-half" else "simulated from the samples' errors"
    return f"Noise ceiling: a perfect predictor would reach Kendall {ceiling['kendall']:.3f} ({how})."


def _show_choice(choice: Choice) -> None:
    """Every estimator that was judged, what they must be compared with, and which one was chosen."""
    data = choice.model_dump(mode="json")
    rows = [*data["estimators"], *data["ablation"], *([data["macs_only"]] if data["macs_only"] else [])]
    if rows:
        show_judgements(rows, f"{choice.samples} samples")
        say(describe_ceiling(data["noise_ceiling"]))
    for name, why in choice.left_out.items():
        say(f"{name} left out: {why}")
    say(choice.why)


def _show_answers(run: Run) -> None:
    """A row per limit: predicted, measured, tuned as far as there is anything to show."""
    networks, rows = run.networks, []
    for answer in run.answers:
        cost = answer.limits[0].cost
        predicted, reading, network = (
            answer.costs.get(cost),
            answer.measured(cost),
            networks.get(answer.question),
        )
        accuracy = "-" if answer.accuracy is None else f"{answer.accuracy:.2f} %"
        rows.append(
            (
                answer.question,
                answer.limits_text,
                "-" if predicted is None else f"{predicted.value:.4g} {predicted.unit}",
                "-" if reading is None else f"{reading.measured:.4g} {reading.unit}",
                accuracy,
                "-" if network is None else f"{network.judgement.one_shot.test.percent:.2f} %",
                "-" if network is None else f"{network.judgement.tuned.test.percent:.2f} %",
                "-" if network is None else f"{network.parameters:,}",
                answer.variant or "-",
                answer.architecture or "none",
            )
        )
    cost_columns = ("limit", "absolute", "predicted", "measured", "accuracy predicted")
    show_known((*cost_columns, "one-shot", "tuned", "parameters", "variant", "architecture"), rows)
    for answer in run.answers:
        if answer.why:
            say(f"{answer.question}: {answer.why}")


def show_known(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: str | None = None) -> None:
    """A table without the columns in which nothing is known."""
    kept = [k for k in range(len(columns)) if any(row[k] != "-" for row in rows)]
    if rows:
        table([columns[k] for k in kept], [tuple(row[k] for k in kept) for row in rows], title=title)


def networks_json(run: Run) -> list[dict[str, Any]]:
    """Each limit with its answer, what it was measured to cost, and its tuned network."""
    networks = run.networks
    entries = []
    for answer in run.answers:
        network, reading = networks.get(answer.question), answer.measured(answer.limits[0].cost)
        known = {
            "network": None if network is None else network.model_dump(mode="json"),
            "on_device": None if reading is None else reading.model_dump(mode="json"),
        }
        entries.append({**answer.model_dump(mode="json"), **known})
    return entries


def _show_comparisons(run: Run) -> None:
    """What the search bought, a row per limit; accuracies on the same test images."""
    from binas.tasks.artefacts import COMPARISONS

    columns = (
        "limit",
        "found",
        "random",
        "ahead by",
        "beats",
        "hand-scaled",
        "ahead by",
        "random tuned",
        "hand tuned",
    )
    rows = [_comparison_row(item) for item in COMPARISONS.read(run)]
    title = "Compared with networks under the same limit: one-shot accuracy on the same test images, points ± standard error"
    show_known(columns, rows, title)


def _comparison_row(item: Comparison) -> tuple[str, ...]:
    best = item.hand_scaled
    return (
        item.question,
        f"{item.found.accuracy:.2f} %",
        _mean([rival.accuracy for rival in item.random]),
        _points(item.over_random),
        f"{item.beaten} of {len(item.random)}" if item.random else "-",
        f"{best.accuracy:.2f} %" if best else "-",
        _points(item.over_hand_scaled),
        _mean([rival.tuned for rival in item.random if rival.tuned is not None]),
        _tuned(best),
    )


def _tuned(rival: Rival | None) -> str:
    return "-" if rival is None or rival.tuned is None else f"{rival.tuned:.2f} %"


def _mean(values: list[float]) -> str:
    """Mean and range of accuracies."""
    return f"{sum(values) / len(values):.2f} % ({min(values):.2f} to {max(values):.2f})" if values else "-"


def _points(difference: tuple[float, float] | None) -> str:
    return "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"


def show_run(run: Run) -> None:
    """What a finished run found: networks, what the search bought, files."""
    from binas.tasks.artefacts import EXPORT, network_folder

    _show_answers(run)
    _show_comparisons(run)
    for question, record in run.networks.items():
        folder = network_folder(run.folder, record.name) / EXPORT
        say(f"{question}: {', '.join(str(path) for path in sorted(folder.glob('model*.onnx'))) or folder}")
    say(f"Report: {run.report}")


def show_status(run: Run, standings: list[Standing]) -> None:
    """A row per step, and how to go on."""
    from binas.run.status import total_left

    table(("step", "state", "took", "left", "what, and why"), [_status_row(item) for item in standings])
    if all(item.state.word == "done" for item in standings):
        say(f"All is done in {run.folder}.")
        return
    left, unknown = total_left(standings)
    rest = f", and {', '.join(unknown)}, whose time is unknown" if unknown else ""
    say(f"About {duration(left)} left{rest}. Resume with: binas run --out {run.folder}")


def _status_row(item: Standing) -> tuple[str, ...]:
    state = item.state
    why = f": {'; '.join(state.reasons)}" if state.reasons else ""
    left = "unknown" if item.left is None else duration(item.left)
    took = "-" if item.took is None else duration(item.took)
    return state.step.name, state.word, took, "-" if state.word == "done" else left, f"{state.step.does}{why}"


def show_tuned(network: TunedNetwork, as_json: bool) -> None:
    """A network that was fine-tuned by name."""
    record = network.record
    if as_json:
        print_json({**record.model_dump(mode="json"), "folder": str(network.folder), "new": network.new})
        return
    how = "trained from scratch" if record.from_scratch else "fine-tuned"
    rows = [
        (weights, *(f"{part.percent:.2f} ± {part.error:.2f} %" for part in (held.validation, held.test)))
        for weights, held in (
            ("the supernet's weights, recalibrated", network.one_shot),
            (how, network.tuned),
        )
    ]
    held = network.tuned
    say(f"{record.architecture}:")
    table(("weights", f"{held.validation.images} validation images", f"{held.test.images} test images"), rows)
    done = f"done in {record.seconds:g} s" if network.new else "was done already; nothing was changed"
    say(
        f"{record.parameters:,} parameters, {record.macs:,} MACs. Epoch {record.judgement.epoch} was kept (0 is the "
        f"start). {network.folder}: {done}."
    )
    say(f"Next: binas export {network.folder.parents[1]} --network {record.name}")


def show_export(done: Exported, as_json: bool) -> None:
    """The files of one exported network."""
    if as_json:
        model = done.model.model_dump(mode="json", exclude={"space"})
        names = [path.name for path in done.files]
        print_json({"folder": str(done.folder), "files": names, "written": done.written, "model": model})
        return
    say(f"{done.folder}:")
    table(("file", "bytes"), [(path.name, f"{path.stat().st_size:,}") for path in done.files])
    for name, entry in done.model.graphs.items():
        worst = max((item.difference for item in entry.parity), default=0.0)
        say(f"{name} computes what PyTorch computes: logits differ by at most {worst:.2g}.")
    if done.model.int8 is not None:
        say(done.model.int8.verdict)
    takes = "bytes (uint8, 0 to 255)" if done.model.input.graphs == "bytes" else "normalised float32 images"
    say(f"Input of ONNX and torch files: {takes}; see {done.folder / 'README.md'}.")
    if not done.written:
        say("Everything was there already; nothing was changed.")


def show_report(data: ReportData, path: Path, png: Path | None, as_json: bool) -> None:
    """Write a page, and say what is on it."""
    from binas.base.files import write_text
    from binas.report.figures import figures
    from binas.report.numbers import report_numbers, summary
    from binas.report.page import page

    numbers = report_numbers(data)
    write_text(path, page(numbers))
    drawn = [] if png is None else figures(numbers, png)
    if as_json:
        print_json({**numbers, "files": [str(path), *map(str, drawn)]})
        return
    for line in summary(numbers, data):
        say(line)
    for written in (path, *drawn):
        say(f"wrote {written}")


def command_line() -> str:
    """The command that was typed."""
    return shlex.join(["binas", *sys.argv[1:]])


_VIEWS: dict[str, View] = {
    "measure": View(lambda run: run.tables.costs, show_costs, _costs_json),
    "estimate": View(lambda run: run.tables.contributions, _show_contributions, _contributions_json),
    "sample": View(lambda run: run.tables.samples, _show_samples, _samples_json),
    "check": View(lambda run: run.tables.choice, _show_choice, lambda choice: choice.model_dump(mode="json")),
    "search": View(lambda run: run, _show_answers, lambda run: {"networks": networks_json(run)}),
    "finetune": View(lambda run: run, _show_answers, lambda run: {"networks": networks_json(run)}),
    "compare": View(lambda run: run, _show_comparisons),
}
