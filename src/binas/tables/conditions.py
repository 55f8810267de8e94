"""What a measured cost holds for: device, runtime, threads, batch and dtype.

Latency of batch 64 on a GPU says nothing about batch 1 on a CPU. So costs that differ in these are not merged,
and a limit may state what it is meant for: ``latency=45ms@batch=1,device=Pixel 9``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from binas.base.errors import TableError
from binas.tables.entries import Provenance

KEYS = ("device", "runtime", "threads", "batch", "dtype", "memory_format", "onednn")
NOISY = 0.10  # disturbance: a quarter of the control's samples being this much slower makes a machine noisy
Condition = str | int


def conditions(provenance: Provenance) -> dict[str, Condition]:
    """The conditions a table states."""
    stated = {key: getattr(provenance, key) for key in KEYS}
    return {key: value for key, value in stated.items() if value is not None}


def describe(provenance: Provenance) -> str:
    """The conditions for people: ``Pixel 9, TFLite, 1 thread, batch 1, float32``; empty where none are stated."""
    return ", ".join(_word(key, value) for key, value in conditions(provenance).items())


def disturbed(name: str, provenance: Provenance) -> str | None:
    """The sentence to read beside a cost that was measured while the machine did something else as well."""
    if provenance.disturbance is None or provenance.disturbance <= NOISY:
        return None
    return (
        f"The machine was busy while {name} was measured: a quarter of the samples of one fixed piece of work took over "
        f"{provenance.disturbance:.0%} longer than it needs. What was measured is a low quantile, which such disturbance "
        "hardly moves, but a quiet machine gives a better table."
    )


def _word(key: str, value: Condition) -> str:
    if key == "threads":
        return f"{value} thread" if value == 1 else f"{value} threads"
    if key == "onednn":
        return "with oneDNN" if value else "without oneDNN"
    return f"batch {value}" if key == "batch" else str(value)


def differences(one: Provenance, two: Provenance, ignore: Iterable[str] = ()) -> list[str]:
    """The conditions in which two costs differ; one that only one of them states counts as different."""
    skipped = set(ignore)
    return [key for key in KEYS if key not in skipped and getattr(one, key) != getattr(two, key)]


def parse_conditions(text: str) -> dict[str, str]:
    """Read ``batch=1,device=Pixel 9``."""
    required = {}
    for part in text.split(","):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if key not in KEYS or not sign or not value:
            known = ", ".join(KEYS)
            raise TableError(
                f"cannot read the condition {part.strip()[:40]!r}; write KEY=VALUE with a KEY of {known}, e.g. batch=1."
            )
        required[key] = value
    return required


def check_conditions(name: str, provenance: Provenance, required: Mapping[str, str]) -> None:
    """Refuse a cost that is not of the required conditions, or does not say.

    Numbers must be equal. Text must contain what is required, in any case: ``xeon`` is met by ``Intel Xeon 6130``.
    """
    stated = conditions(provenance)
    for key, value in required.items():
        if key not in stated:
            raise TableError(
                f"{name} is wanted for {key} {value}, but the table does not say its {key}. Find out, and write it "
                'into the "provenance" of the table.'
            )
        if not _meets(stated[key], value):
            raise TableError(
                f"{name} is wanted for {key} {value}, but the table is of {key} {stated[key]}. Use a table of what you "
                "mean, or leave the condition out."
            )


def _meets(stated: Condition, required: str) -> bool:
    if isinstance(stated, int):
        return required == str(stated)
    return required.casefold() in stated.casefold()
