"""What the search bought: each found network beside random and hand-scaled ones of the same cost.

``rivals.json`` holds a :class:`binas.pipeline.rivals.Comparison` per limit; with ``compare.tune`` also the test accuracy
of that many rivals after the same fine-tuning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binas.files import dump_json, read_json, write_text
from binas.pipeline.finetune_step import found_architectures, tune_all
from binas.pipeline.limits import resolve
from binas.pipeline.rivals import Comparison, compare_with_rivals
from binas.pipeline.search_step import open_problem
from binas.pipeline.teller import Share, Teller
from binas.space.architecture import Architecture

if TYPE_CHECKING:
    from binas.pipeline.run import Run

RIVALS = "rivals.json"


def compare_step(run: Run, teller: Teller) -> None:
    """Write ``rivals.json`` and say how each comparison ends."""
    found, config = found_architectures(run), run.config.compare
    made = []
    for number, (question, architecture) in enumerate(found.items()):
        told = Share(teller, number, len(found), question)
        compared = _compared(run, question, architecture, told)
        made.append({"question": question, **compared.to_json()})
        teller.say(f"{question}: {sentence(compared)}")
    if config.tune:
        _tune_rivals(run, made, teller)
    write_text(run.folder / RIVALS, dump_json(made))


def read_rivals(run: Run) -> list[dict[str, Any]]:
    """The comparisons of a run, one object per limit that has an answer."""
    data = read_json(run.folder / RIVALS)
    return data if isinstance(data, list) else []


def sentence(compared: Comparison) -> str:
    """Who is ahead, in words, with the standard error over images; no more than the numbers support."""
    parts = []
    if compared.random:
        ahead = _ahead(*compared.over_random)
        count = len(compared.random)
        parts.append(
            f"{ahead} the mean of {count} random networks of the same cost, better than {compared.beaten} of them"
        )
    if compared.over_hand_scaled is not None:
        parts.append(f"{_ahead(*compared.over_hand_scaled)} the best hand-scaled one")
    return (
        f"{compared.found.percent:.2f} % one-shot on test images; {'; '.join(parts)}"
        if parts
        else "no rivals"
    )


def _ahead(points: float, error: float) -> str:
    if abs(points) <= 2 * error:
        return f"no clear difference ({points:+.2f} ± {error:.2f} points) to"
    return f"{abs(points):.2f} ± {error:.2f} points {'above' if points > 0 else 'below'}"


def _compared(run: Run, question: str, architecture: Architecture, teller: Teller) -> Comparison:
    problem, config = open_problem(run), run.config.compare
    limits = resolve(question, run.space, problem.costs)
    return compare_with_rivals(
        run.supernet(),
        run.data,
        problem.with_limits(limits),
        limits[0],
        architecture,
        config.random,
        run.config.training.finetune.recalibration,
        config.seed,
        lambda done: teller.show(done, "measuring rivals"),
    )


def _tune_rivals(run: Run, made: list[dict[str, Any]], teller: Teller) -> None:
    """Add ``tuned``, the test accuracy after fine-tuning, to the first random rivals and the hand-scaled ones."""
    chosen = [rival for item in made for rival in item["random"][: run.config.compare.tune]]
    chosen += [item["hand_scaled"] for item in made if item["hand_scaled"]]
    wanted = {rival["architecture"]: run.space.parse(rival["architecture"]) for rival in chosen}
    records = tune_all(run, list(wanted.values()), teller)
    for rival in chosen:
        rival["tuned"] = records[wanted[rival["architecture"]]].judgement.tuned.test.percent
