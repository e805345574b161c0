"""From a file to findings, a repaired copy, a report and a model; nothing half-written, nothing run."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend import CellMender, jobs, load
from cellmend.files import FileError, TableFile, read_file
from cellmend.findings import Finding
from cellmend.jobs import Threshold, guarded, read_findings, unguarded, write_findings
from tests.conftest import SMALL

FDR = Threshold(fdr=0.1)


def text_of(rows: int = 300) -> str:
    """A CSV file with quirks: leading zeros, trailing spaces, quoted fields, units; a few wrong cells."""
    x = np.random.default_rng(0).normal(size=rows)
    lines = ['code;weight;"size";note;formula']
    for row, value in enumerate(x):
        weight = "9999.00 kg" if row == 5 else f"{50 + 5 * value:.2f} kg"
        size = "large" if value > 0 else "small"
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
    mender = CellMender(epochs=60, hidden_dim=32, latent_dim=8, embedding_dim=4, random_state=0)
    return jobs.judge(source, mender, FDR, jobs.fit(source, mender), time.perf_counter())


def test_only_repaired_cells_of_a_csv_file_change(job: jobs.Job, tmp_path: Path) -> None:
    job.write_repaired(tmp_path / "repaired.csv")
    before, after = text_of().split("\r\n"), (tmp_path / "repaired.csv").read_bytes().decode().split("\r\n")
    changed = {row for row, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    repaired = {finding.row + 1 for finding in job.mended.found if finding.repair is not None}
    assert changed == repaired
    assert 6 in changed
    assert after[6].split(";")[1].endswith(" kg")
    assert after[6].split(";")[::4] == before[6].split(";")[::4], "007 stays 007, and = stays ="


def test_the_summary_counts_what_the_files_hold(job: jobs.Job, tmp_path: Path) -> None:
    job.write_findings(tmp_path / "findings.csv")
    lines = read_findings(tmp_path / "findings.csv")
    summary = job.summary()
    assert summary["flagged"] == len(lines) == len(job.mended.found) > 0
    assert summary["repaired"] == sum(bool(line["repair"]) for line in lines)
    assert summary["expected_false"] == pytest.approx(sum(1 - float(line["suspicion"]) for line in lines), abs=1e-3)
    assert any("numbers with the unit kg" in note for note in job.notes)


def test_the_report_is_written_with_what_was_found(job: jobs.Job, tmp_path: Path) -> None:
    job.write_report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "table.csv" in page
    assert "9999.00 kg" in page


def test_a_saved_model_finds_the_same(job: jobs.Job, tmp_path: Path) -> None:
    job.mender.save(tmp_path / "m.cellmend")
    again = jobs.judge(job.source, load(tmp_path / "m.cellmend"), FDR, [], time.perf_counter())
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


def test_tidying_changes_whole_columns_and_nothing_else(job: jobs.Job, tmp_path: Path) -> None:
    plain, said = jobs.tidied(job.source, CellMender())
    assert len(said) == 1
    assert said[0].startswith("weight: numbers with the unit kg; ")
    assert said[0].endswith("; written plainly.")
    assert plain.table["weight"][5].as_py() == "9999.00"
    plain.write_changed(tmp_path / "t.csv", plain.table, {})
    written = (tmp_path / "t.csv").read_bytes().decode()
    assert written == text_of().replace(" kg", "")


def test_scores_have_the_tables_columns_and_one_for_the_row(job: jobs.Job) -> None:
    scores = jobs.score_table(job.source, job.mender)
    assert scores.column_names == [*job.source.table.column_names, "row_score"]
    assert scores["weight"][5].as_py() > 0.9


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
    lines = read_findings(path)
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

    monkeypatch.setattr("cellmend.files._write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        job.write_repaired(tmp_path / "repaired.csv")
    assert list(tmp_path.iterdir()) == []
    assert isinstance(job.source, TableFile)
