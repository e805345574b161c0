from __future__ import annotations

import numpy as np

from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend_bench.experiments import EXPERIMENTS, Narrow, plan
from cellmend_bench.log import make_log


def test_a_log_is_the_same_each_time_and_all_kinds_of_errors_are_planted() -> None:
    one, again = make_log(1500, 3), make_log(1500, 3)
    assert one.dirty.equals(again.dirty)
    assert one.dirty.shape == (1500, 13)
    assert set(np.unique(one.kinds[one.wrong])) == {"spike", "stuck", "shift"}
    assert 0.005 < one.wrong.mean() < 0.1


def test_neighbours_find_most_of_the_errors_of_a_small_log_and_hardly_anything_else() -> None:
    log = make_log(3000, 0)
    read = TableReader.fit(read_frame(log.dirty), None)[1]
    flagged = np.zeros_like(log.wrong)
    for suspect in read.suspects:
        flagged[suspect.row, suspect.column] |= suspect.suspicion >= 0.8
    hits = (flagged & log.wrong).sum()
    assert 2 * hits / (flagged.sum() + log.wrong.sum()) > 0.8
    assert hits / flagged.sum() > 0.9


def test_the_log_is_an_experiment() -> None:
    assert [run.table for run in plan("log", Narrow())] == ["log"]
    assert "spikes" in EXPERIMENTS["log"].about
