"""Another notation is not an error: a column written otherwise than learned is read so, or left alone."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cellmend import CellMender, jobs, large_jobs
from cellmend.files.formats import read_file
from cellmend.settings import Threshold
from cellmend.streaming import open_in_pieces
from cellmend.streaming.scores import write_scores
from cellmend.table.dates import Dates
from cellmend.table.numbers import Numbers, learn_numbers
from cellmend.table.otherwise import written_otherwise
from cellmend.table.texts import Unread
from tests.conftest import SMALL


def measured(rows: int = 200) -> pd.DataFrame:
    """Texts of a file with decimal points, without units, dates by the month."""
    x = np.random.default_rng(0).normal(size=rows).round(2)
    days = pd.Timestamp("2024-05-01") + pd.to_timedelta((40 * x).round(), unit="D")
    return pd.DataFrame(
        {
            "price": [f"{value:.2f}" for value in 40 + 5 * x],
            "weight": [f"{value:.1f} kg" for value in 10 + x],
            "day": days.strftime("%d/%m/%Y"),
            "size": np.where(x > 0, "large", "small"),
        }
    )


@pytest.fixture(scope="module")
def mender() -> CellMender:
    return CellMender(**(SMALL | {"epochs": 40})).fit(measured())


OTHER = {
    "decimal comma": ("price", lambda t: t.str.replace(".", ","), "with a decimal comma, with a decimal point"),
    "unit": ("price", lambda t: t + " USD", "with the unit USD, without a unit when"),
    "no unit": ("weight", lambda t: t.str.removesuffix(" kg"), "without a unit, with the unit kg when"),
    "date order": ("day", lambda t: pd.to_datetime(t, dayfirst=True).dt.strftime("%m/%d/%Y"), "as 12/31/2023"),
    "gaps": ("price", lambda t: t.where(t.index % 5 > 0, "leer"), "with leer where a value is missing"),
}


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [pytest.param(*each, id=name) for name, each in OTHER.items()],
)
def test_a_column_in_another_notation_is_one_sentence_and_no_finding_more(mender, column, change, said) -> None:
    table = measured()
    other = table.assign(**{column: change(table[column])})
    usual, mended = mender.mend(table, suspicion=0.5), mender.mend(other, suspicion=0.5)
    before = {(each.row, each.column) for each in usual.found}
    assert {(each.row, each.column) for each in mended.found} <= before
    assert said in mender.column_findings(other)[column]
    changed = (mended.repaired[column] != other[column]).sum()
    assert changed <= sum(name == column for _, name in before)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.str.replace("kg", "lb"),
        lambda t: t.where(t.index % 3 > 0, t.str.replace(".", ",")).where(t.index % 3 < 2, "see " + t),
    ],
    ids=["another unit", "words"],
)
def test_a_column_that_nobody_can_read_for_sure_is_left_alone(mender, change) -> None:
    table = measured()
    other = table.assign(weight=change(table["weight"]))
    mended = mender.mend(other, suspicion=0.01, impute=True)
    assert not [each for each in mended.found if each.column == "weight"]
    pd.testing.assert_series_equal(mended.repaired["weight"], other["weight"])
    assert "it is neither judged nor changed" in mender.column_findings(other)["weight"]


def test_a_few_cells_in_another_notation_are_errors_as_before(mender) -> None:
    table = measured()
    table.loc[[3, 50, 120], "price"] = ["41,25", "38,10", "40 USD"]
    suspicion = mender.cell_suspicion(table)["price"]
    assert (suspicion[[3, 50, 120]] > 3 * suspicion.drop([3, 50, 120]).quantile(0.95)).all()
    assert "written" not in mender.column_findings(table).get("price", "")


def test_three_decimals_that_may_be_groups_are_left_alone() -> None:
    texts = [f"{n}.{n:03}" for n in range(1, 40)]
    learned = learn_numbers(texts, np.ones(len(texts), dtype=int), least=0.6)
    other = written_otherwise(pa.table({"a": [text.replace(".", ",") for text in texts]}), {"a": learned})
    assert other["a"].notation == Unread()


def test_what_is_written_as_learned_is_not_mentioned() -> None:
    table = pa.table({"n": ["1.5", "2"] * 13 + ["x"], "d": ["03/04/2024"] * 27})
    assert written_otherwise(table, {"n": Numbers(), "d": Dates("%d/%m/%Y")}) == {}


def test_one_cell_tells_no_notation() -> None:
    assert written_otherwise(pa.table({"n": ["1,5"]}), {"n": Numbers()}) == {}


@pytest.mark.parametrize("output", ["scores.parquet", "scores"], ids=["file", "folder"])
def test_scoring_reads_the_new_notation_too(mender, tmp_path: Path, output: str) -> None:
    table = measured()
    table.assign(price=table["price"].str.replace(".", ",")).to_csv(tmp_path / "new.csv", index=False, sep=";")
    if output == "scores":
        mender.save(tmp_path / "m.cellmend")
        stream = open_in_pieces(str(tmp_path / "new.csv"), tmp_path / "copies")
        told = large_jobs.score_stream(
            stream, tmp_path / "m.cellmend", str(tmp_path / output), large_jobs.Run(shown=True)
        ).notes
    else:
        told = write_scores(read_file(tmp_path / "new.csv"), mender, tmp_path / output, shown=True).notes
    assert pd.read_parquet(tmp_path / output)["price"].mean() < 0.2
    assert [sentence for sentence in told if sentence.startswith("price: written with a decimal comma")]
    assert not [sentence for sentence in told if "moved" in sentence]


def test_repairs_are_written_in_the_notation_of_the_new_table(mender, tmp_path: Path) -> None:
    table = measured()
    table = table.assign(price=table["price"].str.replace(".", ","))
    table.loc[7, "price"] = "9999,00"
    table.to_csv(tmp_path / "new.csv", index=False, sep=";")
    source = read_file(tmp_path / "new.csv")
    job = jobs.judge(source, mender, Threshold(suspicion=0.5), [], time.perf_counter())
    price = next(each for each in job.mended.found if (each.row, each.column) == (7, "price"))
    assert price.repair is None or "," in price.repair
    assert [note for note in job.notes if "decimal comma" in note]
