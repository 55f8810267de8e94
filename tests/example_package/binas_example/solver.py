"""A solver: the first architecture, if it keeps the limits."""

from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers import Capabilities, Options, Solver


class Cheapest(Solver):
    """Takes the smallest network and hopes."""

    name = "cheapest"
    capabilities = Capabilities(
        exact=False, objectives=frozenset({"bilinear"}), summary="the smallest network"
    )

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        smallest = evaluate(problem, problem.space.extreme(heaviest=False))
        if not smallest.feasible:
            return Answer(Status.STOPPED_WITHOUT_ANSWER)
        return Answer(Status.FEASIBLE, smallest.architecture, smallest.accuracy)
