from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from cellmend import CellMender
from cellmend.errors import EvaluationError, MissingExtraError, SchemaWarning, SettingError
from cellmend.evaluation.evaluation import Trial, evaluate, follow, repair_error
from cellmend.evaluation.planting import Planted, plant
from cellmend.evaluation.vandal import RIGHT
from cellmend.evaluation.vandal_kinds import NAMES
from cellmend.findings.finding import Finding, Mended
from cellmend.table.readtable import read_typed
from cellmend_bench import compared
from cellmend_bench.compared import BASELINES, as_typed
from cellmend_bench.methods import METHODS
from tests.benchmark.conftest import SCHEMA, people
from tests.conftest import SMALL

# ---------------------------------------------------------------- how they are measured

# Four rows of a number with mean 2.5 and deviation 1.118, of a level and of a number without errors. Another unit and
# an outlier in x, the cell of another row and one that is stuck in c.
CLEAN = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "c": ["a", "b", "a", "b"], "y": [5.0, 6.0, 7.0, 9.0]})
KINDS = np.full((4, 3), RIGHT, dtype=np.int8)
KINDS[0, 0], KINDS[2, 0] = NAMES.index("other unit"), NAMES.index("outlier")
KINDS[1, 1], KINDS[3, 1] = NAMES.index("other row"), NAMES.index("stuck")
SUSPICION = np.array([[0.9, 0.0, 0.7], [0.5, 0.8, 0.0], [0.2, 0.1, 0.0], [0.1, 0.3, 0.0]])
FLAGGED = SUSPICION >= 0.5


def hand_made() -> Planted:
    """The table above with its errors."""
    dirty = pa.table({"x": [10.0, 2.0, 9.0, 4.0], "c": ["a", "a", "a", "a"], "y": CLEAN["y"]})
    schema = {"x": "real", "c": {"kind": "category", "levels": ["a", "b"]}, "y": "real"}
    return replace(plant(CLEAN, schema=schema, share=1.0, seed=0), table=dirty, kinds=KINDS)


REPAIRED = pa.table({"x": [1.05, 2.2, 9.0, 4.0], "c": ["a", "b", "a", "a"], "y": CLEAN["y"]})
FINDINGS = [
    Finding(row, CLEAN.column_names[d], None, float(SUSPICION[row, d]), "repaired", None, None, "", cause)
    for (row, d), cause in zip(np.argwhere(FLAGGED).tolist(), ("unit", "unit", "typo", "dropped"), strict=True)
]


def trial(findings: list[Finding] = FINDINGS, repaired: pa.Table = REPAIRED) -> Trial:
    """What was found in it."""
    return Trial(hand_made(), Mended(read_typed(CLEAN), SUSPICION, findings, repaired))


def hand_made_outcome() -> pd.DataFrame:
    return trial().outcome


def test_the_outcome_of_every_error_by_hand() -> None:
    outcome = hand_made_outcome()
    assert outcome.column.tolist() == [0, 0, 1, 1]
    assert [NAMES[kind] for kind in outcome.kind] == ["other unit", "outlier", "other row", "stuck"]
    assert outcome.found.tolist() == [True, False, True, False]
    np.testing.assert_allclose(outcome.truth, [-1.5 / 1.25**0.5, 0.5 / 1.25**0.5, 1, 1])
    np.testing.assert_allclose(outcome.repair, [-1.45 / 1.25**0.5, np.nan, 1, np.nan])
    assert outcome.right.tolist() == [True, False, True, False]  # 0.05 of 1.118 is less than 5 %


def test_a_repair_that_is_off_by_more_than_a_twentieth_of_the_deviation_is_wrong() -> None:
    repaired = pa.table({"x": [1 + 0.051 * 1.25**0.5, 2.2, 9.0, 4.0], "c": ["a", "a", "a", "a"], "y": CLEAN["y"]})
    assert not trial(repaired=repaired).outcome.right.any()


def test_a_repair_helps_if_it_is_closer_to_the_truth_than_the_error_was() -> None:
    outcome = hand_made_outcome()
    deviation = 1.25**0.5
    np.testing.assert_allclose(outcome.dirty, [7.5 / deviation, 6.5 / deviation, 0, 0])
    assert outcome.closer.tolist() == [True, False, True, False]
    repaired = pa.table({"x": [-8.1, 2.0, 8.9, 4.0], "c": ["a", "a", "a", "a"], "y": CLEAN["y"]})
    every = np.ones_like(FLAGGED)  # beyond the truth by more than the error; nearer; two levels
    assert follow(hand_made(), every, repaired, every).closer.tolist() == [False, True, False, False]


def test_the_share_of_repairs_that_help_is_the_median_of_the_columns() -> None:
    repaired = pa.table({"x": [1.05, 9.0, 3.0, 4.0], "c": ["b", "a", "a", "a"], "y": CLEAN["y"]})
    assert trial(repaired=repaired).overall()["closer"] == 0.5  # all of x, none of c


def test_measures_by_kind_by_hand() -> None:
    lines = {line.pop("kind"): line for line in trial().by_kind().to_pylist()}
    assert list(lines) == ["other unit", "outlier", "other row", "stuck"]
    assert lines["other unit"]["repair_error"] == pytest.approx(0.05**2 / 1.5**2)
    assert lines["other unit"] | {"repair_error": 0} == {
        "errors": 1, "found": 1.0, "avpr": 1.0, "repaired": 1.0, "closer": 1.0, "repair_error": 0,
    }  # fmt: skip
    # The unit error is left out: before the outlier, of suspicion 0.2, stands the clean cell with 0.5.
    assert lines["outlier"] == {
        "errors": 1, "found": 0.0, "avpr": 0.5, "repaired": None, "closer": None, "repair_error": None,
    }  # fmt: skip
    assert lines["stuck"]["avpr"] == 1.0  # the other error, which is more suspicious, is left out


def test_measures_by_column_by_hand() -> None:
    x, c, y = trial().by_column().to_pylist()
    assert (x["column"], x["errors"], x["found"], x["precision"], x["repaired"]) == ("x", 2, 0.5, 0.5, 1.0)
    assert x["avpr"] == pytest.approx((1 + 2 / 3) / 2)  # wrong, clean, wrong, clean
    assert (c["found"], c["precision"], c["avpr"], c["repair_error"]) == (0.5, 1.0, 1.0, 0.0)
    assert y == {
        "column": "y", "errors": 0, "found": None, "precision": 0.0, "avpr": None, "repaired": None,
        "closer": None, "right_changed": 1, "repair_error": None,
    }  # fmt: skip


def test_measures_of_all_errors_by_hand() -> None:
    measures = trial().overall()
    assert (measures["errors"], measures["flagged"], measures["found"]) == (4, 4, 2)
    assert (measures["precision"], measures["recall"], measures["f1"], measures["false_share"]) == (0.5, 0.5, 0.5, 0.5)
    assert measures["expected_false_share"] == pytest.approx((0.1 + 0.3 + 0.5 + 0.2) / 4)
    assert measures["avpr"] == pytest.approx((5 / 6 + 1) / 2)
    assert measures["repaired"] == 1.0
    assert (measures["right_changed"], measures["right_changed_share"]) == (2, 2 / 12)
    assert measures["repair_error"] == pytest.approx((0.05**2 / 1.25) / (1.5**2 / 1.25 + 1))


def test_a_finding_without_a_repair_is_found_and_not_repaired() -> None:
    findings = [
        Finding(0, "x", 10.0, 0.9, None, None, None, "Abstained"),
        Finding(1, "c", "a", 0.8, "b", None, None, ""),
    ]
    found = trial(findings, CLEAN)
    assert np.argwhere(found.flagged).tolist() == [[0, 0], [1, 1]]
    assert np.argwhere(found.changed).tolist() == [[1, 1]]
    outcome = found.outcome
    assert outcome.found.tolist() == [True, False, True, False]
    assert outcome.right.tolist() == [False, False, True, False]


def test_causes_are_counted_with_the_share_that_is_right_and_the_columns_they_acted_in() -> None:
    assert trial().by_cause().to_pylist() == [
        {"cause": "unit", "flagged": 2, "precision": 0.5, "columns": "x, y"},
        {"cause": "typo", "flagged": 1, "precision": 0.0, "columns": "x"},
        {"cause": "dropped", "flagged": 1, "precision": 1.0, "columns": "c"},
    ]
    assert trial([]).by_cause().num_rows == 0


def test_when_nothing_is_flagged_there_is_no_precision() -> None:
    measures = trial([]).overall()
    assert (measures["recall"], measures["right_changed"]) == (0.0, 0)
    unknown = ("precision", "expected_false_share", "repaired", "closer", "repair_error")
    assert all(np.isnan(measures[name]) for name in unknown)


def test_columns_that_a_method_does_not_see_are_left_out_of_its_repairs() -> None:
    every = np.ones_like(FLAGGED)
    assert follow(hand_made(), every, REPAIRED.select(["c"]), every).column.tolist() == [1, 1]


def test_the_repair_error_of_levels_is_the_share_that_is_wrong_and_of_the_mean_one() -> None:
    assert repair_error(np.ones(4), np.array([1.0, 0.0, 1.0, 1.0])) == 0.25
    assert repair_error(np.array([0.3, -2.0]), np.zeros(2)) == 1.0
    assert repair_error(np.ones(1), np.array([np.nan])) is None


# ---------------------------------------------------------------- all of it


def related(rows: int = 400) -> pa.Table:
    """Numbers as text, numbers and a category that follow one another, and an identifier."""
    x = np.random.default_rng(0).normal(size=rows)
    return pa.table(
        {
            "a": [f"{each:.2f}" for each in 50 + 10 * x],
            "b": [f"{each:.2f}" for each in 60 + 20 * x],
            "sign": np.where(x > 0, "plus", "minus"),
            "c": (30 - 8 * x).round(1),
            "id": [f"no-{each}" for each in range(rows)],
        }
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_on_a_table_with_clear_relations_most_errors_are_found() -> None:
    table, mender = related(), CellMender(**SMALL | {"epochs": 60, "hidden_dim": 64})
    found = evaluate(table, mender=mender, share=0.1, seed=0, fdr=0.1, baselines=["Marginals", "RVAE nll"])
    assert (found.rows, found.columns) == (400, 5)
    errors = found.overall["errors"]
    assert sum(found.by_kind["errors"].to_pylist()) == sum(found.by_column["errors"].to_pylist()) == errors
    assert len(found.by_kind) > 15
    assert set(found.by_column["column"].to_pylist()) >= {"a", "b", "sign", "c"}
    assert found.overall["avpr"] > 0.7
    assert found.overall["recall"] > 0.3
    assert found.overall["precision"] > 0.6
    assert found.overall["repaired"] > 0.2  # only what is sure enough is repaired
    lines = found.baselines.to_pylist()
    assert [line["method"] for line in lines] == ["cellmend", "Marginals", "RVAE nll"]
    assert lines[0]["avpr"] == found.overall["avpr"]
    assert lines[0]["avpr"] > max(line["avpr"] for line in lines[1:])
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["overall"]["errors"] == errors
    assert plain["by_kind"][0].keys() == {
        "kind", "errors", "found", "avpr", "repaired", "closer", "repair_error",
    }  # fmt: skip
    assert plain["by_column"][0].keys() == {*plain["by_kind"][0], "column", "precision", "right_changed"} - {"kind"}
    with pytest.raises(NotFittedError):
        mender.findings(table)


def test_evaluating_twice_gives_the_same_numbers() -> None:
    table, mender = related(150).drop_columns(["id"]), CellMender(**SMALL | {"epochs": 2})
    first, again = (evaluate(table, mender=mender, share=0.1, seed=3, fdr=0.1) for _ in range(2))
    assert first.to_json() == again.to_json()
    assert first.baselines is None
    assert first.to_json()["baselines"] is None


def test_columns_left_out_of_the_model_are_named_once_and_get_errors_too() -> None:
    with pytest.warns(SchemaWarning, match="Left out of the model: 'id'") as said:
        found = evaluate(related(), mender=CellMender(**SMALL | {"epochs": 1}), share=0.2, seed=0, fdr=0.1)
    assert len(said) == 1
    assert found.by_column["column"].to_pylist()[-1] == "id"


def test_baselines_get_numbers_and_categories_and_what_is_neither_apart() -> None:
    x = np.random.default_rng(0).normal(size=60).round(2)
    texts = ["1..2", *(str(each) for each in x[1:])]
    table = pa.table({"x": texts, "id": [f"no-{row}" for row in range(60)], "sign": np.where(x > 0, "plus", "minus")})
    mender = CellMender(**SMALL | {"epochs": 1, "schema": {"id": "ignore"}}).fit(table)
    typed, unreadable = as_typed(table, mender)
    assert typed.column_names == ["x", "sign"]
    assert pa.types.is_floating(typed.schema.types[0])
    assert pa.types.is_dictionary(typed.schema.types[1])
    assert np.argwhere(unreadable).tolist() == [[0, 0]]


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    with pytest.raises(EvaluationError, match="above 0 and at most 1"):
        evaluate(CLEAN, mender=CellMender(), share=share, seed=0, fdr=0.1)


def test_an_fdr_that_cannot_be_is_refused_before_fitting() -> None:
    with pytest.raises(SettingError, match="fdr must be between 0 and 1"):
        evaluate(CLEAN, mender=CellMender(epochs=10**9), share=0.1, seed=0, fdr=1.5)


def test_an_unknown_baseline_is_refused_with_the_known_names() -> None:
    with pytest.raises(EvaluationError, match=r"one of RVAE, .*'Marginal' is none. Did you mean 'Marginals'"):
        evaluate(CLEAN, mender=CellMender(), share=0.1, seed=0, fdr=0.1, baselines=["Marginal"])


def test_a_baseline_whose_extra_is_missing_is_refused_before_fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"LightGBM\. Hint: pip install 'cellmend\[bench\]'"):
        evaluate(CLEAN, mender=CellMender(), share=0.1, seed=0, fdr=0.1, baselines=["LightGBM"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
@pytest.mark.parametrize("name", ["Marginals", "LightGBM", "OC-SVM + Marginals"])
def test_baselines_are_those_methods_that_judge_cells_without_labels(name: str) -> None:
    assert set(BASELINES) < set(METHODS)
    mender = CellMender(**SMALL | {"epochs": 1, "schema": SCHEMA})
    found = evaluate(people(), mender=mender, share=0.2, seed=0, fdr=0.1, baselines=[name])
    line = found.baselines.to_pylist()[1]
    assert 0 < line["avpr"] < 1
    assert (line["repaired"] is None) == (name == "OC-SVM + Marginals")
