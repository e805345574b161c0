"""Rules as YAML and as checks for other tools."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cellmend.cli import app
from cellmend.errors import RulesError
from cellmend.rules import (
    Shown,
    as_great_expectations,
    as_pandera,
    as_yaml,
    from_great_expectations,
    from_pandera,
    learn_rules,
    read_rules,
)
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.keys import Key
from cellmend.table.relations.ruled import ruled_rows
from cellmend.table.relations.rules import Rules
from cellmend.table.relations.stated import parse


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 30, 300)
    city = np.where(rng.random(300) < 0.05, rng.integers(0, 15, 300), rng.integers(0, 15, 30)[code])
    return pd.DataFrame({"nr": np.arange(300) + 70, "code": [f"A{c}" for c in code], "city": [f"c{c}" for c in city]})


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_a_rule_that_is_struck_out_is_not_used_and_a_sure_one_holds_in_every_group(frame: pd.DataFrame) -> None:
    reader, _ = TableReader.fit(read_frame(frame), None)
    entries = [
        entry for entry in Rules.told_by(reader.relations).to_json()["rules"] if entry["columns"] == ["code", "city"]
    ]
    [kept] = TableReader.fit(read_frame(frame), None, entries)[0].relations
    assert kept.columns == ("code", "city")
    assert kept.sure.tolist() != [1.0] * 30
    [sure] = TableReader.fit(read_frame(frame), None, [entries[0] | {"sure": True}])[0].relations
    assert set(sure.sure.tolist()) == {1.0}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: [", "cannot be read"),
        ("a: 1", "list under 'rules'"),
        ("- price > 0", "list under 'rules'"),
        ("rules: 5", "list under 'rules'"),
        ("own: price > 0", "list under 'rules'"),
        ("own: [3]", "line of text; one is 3"),
        ("rules: []\nmine: []", "list under 'rules'"),
        ("rules: [price > 0]", "of your own stand under 'own'"),
        ("rules: [{kind: key}]", "kind and columns"),
        ("rules: [{kind: key, columns: [a], sur: true}]", "'sur' too"),
        ("rules: [{kind: key, columns: [a], 3: true}]", "'3' too"),
        ("rules: [{kind: key, columns: 5}]", "columns of a rule must be a list of names; one is 5"),
        ("rules: [{kind: key, columns: id}]", "columns of a rule must be a list of names; one is 'id'"),
        ("rules: [{kind: key, columns: [[a]]}]", "columns of a rule must be a list of names"),
        ("rules: [{kind: key, columns: []}]", "columns of a rule must be a list of names"),
        ("rules: [{kind: kee, columns: [a]}]", "kind of a rule must be one of .*Did you mean 'key'"),
        ("rules: [{kind: [key], columns: [a]}]", "kind of a rule must be a text"),
        ("rules: [{kind: key, columns: [a], support: many}]", "support of a rule must be a number; one is 'many'"),
        ("rules: [{kind: key, columns: [a], support: true}]", "support of a rule must be a number"),
        ('rules: [{kind: key, columns: [a], sure: "false"}]', "sure of a rule must be true or false, without quotes"),
        ("rules: [{kind: key, columns: [a], rule: 2024-13-01}]", "cannot be read"),
        ("rules: " + "[" * 100_000, "nested deeply"),
        (BOMB, "refers to its own parts"),
        ("rules: !!python/object/apply:os.system [ls]", "cannot be read"),
    ],
)
def test_rules_that_cannot_be_read_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(RulesError, match=message) as refused:
        Rules.from_yaml(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.yaml", b"rules: [{kind: key, columns: [nmu]}]", "'nmu', which is none"),
        ("r.yaml", b"own: [nmu unique]", "'nmu', which is none"),
        ("r.yaml", "own: [Größe > 0]".encode("latin-1"), "must be text in UTF-8"),
        ("r.json", b"[1]", "suite of Great Expectations"),
        ("r.json", b"[" * 100_000, "suite of Great Expectations"),
        ("r.json", b'{"expectations": []}', "must have some"),
        ("r.py", b"schema = (", "script for pandera"),
        ("r.py", b"print(1)", "must have some"),
    ],
)
def test_a_command_refuses_rules_before_it_writes_anything(
    frame: pd.DataFrame, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    frame.head(30).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / name).write_bytes(content)
    asked = ["clean", str(tmp_path / "table.csv"), "-o", str(tmp_path / "out"), "--rules", str(tmp_path / name)]
    done = CliRunner().invoke(app, asked)
    assert isinstance(done.exception, RulesError)  # which main tells in one sentence, with exit code 1
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_without_relations_in_the_file_all_are_used_and_an_empty_list_uses_none() -> None:
    relations = [Key("nr", (), np.array([], dtype=np.int64), np.array([]), frozenset(), 1.0)]
    assert Rules.from_yaml("own: [nr > 0]").choose(relations) == relations
    assert Rules.from_yaml("rules: []").choose(relations) == []
    assert Rules.of(["nr > 0"]) == Rules(own=("nr > 0",))
    assert Rules.of([]) == Rules(())


OWN = [
    r"code matches ^(?!B)A\d+$",
    "nr >= 70",
    "nr < 1000",
    "late > nr",
    "city in [c1, c2, 5]",
    "city != c9",
    "nr unique",
    "nr and code unique",
    "code decides city",
    "code and nr decide city",
]


@pytest.fixture(scope="module")
def shown(frame: pd.DataFrame) -> Shown:
    return learn_rules(pa.Table.from_pandas(frame.assign(late=frame["nr"] + 1)), rules=OWN)


def test_exports_hold_keys_and_dependencies(frame: pd.DataFrame) -> None:
    shown = learn_rules(pa.Table.from_pandas(frame))
    script = as_pandera(shown)
    ast.parse(script)
    assert "~table.duplicated(['nr'], keep=False)" in script
    assert "table.groupby(['code'])['city']" in script
    suite = json.loads(as_great_expectations(shown))
    assert [each["type"] for each in suite["expectations"]] == [
        "expect_column_values_to_be_unique",
        "expect_column_pair_values_to_be_in_set",
    ]


@pytest.mark.parametrize(
    ("export", "name"), [(as_yaml, "r.yaml"), (as_pandera, "r.py"), (as_great_expectations, "r.json")]
)
def test_rules_of_ones_own_come_back_from_every_export(shown: Shown, tmp_path: Path, export: Any, name: str) -> None:
    (tmp_path / name).write_text(export(shown), encoding="utf-8")
    again = learn_rules(shown.table.arrow, rules=read_rules(tmp_path / name))
    assert set(OWN) <= set(again.reader.sure)


def test_built_in_checks_of_pandera_are_rules_too() -> None:
    script = """schema = pa.DataFrameSchema({
        "a": pa.Column(float, checks=[pa.Check.gt(0), pa.Check.le(9.5)], unique=True),
        "b": Column(str, Check.isin(["x", "y, z"])), "c": pa.Column(str, pa.Check.str_matches("x+"))})"""
    assert from_pandera(script).own == ("a unique", "a > 0", "a <= 9.5", 'b in [x, "y, z"]', "c matches ^(?:x+)")


def spoiled(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table that keeps the rules, and for each rule one in which a row breaks it."""
    fine = frame.assign(late=frame["nr"] + 1, city="c1")
    fine.loc[3, ["city", "code"]] = None  # gaps keep all rules
    changes = {
        OWN[0]: ("code", "B1"),
        OWN[1]: ("nr", 3),
        OWN[2]: ("nr", 1000),
        OWN[3]: ("late", 1),
        OWN[4]: ("city", "c5"),
        OWN[5]: ("city", "c9"),
        OWN[6]: ("nr", 75),
        OWN[8]: ("city", "c2"),
    }
    broken = {rule: fine.copy() for rule in changes}
    for rule, (column, value) in changes.items():
        broken[rule].loc[9, column] = value
    return {"": fine, **broken}


def broken_by_cellmend(table: pd.DataFrame) -> set[str]:
    read = ReadTable(read_frame(table), pa.Table.from_pandas(table, preserve_index=False), {})
    return {rule for rule in OWN if parse(rule, list(table.columns)).violations(read)}


@pytest.mark.slow
def test_pandera_finds_the_rules_broken_that_cellmend_finds_broken(frame: pd.DataFrame, shown: Shown) -> None:
    pandera = pytest.importorskip("pandera.pandas", reason="pandera is not installed")
    names: dict[str, Any] = {}
    exec(as_pandera(shown), names)  # noqa: S102
    for rule, table in spoiled(frame).items():
        try:
            names["schema"].validate(table, lazy=True)
            found = set()
        except pandera.errors.SchemaErrors as broken:
            found = set(broken.failure_cases["check"])
        assert found == broken_by_cellmend(table)
        assert rule in found | {""}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_great_expectations_finds_the_rules_broken_that_cellmend_finds_broken(
    frame: pd.DataFrame, shown: Shown
) -> None:
    gx = pytest.importorskip("great_expectations", reason="Great Expectations is not installed")
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("here").add_dataframe_asset("table")
    batches = asset.add_batch_definition_whole_dataframe("all")
    suite = gx.ExpectationSuite(**json.loads(as_great_expectations(shown)))
    checked = {each.meta["notes"] for each in suite.expectations}
    assert set(OWN) - checked == {"code and nr decide city"}
    for rule, table in spoiled(frame).items():
        batch = batches.get_batch({"dataframe": table})
        results = batch.validate(suite).results
        assert not [each for each in results if each.exception_info.get("raised_exception")]
        found = {each.expectation_config.meta["notes"] for each in results if not each.success} - {OWN[8]}
        assert found == broken_by_cellmend(table) & checked - {OWN[8]}  # which values go together was another table's
        assert rule in found | {"", OWN[8]}
    assert set(from_great_expectations(json.dumps(suite.to_json_dict())).own) >= checked


def test_the_command_writes_rules_that_can_be_given_back(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "table.csv", index=False)
    done = CliRunner().invoke(app, ["rules", str(tmp_path / "table.csv"), "-o", str(tmp_path / "rules.yaml")])
    assert done.exit_code == 0, done.output
    assert ("dependency", ("code", "city")) in {
        (rule.kind, rule.columns) for rule in Rules.load(tmp_path / "rules.yaml").rules
    }


@pytest.mark.slow
def test_rows_that_break_a_rule_are_listed_where_no_cell_is_flagged(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "table.csv", index=False)
    asked = ["clean", str(tmp_path / "table.csv"), "-o", str(tmp_path / "out"), "--suspicion", "0.9999999999", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["flagged"] == said["contradictions"] == 0
    broken = said["broken_rules"]["code decides city"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    kept = f"{len(frame) - broken} of {len(frame)} rows keep it; {broken} rows break it, none of them with a finding"
    assert f'<summary><h4>code decides city</h4><span class="said">{kept}</span></summary>' in page
    usual = frame.groupby("code")["city"].transform(lambda city: city.mode()[0])
    first = int(np.flatnonzero(frame["city"] != usual)[0])
    line = f"line {first + 2} ({frame['nr'][first]}): for code {frame['code'][first]} city is {usual[first]} in "
    assert re.search(rf"<li>{re.escape(line)}\d+ of \d+ rows, but here it is {frame['city'][first]}</li>", page)
    assert f"In {broken} rows without a finding a rule is broken" in page
    assert f"In {broken} rows without a finding a rule is broken" in done.stderr


@pytest.mark.slow
def test_clean_takes_rules_from_the_command_line_beside_a_file(frame: pd.DataFrame, tmp_path: Path) -> None:
    dirty = frame.astype({"nr": str})
    dirty.loc[7, "code"] = "99"
    dirty.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "rules.yaml").write_text("own:\n- nr unique\n", encoding="utf-8")
    asked = ["clean", str(tmp_path / "table.csv"), "-o", str(tmp_path / "out"), "--rules", str(tmp_path / "rules.yaml"),
             "--rule", r"code matches ^A\d+$", "--rule", "nr > 0", "--json"]  # fmt: skip
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["broken_rules"].keys() == {r"code matches ^A\d+$", "code decides city"}
    found = pd.read_csv(tmp_path / "out" / "findings.csv")
    assert found[found["line"] == 9]["reason"].str.contains(r"the rule is code matches ^A\d+$", regex=False).any()


def test_the_command_takes_what_is_said_of_the_file_and_rules_of_ones_own(frame: pd.DataFrame, tmp_path: Path) -> None:
    head = "exported on Monday\n\n"
    text = head + frame.assign(price="1,5").to_csv(sep="|", index=False)
    (tmp_path / "table.txt.csv").write_bytes(text.replace("price", "größe").encode("cp1252"))
    asked = ["rules", str(tmp_path / "table.txt.csv"), "--delimiter", "|", "--header-row", "3", "--encoding", "cp1252",
             "--decimal", ",", "--rule", "größe > 0"]  # fmt: skip
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    told = Rules.from_yaml(done.stdout)
    assert told.own == ("größe > 0",)
    assert ("dependency", ("code", "city")) in {(rule.kind, rule.columns) for rule in told.rules or ()}


def test_the_command_reads_the_sheet_that_is_named(frame: pd.DataFrame, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame({"note": ["nothing", "here"]}).to_excel(book, sheet_name="first", index=False)
        frame.to_excel(book, sheet_name="rows", index=False)
    done = CliRunner().invoke(app, ["rules", str(tmp_path / "book.xlsx"), "--sheet", "rows"])
    assert "code decides city" in done.stdout


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_a_rule_of_ones_own_that_the_table_shows_too_is_one_rule() -> None:
    random = np.random.default_rng(0)
    start = random.integers(0, 300, 400)
    frame = pd.DataFrame({"id": random.permutation(400), "start": start, "end": start + random.integers(0, 90, 400)})
    frame = frame.assign(start=pd.to_datetime(frame["start"], unit="D"), end=pd.to_datetime(frame["end"], unit="D"))
    shown = {rule.rule for rule in Rules.told_by(TableReader.fit(read_frame(frame), None)[0].relations).rules or ()}
    assert {"end is not before start", "id is different in every row"} <= shown
    frame.loc[9, "end"], frame.loc[30, "id"] = pd.Timestamp("1969-01-01"), frame.loc[20, "id"]
    reader, table = TableReader.fit(read_frame(frame), None, ["end >= start", "id unique"])
    assert reader.sure == ("id unique", "end >= start")
    assert [each.rule for each in table.violations] == ["id unique", "end >= start"]
    assert [each.rule for each in ruled_rows(reader.relations, reader.kept_by_all, table)][:2] == [*reader.sure]
    assert len(ruled_rows(reader.relations, reader.kept_by_all, table)) == len(reader.relations)
    told = Rules.told_by(reader.relations, reader.sure)
    assert {rule.rule for rule in told.rules or () if rule.sure} == {
        "end is not before start",
        "id is different in every row",
    }
    assert told.own == ()
    assert TableReader.from_json(json.loads(json.dumps(reader.to_json()))).kept_by_all == reader.kept_by_all


def test_names_with_quotes_and_braces_and_suites_of_before_go_through_too() -> None:
    odd = """it's "a" {b}"""
    frame = pd.DataFrame({odd: range(30), "x": range(30)})
    shown = learn_rules(pa.Table.from_pandas(frame), rules=[f"{odd} > -1", "x unique"])
    assert f"{odd} > -1" in from_pandera(as_pandera(shown)).own
    suite = as_great_expectations(shown).replace('"type"', '"expectation_type"')
    assert f"{odd} > -1" in from_great_expectations(suite).own
