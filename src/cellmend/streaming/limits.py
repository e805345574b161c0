"""How much is held, read and learned from at once; looked up here when needed, so that one change counts everywhere."""

PIECE = 100_000  # rows that are held at once
UNIT = 500_000  # rows of a unit at least, if its file has as many
READ_AT_ONCE = 2**20  # bytes of a column; a row group may have gigabytes
LARGE = 100_000  # rows; a table with more is scored in pieces
VERY_LARGE = 1_000_000  # rows; a table with more is fitted, cleaned and updated from without being held
LARGE_CSV = 2**28  # bytes; a smaller CSV file is never worked on in pieces unless asked for
LEARNED = 200_000  # rows drawn at random from a larger table, to learn kinds and scales from
LEAST_LEVEL = 0.02  # how often a value must be expected among the drawn rows to be a level without being there
MOST_VALUES = 100_000  # values of a category that are counted; beyond that, its levels are those of the drawn rows
