"""Gradient descent on relaxed decisions with a soft penalty instead of a limit, and without any (FBNet, TF-NAS, DARTS).

What the paper calls "simple heuristics such as soft penalties" (section 2). With alpha and beta the softmax of logits,

    minimise  L(alpha, beta) * product over limits of (cost(alpha, beta) / limit)^weight

by Adam on the logits, L the validation loss of paths drawn from (alpha, beta), cost the expected one; then the largest entry
of every decision is taken. Nothing makes that architecture keep a limit, so what comes out is no answer to a search problem:
it is an architecture, and whoever asks must look at what it costs. With weight 0 the limits play no part: DARTS without its
second level, since the supernet's weights are trained already.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.search.oracle import Oracle
from binas.search.problem import SearchProblem
from binas.search.solvers._relaxed import Domain, Point
from binas.space.architecture import Architecture
from binas.space.layout import Layout

Array = NDArray[np.float64]

WEIGHT = 0.6  # FBNet's exponent; its base there is the logarithm of the latency, here cost / limit, as MnasNet has it
RATE = 0.02  # of Adam
DECAYS = (0.9, 0.999)


def descend(
    problem: SearchProblem,
    oracle: Oracle,
    steps: int,
    batch_size: int,
    seed: int = 0,
    weight: float = WEIGHT,
    rate: float = RATE,
) -> Architecture:
    """The largest entries after ``steps`` of Adam on the penalised loss; it may break every limit."""
    for limit in problem.limits:
        if not limit.value > 0:
            raise ProblemError(
                f"a soft penalty divides by the limit, and {problem.describe_limit(limit)} has none above 0 to divide by."
            )
    domain, layout, rng = Domain(problem), problem.space.layout, np.random.default_rng(seed)
    logits, adam = np.zeros(layout.size), _adam(layout.size, rate)
    next(adam)
    for _ in range(steps):
        point = Point(*layout.split(softmax(layout, logits)))
        loss, *slopes = oracle.loss_gradient(point.alpha, point.beta, batch_size, rng)
        logits -= adam.send(_through_softmax(layout, point, penalised(domain, point, loss, slopes, weight)))
    return layout.round(*layout.split(softmax(layout, logits)))


def penalised(domain: Domain, point: Point, loss: float, slopes: list[Array], weight: float) -> Array:
    """Derivatives of loss * prod (cost / limit)^weight with respect to (alpha, beta); a lower limit counts inversely."""
    limits = domain.problem.limits
    signs, bounds = (np.array([getattr(item, name) for item in limits]) for name in ("sign", "value"))
    costs = signs * domain.use(point)
    factor = math.exp(weight * float(signs @ np.log(costs / bounds))) if limits else 1.0
    steepness = weight * loss / costs
    alpha = slopes[0] + steepness @ domain.slopes(point, "alpha")
    beta = slopes[1] + steepness @ domain.slopes(point, "beta")
    return np.asarray(factor * np.concatenate([alpha, beta]))


def softmax(layout: Layout, logits: Array) -> Array:
    """The probabilities of every decision."""
    shares = np.empty_like(logits)
    for where in layout.slices:
        weights = np.exp(logits[where] - logits[where].max())
        shares[where] = weights / weights.sum()
    return shares


def _through_softmax(layout: Layout, point: Point, slopes: Array) -> Array:
    """Derivatives with respect to the logits: p_c (g_c - sum of p g)."""
    shares, result = np.concatenate([point.alpha, point.beta]), np.empty_like(slopes)
    for where in layout.slices:
        result[where] = shares[where] * (slopes[where] - shares[where] @ slopes[where])
    return result


def _adam(size: int, rate: float) -> Generator[Array, Array, None]:
    """Takes gradients, gives steps."""
    mean, square, (one, two) = np.zeros(size), np.zeros(size), DECAYS
    step, k = np.zeros(size), 0
    while True:
        gradient, k = (yield step), k + 1
        mean, square = one * mean + (1 - one) * gradient, two * square + (1 - two) * gradient**2
        step = rate * (mean / (1 - one**k)) / (np.sqrt(square / (1 - two**k)) + 1e-8)
