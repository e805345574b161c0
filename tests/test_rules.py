"""Rules as YAML and as checks for other tools."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cellmend.cli import app
from cellmend.errors import RulesError
from cellmend.rules import as_great_expectations, as_pandera, learn_rules
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.relations.rules import Rules


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


@pytest.mark.parametrize(
    ("text", "message"),
    [("rules: [", "cannot be read"), ("a: 1", "list under 'rules'"), ("rules: [{kind: key}]", "kind and columns"),
     ("rules: [{kind: key, columns: [a], sur: true}]", "'sur' too")],
)  # fmt: skip
def test_rules_that_cannot_be_read_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        Rules.from_yaml(text)


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
    assert f"<summary>code decides city ({broken} rows)</summary>" in page
    usual = frame.groupby("code")["city"].transform(lambda city: city.mode()[0])
    first = int(np.flatnonzero(frame["city"] != usual)[0])
    line = f"line {first + 2} ({frame['nr'][first]}): code is {frame['code'][first]}, city is {frame['city'][first]}"
    assert f"<li>{line}</li>" in page
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
