"""The tables of the paper and two further ones, by name."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

import cellmend
from cellmend.errors import did_you_mean
from cellmend.files.places import whole_file
from cellmend.table.schema import Column, Schema
from cellmend_bench.errors import MissingDatasetError

PAPER_TABLES = ("wine", "adult", "credit_default", "letter")
ROW_OUTLIER_TABLES = (
    "abda_letter",
    "abda_breast",
    "abda_pen_global",
    "abda_pen_local",
    "abda_satellite",
    "abda_thyroid",
    "abda_shuttle",
    "abda_aloi",
    "abda_speech",
    "abda_kdd",
)
FURTHER_TABLES = ("bike", "diamonds")  # that our default was not tuned on
LAYOUT_TABLES = ("wine", "adult", "credit_default", "letter", "bike", "diamonds", "abda_breast", "abda_thyroid",
                 "abda_satellite", "abda_pen_global")  # fmt: skip
KNOWN = PAPER_TABLES + FURTHER_TABLES + ROW_OUTLIER_TABLES
LABEL = "outlier"  # the last column of the row-outlier tables; never an input

_LISTED = {
    "wine": "fixed_acidity,volatile_acidity,citric_acid,residual_sugar,chlorides,free_sulfur_dioxide,"
    "total_sulfur_dioxide,density,pH,sulphates,alcohol,quality,wine_type",
    "adult": "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,bracket-salary",
    "credit_default": "LIMIT_BAL,SEX,EDUCATION,MARRIAGE,AGE,PAY_0,PAY_2,PAY_3,PAY_4,PAY_5,PAY_6,"
    "BILL_AMT1,BILL_AMT2,BILL_AMT3,BILL_AMT4,BILL_AMT5,BILL_AMT6,"
    "PAY_AMT1,PAY_AMT2,PAY_AMT3,PAY_AMT4,PAY_AMT5,PAY_AMT6,default payment next month",
    "letter": "letter,F1,F2,F3,F4,F5,F6,F7,F8,F9,F10,F11,F12,F13,F14,F15,F16",
}
COLUMNS = {name: columns.split(",") for name, columns in _LISTED.items()}
REALS = {
    "wine": COLUMNS["wine"][:-1],
    "adult": ["age", "fnlwgt", "capital-gain", "capital-loss", "hours-per-week"],
    "credit_default": ["LIMIT_BAL", "AGE", *COLUMNS["credit_default"][11:23]],
    "letter": [],
}
CATEGORIES = {name: [c for c in COLUMNS[name] if c not in REALS[name]] for name in PAPER_TABLES} | {
    "bike": ["season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"],
    "diamonds": ["cut", "color", "clarity"],
}
LEFT_OUT = {"bike": ["instant", "dteday"]}  # a running number, and the date of which others are parts

# SHA-256 of each paper table, see content_hash.
CONTENT = {
    "wine": "175fd28640244f55cf780b60de50e2b55f76569ff9ebde35c183d420e8c8ff7a",
    "adult": "ff849002c53b39557ef07a6f10d7ef2562b7920b9f7d2a8f1213108829ffd553",
    "credit_default": "5d2b2bd96cfda3e010ce690a8f24dbecb3a8f7618888e6b43c746d3838d18785",
    "letter": "ca147d2478456d26be9cae3aaa5565ace9ca8703ba48cf4e789b5e79c86355d7",
}

FILES = {"bike": "pair_bike_clean.csv.gz"}  # in CELLMEND_DATA, where a table is not named in its index
PACKED = Path(cellmend.__file__).parent / "data" / "diamonds.csv.gz"
ADULT_TEST_ROWS = 16281  # OpenML has UCI's test part first, then the training part, which the paper uses


@dataclass(frozen=True, eq=False)
class Dataset:
    """A clean table, its kinds and levels as in the paper, and which rows are outliers, if that is known."""

    name: str
    frame: pd.DataFrame  # without the label
    schema: Schema
    outlier: NDArray[np.bool_] | None  # (N,)


def load_dataset(name: str) -> Dataset:
    """A table by name: from the folder CELLMEND_DATA, from the package, or downloaded from OpenML once.

    >>> load_dataset("wien")
    Traceback (most recent call last):
    cellmend_bench.errors.MissingDatasetError: There is no dataset 'wien'. Did you mean 'wine'?
    """
    if name not in KNOWN:
        hint = did_you_mean(name, KNOWN) or f" Hint: choose one of {', '.join(KNOWN)}."
        raise MissingDatasetError(f"There is no dataset {name!r}.{hint}")
    path = PACKED if name == "diamonds" else _given_file(name) or _downloaded_file(name)
    table = _read(path).drop(columns=LEFT_OUT.get(name, []))
    wanted = CATEGORIES.get(name, [LABEL])
    absent = [column for column in wanted if column not in table]
    if absent:
        raise MissingDatasetError(
            f"Dataset {name!r} must have a column {absent[0]!r}; {path} has {', '.join(table.columns)}. "
            "Hint: put the right file there."
        )
    outlier = table.pop(LABEL).to_numpy() == 1 if name in ROW_OUTLIER_TABLES else None
    return Dataset(name, table, _schema(table, CATEGORIES.get(name, [])), outlier)


def content_hash(table: pd.DataFrame) -> str:
    """SHA-256 of a table's CSV text, whatever the order of its rows: OpenML's Letter is UCI's, shuffled.

    >>> table = pd.DataFrame({"x": [1.0, 0.1 + 0.2], "c": ["a", "b"]})
    >>> content_hash(table) == content_hash(pd.DataFrame({"x": [0.3, 1], "c": ["b", "a"]}))
    True
    """
    header, *rows = _as_csv(table).splitlines()
    return hashlib.sha256("\n".join([header, *sorted(rows)]).encode()).hexdigest()


def _schema(table: pd.DataFrame, categories: Sequence[str]) -> Schema:
    """Categories with all levels of the clean table, so that a corrupted copy has the same."""
    return Schema(
        tuple(
            Column(name, "category", levels=tuple(sorted(table[name].dropna().unique().tolist())))
            if name in categories
            else Column(name, "real")
            for name in table.columns
        )
    )


def _read(path: Path) -> pd.DataFrame:
    """A CSV file in which only an empty cell is missing: '?' and 'None' are categories."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    # The authors' wine file has 0.9940000000000001 for 0.994, which would hide the column's resolution.
    return table.round(10)


def _as_csv(table: pd.DataFrame) -> str:
    """One text for one content: 45 and 45.0 alike, no float noise; OpenML's gaps are Adult's category '?'."""
    return str(table.to_csv(index=False, float_format="%.10g", na_rep="?", lineterminator="\n"))


# ---------------------------------------------------------------- where the files are


def _given_file(name: str) -> Path | None:
    """The file in CELLMEND_DATA, if that is set and holds it."""
    given = os.environ.get("CELLMEND_DATA")
    if not given:
        return None
    folder = Path(given)
    index = folder / "tables.json"
    entries = json.loads(index.read_text(encoding="utf-8")) if index.is_file() else {}
    path = folder / (FILES.get(name) or entries.get(name, {}).get("file", f"{name}.csv.gz"))
    return path if path.is_file() else None


def _downloaded_file(name: str) -> Path:
    """The file in the user's cache, downloaded if it is not there yet."""
    if name not in DOWNLOADS:
        raise MissingDatasetError(f"Dataset {name!r} cannot be downloaded. {_put_it_there(name)}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cellmend"
    path = cache / f"{name}.csv.gz"
    if not path.is_file():
        text = _as_csv(_download(name))
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def _put_it_there(name: str) -> str:
    came = os.environ.get("CELLMEND_DATA")
    now = f"{came!r}, which does not hold it" if came else "not set"
    return f"Hint: set CELLMEND_DATA to a folder that holds {name}.csv.gz; it is {now}."


# ---------------------------------------------------------------- downloading


def _download(name: str) -> pd.DataFrame:
    try:
        table = DOWNLOADS[name]()
    except (OSError, ValueError) as error:  # no network, or OpenML has changed
        raise MissingDatasetError(
            f"Dataset {name!r} could not be downloaded from OpenML ({error}). {_put_it_there(name)}"
        ) from error
    found = content_hash(table)
    if found != CONTENT[name]:
        raise MissingDatasetError(
            f"Dataset {name!r} from OpenML must have the paper's content, SHA-256 {CONTENT[name]}; it has {found}. "
            f"{_put_it_there(name)}"
        )
    return table


def _openml(data_id: int, columns: Sequence[str]) -> pd.DataFrame:
    """A table of OpenML under our names, which stand in its order: its target is last."""
    frame = fetch_openml(data_id=data_id, as_frame=True, parser="auto", cache=False).frame
    if len(frame.columns) != len(columns):
        raise ValueError(f"table {data_id} must have {len(columns)} columns; it has {len(frame.columns)}")
    return frame.set_axis(list(columns), axis=1)


def _wine() -> pd.DataFrame:
    """White, then red; the authors' file has five significant digits, and 0.001 for no citric acid."""
    white, red = (_openml(data_id, COLUMNS["wine"][:-1]) for data_id in (44971, 44972))
    wine = pd.concat([white.assign(wine_type=2), red.assign(wine_type=1)], ignore_index=True)
    wine = wine.map(lambda cell: float(f"{float(cell):.5g}"))
    return wine.assign(citric_acid=wine["citric_acid"].replace(0.0, 0.001))


def _letter() -> pd.DataFrame:
    letter, *features = COLUMNS["letter"]
    return _openml(6, [*features, letter])[COLUMNS["letter"]]


DOWNLOADS: dict[str, Callable[[], pd.DataFrame]] = {
    "wine": _wine,
    "adult": lambda: _openml(1590, COLUMNS["adult"]).iloc[ADULT_TEST_ROWS:],
    "credit_default": lambda: _openml(42477, COLUMNS["credit_default"]),
    "letter": _letter,
}
