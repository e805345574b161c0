"""The flagged cells: thresholds, reasons, abstaining, messy text."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from cellmend import CellMender, SettingError
from cellmend.findings.expectation import Expectation, with_reasons
from cellmend.findings.explanation import say_why, slipped_point, swapped
from cellmend.findings.finding import Finding, to_html
from cellmend.findings.wording import Wording
from cellmend.model.encoding import Cells
from cellmend.model.evidence import best
from cellmend.table.causes.named import EXCHANGED
from cellmend.table.frames import read_frame
from cellmend.table.values import as_text, shortened
from tests.conftest import SMALL

ROWS = 400


def messy(rows: int = ROWS) -> pd.DataFrame:
    """A table as people keep them: units, dates, words for gaps, typing errors; all columns follow x."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows).round(2)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta((20 * x).round(), unit="D")
    table = pd.DataFrame(
        {
            "weight": [f"{value:.1f} kg" for value in 50 + 5 * x],
            "length": [f"{value:.2f}".replace(".", ",") for value in 10 + x],
            "day": days.strftime("%d.%m.%Y"),
            "city": np.where(x > 0, "Birmingham", "Florence"),
            "size": np.where(x > 0, "large", "small"),
        }
    )
    table.loc[3, "weight"] = "heavy!"
    table.loc[4, "weight"] = "n/a"
    table.loc[5, "length"] = "9999,00"
    table.loc[6, "city"] = table.loc[6, "city"].replace("m", "x").replace("F", "G")
    table.loc[7, "day"] = "31.02.2024"
    return table


@pytest.fixture(scope="module")
def mender() -> CellMender:
    return CellMender(epochs=80, hidden_dim=64, latent_dim=16, embedding_dim=8, repair_from=0.5, random_state=0).fit(
        messy()
    )


def line(findings: pd.DataFrame, row: int, column: str) -> pd.Series:
    chosen = findings[(findings["row"] == row) & (findings["column"] == column)]
    assert len(chosen) == 1, findings
    return chosen.iloc[0]


# ---------------------------------------------------------------- messy text


@pytest.mark.slow
def test_text_columns_are_read_as_what_they_hold(mender: CellMender) -> None:
    kinds = {column.name: column.kind for column in mender.schema_}
    assert kinds == {"weight": "real", "length": "real", "day": "date", "city": "category", "size": "category"}


@pytest.mark.slow
def test_what_cannot_be_read_is_flagged_and_repaired_in_the_columns_style(mender: CellMender) -> None:
    table = messy()
    findings, repaired = mender.findings(table), mender.repair(table)
    weight = line(findings, 3, "weight")
    assert weight["value"] == "heavy!"
    assert weight["repair"].endswith(" kg")
    true = 50 + 5 * (float(table.loc[3, "length"].replace(",", ".")) - 10)
    assert float(weight["repair"][:-3]) == pytest.approx(true, abs=2.5)
    length = line(findings, 5, "length")
    assert float(length["repair"].replace(",", ".")) == pytest.approx(10, abs=4)
    assert length["low"] < float(length["repair"].replace(",", ".")) < length["high"]
    assert repaired.loc[3, "weight"] == weight["repair"]
    assert repaired.loc[4, "weight"] == "n/a", "a missing cell stays as it is"
    assert repaired.loc[5, "length"] == length["repair"]
    city = line(findings, 6, "city")
    assert city["repair"] in ("Birmingham", "Florence")
    assert "probably" in city["reason"]
    assert city["cause"] == "replaced"
    assert (weight["cause"], line(findings, 5, "length")["cause"]) == ("unreadable", "arithmetic")
    day = line(findings, 7, "day")
    assert pd.to_datetime(day["repair"], format="%d.%m.%Y").year in (2023, 2024)
    low, high = pd.to_datetime([day["low"], day["high"]], format="%d.%m.%Y")
    assert low <= pd.to_datetime(day["repair"], format="%d.%m.%Y") <= high
    assert day["low"] in day["reason"]


@pytest.mark.slow
def test_cells_that_are_not_flagged_stay_as_they_were(mender: CellMender) -> None:
    table = messy()
    findings, repaired = mender.findings(table), mender.repair(table)
    changed = (repaired != table).to_numpy()
    flagged = np.zeros_like(changed)
    for finding in findings.itertuples():
        flagged[finding.row, table.columns.get_loc(finding.column)] = True
    assert not (changed & ~flagged).any()


@pytest.mark.slow
def test_imputing_writes_text_in_the_columns_style(mender: CellMender) -> None:
    filled = mender.repair(messy(), impute=True)
    assert filled.loc[4, "weight"].endswith(" kg")


@pytest.mark.slow
def test_polars_and_pyarrow_give_the_same_findings(mender: CellMender) -> None:
    table = messy()
    own = mender.findings(table)
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table)):
        findings = mender.findings(other)
        assert list(findings["row"].to_numpy()) == list(own["row"])
        assert [str(v) for v in findings["repair"].to_pandas()] == [str(v) for v in own["repair"]]


@pytest.mark.slow
def test_dates_of_a_type_for_dates_are_repaired_in_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    days = pd.Series(pd.Timestamp("2024-06-01") + pd.to_timedelta((30 * x).round(), unit="D"))
    table = pd.DataFrame({"day": days, "x": x.round(2), "y": (2 * x).round(2)})
    table.loc[9, "day"] = pd.Timestamp("1824-06-01")
    mender = CellMender(epochs=100, hidden_dim=64, latent_dim=16, random_state=0).fit(table)
    repaired = mender.repair(table)
    assert repaired["day"].dtype == table["day"].dtype
    expected = days[9]
    assert abs((repaired.loc[9, "day"] - expected).days) < 25
    arrow = mender.repair(pa.Table.from_pandas(table))
    assert arrow.schema.field("day").type == pa.Table.from_pandas(table).schema.field("day").type
    assert abs((arrow["day"][9].as_py() - expected.to_pydatetime()).days) < 25


# ---------------------------------------------------------------- thresholds


@pytest.mark.slow
def test_top_flags_so_many_the_most_suspicious(mender: CellMender) -> None:
    table = messy()
    three = mender.findings(table, top=3)
    assert len(three) == 3
    said = ["row", "column", "value", "suspicion", "cause"]  # a repair also depends on what else is flagged in the row
    pd.testing.assert_frame_equal(three[said], mender.findings(table, suspicion=1e-9).head(3)[said])


@pytest.mark.slow
def test_suspicion_is_a_threshold_for_once(mender: CellMender) -> None:
    table = messy()
    whole = mender.cell_suspicion(table).to_numpy()
    assert len(mender.findings(table, suspicion=0.9)) == (whole >= 0.9).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"fdr": 0.1, "top": 3}, "Only one of fdr, suspicion and top may be given; fdr and top are"),
        ({"top": 0}, "top must be a whole number from 1; it is 0"),
        ({"suspicion": 0.0}, "suspicion must be above 0 and at most 1; it is 0.0"),
    ],
)
def test_thresholds_that_cannot_be_are_refused(mender: CellMender, asked, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        mender.findings(messy(), **asked)


# ---------------------------------------------------------------- reasons


def naive_order(network, values, shown, own: int) -> list[int]:
    """Columns removed one after the other, each time the one that moves the expectation of `own` most; in loops."""

    def decoded_by(mask):  # type: ignore[no-untyped-def]
        return network.decode(network.encode(Cells(values, mask)).mu)

    def distance(mask) -> float:  # type: ignore[no-untyped-def]
        for (span, before), (_, after) in zip(
            network.probabilities(whole), network.probabilities(decoded_by(mask)), strict=True
        ):
            if span.start <= own < span.stop:
                return float((before[0, own - span.start] - after[0, own - span.start]).abs().sum() / 2)
        expected = Cells(best(network, whole), torch.ones_like(mask))
        before, after = (network.log_clean(expected, decoded)[0, own] for decoded in (whole, decoded_by(mask)))
        return max(float(before - after), 0.0)

    shown = shown.clone()
    shown[0, own] = False
    whole, order = decoded_by(shown), []
    for _ in range(values.shape[1]):
        moved = {}
        for column in range(values.shape[1]):
            if shown[0, column]:
                mask = shown.clone()
                mask[0, column] = False
                moved[column] = distance(mask)
        if not moved:
            break
        worst = max(moved, key=lambda column: moved[column])
        order.append(worst)
        shown[0, worst] = False
    return order


@pytest.mark.slow
def test_the_columns_named_are_those_whose_removal_changes_the_expectation_most(fitted: CellMender, table) -> None:
    network, cells = fitted.network_, fitted.encoder_.encode(fitted.model_.reader.read(read_frame(table)))
    asked = [Expectation(row, column, 0.0, 0.0, 0.0, 0.0, [], np.nan) for row in (0, 3, 8) for column in range(6)]
    explained = with_reasons(network, cells, cells.observed, asked)
    named = 0
    for each in explained:
        with torch.no_grad():
            row = slice(each.row, each.row + 1)
            order = naive_order(network, cells.values[row], cells.observed[row], each.column)
        assert list(each.matter) == order[: len(each.matter)]
        named += len(each.matter)
    assert named > 10


def test_reasons_do_not_depend_on_the_chunk(fitted: CellMender, table, monkeypatch) -> None:
    whole = fitted.findings(table, top=20)["reason"].tolist()
    monkeypatch.setattr("cellmend.findings.expectation.LONGEST_CHUNK", 1)
    assert fitted.findings(table, top=20)["reason"].tolist() == whole


@pytest.mark.slow
def test_a_cell_without_a_confident_repair_is_flagged_and_left(table) -> None:
    """Cities are drawn by chance: nothing in the row tells which one an unseen city was."""
    with pytest.warns(UserWarning, match="Left out"):
        mender = CellMender(**SMALL).fit(table)
    table.loc[3, "city"] = "Atlantis"
    finding = line(mender.findings(table), 3, "city")
    assert finding["repair"] is None
    assert "Abstained: " in finding["reason"]
    assert "are all possible" in finding["reason"]
    assert mender.repair(table).loc[3, "city"] == "Atlantis"


def test_a_value_is_open_if_no_level_reaches_four_fifths_or_the_interval_is_as_wide_as_the_column(fitted) -> None:
    level = next(c for c in fitted.encoder_.columns if c.levels)
    real = next(c for c in fitted.encoder_.columns if c.kind == "real")
    assert level.is_open(-1.0, 1.0, 0.79)
    assert not level.is_open(-1.0, 1.0, 0.81)
    width = real.knots[-1] - real.knots[0]
    assert real.is_open(0.0, 0.71 * width, 0.0)
    assert not real.is_open(0.0, 0.69 * width, 0.0)


@pytest.mark.slow
def test_intervals_end_where_the_column_does() -> None:
    rng = np.random.default_rng(0)
    amount = np.where(rng.random(300) < 0.8, 0.0, rng.exponential(50, 300).round(2))
    table = pd.DataFrame({"amount": amount, "x": rng.normal(size=300).round(2)})
    findings = CellMender(**SMALL).fit(table).findings(table, top=600)
    amounts = findings[findings["column"] == "amount"]
    assert amounts["low"].min() == 0
    assert amounts["high"].max() <= amount.max()


@pytest.mark.slow
def test_the_methods_of_the_paper_always_repair(fitted: CellMender, table) -> None:
    mender = copy.deepcopy(fitted).set_params(repair_method="map")
    table.loc[3, "city"] = "Atlantis"
    assert mender.repair(table).loc[3, "city"] in {"Rome", "Oslo", "Lima"}


def test_swapped_cells_explain_each_other_and_only_if_both_fit() -> None:
    x = Finding(3, "x", "9.0", 0.9, 4.0, 3.9, 4.1, "x is 9")
    y = Finding(3, "y", "4.0", 0.9, 9.1, 8.9, 9.2, "y is 4")
    one, other = swapped([x, y])
    assert (one.repair, other.repair) == ("4.0", "9.0")
    assert "looks swapped with y" in one.reason
    assert one.cause == EXCHANGED
    elsewhere = Finding(4, "y", "4.0", 0.9, 9.1, 8.9, 9.2, "y is 4")
    assert swapped([x, elsewhere]) == [x, elsewhere]
    half = Finding(3, "y", "5.0", 0.9, 9.1, 8.9, 9.2, "y is 5")
    assert swapped([x, half]) == [x, half]
    decided = replace(x, cause="decided")
    assert swapped([decided, y]) == [decided, y]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "low", "high", "repair"),
    [
        (31.8, 3.1, 3.3, 3.18),
        (0.0318, 3.1, 3.3, 3.18),
        (3180.0, 3.1, 3.3, 3.18),
        (-31.8, -3.3, -3.1, -3.18),
        (35.0, 3.1, 3.3, None),  # other digits
        (31.8, 2.0, 4.0, None),  # nearly any digits would fit
        (31.8, -0.1, 3.3, None),
        (-31.8, 3.1, 3.3, None),
    ],
)
def test_digits_that_fit_with_the_point_moved_are_the_repair(value, low, high, repair) -> None:
    x = np.random.default_rng(0).normal(3, 1, size=200).round(2)
    mender = CellMender(**SMALL | {"epochs": 1}).fit(pd.DataFrame({"x": x, "y": 2 * x}))
    table = mender.model_.reader.read(read_frame(pd.DataFrame({"x": x, "y": 2 * x})))
    column = mender.encoder_.columns[0]
    held, least, most = (column.to_model(number) for number in (value, low, high))
    words = Wording(table, mender.encoder_)
    assert slipped_point(Expectation(0, 0, held, held, least, most, [], np.nan), column, words) == repair


def test_sentences() -> None:
    assert say_why("z", 31.8, "3 to 4", ["x 5"]) == "z is 31.8; for x 5 it is usually 3 to 4"
    assert shortened("x" * 100).endswith("…")


@pytest.mark.slow
def test_notebooks_show_findings_with_nothing_taken_for_markup(mender: CellMender) -> None:
    table = messy()
    page = mender.mend(table)._repr_html_()
    assert "heavy!" in page
    assert "probably" in page
    hostile = Finding(0, "<i>", "<script>alert(1)</script>", 0.9, None, None, None, "<b>")
    assert "<script>" not in to_html([hostile] * 60)
    assert "10 more" in to_html([hostile] * 60)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (0.1 + 0.2, "0.3"), (1234567.89, "1234567.89"), (12, "12"), (True, "True"), (None, "")],
)
def test_values_are_shown_as_a_person_would_write_them(value, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.slow
def test_of_few_numbers_a_repair_is_one_that_the_column_has() -> None:
    """Also where the column holds numbers and not text, and a slipped point tells what was meant."""
    rng = np.random.default_rng(0)
    price = rng.choice([9.95, 19.95, 39.95], 300)
    table = pd.DataFrame({"price": price, "weight": price * 2 + rng.normal(0, 0.5, 300), "day": rng.normal(size=300)})
    table.loc[7, "price"], table.loc[20, "price"] = 100 * table.loc[7, "price"], -7000.0
    found = CellMender(epochs=30, random_state=0).fit(table).findings(table)
    assert line(found, 7, "price")["repair"] == price[7]
    assert line(found, 20, "price")["repair"] == price[20]
    assert set(found["cause"]) == {"far off"}
