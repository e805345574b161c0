"""What can be set: the published settings, and what each setting must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from cellmend.errors import SettingError

WEIGHTS = ("coordinate", "amortized", "none")
REPAIR_METHODS = ("map", "one-stage", "two-stage", "hidden")
SCORES = ("pi", "nll", "suspicion")
OUTLIERS = ("gaussian", "cauchy")
SCHEDULES = ("constant", "cosine")

PAPER: dict[str, Any] = {
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
}
"""RVAE-CVI as published (Eduardo, Nazábal, Williams and Sutton, AISTATS 2020)."""

Check = tuple[str, Callable[[Any], bool]]  # what a number must be, and is it that?
_WHOLE: Check = ("a whole number from 1", lambda value: isinstance(value, Integral) and int(value) >= 1)
_COUNT: Check = ("a whole number from 0", lambda value: isinstance(value, Integral) and int(value) >= 0)
_SHARE: Check = ("between 0 and 1", lambda value: 0 < value < 1)
_POSITIVE: Check = ("above 0", lambda value: 0 < value < math.inf)
_NOT_NEGATIVE: Check = ("0 or above", lambda value: 0 <= value < math.inf)
NUMBERS = {
    "alpha": _SHARE,
    "outlier_scale": _POSITIVE,
    "components": _COUNT,
    "hide": ("from 0 to below 1", lambda value: 0 <= value < 1),
    "networks": _WHOLE,
    "kl_weight": _NOT_NEGATIVE,
    "latent_dim": _WHOLE,
    "hidden_dim": _WHOLE,
    "embedding_dim": _WHOLE,
    "epochs": _WHOLE,
    "batch_size": _WHOLE,
    "train_rows": _WHOLE,
    "keep_rows": _COUNT,
    "time_limit": _POSITIVE,
    "patience": _WHOLE,
    "learning_rate": _POSITIVE,
    "weight_decay": _NOT_NEGATIVE,
    "threshold": _SHARE,
}


MAY_BE_NONE = ("batch_size", "learning_rate", "train_rows", "time_limit", "patience")
ASKED = {"fdr": _SHARE, "suspicion": ("above 0 and at most 1", lambda value: 0 < value <= 1), "top": _WHOLE}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse the first setting that cannot be, in one sentence.

    >>> check_settings(dict.fromkeys(MAY_BE_NONE) | PAPER | {"alpha": 1.0, "threshold": 0.5})
    Traceback (most recent call last):
    cellmend.errors.SettingError: alpha must be between 0 and 1; it is 1.0.
    """
    one_of("weights", settings["weights"], WEIGHTS)
    one_of("outlier", settings["outlier"], OUTLIERS)
    one_of("schedule", settings["schedule"], SCHEDULES)
    for name, (what, holds) in NUMBERS.items():
        value = settings[name]
        if not (isinstance(value, Real) and holds(value)) and not (name in MAY_BE_NONE and value is None):
            raise SettingError(f"{name} must be {what}; it is {value!r}.")
    if settings["weights"] == "amortized" and settings["hide"]:
        raise SettingError(f'With weights="amortized" hide must be 0; it is {settings["hide"]}.')
    check_method(settings["repair_method"], settings)


def check_number(name: str, value: Any) -> Any:
    """A number that a method was asked with, if it is one that can be.

    >>> check_number("fdr", 0.1)
    0.1
    """
    what, holds = ASKED[name]
    if not (isinstance(value, Real) and holds(value)):
        raise SettingError(f"{name} must be {what}; it is {value!r}.")
    return value


def check_method(method: str, settings: Mapping[str, Any]) -> str:
    """The method, if it is one that a network of these settings can answer by."""
    one_of("repair_method", method, REPAIR_METHODS)
    if settings["networks"] > 1 and method != "hidden":
        raise SettingError(f"With {settings['networks']} networks repair_method must be 'hidden'; it is {method!r}.")
    if not settings["kl_weight"] and method in ("one-stage", "two-stage"):
        raise SettingError(
            f"repair_method {method!r} draws the latent variable, so kl_weight must be above 0; it is 0."
        )
    return method


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """The value, if it is one of these.

    >>> one_of("kind", "pi", SCORES)
    'pi'
    """
    if value not in known:
        raise SettingError(f"{name} must be one of {', '.join(map(repr, known))}; it is {value!r}.")
    return str(value)
