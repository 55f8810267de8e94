"""What choices cost: analytic costs; measuring comes with the supernet."""

from binas.resources.analytic import analytic_costs, architecture_work, peak_activation

__all__ = ["analytic_costs", "architecture_work", "peak_activation"]
