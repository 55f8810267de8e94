"""The one interface of all solvers: what they can take, what they need, and ``solve``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from binas.base.errors import MissingPackageError, ProblemError
from binas.base.packages import missing
from binas.search.deadline import NEVER, Deadline
from binas.search.problem import SearchProblem
from binas.search.result import Answer
from binas.space.architecture import Architecture

SEPARABLE = frozenset({"bilinear", "stagewise", "depths"})
ANYTHING = SEPARABLE | {"quadratic", "callable"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a solver can take and what its answer is worth."""

    exact: bool
    objectives: frozenset[str]
    max_limits: int | None = None  # None: any number
    lower_limits: bool = True
    supernet: bool = False  # it searches the supernet itself, seen through an ``oracle``, not the objective
    summary: str = ""


GAP = 1e-6  # points


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may ask of any solver.

    By the ``deadline`` it is to return what it has. An answer at most ``gap`` below what nothing is better than (in the
    objective's unit) counts as proven; a solver that can prove more at no price does.
    """

    deadline: Deadline = NEVER
    seed: int = 0
    warm_start: Architecture | None = None
    gap: float = GAP


class Solver(ABC):
    """A solver: constructor arguments are its settings, ``solve`` has no hidden state."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    requires: ClassVar[tuple[str, ...]] = ()  # importable modules

    @classmethod
    def missing(cls) -> str | None:
        """The pip line without which this solver cannot run, found without importing anything; None if it can."""
        return missing(cls.requires)

    @classmethod
    def to_json(cls) -> dict[str, Any]:
        """The object that ``binas solvers --json`` lists."""
        can = cls.capabilities
        return {
            "name": cls.name,
            "exact": can.exact,
            "objectives": sorted(can.objectives),
            "max_limits": can.max_limits,
            "lower_limits": can.lower_limits,
            "supernet": can.supernet,
            "summary": can.summary,
            "available": cls.missing() is None,
            "missing": cls.missing(),
        }

    @abstractmethod
    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """Search; the claim is verified by the caller."""

    def check(self, problem: SearchProblem) -> None:
        """Raise unless this solver is installed and can take the problem."""
        pip, can = self.missing(), self.capabilities
        if pip is not None:
            raise MissingPackageError(
                f"the solver {self.name!r} needs a package that is not installed: {pip}"
            )
        if problem.objective.kind not in can.objectives:
            raise ProblemError(
                f"the solver {self.name!r} takes {', '.join(sorted(can.objectives))} objectives, not a "
                f"{problem.objective.kind} one. `binas solvers` lists what each can take."
            )
        if can.max_limits is not None and len(problem.limits) > can.max_limits:
            raise ProblemError(
                f"the solver {self.name!r} takes at most {can.max_limits} limits; use milp or auto."
            )
        if not can.lower_limits and any(limit.lower for limit in problem.limits):
            raise ProblemError(f"the solver {self.name!r} takes no lower limits; use milp or auto.")
