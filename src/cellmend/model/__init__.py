"""The mathematics: from cells to the probability that each of them is wrong."""
