"""What choices cost: analytic costs, measuring on a device, verifying the formula.

Only analytic costs are imported here, so that they stay light: :mod:`binas.resources.measure` measures on this
machine, :mod:`binas.resources.session` is the procedure, :mod:`binas.resources.calibrate` and
:mod:`binas.resources.verify` hold tables against whole networks.
"""

from binas.resources.analytic import analytic_costs, architecture_work, peak_activation

__all__ = ["analytic_costs", "architecture_work", "peak_activation"]
