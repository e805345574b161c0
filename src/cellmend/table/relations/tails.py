"""How many large values chance makes: the tail of a distribution beyond its usual values, continued."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cellmend.table.values import Floats

BEYOND = (0.3, 0.12, 0.04)  # shares of the values that lie beyond three points, from which the tail is continued
LEAST_STEP = 0.1  # between the logs of these points: where values are often the same
SMALLEST = 0.1  # value whose log is taken


@dataclass(frozen=True)
class Tail:
    """The log share of values beyond a point as a parabola of the point's log: bent for Gaussians, straight for laws of
    powers, so that what is usual in a table with heavy tails is not called rare."""

    points: tuple[float, float, float]  # logs, rising

    @classmethod
    def of(cls, values: Floats) -> Tail:
        """From values from 0, of which the largest few may be wrong."""
        first, *later = np.log(np.maximum(np.quantile(values, 1 - np.array(BEYOND)), SMALLEST)).tolist()
        points = [first]
        for point in later:
            points.append(max(point, points[-1] + LEAST_STEP))
        return cls((points[0], points[1], points[2]))

    def log_beyond(self, values: Floats) -> Floats:
        """Log share of the values that lie beyond these by chance, (n,); 0 for usual ones.

        >>> tail = Tail.of(np.abs(np.random.default_rng(0).normal(size=10_000)))
        >>> bool(np.exp(tail.log_beyond(np.array([8.0])))[0] < 1e-4)
        True
        """
        a, b, c = self.points
        shares = [math.log(share) for share in BEYOND]
        steep, steeper = (shares[1] - shares[0]) / (b - a), (shares[2] - shares[1]) / (c - b)
        bend = min((steeper - steep) / (c - a), 0.0)
        at = np.log(np.maximum(values, SMALLEST))
        far = shares[2] + steeper * (at - c) + bend * (at - c) * (at - b)
        return np.where(at > c, far, 0.0)

    def chance(self, values: Floats) -> Floats:
        """Of each value, how probably it is as large by chance: values expected beyond it, of those that are, (n,)."""
        order = np.argsort(-values, kind="stable")
        found = np.empty(len(values))
        found[order] = np.arange(1, len(values) + 1)
        return np.minimum(np.exp(self.log_beyond(values)) * len(values) / found, 1.0)
