"""The numbers that are not learned, each with its reason."""

from __future__ import annotations

MOST_TEXTS = 50_000  # different texts of a column that are remembered: a model file must stay small
MOST_SPELLED = 20_000  # different words of a column that are compared by spelling: more are identifiers
FARTHEST = 12.0  # evidence is held within this many natural logarithms: beyond it nothing is surer
PARTNERS = 4  # columns that tell about another: more say the same again
MOST_PAIRED = 60  # columns that are all tried as partners; of more, those that tell most in a sample
SAMPLED = 500  # rows of that sample
UNSEEN = 0.5  # rows in thought with a partner's value and a value never seen beside it (Krichevsky and Trofimov)
ROUNDS = 2  # of EM for the rates: more of them fit tables unlike the public ones too closely (docs/prior.md)
LOWEST_RATE = 1e-7  # of a family in a column: nothing is impossible
UNSUSPECTED = 5.0  # log odds against a cell that an expert has nothing against
LEARNED_ROWS = 5_000  # of a table that tell what its columns look like on the whole
WEIGHED_CELLS = 30_000  # at once: some 30 MB
TOGETHER = 32  # rows are weighed by multiples of these: processors treat the last few otherwise than the others
MOST_WRONG = 0.95  # of a column: none is wrong throughout, or nothing would tell what is right
LEAST_CHANCE = 1e-6  # that an expert is wrong: none is surer than that
LIKE_WRONG = 3.0  # natural cells of a column that may be like wrong ones, whatever the network thinks (docs/method.md)
REACH = 2  # columns of the same sort to the left and to the right: what is confused stands near
LETTERS_OF_A_DAY = 19  # of a text in which a slip is looked for: a date and its time, to the second
MOST_DAYS = 3  # that are offered for one date: of more, none is probable
