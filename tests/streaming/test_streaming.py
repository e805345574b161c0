"""Tables of any size: the same scores in whatever pieces, and runs that can be taken up again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellmend import CellMender, SchemaWarning, SettingError
from cellmend import streaming as s
from cellmend.errors import FileError, StreamError, TableError
from cellmend.files.formats import read_file
from cellmend.settings import Threshold
from cellmend.streaming import limits, tasks
from cellmend.streaming.sources import csv_as_parquet
from tests.conftest import KINDS, SMALL, mixed_table, one_batch
from tests.streaming.conftest import nothing, result, task_for

ROWS = 240


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Numbers, categories, identifiers and gaps, with gross errors in three rows."""
    frame = mixed_table(ROWS)
    frame.loc[[3, 119, 239], "height"] *= 10
    frame.loc[[40], "city"] = "Lmia"
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def mender(table: pa.Table) -> CellMender:
    return CellMender(**SMALL, schema=KINDS).fit(table)


@pytest.fixture
def model(mender: CellMender, tmp_path: Path) -> Path:
    mender.save(tmp_path / "m.cellmend")
    return tmp_path / "m.cellmend"


@pytest.fixture
def folder(table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files of six row groups each, read by the 30 rows, worked on by the 60."""
    monkeypatch.setattr(limits, "PIECE", 30)
    monkeypatch.setattr(limits, "UNIT", 60)
    found = tmp_path / "data"
    found.mkdir()
    for number in range(2):
        pq.write_table(table.slice(120 * number, 120), found / f"{number}.parquet", row_group_size=20)
    return found


# ---------------------------------------------------------------- a batch


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(1, ROWS - 1), max_size=8))
def test_scores_do_not_depend_on_where_batches_end(cuts: set[int], table: pa.Table, mender: CellMender) -> None:
    whole = s.score_batch(mender, one_batch(table))
    ends = [0, *sorted(cuts), ROWS]
    pieces = [one_batch(table.slice(a, b - a)) for a, b in pairwise(ends)]
    assert pa.Table.from_batches([s.score_batch(mender, each) for each in pieces]).equals(
        pa.Table.from_batches([whole])
    )


@pytest.mark.parametrize("settings_", [{"networks": 2}, {"repair_method": "map", "kl_weight": 1.0, "hide": 0.0}])
def test_scores_of_single_rows_are_those_of_the_table_with_other_settings(settings_: dict, table: pa.Table) -> None:
    other = CellMender(**SMALL | {"epochs": 2} | settings_, schema=KINDS).fit(table)
    whole = s.score_batch(other, one_batch(table))
    for row in (0, 3, 119, 239):
        alone = s.score_batch(other, one_batch(table.slice(row, 1)))
        assert alone.to_pylist() == whole.slice(row, 1).to_pylist()


def test_what_other_rows_tell_was_learned_and_is_the_same_in_any_batch() -> None:
    """An identifier that was copied into another row, and a misspelling."""
    rng = np.random.default_rng(0)
    city = np.array(["birmingham", "florence", "sheffield"])[rng.integers(0, 3, 200)].astype(object)
    city[[7, 8]] = "birmxngham"
    number = np.arange(200)
    number[9] = 3
    table = pa.table({"id": number, "city": city, "x": rng.normal(size=200), "y": rng.normal(size=200)})
    mender = CellMender(**SMALL | {"epochs": 1}, schema={"city": "category"})
    with pytest.warns(SchemaWarning, match="'id'"):
        mender.fit(table)
    whole = s.score_batch(mender, one_batch(table))
    for row in (7, 9):
        assert s.score_batch(mender, one_batch(table.slice(row, 1))).to_pylist() == whole.slice(row, 1).to_pylist()
    assert min(mender.cell_suspicion(table)["city"][7].as_py(), whole["city"][7].as_py()) > 0.5


def test_scores_are_those_of_each_row_by_itself(table: pa.Table, mender: CellMender) -> None:
    scores = s.score_batch(mender, one_batch(table))
    cells, rows = mender.score_rows(table)
    for place, name in enumerate(table.column_names):
        assert scores[name].to_numpy().tolist() == cells[:, place].tolist()
    assert scores["row_score"].to_numpy().tolist() == rows.tolist()


def test_columns_are_matched_by_name_and_kinds_of_text_are_alike(table: pa.Table, mender: CellMender) -> None:
    whole = s.score_batch(mender, one_batch(table))
    texts = {field.name for field in table.schema if field.type == pa.string() or field.type == pa.large_string()}
    assert texts
    kinds: list[Callable[[pa.ChunkedArray], pa.ChunkedArray]] = [
        lambda column: column.cast(pa.large_string()),
        lambda column: column.cast(pa.string()).dictionary_encode(),
    ]
    for kind in kinds:
        columns = {name: kind(table[name]) if name in texts else table[name] for name in reversed(table.column_names)}
        assert s.score_batch(mender, one_batch(pa.table(columns))).equals(whole)


def test_missing_columns_are_one_sentence_and_extra_ones_are_left_alone(table: pa.Table, mender: CellMender) -> None:
    with pytest.raises(TableError, match=r"The batch must have the columns of the model; it lacks 'height'"):
        s.score_batch(mender, one_batch(table.drop_columns("height")))
    more = table.append_column("heights", table["height"])
    assert s.score_batch(mender, one_batch(more)).equals(s.score_batch(mender, one_batch(table)))


def test_no_rows_have_no_scores_and_no_findings(table: pa.Table, mender: CellMender) -> None:
    empty = one_batch(table).slice(0, 0)
    assert s.score_batch(mender, empty).num_rows == 0
    assert s.find_batch(mender, empty, least=0.5).num_rows == 0


def test_methods_that_draw_for_all_rows_together_are_refused(table: pa.Table) -> None:
    drawing = CellMender(**SMALL | {"epochs": 1, "kl_weight": 1.0, "repair_method": "two-stage"}, schema=KINDS)
    drawing.fit(table)
    with pytest.raises(SettingError, match="repair_method must be 'hidden' or 'map'"):
        s.score_batch(drawing, one_batch(table))


def test_findings_count_rows_in_the_whole_table_and_repairs_go_into_their_batch(
    table: pa.Table, mender: CellMender
) -> None:
    batch, eager = one_batch(table.slice(100, 60)), copy.copy(mender).set_params(repair_from=0.01)
    found = pa.Table.from_batches([s.find_batch(eager, batch, least=0.5, first_row=100)])
    assert (119, "height") in list(zip(found["row"].to_pylist(), found["column"].to_pylist(), strict=True))
    repaired = s.repair_batch(batch, found, least=0.5, first_row=100)
    assert repaired.schema == batch.schema
    assert repaired["height"][19].as_py() < 300
    changed = {
        (row, name)
        for name in batch.schema.names
        for row, (old, new) in enumerate(zip(batch[name].to_pylist(), repaired[name].to_pylist(), strict=True))
        if old != new
    }
    given_ = found.filter(found["repair"].is_valid())
    assert changed == {
        (r - 100, c) for r, c in zip(given_["row"].to_pylist(), given_["column"].to_pylist(), strict=True)
    }


def test_moments_with_a_time_zone_are_repaired_as_in_memory() -> None:
    rng = np.random.default_rng(0)
    day = rng.integers(0, 300, 400)
    near = day + rng.normal(size=400)
    when = np.datetime64("2024-01-01T08:00:00", "us") + day * np.timedelta64(1, "D")
    when[7] += np.timedelta64(18 * 365 + 5, "D")  # 2042 for 2024
    moments = pc.assume_timezone(pa.array(when), "Europe/Oslo")
    table = pa.table({"when": moments, "days": near, "twice": 2 * near})
    mender = CellMender(**SMALL, repair_from=1e-9).fit(table)
    least = s.score_batch(mender, one_batch(table))["when"][7].as_py()
    found = pa.Table.from_batches([s.find_batch(mender, one_batch(table), least=least)])
    assert (7, "when") in list(zip(found["row"].to_pylist(), found["column"].to_pylist(), strict=True))
    repaired = s.repair_batch(one_batch(table), found, least=least)
    assert repaired.schema == table.schema
    whole = mender.mend(table, suspicion=least, impute=False, rows_alone=True).repaired
    assert repaired["when"].to_pylist() == whole["when"].to_pylist()
    assert repaired["when"][7].as_py().year == 2024


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (pa.int64(), "2.6", 3),
        (pa.uint8(), "300", 255),
        (pa.int64(), str(2**62 + 1), 2**62 + 1),
        (pa.decimal128(5, 2), "2.604", Decimal("2.60")),
        (pa.bool_(), "True", True),
        (pa.date32(), "2024-05-03", date(2024, 5, 3)),
        (pa.timestamp("s", "Asia/Tokyo"), "2024-05-03 01:02:03", datetime(2024, 5, 2, 16, 2, 3, tzinfo=UTC)),
        (pa.dictionary(pa.int32(), pa.string()), "oak", "oak"),
        (pa.int64(), "oak", None),
    ],
)
def test_a_repair_has_the_type_of_its_column(type_: pa.DataType, text: str, expected: object) -> None:
    batch = pa.record_batch([pa.array([None, None], type_)], names=["a"])
    lines = pa.table({"row": [1], "column": ["a"], "suspicion": [0.9], "repair": [text]})
    repaired = s.repair_batch(batch, lines, least=0.5)
    assert repaired.schema == batch.schema
    assert repaired["a"].to_pylist() == [None, expected]


# ---------------------------------------------------------------- units


def test_units_are_whole_row_groups_of_one_file_and_cover_the_table(folder: Path, table: pa.Table) -> None:
    stream = s.open_stream(str(folder))
    assert [(unit.groups, unit.first_row, unit.rows) for unit in stream.units] == [
        ((0, 3), 0, 60),
        ((3, 6), 60, 60),
        ((0, 3), 120, 60),
        ((3, 6), 180, 60),
    ]
    batches = [batch for unit in stream.units for batch in s.read_unit(stream.url, unit, stream.names)]
    assert max(batch.num_rows for batch in batches) <= 30
    assert pa.Table.from_batches(batches).equals(table.combine_chunks())


def test_folders_that_are_named_for_a_column_tell_it(table: pa.Table, tmp_path: Path) -> None:
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table.slice(0, 5), tmp_path / f"year={year}" / "a.parquet")
    (tmp_path / "_temporary").mkdir()
    pq.write_table(table, tmp_path / "_temporary" / "b.parquet")
    stream = s.open_stream(str(tmp_path))
    assert stream.names == [*table.column_names, "year"]
    assert stream.rows == 10
    years = [
        batch["year"].to_pylist() for unit in stream.units for batch in s.read_unit(stream.url, unit, stream.names)
    ]
    assert years == [[2023] * 5, [2024] * 5]


def test_a_folder_is_the_same_table_whole_and_in_pieces(tmp_path: Path) -> None:
    """Names of folders that are written as URLs, or as Hive's name for nothing; types that differ between files."""
    for number, city in enumerate(["New%20York", "Rome", "__HIVE_DEFAULT_PARTITION__"]):
        folder = tmp_path / f"city={city}" / "year=2024"
        folder.mkdir(parents=True)
        own = pa.array([number, None], pa.int64() if number else pa.int32())
        pq.write_table(pa.table({"n": own}), folder / "a.parquet")
    pyarrow.feather.write_feather(pa.table({"n": [7]}), tmp_path / "city=Rome" / "year=2024" / "b.arrow")
    stream, whole = s.open_stream(str(tmp_path)), read_file(tmp_path).table
    batches = [batch for unit in stream.units for batch in s.read_unit(stream.url, unit, stream.names)]
    assert pa.Table.from_batches(batches).equals(whole.combine_chunks())
    assert whole["city"].to_pylist() == ["New York", "New York", "Rome", "Rome", "Rome", None, None]
    assert whole.schema.types == [pa.int32(), pa.string(), pa.int32()]


def test_a_column_in_files_and_in_names_of_folders_is_one(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    pq.write_table(pa.table({"year": [2024], "n": [1]}), tmp_path / "year=2024" / "a.parquet")
    stream = s.open_stream(str(tmp_path))
    (batch,) = s.read_unit(stream.url, stream.units[0], stream.names)
    assert batch.to_pydict() == read_file(tmp_path).table.to_pydict() == {"year": [2024], "n": [1]}


@pytest.mark.parametrize("read", [s.open_stream, read_file])
def test_files_with_other_columns_are_one_sentence(read: Callable[[str], object], tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "b.parquet")
    with pytest.raises(FileError, match=r"must have the same columns; .*b.parquet differs by 'a'"):
        read(str(tmp_path))


def test_arrow_files_and_large_csv_files_are_streams_too(table: pa.Table, tmp_path: Path) -> None:
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow", chunksize=50)
    stream = s.open_stream(str(tmp_path / "t.arrow"))
    read = pa.Table.from_batches(s.read_unit(stream.url, stream.units[0], stream.names))
    assert read.equals(table.combine_chunks())
    (tmp_path / "t.csv").write_text('a;b\n1,5;"x\ny"\n;z\n')
    copy = csv_as_parquet(tmp_path / "t.csv", tmp_path / "spool")
    assert pq.read_table(copy).to_pydict() == {"a": ["1,5", ""], "b": ["x\ny", "z"]}
    written = copy.stat().st_mtime_ns
    assert csv_as_parquet(tmp_path / "t.csv", tmp_path / "spool").stat().st_mtime_ns == written, "made once"


def test_what_is_no_table_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is none"):
        s.open_stream(str(tmp_path / "none.parquet"))
    with pytest.raises(FileError, match=r"must hold .parquet or .arrow files; it holds none"):
        s.open_stream(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"no")
    with pytest.raises(FileError, match=r"a.parquet must be a .parquet file"):
        s.open_stream(str(tmp_path))


def test_a_file_that_breaks_off_in_the_middle_is_one_sentence(folder: Path, table: pa.Table) -> None:
    path = folder / "0.parquet"
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(2).column(0).dictionary_page_offset
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    stream = s.open_stream(str(folder))
    with pytest.raises(FileError, match=r"0.parquet must be a .parquet file; it cannot be read") as refused:
        list(s.read_unit(stream.url, stream.units[0], stream.names))
    assert "\n" not in str(refused.value)


def test_what_was_read_of_a_large_table_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise, which no compression makes small, in thirty groups of 800 kB."""
    monkeypatch.setattr(limits, "PIECE", 10_000)
    noise = np.random.default_rng(0).normal(size=(10, 300_000))
    pq.write_table(pa.table(list(noise), names=list("abcdefghij")), tmp_path / "a.parquet", row_group_size=10_000)
    stream, before = s.open_stream(str(tmp_path)), pa.total_allocated_bytes()
    held = [
        pa.total_allocated_bytes() - before
        for unit in stream.units
        for _ in s.read_unit(stream.url, unit, stream.names)
    ]
    assert len(held) == 30
    assert min(held) < 12e6, "31 MB, if all of it is kept"


# ---------------------------------------------------------------- learning


def test_rows_are_drawn_evenly_and_the_same_again(folder: Path) -> None:
    stream = s.open_stream(str(folder))
    one, two = (s.draw(stream, 40, seed=1) for _ in range(2))
    assert one.equals(two)
    assert one.num_rows == 40
    assert not one.equals(s.draw(stream, 40, seed=2))
    assert s.draw(stream, 1000, seed=0).num_rows == ROWS
    places = np.concatenate([s.draw(stream, 40, seed=seed)["id"].to_numpy() for seed in range(60)])
    low, high = (np.sum(places < ROWS // 2), np.sum(places >= ROWS // 2)) if places.dtype.kind in "if" else (1, 1)
    assert 0.8 < low / high < 1.25


def test_levels_that_no_drawn_row_has_are_learned_from_the_whole_table(tmp_path: Path) -> None:
    """One city in 500 rows is Oslo; of 40 drawn rows most likely none is. Rommm is a misspelling."""
    rng = np.random.default_rng(0)
    city = np.array(["Rome", "Lima", "Cairo"])[rng.integers(0, 3, 5000)].astype(object)
    city[::500] = "Oslo"
    city[7::1000] = "Limaa"
    height = {"Rome": 1.0, "Lima": 2.0, "Cairo": 3.0, "Oslo": 4.0, "Limaa": 2.0}
    values = pa.table({"city": city, "height": [height[c] + rng.normal() / 9 for c in city]})
    pq.write_table(values, tmp_path / "a.parquet")
    mender = CellMender(**SMALL | {"epochs": 1}, schema={"city": "category"})
    drawn = s.fit_stream(mender, s.open_stream(str(tmp_path)), rows=100)
    assert "Oslo" not in drawn["city"].to_pylist()
    assert mender.encoder_.columns[-1].levels == ("Cairo", "Lima", "Oslo", "Rome")


# ---------------------------------------------------------------- runs


def test_a_run_writes_what_one_batch_would_say(folder: Path, model: Path, mender, table, tmp_path: Path) -> None:
    task, stream = task_for(folder, model, tmp_path / "out")
    told: list[int] = []
    s.run(task, stream, told.append)
    assert told == [0, 60, 120, 180, 240]
    assert result(tmp_path / "out").equals(pa.Table.from_batches([s.score_batch(mender, one_batch(table))]))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_manifest.json",
        *(f"part-0000{number}.parquet" for number in range(4)),
    ]


def test_a_run_goes_on_where_it_was_and_does_nothing_twice(
    folder: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, stream = task_for(folder, model, tmp_path / "out")
    score, done = s.score_batch, []

    def breaks(mender: CellMender, batch: pa.RecordBatch, *, name: str) -> pa.RecordBatch:
        done.append(batch.num_rows)
        if len(done) == 6:
            raise KeyboardInterrupt
        return score(mender, batch, name=name)

    monkeypatch.setattr(tasks, "score_batch", breaks)
    with pytest.raises(KeyboardInterrupt):
        s.run(task, stream, nothing)
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    assert len(first) == 2
    assert not list((tmp_path / "out").glob(".part*")), "nothing is half-written"
    (tmp_path / "out" / ".part-00003.parquet.1-2").write_bytes(b"of a worker that was killed")
    s.run(task, stream, nothing)
    assert sum(done) == 6 * 30 + 4 * 30
    assert all((tmp_path / "out" / name).stat().st_mtime_ns == when for name, when in first.items())
    assert not list((tmp_path / "out").glob(".part*"))
    monkeypatch.setattr(tasks, "score_batch", score)
    again, _ = task_for(folder, model, tmp_path / "again")
    s.run(again, stream, nothing)
    assert result(tmp_path / "out").equals(result(tmp_path / "again"))


def test_results_of_another_run_are_refused_and_kept(folder: Path, model: Path, tmp_path: Path) -> None:
    task, stream = task_for(folder, model, tmp_path / "out")
    s.run(task, stream, nothing)
    before = result(tmp_path / "out")
    other = s.Task("score", stream.url, stream.names, str(tmp_path / "out"), str(model), "another model")
    with pytest.raises(StreamError, match="holds the results of another run"):
        tasks.pending(other, stream)
    pq.write_table(pq.read_table(folder / "0.parquet"), folder / "2.parquet")
    with pytest.raises(StreamError, match="holds the results of another run"):
        tasks.pending(task, s.open_stream(str(folder)))
    assert result(tmp_path / "out").equals(before)
    tasks.clear(str(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_with_something_else_is_not_written_to(folder: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    task, stream = task_for(folder, model, tmp_path / "out")
    with pytest.raises(StreamError, match=r"must be a new folder; it holds thesis.txt"):
        s.run(task, stream, nothing)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_findings_and_repairs_of_units_are_those_of_the_whole_table(
    folder: Path, model: Path, mender: CellMender, table: pa.Table, tmp_path: Path
) -> None:
    eager = copy.copy(mender).set_params(repair_from=0.01)
    eager.save(model)
    find, stream = task_for(folder, model, tmp_path / "findings", "find")
    s.run(find, stream, nothing)
    found = result(tmp_path / "findings")
    whole = s.find_batch(eager, one_batch(table), least=0.5)
    assert found.equals(pa.Table.from_batches([whole]))
    least = tasks.cutoff(find.output, Threshold(suspicion=0.5))
    assert tasks.cutoff(find.output, Threshold(top=2)) == sorted(found["suspicion"].to_pylist())[-2]
    flagged, repaired = tasks.count(find.output, least)
    assert 1 <= repaired <= flagged <= found.num_rows
    repair, _ = task_for(folder, model, tmp_path / "repaired", "repair")
    repair = replace(repair, findings=find.output, least=least)
    s.run(repair, stream, nothing)
    mended = result(tmp_path / "repaired")
    assert mended.schema.equals(table.schema, check_metadata=False)
    assert mended.combine_chunks().to_batches()[0].to_pydict() == (
        s.repair_batch(one_batch(table), found, least=least).to_pydict()
    )
    assert max(mended["height"].drop_null().to_pylist()) < 300


def test_the_manifest_names_model_and_files(folder: Path, model: Path, tmp_path: Path) -> None:
    task, stream = task_for(folder, model, tmp_path / "out")
    tasks.pending(task, stream)
    plan = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert plan["task"]["digest"] == "digest"
    assert [Path(path).name for path, _, _ in plan["files"]] == ["0.parquet", "1.parquet"]
    assert len(plan["units"]) == 4
