"""Normal equations of recorded passes, within images, read in stretches: memory does not grow with images or passes.

With x = T'z (:mod:`binas.contributions.design`) and bars for means over the P passes of an image i,

    gram = sum_i sum_p (x_ip - x_i.)(x_ip - x_i.)',    moment = sum_i sum_p (x_ip - x_i.)(y_ip - y_i.).

Taking out both means removes each image's own difficulty exactly: it is the regression with a constant per image,
unbiased for any P >= 2. (Centring the outcomes alone would shrink all effects by (P - 1) / P.) Images are dealt into
``GROUPS`` groups at random and sums are kept per group, for cross-validation and for halves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, vstack

from binas.contributions.design import Design, sparse_rows
from binas.contributions.journal import Journal
from binas.contributions.outcomes import Array, Indices, OutcomeKind, outcome_values
from binas.contributions.paths import balanced_paths
from binas.space.odds import Odds

GROUPS = 10
AT_ONCE = 2**17  # evaluations in memory
DENSE = 2**23  # numbers in a dense matrix of (images, features)


@dataclass(frozen=True, eq=False)
class Stretch:
    """All passes of some images: row p * n + i of ``rows`` is image i in pass p; ``values`` are (kinds, P, n)."""

    images: Indices
    rows: csr_array
    values: Array

    @property
    def passes(self) -> int:
        """P."""
        return int(self.values.shape[1])

    @cached_property
    def owners(self) -> Indices:
        """The image of each row, counted from 0."""
        return np.tile(np.arange(len(self.images)), self.passes)

    @property
    def centred(self) -> Array:
        """Outcomes minus their image's mean, (kinds, P * n)."""
        return self.within(self.values.reshape(len(self.values), -1))

    def within(self, values: Array) -> Array:
        """Numbers per row, (kinds, P * n), minus their image's mean."""
        shaped = values.reshape(len(values), self.passes, -1)
        return np.asarray((shaped - shaped.mean(axis=1, keepdims=True)).reshape(len(values), -1))

    def per_image(self, weights: Array) -> Array:
        """sum_p weight * row of each image, (n, features)."""
        shape = len(self.images), len(self.owners)
        owned = csr_array((weights, (self.owners, np.arange(shape[1]))), shape=shape)
        return np.asarray(owned.dot(self.rows).toarray())


@dataclass(frozen=True, eq=False)
class Recorded:
    """The first ``passes`` passes of a factorial measurement; ``kinds`` are the outcomes asked for."""

    design: Design
    journal: Journal
    passes: int
    seed: int
    kinds: tuple[OutcomeKind, ...]
    odds: tuple[Odds, ...] = ()

    @property
    def evaluations(self) -> int:
        """Image evaluations behind it."""
        return self.journal.images * self.passes

    def stretches(self) -> Iterator[Stretch]:
        """All images, a stretch after the other."""
        step = max(1, min(AT_ONCE // self.passes, DENSE // self.design.size))
        for first in range(0, self.journal.images, step):
            yield self._stretch(np.arange(first, min(first + step, self.journal.images)))

    def _stretch(self, images: Indices) -> Stretch:
        numbers, ends = range(self.passes), (int(images[0]), int(images[-1]) + 1)
        space, read = self.design.space, [self.journal.read(p, *ends) for p in numbers]
        rows = [sparse_rows(space, *balanced_paths(space, images, p, self.seed, self.odds)) for p in numbers]
        values = np.array([[outcome_values(outcomes, kind) for outcomes in read] for kind in self.kinds])
        return Stretch(images, vstack(rows, format="csr"), values)


@dataclass(frozen=True, eq=False)
class Sums:
    """Per group of images: ``grams`` (G, q, q), ``moments`` (kinds, G, q).

    Of all evaluations: ``means`` (kinds,) of the outcomes, ``products`` (kinds, kinds), their sums of products within
    images, ``counts`` (size,), how often each config and depth was used, and ``freedom``, images * (passes - 1).
    """

    grams: Array
    moments: Array
    means: Array
    products: Array
    counts: Array
    freedom: int

    @property
    def spreads(self) -> Array:
        """Sums of squares within images, (kinds,)."""
        return np.diag(self.products)

    @cached_property
    def gram(self) -> Array:
        """Of all groups."""
        return np.asarray(self.grams.sum(axis=0))

    @cached_property
    def moment(self) -> Array:
        """Of all groups, (kinds, q)."""
        return np.asarray(self.moments.sum(axis=1))

    def only(self, groups: Indices) -> Sums:
        """Gram and moments of some of the groups; the rest stays that of all."""
        return replace(self, grams=self.grams[groups], moments=self.moments[:, groups])

    @property
    def soft_helps(self) -> bool:
        """Whether the soft outcome goes with correctness within images: correlation above twice its error."""
        both = math.sqrt(float(self.spreads[0] * self.spreads[1]))
        return both > 0 and float(self.products[0, 1]) / both > 2 / math.sqrt(self.freedom)

    def first_kind(self) -> Sums:
        """Without the soft outcome."""
        one = slice(0, 1)
        return replace(
            self, moments=self.moments[one], means=self.means[one], products=self.products[one, one]
        )

    def folds(self) -> list[tuple[Sums, Sums]]:
        """(all groups but one, that one), for each group."""
        numbers = np.arange(len(self.grams))
        return [(self.only(np.delete(numbers, g)), self.only(numbers[g : g + 1])) for g in numbers]


def image_groups(images: int, seed: int) -> Indices:
    """The group of each image: equal sizes, at random, so that an order of the images does not matter."""
    return np.random.default_rng([seed, images]).permutation(images) % GROUPS


def normal_equations(recorded: Recorded) -> Sums:
    """The sums of all recorded evaluations, for each kind of outcome."""
    design, groups = recorded.design, image_groups(recorded.journal.images, recorded.seed)
    grams = np.zeros((GROUPS, design.size, design.size))
    moments = np.zeros((len(recorded.kinds), GROUPS, design.size))
    totals, products = np.zeros(len(recorded.kinds)), np.zeros((len(recorded.kinds),) * 2)
    used = np.zeros(design.size)
    for stretch in recorded.stretches():
        counts, centred = stretch.per_image(np.ones(len(stretch.owners))), stretch.centred
        totals += stretch.values.sum(axis=(1, 2))
        products += centred @ centred.T
        used += counts.sum(axis=0)
        for g in range(GROUPS):
            inside = groups[stretch.images] == g
            chosen = inside[stretch.owners]
            rows, mean_part = stretch.rows[chosen], counts[inside]
            grams[g] += rows.T.dot(rows).toarray() - mean_part.T @ mean_part / stretch.passes
            moments[:, g] += rows.T.dot(centred[:, chosen].T).T
    contrasts = design.contrasts
    means = totals / recorded.evaluations
    freedom = recorded.journal.images * (recorded.passes - 1)
    return Sums(contrasts.T @ grams @ contrasts, moments @ contrasts, means, products, used, freedom)


def score_products(recorded: Recorded, gammas: Array, base: float) -> Array:
    """sum_i s_i s_i', s_i = (sum_p x_ip e_ip of each kind, then mean_p y_ip - base): the filling of a sandwich.

    e are the residuals of the within-image regression with coefficients ``gammas`` (kinds, q); the last entry is
    that of the first kind's plain mean. Clustered by image: evaluations of one image may depend on each other.
    """
    contrasts = recorded.design.contrasts
    products = np.zeros((gammas.size + 1, gammas.size + 1))
    for stretch in recorded.stretches():
        residuals = stretch.centred - stretch.within(stretch.rows.dot(contrasts @ gammas.T).T)
        parts = [stretch.per_image(residual) @ contrasts for residual in residuals]
        scores = np.column_stack([*parts, stretch.values[0].mean(axis=0) - base])
        products += scores.T @ scores
    return products
