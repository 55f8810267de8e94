"""Appendix A: where the compute goes, and what N networks cost."""

from __future__ import annotations

from binas.base.errors import FileError
from binas.base.times import duration
from binas.reproduce._base import Experiment, Finding, Panel, Row, Series, Study, rounded
from binas.run.records import read_record

STEPS = {
    "pretraining (heaviest network)": ("train.heaviest",),
    "supernet": ("train.supernet",),
    "latency table": ("measure",),
    "contributions": ("estimate",),
    "checking them (samples)": ("sample", "check"),
    "search": ("search",),
}
NETWORK = "fine-tuning, each network"
COUNTS = (1, 5, 10, 50)


def shared_and_each(study: Study) -> tuple[dict[str, float], float]:
    """Seconds spent once, by what for, and seconds of each further network."""
    parts = {name: sum(_seconds(study, step) for step in steps) for name, steps in STEPS.items()}
    networks = study.run.networks
    if not networks:
        raise FileError(
            f"{study.run.folder} has no fine-tuned network yet. `binas finetune {study.run.folder}` makes them."
        )
    return parts, _seconds(study, "finetune") / len(networks)


def _seconds(study: Study, step: str) -> float:
    record = read_record(study.run.folder, step)
    return 0.0 if record is None else record.seconds


def make(study: Study) -> Finding:
    """Seconds of every part as the run recorded them, and totals for N networks."""
    parts, each = shared_and_each(study)
    once = sum(parts.values())
    rows: list[Row] = [
        {"part": name, "seconds": rounded(seconds, 1), "share": rounded(seconds / once, 3)}
        for name, seconds in parts.items()
    ]
    rows.append({"part": NETWORK, "seconds": rounded(each, 1), "share": None})
    rows += [
        {"part": f"{count} networks, everything", "seconds": rounded(once + count * each, 1), "share": None}
        for count in COUNTS
    ]
    bars = Series(name="seconds", x=(*parts, NETWORK), y=(*parts.values(), each), kind="bars")
    training = parts["pretraining (heaviest network)"] + parts["supernet"]
    sentence = (
        f"{duration(once)} once, of which training is {100 * training / once:.0f} % and the search "
        f"{100 * parts['search'] / once:.0f} %, and {duration(each)} for each network: {once:.0f} + {each:.0f} N seconds."
    )
    panel = Panel(title="", x="", y="seconds", series=(bars,))
    return Finding(sentence=sentence, rows=tuple(rows), panels=(panel,))


EXPERIMENT = Experiment(
    "costs",
    "appendix A",
    "435 + 8 N GPU hours for N networks: 250 epochs of pretraining and 100 of the supernet once, then 8 hours of "
    "fine-tuning "
    "for each; contributions and the search are a small part.",
    make,
    ("steps/*.json",),
    "Seconds as the run recorded them, once, on the machine it ran on: without an error.",
)
