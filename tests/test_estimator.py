from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cellmend import PAPER, CellMender, Schema, SettingError, TableError
from cellmend.model.hidden import hidden_ratios, judge_hidden
from cellmend.model.judge import Judge
from cellmend.model.learning import climb
from cellmend.model.suspicion import clean_priors, estimate_rates
from cellmend.model.training import REVISIONS
from cellmend.settings import LEAST_FLAGGED
from cellmend.table.frames import read_frame
from cellmend_bench.together import fit_together
from tests.conftest import KINDS, SMALL, mixed_table

LEFT_OUT = ["id", "country"]


def line_table(rows: int = 400) -> pd.DataFrame:
    """Three columns that follow one another and a category that names the sign; two wrong cells."""
    x = np.random.default_rng(0).normal(size=rows)
    table = pd.DataFrame({"a": x, "b": 2 * x, "c": -x, "sign": np.where(x > 0, "plus", "minus")}).round(3)
    table.loc[7, "b"] = 9.0
    table.loc[11, "sign"] = "plus" if table.loc[11, "a"] < 0 else "minus"
    return table


@pytest.fixture(scope="module")
def line_mender() -> CellMender:
    return CellMender(epochs=150, random_state=0).fit(line_table())


@pytest.mark.slow
def test_planted_errors_are_found_and_repaired(line_mender: CellMender) -> None:
    table = line_table()
    suspicion = line_mender.cell_suspicion(table)
    assert suspicion.loc[7, "b"] > 0.5
    assert suspicion.loc[7, "b"] == suspicion.max(axis=None)
    repaired = line_mender.repair(table)
    assert abs(repaired.loc[7, "b"] - 2 * table.loc[7, "a"]) < 1.0
    first = line_mender.findings(table).iloc[0]
    assert (first["row"], first["column"], first["value"]) == (7, "b", 9.0)
    assert first["low"] < first["repair"] < first["high"] < 9.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"networks": 2},
        {"weights": "none"},
        {"weights": "amortized", "hide": 0.0},
        {"repair_method": "two-stage", "kl_weight": 1.0},
    ],
)
def test_answers_have_the_kind_shape_and_types_of_the_table(settings) -> None:
    table = mixed_table()
    with pytest.warns(UserWarning, match="Left out"):
        mender = CellMender(**SMALL | settings).fit(table)
    suspicion = mender.cell_suspicion(table)
    assert suspicion.shape == table.shape
    assert list(suspicion.columns) == list(table.columns)
    assert ((suspicion >= 0) & (suspicion <= 1)).all(axis=None)
    assert mender.cell_scores(table).shape == table.shape
    assert mender.row_scores(table).shape == (len(table),)
    for changed in (mender.repair(table), mender.reconstruct(table), mender.transform(table)):
        pd.testing.assert_series_equal(changed.dtypes, table.dtypes)
        pd.testing.assert_frame_equal(changed[LEFT_OUT], table[LEFT_OUT])
    for name, probabilities in mender.reconstruct_proba(table).items():
        assert set(probabilities.columns) == set(table[name].dropna())
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_polars_and_pyarrow_give_the_same_answers_as_pandas(fitted: CellMender, table, convert) -> None:
    other = convert(table)
    np.testing.assert_array_equal(fitted.cell_scores(other), fitted.cell_scores(table))
    repaired = fitted.repair(other)
    assert type(repaired) is type(other)
    assert repaired.schema == other.schema
    pd.testing.assert_frame_equal(repaired.to_pandas(), fitted.repair(table), check_dtype=False)
    findings = fitted.findings(other)
    assert type(findings) is type(other)
    assert len(findings) == len(fitted.findings(table))


def test_an_array_is_all_real() -> None:
    array = np.random.default_rng(0).integers(0, 3, (50, 3)).astype(float)
    mender = CellMender(**SMALL).fit(array)
    assert {column.kind for column in mender.schema_} == {"real"}
    assert isinstance(mender.repair(array), np.ndarray)
    assert isinstance(mender.cell_suspicion(array), np.ndarray)


def test_missing_cells_score_zero_and_stay_missing_unless_asked(fitted: CellMender, table) -> None:
    missing = table.isna().to_numpy()
    for answer in (
        fitted.cell_suspicion(table).to_numpy(),
        *(fitted.cell_scores(table, k) for k in ("pi", "nll")),
    ):
        assert (answer[missing] == 0).all()
    assert (fitted.repair(table).isna().to_numpy() == missing).all()
    filled = fitted.repair(table, impute=True)
    assert not filled.isna().any(axis=None)
    assert clone(fitted).set_params(impute=True).impute is True


@pytest.mark.slow
def test_menders_fitted_together_find_what_each_should() -> None:
    tables = [line_table(), line_table().assign(b=lambda t: -t["b"])]
    settings = {"epochs": 100, "networks": 2}
    menders = [CellMender(**settings, random_state=seed, alpha=alpha) for seed, alpha in ((0, 0.95), (1, 0.9))]
    fit_together(menders, tables)
    for mender, table in zip(menders, tables, strict=True):
        assert np.unravel_index(mender.cell_scores(table).argmax(), table.shape) == (7, 1)
        assert len(mender.history_) == 100
        assert mender.history_[-1] > mender.history_[0]


def test_menders_fitted_together_must_be_alike() -> None:
    menders = [CellMender(**SMALL), CellMender(**SMALL | {"epochs": 5})]
    with pytest.raises(ValueError, match="must have equal settings"):
        fit_together(menders, [line_table(30), line_table(30)])
    menders = [CellMender(**SMALL), CellMender(**SMALL)]
    with pytest.raises(ValueError, match="must have equal rows, kinds and levels"):
        fit_together(menders, [line_table(30), line_table(40)])


def test_the_impute_setting_serves_pipelines() -> None:
    table = mixed_table().drop(columns=LEFT_OUT)
    filled = CellMender(**SMALL, impute=True).fit_transform(table)
    assert not filled.isna().any(axis=None)


def test_only_flagged_cells_change(fitted: CellMender, table) -> None:
    changed = (fitted.repair(table) != table) & table.notna()
    flagged = fitted.cell_suspicion(table) >= LEAST_FLAGGED
    assert not (changed & ~flagged).any(axis=None)


def test_columns_left_out_of_the_model_are_judged_by_themselves(fitted: CellMender, table) -> None:
    suspicion = fitted.cell_suspicion(table)[LEFT_OUT]
    assert ((suspicion > 0) & (suspicion < 0.5)).all(axis=None)


def test_columns_that_the_user_ignores_are_never_suspected(table) -> None:
    table.loc[4, ["height", "country"]] = [1e6, "nvrwy?"]
    mender = CellMender(**SMALL | {"epochs": 2}, schema=KINDS | {"height": "ignore"}).fit(table)
    suspicion = mender.cell_suspicion(table)
    assert (suspicion[[*KINDS, "height"]] == 0).all(axis=None)


def test_the_users_table_is_never_modified(fitted: CellMender, table) -> None:
    before = table.copy(deep=True)
    fitted.repair(table, impute=True)
    fitted.reconstruct(table)
    pd.testing.assert_frame_equal(table, before)


def test_an_unseen_category_is_a_finding_not_a_crash(fitted: CellMender, table) -> None:
    table.loc[3, "city"] = "Atlantis"
    before, suspicion = fitted.cell_suspicion(mixed_table()), fitted.cell_suspicion(table)
    assert before.loc[3, "city"] < suspicion.loc[3, "city"]
    found = fitted.findings(table, suspicion=suspicion.loc[3, "city"])
    (odd,) = found[(found["row"] == 3) & (found["column"] == "city")].itertuples()
    assert odd.value == "Atlantis"
    assert odd.repair in {"Rome", "Oslo", "Lima"} or "Left as it is: " in odd.reason


def test_an_unseen_category_is_impossible_for_the_amortized_weights_too(table) -> None:
    table = table.drop(columns=LEFT_OUT)
    mender = CellMender(**PAPER | SMALL | {"weights": "amortized"}).fit(table)
    table.loc[3, "city"] = "Atlantis"
    assert mender.cell_suspicion(table).loc[3, "city"] == pytest.approx(1.0)


def test_a_failed_fit_leaves_the_estimator_unfitted(table) -> None:
    mender = CellMender(**SMALL).fit(table.drop(columns=LEFT_OUT))
    mender.set_params(schema={"city": "real"})
    with pytest.raises(ValueError, match="'city' is real"):
        mender.fit(table.drop(columns=LEFT_OUT))
    with pytest.raises(NotFittedError):
        mender.predict(table.drop(columns=LEFT_OUT))


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ([0] * 40, "count", ""),
        ([None] * 40, "count", ""),
        ([None] * 40, "category", "must hold text, numbers or booleans; it holds nothing but gaps"),
        (pd.date_range("2020", periods=40), "category", "must hold text, numbers or booleans; it holds timestamp"),
        ([10**7, 0] * 20, "count", "up to 1,000,000; their mean is 5,000,000. Hint: declare it as real"),
        (["x", "y"] * 20, {"kind": "category", "levels": ["a", "b"]}, "must be among its values"),
    ],
)
def test_a_declared_kind_that_does_not_fit_is_one_sentence(column, kind, message: str) -> None:
    table = line_table(40).assign(extra=column)
    mender = CellMender(**SMALL, schema={"extra": kind})
    if message:
        with pytest.raises(ValueError, match=message):
            mender.fit(table)
    else:
        assert mender.fit(table).cell_suspicion(table).shape == table.shape


def test_whole_numbers_stay_whole_and_decimals_stay(fitted: CellMender, table) -> None:
    clean = fitted.reconstruct(table)
    assert clean["income"].dtype == table["income"].dtype
    np.testing.assert_array_equal(clean["height"], clean["height"].round(1))


def test_row_scores_are_the_expected_number_of_wrong_cells(fitted: CellMender, table) -> None:
    table.loc[3, ["height", "rating"]] = [400.0, 1]
    table.loc[11, "city"] = "Rmoe"
    suspicion = fitted.cell_suspicion(table).to_numpy()
    np.testing.assert_allclose(fitted.row_scores(table), suspicion.sum(axis=1))
    alone, rows = fitted.score_rows(table)
    np.testing.assert_allclose(rows, alone.sum(axis=1))


def test_pi_scores_of_rows_are_the_clamped_sum_of_cells(fitted: CellMender, table) -> None:
    cells = fitted.cell_scores(table, kind="pi")
    modelled = table.notna().to_numpy() & ~table.columns.isin(LEFT_OUT)
    expected = np.where(modelled, np.clip(cells, -np.log(1 - 1e-6), -np.log(1e-6)), 0).sum(axis=1)
    np.testing.assert_allclose(fitted.row_scores(table, kind="pi"), expected, rtol=1e-4)
    nll = fitted.cell_scores(table, kind="nll").sum(axis=1)
    np.testing.assert_allclose(fitted.row_scores(table, kind="nll"), nll)


def test_cell_scores_are_minus_log_of_being_right(fitted: CellMender, table) -> None:
    scores, suspicion = fitted.cell_scores(table), fitted.cell_suspicion(table).to_numpy()
    np.testing.assert_allclose(np.exp(-scores), 1 - suspicion)
    assert (scores[table.notna().to_numpy()] > 0).all()


@pytest.mark.parametrize("weights", ["coordinate", "amortized", "none"])
@pytest.mark.parametrize("alpha", [0.95, 0.8])
def test_the_worst_share_of_the_fitted_rows_is_called_outliers(weights: str, alpha: float) -> None:
    table = line_table()
    mender = CellMender(**PAPER | SMALL | {"weights": weights, "alpha": alpha})
    labels = mender.fit_predict(table)
    assert (labels == -1).mean() == pytest.approx(1 - alpha, abs=0.01)
    scores = mender.row_scores(table)
    assert scores[labels == -1].min() >= scores[labels == 1].max()


def test_a_vae_has_nll_only(table) -> None:
    mender = CellMender(**PAPER | SMALL | {"weights": "none"}).fit(table.drop(columns=LEFT_OUT))
    table = table.drop(columns=LEFT_OUT)
    np.testing.assert_array_equal(mender.cell_scores(table), mender.cell_scores(table, kind="nll"))
    with pytest.raises(SettingError, match='only kind="nll"'):
        mender.cell_scores(table, kind="pi")


def test_a_wild_cell_is_the_worst_and_does_not_drown_its_row(fitted: CellMender, table) -> None:
    before = fitted.row_scores(table)[0]
    table.loc[0, "height"] = 1e6
    scores = fitted.cell_scores(table)
    assert scores[0, 0] == scores.max()
    assert fitted.row_scores(table)[0] - before < 5
    assert fitted.row_scores(table).max() <= table.shape[1]
    assert fitted.row_scores(table, kind="pi").max() <= 6 * -np.log(1e-6)


def history_of(**change: Any) -> list[float]:
    """How a short training went."""
    return CellMender(**SMALL | {"epochs": 4} | change).fit(mixed_table().drop(columns=LEFT_OUT)).history_


@pytest.fixture(scope="module")
def usual_history() -> list[float]:
    return history_of()


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.5},
        {"outlier": "gaussian"},
        {"outlier_scale": 5.0},
        {"components": 3},
        {"binned": False},
        {"hide": 0.2},
        {"networks": 2},
        {"kl_weight": 0.5},
        {"weights": "none"},
        {"weight_decay": 1.0},
        {"batch_size": 30},
        {"learning_rate": 1e-2},
        {"schedule": "constant"},
        {"embedding_dim": 2},
    ],
)
def test_every_setting_reaches_the_training(usual_history: list[float], change: dict[str, Any]) -> None:
    assert history_of(**change) != usual_history


def test_alpha_shifts_the_suspicion(fitted: CellMender, table) -> None:
    """Bayes' rule: other log odds of the prior, the same evidence."""
    menders = [CellMender(**PAPER | SMALL | {"alpha": 0.95}).fit(table.drop(columns=LEFT_OUT)) for _ in range(2)]
    table = table.drop(columns=LEFT_OUT)
    menders[1].set_params(alpha=0.5)
    odds = [np.log(1 / m.cell_suspicion(table)["height"][0] - 1) for m in menders]
    assert odds[0] - odds[1] == pytest.approx(np.log(0.95 / 0.05), abs=1e-3)


@pytest.mark.slow
def test_fdr_decides_which_cells_are_findings_and_change(line_mender) -> None:
    table = line_table()
    suspicion = line_mender.cell_suspicion(table).to_numpy()
    for fdr in (0.5, 0.7):
        found = line_mender.findings(table, fdr=fdr)
        assert found["suspicion"].mean() >= 1 - fdr - 1e-9
        assert len(found) == (suspicion >= found["suspicion"].min()).sum()
        changed = (line_mender.repair(table, fdr=fdr) != table).to_numpy()
        assert changed.sum() <= len(found)
        assert changed[7, 1]
    with pytest.raises(SettingError, match="fdr must be between 0 and 1; it is 2"):
        line_mender.findings(table, fdr=2)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_exactly_the_cells_at_or_above_the_threshold_are_findings_and_change(line_mender, threshold: float) -> None:
    table = line_table()
    mender = copy.deepcopy(line_mender).set_params(threshold=threshold)
    flagged = mender.cell_suspicion(table).to_numpy() >= threshold
    findings, expected = mender.findings(table), table.copy()
    assert len(findings) == flagged.sum()
    for row, column, repair in findings[["row", "column", "repair"]].itertuples(index=False):
        if not pd.isna(repair):  # else it is not sure enough
            expected.loc[row, column] = repair
    pd.testing.assert_frame_equal(mender.repair(table), expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["one-stage", "two-stage"])
def test_the_repair_method_decides_scores_repairs_and_probabilities(published, method: str) -> None:
    table = line_table()
    mender = copy.deepcopy(published).set_params(repair_method=method)
    assert (mender.cell_scores(table) != published.cell_scores(table)).any()
    flagged = mender.cell_suspicion(table).to_numpy() >= 0.5
    expected = table.mask(pd.DataFrame(flagged, columns=table.columns), published.reconstruct(table, method))
    pd.testing.assert_frame_equal(mender.repair(table), expected)
    own, asked = mender.reconstruct_proba(table), published.reconstruct_proba(table, method)
    pd.testing.assert_frame_equal(own["sign"], asked["sign"])


@pytest.mark.slow
def test_findings_do_not_depend_on_chunks(line_mender, monkeypatch) -> None:
    table = line_table()
    whole = line_mender.findings(table)
    monkeypatch.setattr("cellmend.model.evidence.CHUNK_NUMBERS", 1000)
    pd.testing.assert_frame_equal(line_mender.findings(table), whole)


def test_findings_stand_worst_first_also_among_equal_suspicions(fitted: CellMender, table) -> None:
    table["height"] = [1e6 * (row % 7) for row in range(len(table))]
    findings = fitted.findings(table, top=100)
    assert len(findings) == 100
    order = findings.sort_values(["suspicion", "repair_probability"], ascending=False, kind="stable")
    assert (findings["suspicion"].to_numpy() == order["suspicion"].to_numpy()).all()
    assert (findings["repair_probability"].to_numpy() == order["repair_probability"].to_numpy()).all()


def test_columns_that_are_not_named_by_text_are_compared_too() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=[2020, 2021])
    mender = CellMender(**SMALL).fit(table)
    np.testing.assert_array_equal(mender.cell_scores(table[[2021, 2020]]), mender.cell_scores(table)[:, ::-1])
    with pytest.raises(TableError, match="it lacks '2021'"):
        mender.cell_scores(table[[2020]])
    assert mender.cell_scores(table.to_numpy()).shape == (30, 2)


@pytest.fixture(scope="module")
def published() -> CellMender:
    settings = PAPER | {"epochs": 60, "hidden_dim": 64, "latent_dim": 2, "learning_rate": 5e-3}
    return CellMender(**settings, random_state=0).fit(line_table())


@pytest.mark.parametrize("method", ["map", "one-stage", "two-stage", "hidden"])
def test_repair_methods_are_reachable_by_name_and_repeatable(published: CellMender, method: str) -> None:
    first, second = (published.reconstruct(line_table(), method=method) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


def test_two_stage_keeps_most_cells_as_they_are(published: CellMender) -> None:
    table = line_table()
    kept = (published.reconstruct(table, method="two-stage") == table).mean(axis=None)
    drawn = (published.reconstruct(table, method="one-stage") == table).mean(axis=None)
    assert kept > 0.7 > drawn


def test_another_method_after_fitting_takes_its_own_rates(fitted: CellMender, table) -> None:
    """The paper's methods believe alpha, whatever was estimated for hidden cells."""
    asked = copy.deepcopy(fitted).set_params(repair_method="map")
    scores = asked.cell_scores(table, kind="pi")
    np.testing.assert_allclose(1 - np.exp(-scores), asked.cell_suspicion(table).to_numpy(), atol=1e-5)


def test_methods_that_these_settings_cannot_answer_by_are_refused(fitted: CellMender, table) -> None:
    with pytest.raises(SettingError, match="kl_weight must be above 0"):
        fitted.reconstruct(table, method="two-stage")
    with pytest.raises(SettingError, match="With 2 networks repair_method must be 'hidden'"):
        CellMender(**SMALL, networks=2, repair_method="map").fit(table)
    with pytest.raises(SettingError, match="hide must be 0"):
        CellMender(**SMALL, weights="amortized").fit(table)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_and_another_seed_another() -> None:
    table = mixed_table().drop(columns=LEFT_OUT)
    scores = [CellMender(**SMALL | {"random_state": seed}).fit(table).cell_scores(table) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()


def test_fitting_leaves_the_global_random_state_alone() -> None:
    import torch

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    CellMender(**SMALL).fit(line_table(50))
    assert torch.equal(torch.rand(1), expected)


def test_findings_have_the_agreed_columns_worst_first(fitted: CellMender, table) -> None:
    table.loc[0, "height"] = 500.0
    findings = fitted.findings(table)
    assert list(findings.columns) == [
        "row",
        "column",
        "value",
        "suspicion",
        "repair",
        "low",
        "high",
        "reason",
        "cause",
        "repair_probability",
        "contradiction",
    ]
    assert findings["suspicion"].is_monotonic_decreasing
    assert (findings["suspicion"] >= 0.5).all()
    assert (findings["repair_probability"] <= findings["suspicion"]).all()
    assert (findings["repair_probability"][findings["repair"].notna()] >= fitted.repair_from).all()


def test_no_findings_is_an_empty_table(fitted: CellMender, table) -> None:
    strict = clone(fitted).set_params(threshold=0.999999999)
    strict.fit(table.drop(columns=LEFT_OUT))
    findings = strict.findings(table.drop(columns=LEFT_OUT))
    assert len(findings) == 0
    assert list(findings.columns)[:2] == ["row", "column"]


@pytest.mark.slow
def test_a_schema_can_be_given_in_part() -> None:
    mender = CellMender(**SMALL, schema={"rating": "real", "id": "real"})
    with pytest.warns(UserWarning, match="'country'"):
        mender.fit(mixed_table())
    kinds = {column.name: column.kind for column in mender.schema_}
    assert (kinds["rating"], kinds["id"], kinds["children"]) == ("real", "real", "count")
    again = CellMender(**SMALL, schema=Schema.from_yaml(str(mender.schema_))).fit(mixed_table())
    assert again.schema_ == mender.schema_


def test_paper_is_the_published_model() -> None:
    assert PAPER == {
        "weights": "coordinate",
        "alpha": 0.95,
        "outlier": "gaussian",
        "outlier_scale": 2.0,
        "components": 0,
        "binned": False,
        "hide": 0.0,
        "networks": 1,
        "kl_weight": 1.0,
        "latent_dim": 20,
        "hidden_dim": 400,
        "embedding_dim": 50,
        "epochs": 100,
        "batch_size": 150,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "weight_decay": 0.0,
        "repair_method": "map",
        "threshold": 0.5,
    }
    CellMender(**PAPER)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"weights": "cvi"}, "weights must be one of 'coordinate', 'amortized', 'none'; it is 'cvi'"),
        ({"repair_method": "mean"}, "repair_method must be one of"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1; it is 1.0"),
        ({"epochs": 0}, "epochs must be a whole number from 1; it is 0"),
        ({"hidden_dim": 2.0}, "hidden_dim must be a whole number"),
        ({"outlier_scale": np.inf}, "outlier_scale must be above 0"),
        ({"device": "abacus"}, "device must be 'auto' or one that torch has here; 'abacus' is none"),
        ({"learning_rate": -1}, "learning_rate must be above 0"),
        ({"weight_decay": "much"}, "weight_decay must be 0 or above"),
    ],
)
def test_a_wrong_setting_is_one_sentence(setting, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CellMender(**SMALL | setting).fit(line_table(20))


def test_it_works_in_a_pipeline() -> None:
    array = line_table(80)[["a", "b", "c"]].to_numpy()
    pipeline = make_pipeline(CellMender(**SMALL), StandardScaler())
    assert pipeline.fit_transform(array).shape == array.shape


@pytest.mark.slow
def test_it_works_in_a_grid_search_by_its_own_score() -> None:
    search = GridSearchCV(CellMender(**SMALL), {"latent_dim": [1, 2]}, cv=2).fit(line_table(80)[["a", "b", "c"]])
    assert search.best_params_["latent_dim"] in (1, 2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_set_output_is_honoured() -> None:
    array = line_table(80)[["a", "b", "c"]].to_numpy()
    mender = CellMender(**SMALL).fit(array).set_output(transform="pandas")
    assert list(mender.transform(array).columns) == ["x0", "x1", "x2"]


def test_verbose_shows_progress_on_standard_error(capsys) -> None:
    CellMender(**SMALL, verbose=True).fit(line_table(40))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Fitting" in captured.err


CHANCE = np.random.default_rng(0)
CLEAN = {
    "numbers": (pd.DataFrame(CHANCE.normal(size=(300, 4)), columns=list("abcd")), None),
    "categories": (pd.DataFrame({c: CHANCE.choice(list("xyzw"), 300) for c in "abc"}), None),
    "levels": (pd.DataFrame({c: CHANCE.integers(1, 6, 300) for c in "abc"}), None),
    "counts": (pd.DataFrame({c: CHANCE.geometric(0.2, 300) - 1 for c in "abc"}), dict.fromkeys("abc", "count")),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_table_of_mere_chance_is_left_alone(kind: str) -> None:
    table, schema = CLEAN[kind]
    suspicion = CellMender(random_state=0, schema=schema).fit(table).cell_suspicion(table).to_numpy()
    assert (suspicion > 0.5).mean() < 0.02


def test_learning_together_believes_each_mender_s_own_cells(monkeypatch) -> None:
    """The last revision is that of the fitted networks, for all networks of a mender alike."""
    monkeypatch.setattr("cellmend.model.training.REVISIONS", (0.5,))
    seen = []

    def watched(network, lesson, *others, **settings):  # type: ignore[no-untyped-def]
        history = climb(network, lesson, *others, **settings)
        seen.append(lesson.revise())
        return history

    monkeypatch.setattr("cellmend_bench.together.climb", watched)
    tables = [line_table(60), line_table(60).assign(b=lambda t: -t["b"])]
    menders = [CellMender(**SMALL | {"random_state": seed}, networks=2) for seed in (0, 1)]
    fit_together(menders, tables)
    for place, (mender, table) in enumerate(zip(menders, tables, strict=True)):
        cells = Judge(mender.model_, mender.settings()).encode(mender.model_.reader.read(read_frame(table))).cells
        ratio = hidden_ratios(mender.network_, cells)[0]
        own = clean_priors(ratio, cells.observed, estimate_rates(ratio, cells.observed, rare=0.0)).float()
        for member in (2 * place, 2 * place + 1):
            torch.testing.assert_close(seen[0][member].float(), own, atol=1e-4, rtol=0)


def test_menders_fitted_together_decay_each_in_its_own_way() -> None:
    menders = [CellMender(**SMALL, weight_decay=decay) for decay in (0.0, 100.0)]
    fit_together(menders, [line_table(60)] * 2)
    free, held = (mender.network_.decoder_hidden.weight.abs().mean().item() for mender in menders)
    assert held < 0.8 * free


@pytest.mark.slow
def test_one_gross_count_does_not_spoil_its_column() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.poisson(3.6, 400) for name in "abc"})
    table.loc[5, "a"] = 1_000_000
    mender = CellMender(random_state=0, epochs=50, schema=dict.fromkeys("abc", "count")).fit(table)
    assert mender.findings(table)[["row", "column"]].values.tolist()[0] == [5, "a"]
    assert len(mender.findings(table)) <= 2
    assert mender.reconstruct(table)["a"].mean() == pytest.approx(3.6, abs=0.4)


@pytest.mark.slow
def test_the_score_is_the_log_probability_of_rows_whose_cells_are_hidden(line_mender: CellMender) -> None:
    """Against the network's own answers, cell by cell; a table of chance scores far lower."""
    table = line_table()
    cells = line_mender._judged(table)[1].cells
    evidence = judge_hidden(line_mender.network_, cells, alpha=0.95)
    both = 0.95 * evidence.log_clean.double().exp() + 0.05 * evidence.log_corrupted.double().exp()
    logs = torch.where(cells.observed, both.log(), 0.0)  # what a first look finds wrong is left out
    assert line_mender.score(table) == pytest.approx(logs.sum(1).mean().item(), rel=1e-4)
    apart = table.assign(b=table["b"].to_numpy()[::-1], c=np.roll(table["c"], 7))
    assert line_mender.score(apart) < line_mender.score(table) - 5


@pytest.mark.slow
def test_predict_calls_the_share_of_alpha_and_only_by_the_fitted_method(line_mender: CellMender) -> None:
    table = line_table()
    assert (line_mender.predict(table) == -1).mean() == pytest.approx(0.05, abs=0.01)
    other = copy.copy(line_mender).set_params(repair_method="map")
    with pytest.raises(SettingError, match="repair_method must be 'hidden' as it was"):
        other.predict(table)


@pytest.mark.slow
def test_learning_believes_cells_as_their_rows_say(monkeypatch) -> None:
    """A wrong cell makes the others of its row doubtful, not itself."""
    seen = []

    def watched(*given):  # type: ignore[no-untyped-def]
        seen.append(clean_priors(*given))
        return seen[-1]

    monkeypatch.setattr("cellmend.model.learning.clean_priors", watched)
    CellMender(random_state=0, epochs=60).fit(line_table())
    assert len(seen) == len(REVISIONS)
    wrong, usual = seen[-1][7], seen[-1][100]  # a, b, c, sign
    assert wrong[0] < wrong[1]
    assert wrong[0] < usual[0]
