from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from cellmend_bench import datasets
from cellmend_bench.datasets import (
    CATEGORIES,
    COLUMNS,
    CONTENT,
    PAPER_TABLES,
    ROW_OUTLIER_TABLES,
    content_hash,
    load_dataset,
)
from cellmend_bench.errors import MissingDatasetError

REAL_DATA = os.environ.get("CELLMEND_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data folder, an empty cache, no network."""
    monkeypatch.delenv("CELLMEND_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: pytest.fail("a download was tried"))
    return tmp_path / "cache" / "cellmend"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that CELLMEND_DATA names."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("CELLMEND_DATA", str(path))
    return path


def small(name: str, **columns: list[object]) -> pd.DataFrame:
    """Two rows of a paper table; every column holds 1 and 2, unless it is given."""
    return pd.DataFrame({column: [1, 2] for column in COLUMNS[name]} | columns)


def row_outliers() -> pd.DataFrame:
    return pd.DataFrame({"x0": [0.5, 1.5, 9.0], "x1": [1, 2, 3], "outlier": [0, 0, 1]})


def serve(monkeypatch: pytest.MonkeyPatch, frames: dict[int, pd.DataFrame]) -> list[int]:
    """Let OpenML have these frames; the list fills with the ids that are asked for."""
    asked: list[int] = []

    def fetch(*, data_id: int, as_frame: bool, parser: str, cache: bool) -> SimpleNamespace:
        assert (as_frame, parser, cache) == (True, "auto", False)
        asked.append(data_id)
        return SimpleNamespace(frame=frames[data_id])

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return asked


# ---------------------------------------------------------------- what is known in code


def test_the_paper_tables_have_as_many_reals_and_categories_as_in_the_paper() -> None:
    categories = {name: len(CATEGORIES[name]) for name in PAPER_TABLES}
    assert categories == {"wine": 1, "adult": 10, "credit_default": 10, "letter": 17}
    assert {name: len(COLUMNS[name]) - categories[name] for name in PAPER_TABLES} == {
        "wine": 12,
        "adult": 5,
        "credit_default": 14,
        "letter": 0,
    }


@pytest.mark.skipif(not REAL_DATA, reason="CELLMEND_DATA is not set")
@pytest.mark.parametrize("name", PAPER_TABLES)
def test_the_files_of_the_paper_have_the_known_content(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLMEND_DATA", str(REAL_DATA))
    table = load_dataset(name).frame
    assert list(table.columns) == COLUMNS[name]
    assert content_hash(table) == CONTENT[name]


def test_the_hash_sees_every_cell_and_every_name() -> None:
    table = small("wine")
    changed = [table.replace({"pH": {2: 2.5}}), table.rename(columns={"pH": "ph"}), table.iloc[:1]]
    assert len({content_hash(each) for each in [table, *changed]}) == 4


# ---------------------------------------------------------------- from the folder


def test_the_diamonds_are_in_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CELLMEND_DATA", raising=False)
    diamonds = load_dataset("diamonds")
    assert diamonds.frame.shape == (6000, 10)
    assert [column.name for column in diamonds.schema if column.kind == "category"] == ["cut", "color", "clarity"]
    assert diamonds.outlier is None


def test_bike_sharing_leaves_out_number_and_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["instant", "dteday", *CATEGORIES["bike"], "temp", "cnt"]
    pd.DataFrame([range(12), range(1, 13)], columns=columns).to_csv(tmp_path / "pair_bike_clean.csv.gz", index=False)
    monkeypatch.setenv("CELLMEND_DATA", str(tmp_path))
    bike = load_dataset("bike")
    assert list(bike.frame.columns) == columns[2:]
    assert [column.name for column in bike.schema if column.kind == "real"] == ["temp", "cnt"]


def test_question_marks_and_the_word_none_are_ordinary_categories(folder: Path) -> None:
    adult = small("adult", workclass=["?", "Private"], occupation=["None", "NA"])
    adult.to_csv(folder / "adult.csv.gz", index=False)
    loaded = load_dataset("adult")
    pd.testing.assert_frame_equal(loaded.frame, adult)
    assert loaded.schema["workclass"].levels == ("?", "Private")
    assert loaded.schema["occupation"].levels == ("NA", "None")
    assert loaded.schema["education-num"].levels == (1, 2)
    assert loaded.schema["age"].kind == "real"
    assert loaded.outlier is None


def test_levels_are_sorted_as_numbers_where_they_are_numbers(folder: Path) -> None:
    table = pd.concat([small("letter"), small("letter", F1=[10, -2])])
    table.to_csv(folder / "letter.csv.gz", index=False)
    assert load_dataset("letter").schema["F1"].levels == (-2, 1, 2, 10)


def test_an_empty_cell_is_missing_and_no_level(folder: Path) -> None:
    table = pd.concat([small("wine"), small("wine", pH=[None, 3], wine_type=[None, 2])])
    table.to_csv(folder / "wine.csv.gz", index=False)
    wine = load_dataset("wine")
    assert wine.frame.isna().sum().sum() == 2
    assert wine.schema["wine_type"].levels == (1, 2)


def test_float_noise_in_a_file_does_not_hide_the_resolution(folder: Path) -> None:
    small("wine", density=[0.9940000000000001, 0.99549]).to_csv(folder / "wine.csv.gz", index=False)
    assert load_dataset("wine").frame["density"].tolist() == [0.994, 0.99549]


def test_the_label_of_a_row_outlier_table_is_no_input(folder: Path) -> None:
    row_outliers().to_csv(folder / "abda_speech.csv.gz", index=False)
    speech = load_dataset("abda_speech")
    assert list(speech.frame.columns) == ["x0", "x1"]
    assert [column.kind for column in speech.schema] == ["real", "real"]
    assert speech.outlier is not None
    assert speech.outlier.dtype == np.bool_
    assert speech.outlier.tolist() == [False, False, True]


def test_tables_json_may_name_another_file(folder: Path) -> None:
    (folder / "tables.json").write_text(json.dumps({"abda_kdd": {"file": "kdd99.csv.gz"}}))
    row_outliers().to_csv(folder / "kdd99.csv.gz", index=False)
    assert len(load_dataset("abda_kdd").frame) == 3


def test_a_file_without_its_label_is_refused(folder: Path) -> None:
    row_outliers().drop(columns="outlier").to_csv(folder / "abda_kdd.csv.gz", index=False)
    with pytest.raises(MissingDatasetError, match=r"must have a column 'outlier'; .*abda_kdd.csv.gz has x0, x1\."):
        load_dataset("abda_kdd")


# ---------------------------------------------------------------- what cannot be had


@pytest.mark.parametrize("name", ROW_OUTLIER_TABLES)
def test_row_outlier_tables_need_the_folder(name: str) -> None:
    with pytest.raises(
        MissingDatasetError, match=rf"'{name}' cannot be downloaded.* holds {name}.csv.gz; it is not set"
    ):
        load_dataset(name)


def test_a_folder_without_the_table_is_named(folder: Path) -> None:
    with pytest.raises(MissingDatasetError, match=r"it is '.*data', which does not hold it\."):
        load_dataset("abda_kdd")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("credit-default", "Did you mean 'credit_default'?"), ("abda_peng_global", "Did you mean 'abda_pen_global'?")],
)
def test_an_unknown_name_gets_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(MissingDatasetError) as caught:
        load_dataset(name)
    assert str(caught.value) == f"There is no dataset {name!r}. {hint}"


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(MissingDatasetError, match="choose one of wine, adult"):
        load_dataset("?")


# ---------------------------------------------------------------- downloading


def test_a_table_is_downloaded_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = small("credit_default")
    monkeypatch.setitem(CONTENT, "credit_default", content_hash(expected))
    openml = expected.set_axis([*(f"x{place}" for place in range(1, 24)), "y"], axis=1)
    asked = serve(monkeypatch, {42477: openml.astype({"x2": "category", "x5": "float64", "y": "category"})})
    for _ in range(2):
        pd.testing.assert_frame_equal(load_dataset("credit_default").frame, expected)
    assert asked == [42477]
    assert [path.name for path in cache.iterdir()] == ["credit_default.csv.gz"]


def test_a_table_that_the_folder_lacks_is_downloaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTENT, "credit_default", content_hash(small("credit_default")))
    serve(monkeypatch, {42477: small("credit_default")})
    assert len(load_dataset("credit_default").frame) == 2
    assert not list(folder.iterdir())


def test_the_cache_is_in_the_home_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setitem(CONTENT, "credit_default", content_hash(small("credit_default")))
    serve(monkeypatch, {42477: small("credit_default")})
    load_dataset("credit_default")
    assert (tmp_path / ".cache" / "cellmend" / "credit_default.csv.gz").is_file()


def test_adult_is_the_training_part_with_gaps_as_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = small("adult", workclass=["?", "Private"])
    monkeypatch.setitem(CONTENT, "adult", content_hash(expected))
    monkeypatch.setattr(datasets, "ADULT_TEST_ROWS", 2)
    test_part = small("adult", workclass=["State-gov", "State-gov"])
    openml = pd.concat([test_part, small("adult", workclass=[None, "Private"])], ignore_index=True)
    openml = openml.astype({"workclass": "category"}).rename(columns={"bracket-salary": "class"})
    serve(monkeypatch, {1590: openml})
    pd.testing.assert_frame_equal(load_dataset("adult").frame, expected)


def test_wine_is_white_then_red_as_the_authors_rounded_it(monkeypatch: pytest.MonkeyPatch) -> None:
    white = small("wine", citric_acid=[0.0, 0.5], density=[1.03898, 0.99549]).drop(columns="wine_type")
    red = small("wine", citric_acid=[0.25, 0.5], alcohol=[9.53333333333333, 10.5]).drop(columns="wine_type")
    expected = pd.concat(
        [
            small("wine", citric_acid=[0.001, 0.5], density=[1.039, 0.99549], wine_type=[2, 2]),
            small("wine", citric_acid=[0.25, 0.5], alcohol=[9.5333, 10.5], wine_type=[1, 1]),
        ],
        ignore_index=True,
    )
    monkeypatch.setitem(CONTENT, "wine", content_hash(expected))
    serve(monkeypatch, {44971: white.rename(columns=str.upper), 44972: red})
    pd.testing.assert_frame_equal(load_dataset("wine").frame, expected)


def test_letter_has_the_letter_first(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = small("letter", letter=["T", "I"], F16=[8, 10])
    monkeypatch.setitem(CONTENT, "letter", content_hash(expected))
    openml = expected[[*COLUMNS["letter"][1:], "letter"]].rename(columns={"F1": "x-box", "letter": "class"})
    serve(monkeypatch, {6: openml.iloc[::-1]})
    loaded = load_dataset("letter").frame
    pd.testing.assert_frame_equal(loaded, expected.iloc[::-1].reset_index(drop=True))


def test_other_content_is_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {42477: small("credit_default")})
    with pytest.raises(
        MissingDatasetError, match=r"'credit_default' from OpenML must have the paper's content, SHA-256"
    ):
        load_dataset("credit_default")
    assert not cache.exists()


def test_a_table_of_another_width_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {42477: small("credit_default").assign(id=1)})
    with pytest.raises(MissingDatasetError, match="table 42477 must have 24 columns; it has 25"):
        load_dataset("credit_default")


def test_without_a_network_the_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(**_: object) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setattr(datasets, "fetch_openml", offline)
    with pytest.raises(
        MissingDatasetError, match=r"could not be downloaded .*not known.* set CELLMEND_DATA to a folder"
    ):
        load_dataset("wine")
