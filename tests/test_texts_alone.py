"""Tables of nothing but texts, of which no network can learn: their evidence alone judges them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cellmend import PAPER, CellMender, SchemaError, SchemaWarning, load
from cellmend.files.formats import read_file
from cellmend.review.answers import columns
from cellmend.review.results import open_results
from cellmend.review.review import Review
from tests.review.conftest import wait_for_teacher
from tests.test_cli import here, said_by

FIRST = ["José", "Zoë", "Anna", "Peter", "Jürgen", "Maria", "Lukas", "Chloé", "Emma", "Henrik", "Sofia", "Tomás"]
LAST = ["Müller", "García", "Smith", "Johnson", "Schröder", "Lindqvist", "Okafor", "Nguyen", "Rossi", "Peeters"]
OPENINGS = ["Hello, my", "Good morning, the", "Again the", "We think that our", "Sadly the", "As I wrote, your", "The"]
THINGS = ["parcel", "invoice", "ticket", "contract", "refund", "booking", "account", "printer", "voucher", "order"]
DEEDS = ["arrived late", "was damaged", "is still missing", "looks fine now", "has been cancelled", "went next door"]
WISHES = ["please call back", "can you help?", "thank you", "I want my money back", "no hurry", "see the photo"]
MANGLED = [3, 30, 70]  # names that were read in another encoding
MEANT, READ = "José García", "JosÃ© GarcÃ­a"

pytestmark = pytest.mark.filterwarnings("ignore:Left out of the model")


def messages() -> pd.DataFrame:
    """Who wrote what; messages and most names stand once; some cells are mangled, misspelled or say nothing."""
    rng = np.random.default_rng(0)
    everybody = [f"{first} {last}" for first in FIRST for last in LAST]
    names = [*everybody, *everybody[:60], *[MEANT] * 12, *["Zoë Müller"] * 8]
    said = [
        f"{rng.choice(OPENINGS)} {rng.choice(THINGS)} {number} {rng.choice(DEEDS)}, {rng.choice(WISHES)}"
        for number in range(100, 100 + len(names))
    ]
    table = pd.DataFrame({"name": names, "message": said})
    table.loc[MANGLED, "name"] = READ
    table.loc[12, "name"] = "Zoë Mülller"
    table.loc[90, "message"] = "N/A"
    table.loc[130, "message"] = None
    return table


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return messages()


@pytest.fixture(scope="module")
def fitted(table) -> CellMender:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return CellMender(random_state=0).fit(table)


def test_mangled_texts_are_found_without_a_network(fitted: CellMender, table) -> None:
    assert fitted.encoder_.columns == []
    assert fitted.history_ == []
    assert sum(weight.numel() for weight in fitted.network_.parameters()) == 0
    findings = fitted.findings(table, suspicion=0.5)
    assert set(MANGLED) <= set(findings.loc[findings["column"] == "name", "row"])
    assert len(findings) <= 2 * len(MANGLED)
    suspicion = fitted.cell_suspicion(table)
    assert suspicion.loc[MANGLED, "name"].min() > suspicion["name"].drop(MANGLED).quantile(0.95)
    assert suspicion.loc[130, "message"] == 0


def test_every_question_has_an_answer(fitted: CellMender, table) -> None:
    suspicion, rows = fitted.score_rows(table)
    assert suspicion.shape == table.shape
    np.testing.assert_allclose(rows, suspicion.sum(axis=1))
    halves = [fitted.score_rows(part)[0] for part in (table[:77], table[77:])]
    np.testing.assert_array_equal(np.concatenate(halves), suspicion)
    np.testing.assert_allclose(fitted.cell_scores(table), -np.log1p(-fitted.cell_suspicion(table).to_numpy()))
    assert (fitted.cell_scores(table, "nll") == 0).all()
    assert (fitted.predict(table) == -1).mean() == pytest.approx(0.05, abs=0.02)
    assert fitted.score(table) == 0.0
    assert fitted.repair(table, impute=True).isna().sum().sum() == 1  # no network says what a message should be
    pd.testing.assert_frame_equal(fitted.reconstruct(table), table)
    assert fitted.reconstruct_proba(table) == {}
    assert fitted.moved_columns(table[:50]) == {}
    assert len(fitted.questions(table, 5)) == 5


@pytest.mark.parametrize("networks", [1, 2])
def test_a_loaded_model_answers_the_same(table, tmp_path, networks: int) -> None:
    mender = CellMender(random_state=0, networks=networks, keep_rows=9).fit(table)
    mender.save(tmp_path / "m.cellmend")
    loaded = load(tmp_path / "m.cellmend")
    pd.testing.assert_frame_equal(loaded.cell_suspicion(table), mender.cell_suspicion(table))
    pd.testing.assert_frame_equal(loaded.findings(table), mender.findings(table))
    np.testing.assert_array_equal(loaded.predict(table), mender.predict(table))


def test_an_update_keeps_what_was_learned(table) -> None:
    mender = CellMender(random_state=0).fit(table[50:].reset_index(drop=True))  # who is meant stands there
    offset = mender.offset_
    mender.update(table[:50])
    assert mender.model_.replay.stands_for == 200
    assert mender.offset_ != offset
    assert set(MANGLED) <= set(mender.findings(table, suspicion=0.5)["row"])


def test_a_decision_repairs_its_cell(table) -> None:
    mender = CellMender(random_state=0).fit(table)
    decision = {"row": MANGLED[0], "column": "name", "value": READ, "verdict": "wrong", "repair": MEANT}
    repaired = mender.learn(table, [decision]).repair(table)
    assert repaired.loc[MANGLED[0], "name"] == MEANT


def test_every_command_takes_a_file_of_texts(table, tmp_path: Path, monkeypatch, capsys) -> None:
    source, out, model = tmp_path / "messages.csv", tmp_path / "out", tmp_path / "m.cellmend"
    table.to_csv(source, index=False)
    assert here(monkeypatch, "clean", str(source), "-o", str(out), "--suspicion", "0.5", "--seed", "0") == 0
    told = said_by(capsys)
    assert "no network was trained" in told
    assert "epochs" not in told
    found = pd.read_csv(out / "findings.csv")
    assert set(MANGLED) <= set(found["row"])
    before, after = (read_file(place).table.to_pandas() for place in (source, out / "repaired.csv"))
    changed = {(row, column) for row, column in zip(*np.nonzero((before != after) & before.notna()), strict=True)}
    told_so = found[found["repair"].notna()]
    assert changed == {(line.row, list(table).index(line.column)) for line in told_so.itertuples()}
    assert "messages.csv" in (out / "report.html").read_text()

    assert here(monkeypatch, "fit", str(source), "-m", str(model), "--seed", "0") == 0
    scores, repaired = tmp_path / "scores.csv", tmp_path / "repaired.csv"
    assert here(monkeypatch, "score", str(source), "-m", str(model), "-o", str(scores)) == 0
    assert here(monkeypatch, "score", str(source), "-m", str(model), "-o", str(tmp_path / "scores")) == 0
    assert here(monkeypatch, "repair", str(source), "-m", str(model), "-o", str(repaired)) == 0
    assert len(pd.read_csv(scores)) == len(pd.read_csv(repaired)) == len(table)
    assert here(monkeypatch, "update", str(source), "-m", str(model)) == 0
    assert load(model).model_.replay.stands_for == 2 * len(table)


def test_a_very_large_table_of_texts_is_cleaned_in_pieces(table, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.streaming.limits.VERY_LARGE", 100)
    monkeypatch.setattr("cellmend.streaming.limits.LEARNED", 150)
    table.to_parquet(tmp_path / "messages.parquet", index=False)
    assert here(monkeypatch, "clean", str(tmp_path / "messages.parquet"), "-o", str(tmp_path / "out"), "-q") == 0
    assert len(pd.read_parquet(tmp_path / "out" / "repaired")) == len(table)


def test_a_review_of_texts_learns_from_a_decision(table, tmp_path: Path, monkeypatch) -> None:
    source, out = tmp_path / "messages.csv", tmp_path / "out"
    table.to_csv(source, index=False)
    assert here(monkeypatch, "clean", str(source), "-o", str(out), "--suspicion", "0.5", "--seed", "0") == 0
    review = Review(open_results(out, None))
    review.start()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    decided, kept = (MANGLED[0], "name"), (MANGLED[1], "name")
    assert [column["name"] for column in columns(review, {})["columns"]] == ["name", "message"]
    review.accept(decided, MEANT, seen=None)
    review.keep(kept, seen=None)
    assert review.learn()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    assert review.flagged.by_cell[decided].repair == MEANT
    assert review.flagged.get(kept) is None


@pytest.mark.parametrize(
    "settings", [PAPER, {"repair_method": "map"}, {"repair_method": "two-stage", "kl_weight": 1.0}]
)
def test_the_published_methods_need_a_column_to_learn_from(table, settings) -> None:
    with pytest.raises(SchemaError, match="must vary and hold numbers or categories; every column is left out"):
        CellMender(**settings).fit(table)


def test_a_model_without_a_network_cannot_be_asked_as_published(fitted: CellMender, table) -> None:
    with pytest.raises(SchemaError, match="must vary and hold numbers or categories"):
        CellMender(random_state=0).fit(table).set_params(repair_method="map").cell_suspicion(table)


@pytest.mark.parametrize(
    "constant",
    [pd.DataFrame({"a": ["x"] * 9, "b": ["y"] * 9}), pd.DataFrame({"a": [1.5] * 9}), np.ones((9, 2))],
    ids=["texts", "numbers", "array"],
)
def test_a_table_that_says_the_same_in_every_row_has_no_errors(constant) -> None:
    mender = CellMender(random_state=0).fit(constant)
    assert len(mender.findings(constant)) == 0
    assert (mender.predict(constant) == 1).all()


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        (pd.DataFrame({"a": [None] * 9, "b": [np.nan] * 9}), None),
        (pd.DataFrame({"a": [" "] * 9, "b": [""] * 9}), None),
        (np.full((9, 2), np.nan), None),
        (pd.DataFrame({"a": [bytes([number]) for number in range(60)]}), None),
        (messages(), {"name": "ignore", "message": "ignore"}),
        (pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [None] * 3}), {"a": "ignore"}),
    ],
    ids=["missing", "blank", "nan", "bytes", "ignored", "ignored and missing"],
)
def test_a_table_with_nothing_to_judge_is_one_sentence(table, schema) -> None:
    with pytest.raises(SchemaError, match="every column is empty, of another type or declared as ignore"):
        CellMender(schema=schema).fit(table)
