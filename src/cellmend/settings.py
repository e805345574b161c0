"""What can be set: the published settings, what each setting must be, and which cells are flagged."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cellmend.errors import SettingError, did_you_mean

WEIGHTS = ("coordinate", "amortized", "none")
REPAIR_METHODS = ("map", "one-stage", "two-stage", "hidden")
SCORES = ("pi", "nll", "suspicion")
OUTLIERS = ("gaussian", "cauchy")
DECIMALS = (".", ",")
COUNTED = re.compile(r"findings(?:\s*>\s*(?P<most>\d+|\d+(?:\.\d+)?\s*(?P<share>%)))?")  # of --fail-if
LEAST_TIME = 1e-6  # seconds: one epoch is trained in any case
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
    "threshold": 0.5,
}
"""RVAE-CVI as published (Eduardo, Nazábal, Williams and Sutton, AISTATS 2020)."""

FDR = 0.1  # share of false alarms that is allowed unless the user says otherwise
LEAST_FLAGGED = 0.5  # suspicion: with `fdr` no cell is flagged that is probably right


# ---------------------------------------------------------------- what each setting must be


class Check(NamedTuple):
    """What a value must be, in words, and is it that?"""

    must: str
    holds: Callable[[Any], bool]


def among(known: Sequence[str]) -> Check:
    """One of these."""
    return Check(f"one of {', '.join(map(repr, known))}", lambda value: value in known)


def number(must: str, holds: Callable[[Any], bool]) -> Check:
    """A number that is this."""
    return Check(must, lambda value: isinstance(value, Real) and holds(value))


Whole = Annotated[int, number("a whole number from 1", lambda value: isinstance(value, Integral) and int(value) >= 1)]
Count = Annotated[int, number("a whole number from 0", lambda value: isinstance(value, Integral) and int(value) >= 0)]
Share = Annotated[float, number("between 0 and 1", lambda value: 0 < value < 1)]
Part = Annotated[float, number("from 0 to below 1", lambda value: 0 <= value < 1)]
Chance = Annotated[float, number("above 0 and at most 1", lambda value: 0 < value <= 1)]
Positive = Annotated[float, number("above 0", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[float, number("0 or above", lambda value: 0 <= value < math.inf)]


def check(name: str, value: Any, type_: Any) -> Any:
    """The value, if it is what a setting of this type must be.

    >>> check("n", 3, Whole), check("fdr", None, Share | None)
    (3, None)
    >>> check("alpha", 1.0, Share)
    Traceback (most recent call last):
    cellmend.errors.SettingError: alpha must be between 0 and 1; it is 1.0.
    """
    options = get_args(type_) if NoneType in get_args(type_) else (type_,)
    for asked in (each for option in options for each in getattr(option, "__metadata__", ())):
        if not (asked.holds(value) or (value is None and NoneType in options)):
            raise SettingError(f"{name} must be {asked.must}; it is {value!r}.")
    return value


def check_fields(settings: Any) -> None:
    """Refuse the first field of a dataclass that is not what its type says."""
    for name, type_ in get_type_hints(type(settings), include_extras=True).items():
        check(name, getattr(settings, name), type_)


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """The value, if it is one of these.

    >>> one_of("kind", "pi", SCORES)
    'pi'
    """
    return str(check(name, value, Annotated[str, among(known)]))


@dataclass(frozen=True)
class Settings:
    """The arguments of CellMender, where they are explained, once they are known to be possible."""

    weights: Annotated[str, among(WEIGHTS)]
    alpha: Share
    outlier: Annotated[str, among(OUTLIERS)]
    outlier_scale: Positive
    components: Count
    binned: bool
    hide: Part
    networks: Whole
    kl_weight: NotNegative
    latent_dim: Whole
    hidden_dim: Whole
    embedding_dim: Whole
    epochs: Whole
    batch_size: Whole | None
    train_rows: Whole | None
    keep_rows: Count
    time_limit: Positive | None
    quick: bool
    patience: Whole | None
    learning_rate: Positive | None
    schedule: Annotated[str, among(SCHEDULES)]
    weight_decay: NotNegative
    repair_method: Annotated[str, among(REPAIR_METHODS)]
    threshold: Share | None
    repair_from: Chance
    protect: Sequence[str]
    impute: bool
    schema: Any
    rules: Any
    decimal: Annotated[str, among(DECIMALS)] | None
    device: Any
    random_state: Any
    verbose: bool

    def __post_init__(self) -> None:
        check_fields(self)
        if self.weights == "amortized" and self.hide:
            raise SettingError(f'With weights="amortized" hide must be 0; it is {self.hide}.')
        if self.quick and self.repair_method != "hidden":
            raise SettingError(
                f"With quick=True repair_method must be 'hidden'; {self.repair_method!r} needs a network."
            )
        if self.quick and self.impute:
            raise SettingError("With quick=True impute must be False; to fill missing cells needs a network.")
        self.check_method()

    def since(self, start: float) -> Settings:
        """The same with what is left of the time limit, if that began at `start` by time.perf_counter."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - (time.perf_counter() - start), LEAST_TIME))

    def check_method(self, method: str | None = None) -> str:
        """The method asked for, or that of the settings, if a network of these settings can answer by it."""
        method = one_of("repair_method", self.repair_method if method is None else method, REPAIR_METHODS)
        if self.networks > 1 and method != "hidden":
            raise SettingError(f"With {self.networks} networks repair_method must be 'hidden'; it is {method!r}.")
        if not self.kl_weight and method in ("one-stage", "two-stage"):
            raise SettingError(
                f"repair_method {method!r} draws the latent variable, so kl_weight must be above 0; it is 0."
            )
        return method


# ---------------------------------------------------------------- which cells are flagged

Floats = NDArray[np.float64]
Spans = tuple[Floats, Floats]  # of contradictions: probability, largest suspicion of a cell
NO_SPANS: Spans = (np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Threshold:
    """Which cells are flagged: of at least this suspicion, the `top` most suspicious, or as many as keep the expected
    share of false alarms at `fdr`. One of the three is given.

    >>> Threshold(top=2).cutoff(np.array([[0.1, 0.9], [0.8, 0.0]]))
    0.8
    """

    fdr: Share | None = None
    suspicion: Chance | None = None
    top: Whole | None = None

    @classmethod
    def of(
        cls,
        fdr: float | None = None,
        suspicion: float | None = None,
        top: int | None = None,
        *,
        otherwise: float | None,
    ) -> Threshold:
        """What was asked for; if nothing was, cells of this suspicion, and without one as many as FDR allows.

        >>> Threshold.of(otherwise=None), Threshold.of(top=3, otherwise=None).given
        (Threshold(fdr=0.1, suspicion=None, top=None), {'top': 3})
        """
        if fdr is None and suspicion is None and top is None:
            return cls(fdr=FDR) if otherwise is None else cls(suspicion=otherwise)
        return cls(fdr, suspicion, top)

    @property
    def given(self) -> dict[str, float]:
        """The one that is given, under its name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __post_init__(self) -> None:
        if len(self.given) != 1:
            which = f"{' and '.join(self.given)} are" if self.given else "none is"
            raise SettingError(f"Only one of fdr, suspicion and top may be given; {which}.")
        check_fields(self)

    def __str__(self) -> str:
        if self.fdr is not None:
            return f"at most {100 * self.fdr:g} % false alarms expected"
        return f"the {self.top:,} most suspicious" if self.top else f"suspicion of at least {self.suspicion:g}"

    def cutoff(self, suspicion: NDArray[np.float64], contradictions: Spans = NO_SPANS) -> float:
        """The least suspicion that is flagged, from that of all cells of a table in any shape.

        A contradiction counts once, with the probability that one of its cells is wrong.
        """
        if self.fdr is not None:
            return fdr_cutoff(suspicion, self.fdr, contradictions)
        if self.top is not None:
            most = min(int(self.top) + len(contradictions[0]), suspicion.size)  # each explained by a cell at most
            if not most:
                return math.inf
            own = np.partition(suspicion, suspicion.size - most, axis=None)[-most:]
            levels, flagged, _ = _by_cutoff(own, contradictions)
            enough = levels[flagged >= self.top]
            cutoff = float((enough if len(enough) else levels[-1:])[0])
            return max(cutoff, math.ulp(0.0))  # what is beyond doubt is never flagged
        return float(self.suspicion or 0.0)


@dataclass(frozen=True)
class Caution:
    """Overrides of `repair_from` and `protect` for one run.

    >>> Caution(protect=("price",)).settings()
    {'protect': ('price',)}
    """

    repair_from: Chance | None = None  # least probability of a repair
    protect: tuple[str, ...] = ()  # columns that are flagged, but never changed

    def __post_init__(self) -> None:
        check_fields(self)

    def settings(self) -> dict[str, Any]:
        """As CellMender takes them; what was not said is left out."""
        given = {"repair_from": self.repair_from, "protect": self.protect or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class FailIf:
    """When a nightly run counts as failed, though it was done.

    >>> FailIf.parse(["findings>20", "findings>0.5%"]).reasons(findings=30, cells=1_000)
    ['there are 30 findings, more than 20', 'there are 30 findings in 1,000 cells, more than 0.5 %']
    >>> FailIf.parse(["moved:price"]).reasons(moved=["city"])
    []
    """

    findings: int | None = None  # more than so many
    share: float | None = None  # more than so many of 100 cells
    moved: tuple[str, ...] | None = None  # one of these columns, or any if none is named

    @classmethod
    def parse(cls, given: Sequence[str], *, flags: bool = True, compares: bool = True) -> FailIf:
        """What is written as findings, findings>20, findings>0.5%, moved or moved:price, for a command that `flags`
        cells, and that `compares` the table with another one, which a model learned."""
        found: dict[str, Any] = {}
        for text in given:
            name, _, column = (part.strip() for part in text.partition(":"))
            counted = COUNTED.fullmatch(text.strip())
            if name == "moved" and (column or ":" not in text):
                found["moved"] = (*found.get("moved", ()), column) if column and found.get("moved") != () else ()
                if not compares:
                    raise SettingError(
                        "--fail-if moved must have a model that learned another table; here one is learned from this "
                        "table. Hint: give an earlier one with --model."
                    )
            elif counted:
                most = (counted["most"] or "0").rstrip("% ")
                found |= {"share": float(most)} if counted["share"] else {"findings": int(most)}
                if not flags:
                    raise SettingError(
                        "--fail-if findings must be given to a command that flags cells; score flags none. "
                        "Hint: repair --dry-run does."
                    )
            else:
                raise SettingError(
                    f"--fail-if must be findings, findings>20, findings>0.5%, moved or moved:COLUMN; it is {text!r}."
                )
        return cls(**found)

    def check_columns(self, compared: Sequence[str]) -> None:
        """Refuse columns that are not among those which are compared with what a model learned.

        >>> FailIf(moved=("prize",)).check_columns(["price"])
        Traceback (most recent call last):
        cellmend.errors.SettingError: --fail-if moved must name columns that the model compares; 'prize' is none. \
Did you mean 'price'?
        """
        for name in self.moved or ():
            if name not in compared:
                raise SettingError(
                    f"--fail-if moved must name columns that the model compares; {name!r} is none."
                    f"{did_you_mean(name, compared)}"
                )

    def reasons(self, *, findings: int = 0, cells: int = 0, moved: Iterable[str] = ()) -> list[str]:
        """Why the run counts as failed; none if it does not."""
        said, many = [], f"there {'is 1 finding' if findings == 1 else f'are {findings:,} findings'}"
        if self.findings is not None and findings > self.findings:
            said.append(f"{many}, more than {self.findings:,}")
        if self.share is not None and 100 * findings > self.share * cells:
            said.append(f"{many} in {cells:,} cells, more than {self.share:g} %")
        if self.moved is not None:
            watched = [name for name in moved if not self.moved or name in self.moved]
            said += [f"{', '.join(watched)} moved"] if watched else []
        return said


def fdr_cutoff(suspicion: NDArray[np.float64], fdr: float, contradictions: Spans = NO_SPANS) -> float:
    """The smallest cutoff with an expected share of false alarms of at most `fdr`.

    It is never below one half: many sure errors would else allow for cells that are probably right. A contradiction is
    one false alarm or none while the cutoff lies between its probability and the largest suspicion of its cells; below
    that its cells stand for themselves.

    >>> fdr_cutoff(np.array([0.99, 0.95, 0.8, 0.3]), 0.1)
    0.8
    >>> fdr_cutoff(np.array([0.5]), 0.1)
    inf
    >>> fdr_cutoff(np.array([1.0] * 99 + [0.6, 0.1]), 0.1)
    0.6
    >>> fdr_cutoff(np.array([0.8, 0.4, 0.4]), 0.11, (np.array([0.98]), np.array([0.4])))
    0.8
    """
    levels, flagged, expected = _by_cutoff(suspicion[suspicion >= LEAST_FLAGGED], contradictions)
    allowed = np.flatnonzero((expected <= (fdr + 1e-12) * flagged) & (levels >= LEAST_FLAGGED))
    return float(levels[allowed[-1]]) if len(allowed) else math.inf


def _by_cutoff(cells: NDArray[np.float64], contradictions: Spans) -> tuple[Floats, Floats, Floats]:
    """Every cutoff from the largest on, how many cells and contradictions it flags, and how many of them are expected
    to be false alarms."""
    together, explained = contradictions
    levels = np.concatenate([cells, together, explained])
    counts = np.repeat([1, 1, -1], [len(cells), len(together), len(explained)])
    false = np.concatenate([1 - cells, 1 - together, together - 1])
    levels, place = np.unique(-levels, return_inverse=True)
    flagged, expected = (np.cumsum(np.bincount(place, each, len(levels)), dtype=np.float64) for each in (counts, false))
    return -levels, flagged, expected
