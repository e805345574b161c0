"""The numbers that are not learned and that several modules share, each with its reason.

A dirty table breaks each of its own rules somewhere. So no rule asks for all cells, and what few cells show is none.
"""

from __future__ import annotations

# Shares of cells, rows or values.
MOSTLY = 0.5  # the rule rather than the exception
BY_FAR = 0.8  # surely the rule, however dirty the column is
NEARLY_ALL = 0.9  # the rule: one in ten may be wrong
BUT_FOR_ERRORS = 0.95  # the rule where nothing but errors speaks against it: one in twenty may be wrong
A_PART = 0.1  # a habit of the column; less are errors of their own
FEW = 0.05  # so few may be exceptions
USUAL = 0.02  # written in one way, or they are badly written
RARE = 0.01  # less may be slips

# Numbers of cells, rows or values.
ENOUGH = 20  # from which it can be told what is usual
TEN = 10  # of fewer rows, or things that they tell of, nothing is learned
ALIKE = 5  # that are alike; fewer may be errors of their own
TOGETHER = 3  # that do not come together by chance, as one or two do

# What computers bear.
MOST_KEPT = 20_000  # different values or groups that are learned from a column: a model file must stay small
LOOKED_AT = 10_000  # rows, spread over the table, that tell as much as all do

TINY = 1e-300  # beside what may be 0, of which there is no log and by which nothing can be divided
MULTIPLIER = 0x9E3779B97F4A7C15  # of hashes; odd, so that nothing is lost
