"""What the search bought: each found network beside random and hand-scaled ones under the same limit.

``rivals/LIMIT.json`` holds a :class:`binas.run.rivals.Comparison` per limit, and what it was made of, so that a limit
that was compared is not compared again; with ``compare.tune`` also the test accuracy of that many rivals after the same
fine-tuning.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.errors import FileError
from binas.base.files import dump_json, exists, read_json, write_text
from binas.run.finetune_step import tune_all
from binas.run.rivals import Comparison, compare_with_rivals
from binas.run.search_step import open_problem, read_results
from binas.run.step import file_digest, identity_of
from binas.run.teller import Share, Teller
from binas.search.limits import Limit, question_name
from binas.search.problem import SearchProblem

if TYPE_CHECKING:
    from binas.run.run import Run

RIVALS = "rivals"
KEYS = {"question", "identity", "cost", "limit", "found", "random", "hand_scaled"}


def compare_step(run: Run, teller: Teller) -> None:
    """Write ``rivals/LIMIT.json`` for each limit and say how each comparison ends."""
    answers = [answer for answer in read_results(run) if answer["architecture"]]
    for number, answer in enumerate(answers):
        path, identity = _path(run, answer["question"]), _identity(run, answer)
        if exists(path) and read_json(path).get("identity") == identity:
            continue
        told = Share(teller, number, len(answers), answer["question"])
        compared = _compared(run, answer, told)
        if compared is None:
            teller.say(f"{answer['question']}: no upper limit on a sum to draw rivals at")
            continue
        write_text(
            path, dump_json({"question": answer["question"], "identity": identity, **compared.to_json()})
        )
        teller.say(f"{answer['question']}: {sentence(compared)}")
    if run.config.compare.tune:
        _tune_rivals(run, teller)


def read_rivals(run: Run) -> list[dict[str, Any]]:
    """The comparisons of a run, one object per limit that has one."""
    found = []
    for path in (_path(run, question) for question in run.config.search.limits):
        if not exists(path):
            continue
        data = read_json(path)
        if not isinstance(data, dict) or not set(data) >= KEYS:
            raise FileError(f"{path} is not a comparison. Delete it; `binas run` makes it again.")
        found.append(data)
    return found


def _path(run: Run, question: str) -> Path:
    return run.folder / RIVALS / f"{question_name(question)}.json"


def _identity(run: Run, answer: dict[str, Any]) -> str:
    """What a comparison depends on."""
    config = run.config.compare.model_dump(mode="json", exclude={"tune"})
    known = {key: answer[key] for key in ("architecture", "limits", "costs")}
    weights = file_digest(run.folder / "supernet" / "weights.json")
    recalibration = run.config.training.finetune.recalibration
    return identity_of({**config, **known, "weights": weights, "recalibration": recalibration})


def sentence(compared: Comparison) -> str:
    """Who is ahead, in words, with the standard error over images; no more than the numbers support."""
    parts = []
    if compared.random:
        count = len(compared.random)
        parts.append(
            f"{_ahead(*compared.over_random)} the mean of {count} random networks under the same limit, better than "
            f"{compared.beaten} of them"
        )
    if compared.over_hand_scaled is not None:
        parts.append(f"{_ahead(*compared.over_hand_scaled)} the best hand-scaled one")
    found = f"{compared.found.percent:.2f} % one-shot on test images"
    return f"{found}; {'; '.join(parts) or 'no network to compare with'}"


def _ahead(points: float, error: float) -> str:
    if abs(points) <= 2 * error:
        return f"no clear difference ({points:+.2f} ± {error:.2f} points) to"
    return f"{abs(points):.2f} ± {error:.2f} points {'above' if points > 0 else 'below'}"


def _compared(run: Run, answer: dict[str, Any], teller: Teller) -> Comparison | None:
    """The comparison under the limits that were searched with: on a device they may be tighter than those asked."""
    problem, config = open_problem(run), run.config.compare
    limits = [
        Limit(item["cost"], item["value"] if item["lower"] else _searched(answer, item), item["lower"])
        for item in answer["limits"]
    ]
    traced = next((limit for limit in limits if _sums_up(problem, limit)), None)
    if traced is None:
        return None
    return compare_with_rivals(
        run.supernet(),
        run.data,
        problem.with_limits(limits),
        traced,
        run.space.parse(answer["architecture"]),
        config.random,
        run.config.training.finetune.recalibration,
        config.seed,
        lambda done: teller.show(done, "measuring rivals"),
    )


def _searched(answer: dict[str, Any], item: dict[str, Any]) -> float:
    """The upper limit that the search kept."""
    limit = answer["costs"][item["cost"]].get("limit")
    return float(item["value"] if limit is None else limit)


def _sums_up(problem: SearchProblem, limit: Limit) -> bool:
    return not limit.lower and problem.costs[limit.cost].combine == "sum"


def _tune_rivals(run: Run, teller: Teller) -> None:
    """Add ``tuned``, the test accuracy after fine-tuning, to the first random rivals and the hand-scaled ones."""
    made = read_rivals(run)
    chosen = [rival for item in made for rival in item["random"][: run.config.compare.tune]]
    chosen += [item["hand_scaled"] for item in made if item["hand_scaled"]]
    wanted = {rival["architecture"]: run.space.parse(rival["architecture"]) for rival in chosen}
    records = tune_all(run, list(wanted.values()), teller)
    for rival in chosen:
        rival["tuned"] = records[wanted[rival["architecture"]]].judgement.tuned.test.percent
    for item in made:
        write_text(_path(run, item["question"]), dump_json(item))
