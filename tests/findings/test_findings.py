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
from cellmend.findings.explanation import Verdict, explain, left_as_found, say_why
from cellmend.findings.finding import Finding, to_html
from cellmend.findings.wording import Wording
from cellmend.model.encoding import Cells, TableEncoder
from cellmend.model.evidence import best
from cellmend.options import ThresholdOptions
from cellmend.posterior.meant import Hypothesis
from cellmend.posterior.weigher import FAMILIES
from cellmend.settings import Threshold
from cellmend.table.causes.named import MEANINGS
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.readtable import Suspect
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
    eager = copy.copy(mender).set_params(repair_from=1e-6)
    findings, repaired = (ask(table, suspicion=0.02) for ask in (eager.findings, eager.repair))
    weight = line(findings, 3, "weight")
    assert weight["value"] == "heavy!"
    assert weight["repair"] is None or np.isnan(weight["repair"]), "a word may stand for a weight that nobody knew"
    true = 50 + 5 * (float(table.loc[3, "length"].replace(",", ".")) - 10)
    assert weight["low"] - 1 < true < weight["high"] + 1
    length = line(findings, 5, "length")
    assert float(length["repair"].replace(",", ".")) == pytest.approx(10, abs=4)
    assert length["low"] < float(length["repair"].replace(",", ".")) < length["high"]
    assert repaired.loc[3, "weight"] == "heavy!"
    assert repaired.loc[5, "length"] == length["repair"]
    city = line(findings, 6, "city")
    assert city["repair"] in ("Birmingham", "Florence")
    assert "probably" in city["reason"]
    assert city["cause"] == "replaced"
    assert line(findings, 5, "length")["cause"] == "arithmetic"
    assert set(findings["cause"]) <= set(MEANINGS)
    assert (findings["repair_probability"] <= findings["suspicion"] + 1e-6).all()


@pytest.mark.slow
def test_a_word_for_a_gap_is_not_filled_unless_asked(mender: CellMender) -> None:
    eager = copy.copy(mender).set_params(repair_from=1e-6)
    assert eager.repair(messy(), suspicion=0.02).loc[4, "weight"] == "n/a"


@pytest.mark.slow
def test_a_repair_that_is_not_sure_enough_is_named_and_not_made(mender: CellMender) -> None:
    table = messy()
    eager, strict = (copy.copy(mender).set_params(repair_from=least) for least in (1e-6, 1.0))
    made, left = eager.mend(table, suspicion=0.02), strict.mend(table, suspicion=0.02)
    assert any(each.repair is not None for each in made.found)
    assert all(each.repair is None for each in left.found)
    pd.testing.assert_frame_equal(left.repaired, table)
    for sure, unsure in zip(made.found, left.found, strict=True):
        assert (unsure.row, unsure.column, unsure.cause) == (sure.row, sure.column, sure.cause)
        assert (unsure.suspicion, unsure.repair_probability) == (sure.suspicion, sure.repair_probability)
        if sure.repair is not None:
            assert unsure.reason.startswith(
                sure.reason.partition(";")[0].partition(", but")[0]
            )  # a formula may add to it
            assert ". Left as it is: " in unsure.reason


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
def test_a_number_beyond_whole_ones_can_be_meant() -> None:
    reader, read = TableReader.fit(read_frame(pd.DataFrame({"a": [1.5, 2.5, 4.0]})), None)
    encoder = TableEncoder.fit(reader.schema, read)
    [value] = Wording(read, encoder).read(encoder.columns[0], ["-92233720368547760000"])
    assert value < -1e5


def test_dates_of_a_type_for_dates_are_repaired_in_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    days = pd.Series(pd.Timestamp("2024-06-01") + pd.to_timedelta((30 * x).round(), unit="D"))
    table = pd.DataFrame({"day": days, "x": x.round(2), "y": (2 * x).round(2)})
    table.loc[9, "day"] = days[9].replace(year=2042)
    mender = CellMender(epochs=100, hidden_dim=64, latent_dim=16, repair_from=1e-9, random_state=0).fit(table)
    least = float(mender.cell_suspicion(table).loc[9, "day"])
    repaired = mender.repair(table, suspicion=least)
    assert repaired["day"].dtype == table["day"].dtype
    assert repaired.loc[9, "day"] == days[9]
    arrow = mender.repair(pa.Table.from_pandas(table), suspicion=least)
    assert arrow.schema.field("day").type == pa.Table.from_pandas(table).schema.field("day").type
    assert arrow["day"][9].as_py() == days[9].to_pydatetime()


def test_a_day_that_nobody_can_have_typed_is_never_offered() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    days = (pd.Timestamp("2024-06-01") + pd.to_timedelta((30 * x).round(), unit="D")).strftime("%Y-%m-%d")
    table = pd.DataFrame({"day": days, "x": x.round(2)})
    table.loc[9, "day"] = "1824-06-01"  # two digits off
    mender = CellMender(epochs=30, random_state=0).fit(table)
    found = line(mender.findings(table, suspicion=float(mender.cell_suspicion(table).loc[9, "day"])), 9, "day")
    assert pd.isna(found["repair"])
    assert found["reason"].endswith("Left as it is: nothing tells what was meant")


# ---------------------------------------------------------------- thresholds


@pytest.mark.slow
def test_top_flags_so_many_the_most_suspicious(mender: CellMender) -> None:
    table = messy()
    three = mender.findings(table, top=3)
    assert len(three) == 3
    said = ["row", "column", "value", "suspicion", "cause"]  # a repair also depends on what else is flagged in the row
    pd.testing.assert_frame_equal(three[said], mender.findings(table, suspicion=1e-9).head(3)[said])


@pytest.mark.slow
def test_without_a_threshold_python_flags_what_the_commands_flag(mender: CellMender) -> None:
    table = messy()
    commands = ThresholdOptions().threshold().given
    pd.testing.assert_frame_equal(mender.findings(table), mender.findings(table, **commands))
    assert Threshold.of(otherwise=CellMender().threshold).given == commands


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
    suspicion = mender.cell_suspicion(table)["city"]
    assert suspicion[3] > suspicion.drop(3).median()
    finding = line(mender.findings(table, suspicion=float(suspicion[3])), 3, "city")
    assert finding["repair"] is None
    assert "Left as it is: " in finding["reason"]
    assert mender.repair(table, suspicion=float(suspicion[3])).loc[3, "city"] == "Atlantis"


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


def test_sentences() -> None:
    assert say_why("z", 31.8, "3 to 4", ["x 5"]) == "z is 31.8; for x 5 it is usually 3 to 4"
    assert shortened("x" * 100).endswith("…")


@pytest.mark.slow
def test_printing_what_was_mended_is_one_short_line(mender: CellMender) -> None:
    mended = mender.mend(messy(), suspicion=0.5)
    flagged, repaired = len(mended.flagged), sum(each.repair is not None for each in mended.found)
    cells = f"{flagged} of {messy().size:,} cells flagged, {repaired} repaired"
    assert repr(mended) == f"Mended: {cells}; see .findings, .repaired, .suspicion"
    contradicted = replace(mended, contradictions=[None, None])
    assert "flagged, 2 contradictions," in repr(contradicted)


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
    mender = CellMender(epochs=30, repair_from=1e-9, random_state=0).fit(table)
    suspicion = mender.cell_suspicion(table)["price"]
    assert set(suspicion.nlargest(2).index) == {7, 20}
    found = mender.findings(table, suspicion=float(suspicion.nlargest(2).min()))
    assert line(found, 7, "price")["repair"] == price[7]
    assert pd.isna(line(found, 20, "price")["repair"]) or line(found, 20, "price")["repair"] in price


# ---------------------------------------------------------------- verdicts


def verdict_of(
    table: pd.DataFrame,
    place: int,
    best: Hypothesis | None,
    family: str = "spelling",
    suspects: tuple[Suspect, ...] = (),
) -> Finding:
    """The words for a cell of row 3 of a table, of which one hypothesis says what it was."""
    reader, read = TableReader.fit(read_frame(table), None)
    words = Wording(read, TableEncoder.fit(reader.schema, read))
    return explain(Verdict(3, place, 0.8, family, best, 0.0 if best is None else 0.9, suspects, None), words)


@pytest.mark.parametrize(("family", "cause"), [("valid", "key"), ("spelling", "spelling")])
def test_the_cause_is_that_of_the_expert_who_gives_the_reason(family: str, cause: str) -> None:
    said = Suspect(3, 0, 0.8, (), "city is Oslo in 2 rows", cause="key")
    found = verdict_of(small_table(), 0, None, family, (said,))
    assert (found.cause, found.reason) == (cause, "city is Oslo in 2 rows")


def small_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"city": ["Rome", "Oslo"] * 50, "size": rng.normal(size=100), "sold": [True, False] * 50})


@pytest.mark.parametrize(
    ("place", "meant", "source", "repair", "cause"),
    [
        (0, "Rome", "near", "Rome", "spelling"),
        (0, "Rome", "variant", "Rome", "form"),
        (1, "3.5", "point", 3.5, "point"),
        (1, "-3", "sign", -3, "sign"),
        (2, "true", "level", True, "spelling"),
        (2, "False", "level", False, "spelling"),
    ],
)
def test_a_hypothesis_becomes_a_repair_as_its_column_holds_it(place, meant, source, repair, cause) -> None:
    found = verdict_of(small_table(), place, Hypothesis(meant, source, f"probably {meant}"))
    assert (found.repair, type(found.repair), found.cause) == (repair, type(repair), cause)
    assert found.repair_probability == pytest.approx(0.72)
    assert found.reason == f"{shortened(found.value)} is probably {meant}"


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_hypothesis_the_family_of_causes_gives_the_words(family: str) -> None:
    found = verdict_of(small_table(), 0, None, family)
    assert found.repair is None
    assert found.repair_probability == 0
    assert found.cause in MEANINGS
    assert found.reason.startswith("city is Oslo; it ") or found.reason.startswith("city is Oslo; hardly")


def test_a_repair_is_left_if_it_is_not_sure_or_its_column_is_protected() -> None:
    sure = Finding(3, "city", "Rmoe", 0.95, "Rome", None, None, "city is Rmoe", repair_probability=0.93)
    assert left_as_found(sure, 0.9, []) == sure
    assert left_as_found(sure, 0.94, []).reason == "city is Rmoe. Left as it is: Rome is not sure enough (93 %)"
    protected = left_as_found(sure, 0.9, ["city"])
    assert (protected.repair, protected.repair_probability) == (None, 0.93)
    assert protected.reason.endswith("the column is protected; it was probably Rome")
    vague = Finding(3, "city", "Rmoe", 0.95, "Rome", None, None, "city is Rmoe", repair_probability=0.1)
    assert left_as_found(vague, 0.9, []).reason.endswith("Left as it is: nothing tells what was meant")
