"""What the values of an Arrow column are: their family, the cells that say something, a value as text."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Level = str | int | float | bool
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

LONGEST_TEXT = 60  # letters of a value in a sentence
LARGEST_EXACT_WHOLE = 2**53  # beyond it neighbouring whole numbers are equal as floats


def family(type_: pa.DataType) -> str:
    """'boolean', 'text', 'number', or 'other' for what no kind can hold."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "text"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    return "other"


def plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionary columns as their values, decimals as floats."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_decimal(values.type):
        return values
    return pc.round(values.cast(pa.float64()), ndigits=values.type.scale)  # the cast itself is not exact


def codes_of(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Which of its values each cell has, from 0, (N,); gaps are a value of their own."""
    coded = plain(values).combine_chunks().dictionary_encode()
    return coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)


def readable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells that say something: neither missing nor, in a column of numbers, without one."""
    observed = values.drop_null()
    return observed.filter(pc.invert(pc.is_nan(observed))) if pa.types.is_floating(observed.type) else observed


def level_text(value: Any) -> str:
    """A level as text, the same for 5, 5.0 and '5'.

    >>> level_text(5.0), level_text(-0.0), level_text(0.5), level_text(True)
    ('5', '0', '0.5', 'True')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_text(value: Any) -> str:
    """A value as a person would write it, all digits kept that a float has for sure.

    >>> as_text(-5.0), as_text(0.1 + 0.2), as_text(True), as_text(None), as_text(datetime.datetime(2024, 5, 3))
    ('-5', '0.3', 'True', '', '2024-05-03')
    """
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def shortened(value: Any) -> str:
    """A value for a sentence, long ones cut.

    >>> shortened("a" * 70) == "a" * 59 + "…", shortened(None)
    (True, 'missing')
    """
    text = "missing" if value is None else as_text(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def rounded_text(bound: float | str) -> str:
    """A bound with the digits that matter; text, as dates are, stays.

    >>> rounded_text(3.1512345678), rounded_text(123456789.12), rounded_text(12), rounded_text("02.01.1970")
    ('3.15123', '123456789', '12', '02.01.1970')
    """
    if isinstance(bound, int | str):
        return str(bound)
    return as_text(float(f"{bound:.6g}") if abs(bound) < 1e5 else round(bound))
