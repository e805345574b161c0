"""From a file to findings, a repaired copy, a report and a model; nothing half-written, nothing run."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend import CellMender, jobs, load
from cellmend.decisions.decision import Decision, append_decisions
from cellmend.errors import FileError, TableError
from cellmend.files.formats import TableFile, read_file
from cellmend.files.guarded import guarded, read_guarded, unguarded
from cellmend.findings.finding import FINDINGS, Finding
from cellmend.report.rows import Rows, write_findings
from cellmend.settings import Threshold
from cellmend.streaming import Stream, open_stream
from cellmend.streaming.scores import score_table, write_scores
from tests.conftest import SMALL, mixed_table

TOP = Threshold(top=3)


def text_of(rows: int = 300) -> str:
    """A CSV file with quirks: leading zeros, trailing spaces, quoted fields, units; a few wrong cells."""
    x = np.random.default_rng(0).normal(size=rows)
    lines = ['code;weight;"size";note;formula']
    for row, value in enumerate(x):
        weight = "9999.00 kg" if row == 5 else f"{50 + 5 * value:.2f} kg"
        size = "smakl" if row == 6 else "large" if value > 0 else "small"
        lines.append(f'{row % 7:03};{weight};"{size}";"a ""quoted"" {row % 3}" ;=1+{row % 2}')
    return "\r\n".join(lines) + "\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("jobs")
    (path / "table.csv").write_bytes(text_of().encode())
    return path


@pytest.fixture(scope="module")
def job(folder: Path) -> jobs.Job:
    source = read_file(folder / "table.csv")
    mender = CellMender(epochs=60, hidden_dim=32, latent_dim=8, embedding_dim=4, random_state=0, repair_from=0.3)
    return jobs.judge(source, mender, TOP, jobs.fit(source, mender), time.perf_counter())


def test_only_repaired_cells_of_a_csv_file_change(job: jobs.Job, tmp_path: Path) -> None:
    job.write_repaired(tmp_path / "repaired.csv")
    before, after = text_of().split("\r\n"), (tmp_path / "repaired.csv").read_bytes().decode().split("\r\n")
    changed = {row for row, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    repaired = {finding.row + 1 for finding in job.mended.found if finding.repair is not None}
    assert changed == repaired
    assert 7 in changed
    assert after[7] == before[7].replace("smakl", "small"), "quotes, 007 and = stay"


def test_the_summary_counts_what_the_files_hold(job: jobs.Job, tmp_path: Path) -> None:
    job.write_findings(tmp_path / "findings.csv")
    lines = read_guarded(tmp_path / "findings.csv")
    summary = job.summary()
    assert summary["flagged"] == len(lines) == len(job.mended.found) > 0
    assert summary["repaired"] == sum(bool(line["repair"]) for line in lines)
    assert summary["expected_false"] == pytest.approx(sum(1 - float(line["suspicion"]) for line in lines), abs=1e-3)
    assert any("numbers with the unit kg" in note for note in job.notes)


def test_findings_say_which_line_of_the_file_they_are_in_and_what_names_it(job: jobs.Job, tmp_path: Path) -> None:
    write_findings(tmp_path / "findings.csv", job.mended.found, replace(job.rows, names=["code"]))
    lines = read_guarded(tmp_path / "findings.csv")
    assert [*lines[0]] == [*FINDINGS.names, "line", "code"]
    codes = [text.split(";")[0] for text in text_of().split("\r\n")]
    assert all(line["code"] == codes[int(line["line"]) - 1] for line in lines)
    assert all(int(line["line"]) == int(line["row"]) + 2 for line in lines)


def test_lines_count_titles_and_empty_lines_too(tmp_path: Path) -> None:
    rows = "".join(f"a{row},{row},b\n" for row in range(30))
    (tmp_path / "t.csv").write_text(f"Sales 2024\n\nid,x,y\n{rows}Total,435,\n")
    source = read_file(tmp_path / "t.csv")
    assert source.line_numbers is not None
    assert source.line_numbers.tolist() == [*range(4, 34)]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json", "t.xlsx", "t.parquet"])
def test_rows_know_the_line_of_their_file(tmp_path: Path, name: str) -> None:
    table = pd.DataFrame({"a": ["x\ny", "u", "v"], "b": [1, 2, 3]})
    path = tmp_path / name
    {
        ".csv": lambda: path.write_text('a,b\n"x\ny",1\n\nu,2\nv,3\n'),
        ".jsonl": lambda: path.write_text('{"a":"x"}\n\n{"a":"u"}\n{"a":"v"}\n'),
        ".json": lambda: path.write_text('[{"a":"x"},\n{"a":"u"},{"a":"v"}]'),
        ".xlsx": lambda: table.to_excel(path, index=False, startrow=3),
        ".parquet": lambda: table.to_parquet(path),
    }[path.suffix]()
    lines = read_file(path).line_numbers
    expected = {".csv": [2, 5, 6], ".jsonl": [1, 3, 4], ".xlsx": [5, 6, 7]}.get(path.suffix)
    assert (None if lines is None else lines.tolist()) == expected


def test_names_of_the_users_columns_do_not_hide_those_of_findings(tmp_path: Path) -> None:
    table = pa.table({"value": ["=a", "b"], "=x": ["c", "d"]})
    write_findings(
        tmp_path / "f.csv", [Finding(1, "=x", "d", 0.9, None, None, None, "why")], Rows(table, ["value", "=x"])
    )
    (line,) = read_guarded(tmp_path / "f.csv")
    assert (line["value"], line["value of the row"], line["=x"], line["line"]) == ("d", "b", "d", "")
    assert ",'=x\n" in (tmp_path / "f.csv").read_text()


def test_the_report_is_written_with_what_was_found(job: jobs.Job, tmp_path: Path) -> None:
    job.write_report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "table.csv" in page
    assert "9999.00 kg" in page
    assert "cellmend review" not in page  # there is no folder to review


def test_it_is_told_how_people_decide_about_the_findings(job: jobs.Job) -> None:
    assert replace(job, folder=Path("my results")).commands == ["cellmend review 'my results'"]
    first, second = replace(job, model="m.cellmend").commands
    assert (first, second) == ("cellmend clean table.csv -m m.cellmend -o FOLDER", "cellmend review FOLDER")


def test_a_saved_model_finds_the_same(job: jobs.Job, tmp_path: Path) -> None:
    job.mender.save(tmp_path / "m.cellmend")
    again = jobs.judge(job.source, load(tmp_path / "m.cellmend"), TOP, [], time.perf_counter())
    assert again.mended.found == job.mended.found


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".jsonl", ".xlsx", ".csv.gz", ".tsv"])
def test_every_format_comes_back_as_itself(job: jobs.Job, tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "name": ["a", "b", None], "n": [1, 2, 3]})
    path = tmp_path / f"t{suffix}"
    writers = {
        ".parquet": frame.to_parquet, ".feather": frame.to_feather, ".xlsx": lambda p: frame.to_excel(p, index=False),
        ".jsonl": lambda p: frame.to_json(p, orient="records", lines=True),
        ".csv.gz": lambda p: frame.to_csv(p, index=False), ".tsv": lambda p: frame.to_csv(p, index=False, sep="\t"),
    }  # fmt: skip
    writers[suffix](path)
    source = read_file(path)
    assert source.suffix == suffix
    table = source.table
    changed = table.set_column(0, "x", pa.array([1.5, 9.0, 3.5])) if source.csv is None else table
    out = tmp_path / f"out{suffix}"
    source.write_changed(out, changed, {1: {0: "9.0"}})
    back = read_file(out).table
    assert [str(v) for v in back["x"].to_pylist()] == ["1.5", "9.0", "3.5"]
    assert back.column_names == table.column_names
    assert back["name"].to_pylist() == table["name"].to_pylist()


def test_a_copy_must_have_the_format_of_its_table(job: jobs.Job, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"must end in .csv"):
        job.write_repaired(tmp_path / "repaired.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_large_table_is_fitted_on_a_sample_and_says_so(job: jobs.Job) -> None:
    mender = CellMender(**SMALL | {"epochs": 2}, train_rows=100)
    notes = jobs.fit(job.source, mender)
    assert "Fitted on 100 of 300 rows, drawn at random; all rows are scored." in notes
    assert len(mender.row_scores(job.source.table)) == 300
    levels = {str(level) for column in mender.encoder_.columns for level in getattr(column, "levels", ())}
    assert {"large", "small"} <= levels


def test_a_time_limit_ends_training_and_says_so(job: jobs.Job) -> None:
    mender = CellMender(**SMALL | {"epochs": 1000}, time_limit=1e-6)
    assert "Training stopped at the time limit, after 1 of 1000 epochs." in jobs.fit(job.source, mender)


def test_what_reading_and_searching_took_is_no_more_left_for_training(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = CellMender(time_limit=60.0).settings()
    monkeypatch.setattr(time, "perf_counter", lambda: 145.0)
    assert settings.since(100.0).time_limit == 15.0
    assert 0 < settings.since(0.0).time_limit < 1e-3
    assert CellMender().settings().since(0.0).time_limit is None


def test_tidying_changes_whole_columns_and_nothing_else(job: jobs.Job, tmp_path: Path) -> None:
    plain, said = jobs.written_plainly(job.source, CellMender())
    assert len(said) == 1
    assert said[0].startswith("weight: numbers with the unit kg; ")
    assert said[0].endswith("; written plainly.")
    assert plain.table["weight"][5].as_py() == "9999.00"
    plain.write_changed(tmp_path / "t.csv", plain.table, {})
    written = (tmp_path / "t.csv").read_bytes().decode()
    assert written == text_of().replace(" kg", "")


def test_scores_have_the_tables_columns_and_one_for_the_row(job: jobs.Job) -> None:
    scores = score_table(job.source, job.mender)
    assert scores.column_names == [*job.source.table.column_names, "row_score"]
    assert scores["weight"][5].as_py() == max(scores["weight"].to_pylist())


# ---------------------------------------------------------------- scores of large tables


@pytest.fixture
def large(tmp_path: Path, monkeypatch) -> Stream:
    """251 rows in groups of 7, judged in pieces of 60, with errors on both sides of where a piece ends."""
    monkeypatch.setattr("cellmend.streaming.limits.PIECE", 60)
    table = mixed_table(251)
    table.loc[[59, 60, 250], "height"] = 999.0
    table.loc[[100, 120], "city"] = "Lmia"
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pandas(table), tmp_path / "in" / "large.parquet", row_group_size=7)
    return open_stream(str(tmp_path / "in" / "large.parquet"))


def scores_of(path: Path) -> pa.Table:
    return pa.csv.read_csv(path) if path.suffix == ".csv" else read_file(path).table


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".jsonl"])
def test_a_table_scored_in_pieces_has_the_scores_of_the_whole(
    large: Stream, fitted: CellMender, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / "in" / f"scores{suffix}"
    write_scores(large, fitted, out, shown=False)
    scores, whole = scores_of(out), score_table(read_file(tmp_path / "in" / "large.parquet"), fitted)
    assert scores.column_names == whole.column_names == [*large.names, "row_score"]
    assert scores.num_rows == 251
    for name in whole.column_names:
        assert scores[name].to_pylist() == whole[name].to_pylist(), "to the last digit"
    for row in scores.take([59, 60, 250]).drop_columns("row_score").to_pylist():
        assert row["height"] == max(row.values())


def test_a_folder_scored_in_pieces_has_the_scores_of_the_whole(
    large: Stream, fitted: CellMender, tmp_path: Path
) -> None:
    table, folder = read_file(tmp_path / "in" / "large.parquet").table, tmp_path / "country=Norway"
    folder.mkdir()
    for first in range(0, 251, 11):
        pq.write_table(table.slice(first, 11).drop_columns("country"), folder / f"{first:03}.parquet")
    (tmp_path / "in" / "large.parquet").unlink()
    write_scores(open_stream(str(tmp_path)), fitted, tmp_path / "scores.csv", shown=False)
    scores, (whole, rows) = scores_of(tmp_path / "scores.csv"), fitted.score_rows(table)
    for place, name in enumerate(table.column_names):
        np.testing.assert_array_equal(scores[name].to_numpy(), whole[:, place])
    np.testing.assert_array_equal(scores["row_score"].to_numpy(), rows)


def test_scores_are_written_piece_by_piece_with_a_bar(
    large: Stream, fitted: CellMender, tmp_path: Path, monkeypatch, capsys
) -> None:
    judged: list[int] = []

    def numbered(self: CellMender, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        judged.append(table.num_rows)
        return np.full((table.num_rows, table.num_columns), float(len(judged))), np.zeros(table.num_rows)

    monkeypatch.setattr(CellMender, "score_rows", numbered)
    write_scores(large, fitted, tmp_path / "scores.parquet", shown=True)
    assert judged == [60, 60, 60, 60, 11]
    assert scores_of(tmp_path / "scores.parquet")["id"].to_pylist() == list(
        np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], judged)
    )
    shown = capsys.readouterr()
    assert "100%" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError])
def test_scoring_that_stops_in_the_middle_leaves_nothing(
    large: Stream, fitted: CellMender, tmp_path: Path, monkeypatch, stop: type[BaseException], suffix: str
) -> None:
    score_rows, done = CellMender.score_rows, []

    def stopped(self: CellMender, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        done.append(table.num_rows)
        if len(done) == 3:
            assert any(tmp_path.glob(".scores*")), "it had begun"
            raise stop
        return score_rows(self, table)

    monkeypatch.setattr(CellMender, "score_rows", stopped)
    with pytest.raises(stop):
        write_scores(large, fitted, tmp_path / f"scores{suffix}", shown=True)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_large_table_with_other_columns_is_refused_before_the_work(
    large: Stream, job: jobs.Job, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=r"large.parquet must have the columns of the model; it lacks 'code'"):
        write_scores(large, job.mender, tmp_path / "scores.csv", shown=False)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_row_score_has_a_name_of_its_own_in_pieces_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.streaming.limits.PIECE", 60)
    table = mixed_table()[["height", "income"]].rename(columns={"income": "row_score"})
    table.to_parquet(tmp_path / "t.parquet", index=False)
    mender = CellMender(**SMALL | {"epochs": 2}).fit(table)
    write_scores(open_stream(str(tmp_path / "t.parquet")), mender, tmp_path / "scores.csv", shown=False)
    assert scores_of(tmp_path / "scores.csv").column_names == ["height", "row_score", "row_score_"]


# ---------------------------------------------------------------- spreadsheets


@given(st.text())
def test_text_comes_back_as_it_was(text: str) -> None:
    assert unguarded(guarded(text)) == text


@given(st.sampled_from("=+-@\t\r"), st.text())
def test_no_text_begins_like_a_formula(first: str, rest: str) -> None:
    held = guarded(first + rest)
    assert held[0] == "'" or held.lstrip("+-").replace(".", "").replace("e", "").replace("E", "").strip("+-").isdigit()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_plain_numbers_stay_numbers(number: float) -> None:
    assert guarded(str(number)) == str(number)
    assert guarded(f"{number:f}") == f"{number:f}"


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=5))
def test_findings_survive_a_file(tmp_path_factory, cells: list[tuple[str, str, str]]) -> None:
    path = tmp_path_factory.mktemp("f") / "findings.csv"
    findings = [Finding(n, name, value, 0.5, None, None, None, why) for n, (name, value, why) in enumerate(cells)]
    write_findings(path, findings)
    lines = read_guarded(path)
    assert [(line["column"], line["value"], line["reason"]) for line in lines] == cells
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file):
            assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in line)


def test_hostile_cells_of_a_whole_job_are_harmless(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=200).round(2)
    frame = pd.DataFrame({"=cmd": x, "b": 2 * x, "tag": np.where(x > 0, "@SUM(A1)", "<script>alert(1)</script>")})
    frame.loc[4, "b"] = -99.0
    buffer = io.StringIO()
    frame.to_csv(buffer, index=False)
    (tmp_path / "t.csv").write_text(buffer.getvalue())
    source = read_file(tmp_path / "t.csv")
    mender = CellMender(**SMALL)
    job = jobs.judge(source, mender, Threshold(top=30), jobs.fit(source, mender), time.perf_counter())
    job.write_findings(tmp_path / "findings.csv")
    job.write_report(tmp_path / "report.html")
    with (tmp_path / "findings.csv").open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert "-99.0" in cells
    assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in cells)
    assert "<script>alert" not in (tmp_path / "report.html").read_text()


def test_a_threshold_says_what_it_is() -> None:
    assert str(Threshold(fdr=0.1)) == "at most 10 % false alarms expected"
    assert str(Threshold(top=1000)) == "the 1,000 most suspicious"
    assert str(Threshold(suspicion=0.9)) == "suspicion of at least 0.9"


def test_a_file_that_cannot_be_written_leaves_nothing(job: jobs.Job, tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cellmend.files.formats.write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        job.write_repaired(tmp_path / "repaired.csv")
    assert list(tmp_path.iterdir()) == []
    assert isinstance(job.source, TableFile)


def test_clean_takes_decisions_and_a_model_that_was_taught(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    lines = [f"{row % 5},{row % 5 * 2}{' lb' if row % 4 == 0 else ''}" for row in range(120)]
    table.write_text("a,b\n" + "\n".join(lines) + "\n", encoding="utf-8")
    decisions = [
        Decision(row, "b", lines[row].split(",")[1], "wrong", lines[row].split(",")[1].removesuffix(" lb"))
        if row % 4 == 0
        else Decision(row, "b", lines[row].split(",")[1], "right")
        for row in range(24)
    ]
    append_decisions(tmp_path / "d.jsonl", decisions)
    wanted = jobs.Cleaning(tmp_path / "out", Threshold(suspicion=0.5), decisions=tmp_path / "d.jsonl")
    job, _ = jobs.clean(read_file(str(table)), CellMender(**SMALL), wanted)
    assert any(note.startswith("By 24 decisions ") for note in job.notes)
    assert "lb" not in (tmp_path / "out" / "repaired.csv").read_text(encoding="utf-8")
    model = tmp_path / "out" / "model.cellmend"
    wanted = jobs.Cleaning(tmp_path / "again", wanted.threshold, model=model)
    again, _ = jobs.clean(read_file(str(table)), load(model), wanted)
    assert [finding.repair for finding in again.mended.found] == [finding.repair for finding in job.mended.found]


@pytest.mark.slow
def test_rows_that_say_nearly_the_same_are_told_by_their_lines(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "nr": np.arange(300),
            "name": [f"name{each}" for each in random.integers(0, 80, 300)],
            "born": [f"19{each // 100}-0{1 + each % 9}-{10 + each % 18}" for each in random.integers(5000, 9900, 300)],
            "salary": random.integers(2000, 9000, 300),
            "code": [f"{each:05d}" for each in random.integers(0, 5000, 300)],
        }
    )
    again = table.iloc[[7]].assign(nr=300, salary=1)
    pd.concat([table, again]).to_csv(tmp_path / "people.csv", index=False)
    source = read_file(str(tmp_path / "people.csv"))
    threshold = Threshold(fdr=0.1)
    job = jobs.fit_and_judge(source, CellMender(**SMALL), threshold, [], time.perf_counter())
    assert "1 row may tell of a thing that another row tells of: lines 9 and 302 (but for salary)." in job.notes
