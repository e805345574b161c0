"""Formats that everybody knows, and cells that were exchanged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cellmend.posterior.evidence import NAMES, Portrait
from cellmend.posterior.exchange import Near
from cellmend.posterior.formats import FORMATS, is_account
from cellmend.posterior.known import Coded, Known
from cellmend.posterior.looks import Formats
from cellmend.posterior.meant import Spellings, exchanged


def known(texts: list[str], name: str = "c") -> Known:
    return Known.of(name, Coded.of(pa.chunked_array([pa.array(texts)])))


@pytest.mark.parametrize(
    ("name", "keep", "break_it"),
    [
        ("mail address", ["a.b@c.org", "x+y@mail.example.co.uk"], ["a.b@c", "a.bc.org", "a@b@c.org", "a@b,org"]),
        ("link", ["https://a.org/b?c=1", "www.a.org"], ["https//a.org", "a.org", "http://a"]),
        ("time of day", ["7:05", "23:59:01", "7:05 pm"], ["7:65", "25:00", "705"]),
        ("telephone number", ["(405) 605-1234", "+49 30 123 4567"], ["555-O2847", "2024-01-05", "5551234567", "12-34"]),
        ("bank account", ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"], ["DE88370400440532013000", "DE89"]),
    ],
)
def test_a_format_holds_what_keeps_it_and_nothing_else(name: str, keep: list[str], break_it: list[str]) -> None:
    assert FORMATS[name](pa.array(keep)).all()
    assert not FORMATS[name](pa.array(break_it)).any()


def test_one_wrong_digit_of_an_account_is_noticed_wherever_it_stands() -> None:
    right = "DE89370400440532013000"
    wrong = [right[:at] + str((int(right[at]) + 1) % 10) + right[at + 1 :] for at in range(2, len(right))]
    assert is_account(right)
    assert not any(is_account(text) for text in wrong)


def test_the_format_of_a_column_is_what_most_cells_keep() -> None:
    assert known(["a@b.org", "c@d.org", "x"]).format == ("mail address", pytest.approx(2 / 3))
    assert known(["a", "c", "x"]).format[1] == 0
    column = known([*(f"p{n}@home.org" for n in range(9)), "annhome.org"])
    figures = Formats().of(column, pa.array(["p3@home.org", "annhome.org"]))
    np.testing.assert_allclose(figures, [[np.log(8.5 / 10.5), 0.9], [np.log(0.5 / 10.5), 0.9]])


@pytest.mark.parametrize(
    ("seen", "meant"),
    [("ann@home,org", "ann@home.org"), ("annhome.org", "ann@home.org"), ("ann @ home.org", "ann@home.org")],
)
def test_a_slip_in_a_mail_address_is_undone(seen: str, meant: str) -> None:
    column = Spellings(known([*(f"p{n}@home.org" for n in range(20)), seen]))
    assert [each.meant for each in column.of(seen) if each.source == "format"] == [meant]


def test_nothing_is_undone_where_the_format_is_kept() -> None:
    column = Spellings(known([f"p{n}@home.org" for n in range(20)]))
    assert [each for each in column.of("p3@home.org") if each.source == "format"] == []


def test_a_mistyped_year_is_the_one_day_that_the_column_may_have() -> None:
    days = [f"202{n % 4}-0{1 + n % 9}-1{n % 9}" for n in range(60)]
    found = [each for each in Spellings(known([*days, "2922-07-01"])).of("2922-07-01") if each.source == "day"]
    assert found[0].meant == "2022-07-01"
    assert found[0].sure > 0.8 > 0.1 > found[1].sure
    assert {each.meant for each in Spellings(known(days)).of("2022-01-45") if each.source == "day"} == {
        "2022-01-05", "2022-01-15", "2022-01-25"
    }  # fmt: skip
    assert [each for each in Spellings(known(days)).of("2942-13-45") if each.source == "day"] == []


# ---------------------------------------------------------------- exchanged cells


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    born = pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 9000, 300), unit="D")
    hired = born + pd.to_timedelta(rng.integers(7000, 9000, 300), unit="D")
    table = pd.DataFrame(
        {
            "first": rng.choice(["Ann", "Bo", "Eve", "Max", "Tom"], 300),
            "born": born.strftime("%Y-%m-%d"),
            "last": rng.choice(["Lee", "Kim", "Moss", "Park", "Stone"], 300),
            "hired": hired.strftime("%Y-%m-%d"),
        }
    )
    for pair in (["first", "last"], ["born", "hired"]):
        table.loc[7, pair] = table.loc[7, pair[::-1]].to_numpy()
    return table


def test_exchanged_cells_gain_and_break_an_order_and_others_do_not() -> None:
    portrait, columns = Portrait.learn(pa.Table.from_pandas(people(), preserve_index=False))
    figures = portrait.figures(columns)[:]
    gain, crosses = (figures[..., NAMES.index(name)] for name in ("exchange_gain", "crosses"))
    others = gain[np.arange(300) != 7].max(axis=0)
    assert (gain[7] > others + 1).all(), others
    assert crosses[7, 1] == pytest.approx(np.log(0.5 / 300.5), rel=1e-5)
    assert crosses[np.arange(300) != 7][:, 1].min() > -0.1


def test_what_was_meant_by_an_exchanged_cell_stands_in_the_other_one() -> None:
    table = people()
    portrait, _ = Portrait.learn(pa.Table.from_pandas(table, preserve_index=False))
    texts = table.loc[7].tolist()
    found = [exchanged(portrait, texts, column) for column in range(4)]
    assert [each.meant for each in found if each] == [texts[2], texts[3], texts[0], texts[1]]
    assert exchanged(portrait, [*texts[:2], "", texts[3]], 0) is None


def test_a_share_of_an_order_leaves_the_row_itself_out() -> None:
    near = Near(0, 1, above=3, below=7)
    found = near.crosses(np.array([2.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(found, [np.log(2.5 / 10.5), np.log(6.5 / 10.5), 0.0])
