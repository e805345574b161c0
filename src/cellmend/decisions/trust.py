"""How far decisions are trusted against the suspicion of before: as far as they would have told one another.

Odds after are a constant times odds before, and times what the forest says, each to a power. The three are those that
make the verdicts likeliest, each judged by trees that have not seen it; a few verdicts leave them where they start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellmend.decisions.habits import Floats

START = np.array([0.0, 1.0, 0.5])  # constant, power of the odds before (as they are), of what was learned (its root)
SPREAD = np.array([1.0, 0.25, 1.0])  # of the three; the suspicion of before is calibrated already
ROUNDS = 50  # of Newton's method at most
SETTLED = 1e-6
LONGEST_STEP = 1.0


@dataclass(frozen=True)
class Trust:
    """How much each part counts; all log odds."""

    constant: float
    before: float
    learned: float

    def odds(self, before: Floats, learned: Floats) -> Floats:
        """The log odds after decisions.

        >>> Trust(-1.0, 1.0, 0.5).odds(np.array([2.0]), np.array([4.0])).tolist()
        [3.0]
        """
        return self.constant + self.before * before + self.learned * learned


def weigh(before: Floats, learned: Floats, wrong: Floats, shares: Floats) -> Trust:
    """The trust by which verdicts (n,) of cells that stand for these shares of the table are likeliest.

    >>> some = np.linspace(-2, 2, 40)
    >>> weigh(0 * some, some, (some > 0).astype(float), np.ones(40)).learned > 0.5
    True
    """
    parts = np.stack([np.ones_like(before), before, learned], axis=1)  # (n, 3)
    shares, certain, found = shares * len(shares) / shares.sum(), np.diag(SPREAD**-2.0), START
    for _ in range(ROUNDS):
        expected = 1 / (1 + np.exp(-parts @ found))
        slope = parts.T @ (shares * (wrong - expected)) - certain @ (found - START)
        curvature = (parts * (shares * expected * (1 - expected))[:, None]).T @ parts + certain
        step = np.clip(np.linalg.solve(curvature, slope), -LONGEST_STEP, LONGEST_STEP)
        found = found + step
        if np.abs(step).max() < SETTLED:
            break
    constant, kept, taken = found.tolist()
    return Trust(constant, max(kept, 0.0), max(taken, 0.0))  # neither ever speaks for its opposite
