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
