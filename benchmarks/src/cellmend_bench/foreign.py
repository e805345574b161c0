"""A second injector that nobody here wrote: the errors of the package tab-err."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.errors import MissingExtraError
from cellmend.evaluation.vandal import columns_of
from cellmend.evaluation.vandal_kinds import Column
from cellmend.evaluation.vandal_numbers import decimals, number, same
from cellmend.evaluation.vandal_words import Rng, one_of

RATE = 0.05  # of a column's cells
FEW_LEVELS = 20  # of a column of categories
WHOLE = 1e-9  # a number this near to a whole one is one
SCALES = (0.1, 0.001, 2.54, 0.3048, 1000.0, 60.0)
RECEIVERS = ("windows-1252", "iso-8859-2", "windows-1251")
TEMPLATES = ("{value}_", "({value})", "{value} (new)", "#{value}", "{value};")


def tab_err_errors(table: pd.DataFrame, rng: Rng) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """A table of texts with tab-err's errors in about one cell of twenty, and which cells are wrong.

    Cells that say the same as before are not wrong; empty ones are left alone.
    """
    columns = columns_of(table)
    dirty = table.to_numpy(dtype=object).copy()
    for place, column in enumerate(columns):
        rows = np.flatnonzero([bool(text.strip()) for text in column.texts])
        if len(rows) * RATE < 1 or len(column.counts) < 2:
            continue
        for row, text in zip(rows, _spoiled(columns, place, rows, rng), strict=True):
            if text.strip() and not same(text, column.texts[row]):
                dirty[row, place] = text
    wrong = dirty != table.to_numpy(dtype=object)
    return pd.DataFrame(dirty, columns=table.columns, index=table.index, dtype=object), wrong


def _imported() -> Any:
    """The package, or one sentence if it is missing."""
    try:
        import tab_err
        from tab_err import error_mechanism, error_type  # noqa: F401
        from tab_err.api import low_level  # noqa: F401
    except ImportError:
        raise MissingExtraError("This needs the package tab-err. Hint: pip install --no-deps tab-err.") from None
    return tab_err


def _spoiled(columns: list[Column], place: int, rows: NDArray[np.int64], rng: Rng) -> list[str]:
    """The filled cells of a column with errors of one type, placed by one mechanism."""
    tab_err, column = _imported(), columns[place]
    frame = pd.DataFrame({"own": _typed(column, rows)})
    frame["other"] = _typed(columns[(place + 1) % len(columns)], rows)
    seed = int(rng.integers(2**31))
    mechanisms = tab_err.error_mechanism
    ways = [mechanisms.ECAR(seed=seed), mechanisms.ENAR(seed=seed)]
    mechanism = one_of([*ways, mechanisms.EAR(condition_to_column="other", seed=seed)], rng)
    kind = _error_type(tab_err.error_type, frame["own"], seed, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # its own create_errors marks nothing with pandas 3, which copies what is written to
        touched = mechanism.sample(frame, "own", RATE, {"own": pd.Series(False, index=frame.index)})["own"]
        mask = pd.DataFrame({"own": touched, "other": False})
        spoiled = kind.apply(frame, mask, "own")
    exact = isinstance(kind, tab_err.error_type.WrongUnit)
    return [
        _written(value, column.texts[row], exact=exact) if hit else column.texts[row]
        for row, value, hit in zip(rows, spoiled, touched, strict=True)
    ]


def _typed(column: Column, rows: NDArray[np.int64]) -> pd.Series:
    """A column as tab-err likes it: numbers, categories or texts."""
    texts = [column.texts[row] for row in rows]
    values = [number(text) for text in texts]
    if None not in values and not any(text.startswith("0") and text[1:2].isdigit() for text in texts):
        return pd.Series(values, dtype="float64")
    few = len(set(texts)) <= FEW_LEVELS
    return pd.Series(texts, dtype="category") if few else pd.Series(texts, dtype=object)


def _error_type(types: Any, own: pd.Series, seed: int, rng: Rng) -> Any:
    """Any of the error types that fit."""
    ways: list[tuple[Any, dict[str, Any]]]
    if own.dtype == "float64":
        scale, delta = one_of(SCALES, rng), float(own.std()) * float(rng.uniform(0.5, 5))
        ways = [(types.Outlier, {}), (types.WrongUnit, {"wrong_unit_scaling": lambda value: value * scale})]
        ways.append((types.AddDelta, {"add_delta_value": delta}))
    elif own.dtype == "category":
        ways = [(types.CategorySwap, {})]  # by frequency it could not be repeated
    else:
        receiver = {"encoding_sender": "utf_8", "encoding_receiver": one_of(RECEIVERS, rng)}
        letter = one_of(sorted({letter for text in own for letter in text if letter.isalnum()} or {"a"}), rng)
        ways = [(types.Typo, {}), (types.Typo, {"typo_error_period": 2}), (types.Replace, {"replace_what": letter})]
        ways += [(types.Extraneous, {"extraneous_value_template": one_of(TEMPLATES, rng)})]
        ways += [(types.Mojibake, receiver)] if any(not text.isascii() for text in own) else []
        ways += [(types.Permutate, {})] if all(len(set(text.split(" "))) > 1 for text in own) else []
    kind, config = one_of(ways, rng)
    return kind(config, seed=seed)


def _written(value: Any, meant: str, *, exact: bool) -> str:
    """What tab-err made of a cell, written like the cell it was; whole numbers stay whole unless it must be `exact`."""
    if not isinstance(value, float):
        return str(value)
    places = decimals(meant)
    if exact and not places and abs(value - round(value)) > WHOLE:
        places = 2
    return f"{value:.{places}f}"
