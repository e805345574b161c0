"""Times of day as people type them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.table.clocks import Clocks, clock_in
from cellmend.table.frames import read_frame
from cellmend.table.notation import learn_notation
from cellmend.table.reader import TableReader


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("7:10 a.m.", 430),
        ("7:10 PM", 1150),
        ("12:05 a.m.", 5),
        ("12:05 p.m.", 725),
        ("19:10", 1150),
        ("07:10:30", 430.5),
        ("12/02/2011 6:55 a.m.", 415),
        ("9:05 a.m. (-00:00)", 545),
        ("8:19aDec 1", 499),
        ("13:10 p.m.", None),
        ("24:00", None),
        ("7:61", None),
        ("9:00 a.m. to 5:00 p.m.", None),
    ],
)
def test_the_clock_in_a_text_is_found(text: str, minutes: float | None) -> None:
    found = clock_in(text)
    assert (None if found is None else found.minutes) == minutes


@pytest.mark.parametrize(
    ("texts", "notation"),
    [
        (["7:10 a.m.", "11:45 p.m."], Clocks(" a.m.", padded=False)),
        (["07:10AM", "11:45PM"], Clocks("AM")),
        (["07:10", "19:45"], Clocks()),
        (["7:10:05", "19:45:00"], Clocks(padded=False, seconds=True)),
    ],
)
def test_the_way_of_a_column_to_write_times_is_learned(texts: list[str], notation: Clocks) -> None:
    assert learn_notation(pa.array(texts * 5)) == notation


@pytest.mark.parametrize("texts", [["3:2", "16:9", "4:3"], ["a 7:10", "b 7:11", "c 9:20"], ["John 3:16", "Mark 1:02"]])
def test_ratios_and_texts_with_a_clock_in_them_are_no_times_of_day(texts: list[str]) -> None:
    assert not isinstance(learn_notation(pa.array(texts * 5)), Clocks)


@given(st.integers(0, 1439), st.sampled_from(["", " a.m.", "AM", " a"]), st.booleans(), st.booleans())
def test_a_time_that_is_written_is_read_again(minutes: int, morning: str, padded: bool, seconds: bool) -> None:
    notation = Clocks(morning, padded=padded, seconds=seconds)
    assert notation.read(pa.array([notation.write(minutes, 0)])).values.to_pylist() == [minutes]


def test_a_clock_among_words_is_read_and_a_word_cannot_be() -> None:
    times = [f"{hour}:{minute:02d} a.m." for hour in range(1, 12) for minute in range(0, 60, 7)]
    table = pa.table({"time": [*times, "12/02/2011 6:55 a.m.", "late"], "n": range(len(times) + 2)})
    _, read = TableReader.fit(read_frame(table), {"n": "real"})
    assert read.understood["time"][len(times)].as_py() == 415
    (late,) = read.suspects
    assert (late.row, late.meant) == (len(times) + 1, ())
    assert (late.cause, late.reason) == ("unreadable", "time is late, which is no time of day")
