"""Errors a user can cause. The command line prints them as one paragraph and exits with code 2."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 500  # characters of one of several problems


class BinasError(Exception):
    """Base of all errors that bad input can cause; the message says what, where and what to do."""


class SpaceError(BinasError):
    """A search space description is not valid."""


class ArchitectureError(BinasError):
    """An architecture cannot be read, or does not belong to the space."""


class TableError(BinasError):
    """A table of contributions or costs is damaged, incomplete or made for another space."""


class UnitError(BinasError):
    """A quantity has no unit, an unknown unit, or a unit of another kind."""


class ProblemError(BinasError):
    """A search problem cannot be posed, or the chosen solver cannot take it."""


class MissingPackageError(BinasError):
    """Something needs a package that is not installed; the message has the pip line."""


class PluginError(BinasError):
    """Something that another installed package adds to binas cannot be loaded or used."""


class SolverClaimError(BinasError):
    """A solver returned something the independent verifier does not confirm: a bug, never an answer."""


class ConfigError(BinasError):
    """A run's configuration has an unknown key, a value that is not allowed, or does not fit the run."""


class TrainingError(BinasError):
    """Training cannot start, or cannot go on."""


class ExplodedError(TrainingError):
    """Weights, or what a network makes of images, are no longer finite numbers."""


class CheckpointError(BinasError):
    """A checkpoint is damaged, or was made for another space, network or configuration."""


class DataError(BinasError):
    """Images or labels cannot be used: damaged, of the wrong shape, or not what the space expects."""


class MeasureError(BinasError):
    """Something cannot be measured here: a backend or device is missing, or a table names none."""


class EvaluatorError(BinasError):
    """An evaluator answered with something that is not an outcome."""


class EstimatorError(BinasError):
    """An estimator or predictor cannot be fitted, read, or judged with what it was given."""


class ModelError(BinasError):
    """A finished network cannot be exported, or an exported one is damaged or not what it says."""


class WorkerError(BinasError):
    """A worker process ended before its work was done."""


class FileError(BinasError):
    """A file is missing, truncated, too large, or cannot be written."""


def several(headline: str, problems: Sequence[str], advice: str = "", most: int = 12) -> str:
    """One message for many problems: a headline, at most ``most`` of them, long ones cut off, and what to do."""
    shown = "; ".join(text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in problems[:most])
    rest = f"; and {len(problems) - most} more" if len(problems) > most else ""
    ending = f". {advice}" if advice else ""
    return f"{headline}: {shown}{rest}{ending}"
