"""``bcfw-product``: block-coordinate Frank-Wolfe on 2S coordinate blocks (Algorithm 4 of the appendix)."""

from __future__ import annotations

from binas.base.errors import ProblemError
from binas.search.solvers._base import Capabilities
from binas.search.solvers._relaxed import Domain, RelaxedSolver, stage_blocks
from binas.search.solvers.bcfw import BlockSteps, bilinear_smooth


class BcfwProduct(RelaxedSolver):
    """Algorithm 4: one coordinate block alpha^s or beta^s, drawn uniformly, is set to its best per iteration.

    Smaller blocks than in Algorithm 1 see less of a limit at a time: what the other stages use is held
    fixed, so a stage can only use what they leave over. Expect weaker answers than those of ``bcfw``.
    """

    name = "bcfw-product"
    capabilities = Capabilities(
        exact=False,
        objectives=frozenset({"bilinear"}),
        summary="block-coordinate Frank-Wolfe, stage by stage (Algorithm 4)",
    )

    def __init__(self, iterations: int = 2000, restarts: int = 10):
        if not (iterations >= 1 and restarts >= 1):
            raise ProblemError("bcfw-product needs iterations and restarts of at least 1.")
        self.iterations, self.restarts = iterations, restarts

    def climber(self, domain: Domain) -> BlockSteps:
        """Steps on all 2S blocks, equally likely."""
        blocks = stage_blocks(domain.problem.space)
        weights = [1.0] * len(blocks)
        return BlockSteps(domain, bilinear_smooth(domain.problem), blocks, weights, self.iterations)
