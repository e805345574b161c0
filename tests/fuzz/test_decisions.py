"""Any file of decisions or fixes is read or is one sentence; what was written is read again, also if it was cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.decisions.decision import Decision, append_decisions, read_decisions, standing
from cellmend.errors import CellmendError, DecisionError, PatchError
from cellmend.files.formats import read_file
from cellmend.patch import Fix, apply_patch, read_patch, write_patch
from tests.fuzz.conftest import FUZZ

CELLS = ("Ulm", "Bonn", "", "7", 'say "x"', "a,b", "two\nlines", " ü ")
WORDS = ('"row"', '"column"', '"value"', '"verdict"', '"repair"', '"right"', '"wrong"', '"undo"', '"old"', '"new"', "3")
SIGNS = (*'{}[]:,"\n\r ', "null", "true", "-1", "1e999", "NaN", "\ufeff", "\u2028", "\\ud800", "9" * 5000, "[" * 2000)
texts = st.lists(st.sampled_from((*WORDS, *SIGNS)) | st.text(max_size=3), max_size=40).map("".join)
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=6) | st.just([1])
cells = st.sampled_from(CELLS) | st.text(max_size=6)
rows = st.integers(0, 9)
right = st.builds(Decision, rows, cells, st.none() | cells, st.sampled_from(["right", "undo"]))
wrong = st.builds(Decision, rows, cells, st.none() | cells, st.just("wrong"), st.none() | cells)
decisions = st.lists(right | wrong, max_size=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@FUZZ
@given(texts.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=60), decisions)
def test_any_bytes_are_decisions_or_one_sentence_and_more_can_be_added(
    folder: Path, content: bytes, more: list[Decision]
) -> None:
    path = folder / "any.jsonl"
    path.write_bytes(content)
    try:
        before = read_decisions(path)
    except DecisionError:
        return
    append_decisions(path, more)
    assert read_decisions(path) == before + more


@FUZZ
@given(st.dictionaries(st.sampled_from(["row", "column", "value", "verdict", "repair", "why"]), values))
def test_any_entry_is_a_decision_or_one_sentence(folder: Path, entry: dict[str, object]) -> None:
    path = folder / "entry.jsonl"
    path.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    try:
        (read,) = read_decisions(path)
    except DecisionError:
        return
    assert Decision.of(json.loads(read.to_line())) == read


@FUZZ
@given(decisions, decisions, st.data())
def test_a_file_that_was_cut_off_keeps_all_whole_lines_and_takes_more(
    folder: Path, kept: list[Decision], more: list[Decision], data: st.DataObject
) -> None:
    path = folder / "cut.jsonl"
    path.unlink(missing_ok=True)
    append_decisions(path, kept)
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == 10]
    at = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:at])
    whole = sum(end - 1 <= at for end in ends)  # a line without its end is whole too
    assert read_decisions(path) == kept[:whole]
    append_decisions(path, more)
    assert read_decisions(path) == kept[:whole] + more


@FUZZ
@given(decisions)
def test_of_all_decisions_each_cell_stands_once_or_they_contradict(given: list[Decision]) -> None:
    try:
        held = standing(given)
    except DecisionError:
        return
    assert len({each.cell for each in held}) == len(held)
    assert set(held) <= set(given)
    assert all(each.verdict != "undo" for each in held)


@FUZZ
@given(texts)
def test_any_text_is_a_patch_or_one_sentence(folder: Path, text: str) -> None:
    path = folder / "any.patch"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        fixes = read_patch(path)
    except PatchError:
        return
    write_patch(path, fixes)
    assert read_patch(path) == fixes


@FUZZ
@given(
    st.lists(st.lists(st.sampled_from(CELLS), min_size=2, max_size=2), min_size=1, max_size=5),
    st.lists(st.builds(Fix, st.integers(0, 6), st.sampled_from(["city", "note", "gone"]), cells, cells), max_size=4),
)
def test_a_patch_changes_its_cells_and_no_others(folder: Path, content: list[list[str]], fixes: list[Fix]) -> None:
    table, patch, out = folder / "table.csv", folder / "fixes.patch", folder / "patched.csv"
    quoted = [",".join(f'"{cell}"' for cell in (c.replace('"', '""') for c in line)) for line in content]
    table.write_bytes("\n".join(["city,note", *quoted, ""]).encode())
    out.unlink(missing_ok=True)
    source, before = read_file(table), table.read_bytes()
    write_patch(patch, fixes)
    try:
        applied = apply_patch(patch, source, out)
    except CellmendError:
        assert not out.exists()
        return
    expected = source.table.to_pylist()
    made = 0
    for fix in read_patch(patch):
        held = fix.row < len(expected) and fix.column != "gone" and source.table[fix.column][fix.row].as_py() == fix.old
        if held:
            made += 1
            expected[fix.row][fix.column] = fix.new
    assert table.read_bytes() == before
    assert applied.made == made
    assert out.exists() or made == 0  # nothing is written where every cell is refused
    assert not out.exists() or read_file(out).table.to_pylist() == expected
