"""Formats that everybody knows: mail addresses, links, times of day, telephone numbers, bank accounts."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.posterior import forms

Keeps = Callable[[pa.StringArray], NDArray[np.bool_]]  # which texts keep a format, (T,)
ACCOUNT = re.compile(r"([A-Z]{2}\d{2})((?: ?[A-Z0-9]){11,30})")


def _matching(pattern: str) -> Keeps:
    return lambda texts: forms.matches(texts, pattern)


def is_account(text: str) -> bool:
    """Is it an international bank account number, whose two digits of control are right?

    >>> is_account("DE89 3704 0044 0532 0130 00"), is_account("DE89 3704 0044 0532 0130 01")
    (True, False)
    """
    found = ACCOUNT.fullmatch(text.strip())
    if not found:
        return False
    moved = (found[2] + found[1]).replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


def _accounts(texts: pa.StringArray) -> NDArray[np.bool_]:
    return np.array([is_account(text) for text in texts.to_pylist()], dtype=bool)


def _telephones(texts: pa.StringArray) -> NDArray[np.bool_]:
    """Digits in groups, but no dates and no plain numbers."""
    others = np.isfinite(forms.days(texts)) | np.isfinite(forms.numbers(texts))
    return TELEPHONE(texts) & ~others


TELEPHONE = _matching(r"^(\+|00)?[\d ()./-]*(\d[ ()./-]*){7,}(( ?(x|ext\.?) ?)\d{1,6})?$")
FORMATS: dict[str, Keeps] = {
    "mail address": _matching(r"^[\w.+'-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}$"),
    "link": _matching(r"^((https?|ftp)://|www\.)[\w-]+(\.[\w-]+)+(:\d+)?([/?#]\S*)?$"),
    "time of day": _matching(r"^([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?$"),
    "telephone number": _telephones,
    "bank account": _accounts,
}


UNDOING: tuple[Callable[[str], str], ...] = (  # slips in texts of such formats
    lambda text: forms.as_digits(pa.array([text]))[0].as_py(),
    lambda text: forms.as_digits(pa.array([text]), forms.LOOKALIKES[:2])[0].as_py(),
    lambda text: re.sub(r"\s+", "", text),
    lambda text: re.sub(r"[,;:]+(?=[A-Za-z]{2,}$)", ".", re.sub(r"\s+", "", text)),
    lambda text: re.sub(r"([@.:/])\1+", r"\1", text),
    lambda text: re.sub(r"\s*(\(at\)|\bat\b|#)\s*", "@", text),
    lambda text: re.sub(r"[.,;]", ":", text),
    lambda text: re.sub(r"^(https?)[;,.]?/+|^(https?):/(?=[^/])", lambda found: f"{found[1] or found[2]}://", text),
)
