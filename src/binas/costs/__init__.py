"""What choices cost: analytic costs, measuring on a device, verifying the formula.

Only analytic costs are imported here, so that they stay light: :mod:`binas.costs.measure` measures on this
machine, :mod:`binas.costs.session` is the procedure, :mod:`binas.costs.calibrate` and
:mod:`binas.costs.verify` hold tables against whole networks.
"""

from binas.costs.analytic import analytic_costs, architecture_work, peak_activation

__all__ = ["analytic_costs", "architecture_work", "peak_activation"]
