"""What to expect on a table of one's own: known errors are put into it, and it is seen which are found and repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import clone

from cellmend.benchmark.injection import NAMES, Injected, Ints, Target, as_numbers, inject
from cellmend.benchmark.methods import CEILING, METHODS
from cellmend.benchmark.metrics import Floats, Mask, cell_avprs, smse
from cellmend.errors import EvaluationError, MissingExtraError, did_you_mean
from cellmend.estimator import CellMender
from cellmend.findings.finding import Finding, Mended
from cellmend.settings import check_number
from cellmend.table.frames import read_frame
from cellmend.table.notation import understand
from cellmend.table.schema import Schema
from cellmend.table.values import family, level_text, plain

SHOWN_COLUMNS = 5  # in which a cause acted most often
RIGHT = 0.05  # standard deviations that a repaired number may be off
COUNTS = ("errors", "right_changed")  # the other measures are shares
ROWS_ONLY = ("OC-SVM", "Isolation Forest")
BASELINES = tuple(
    name for name, method in METHODS.items() if len(method.grid) == 1 and name not in ("cellmend", CEILING, *ROWS_ONLY)
)  # they judge cells, and need no labels to choose a setting


# ---------------------------------------------------------------- how well they are found and repaired


@dataclass(frozen=True)
class Outcome:
    """What became of every injected error, (E,) each.

    Values are in standard deviations from the column's mean. Of a level the truth is 1, and what was put there 1 if it
    is the same and 0 if not: the squared error over the squared truth is then the share that is wrong.
    """

    columns: Ints  # places in the table
    kinds: Ints
    found: Mask
    truth: Floats
    dirty: Floats  # what was put in
    repair: Floats  # NaN: none was made
    is_number: Mask

    @property
    def right(self) -> Mask:
        """Which repairs are as good as what stood there."""
        return np.abs(self.repair - self.truth) <= np.where(self.is_number, RIGHT, 0.0)

    @property
    def closer(self) -> Mask:
        """Which repairs are closer to what stood there than the error was."""
        return np.abs(self.repair - self.truth) < np.abs(self.dirty - self.truth)

    def measures(self, chosen: Mask) -> dict[str, float | None]:
        """How many of the chosen errors (E,) there are, which share is found, and how well those are repaired."""
        found = chosen & self.found
        return {
            "errors": int(chosen.sum()),
            "found": _share(self.found[chosen]),
            "repaired": _share(self.right[found]),
            "closer": _share(self.closer[chosen & np.isfinite(self.repair)]),
            "repair_error": repair_error(self.truth[found], self.repair[found]),
        }


def repair_error(truth: Floats, repair: Floats) -> float | None:
    """SMSE of numbers in standard deviations from the mean, share wrong of levels; None if nothing was repaired.

    >>> repair_error(np.array([1.0, -1.0, 2.0]), np.array([0.0, -1.0, np.nan]))
    0.5
    """
    made = np.isfinite(repair)
    return smse(truth[made], repair[made], mean=0.0) if np.any(truth[made]) else None


def follow(errors: Injected, flagged: Mask, repaired: pa.Table, has_repair: Mask) -> Outcome:
    """The outcome of every error; flagged cells and those that got a repair are (N, D)."""
    parts = []
    for target in errors.targets:
        rows = np.flatnonzero(errors.mask[:, target.place])
        dirty, repair = (
            _standardised(target, rows, each[target.name].take(pa.array(rows))) for each in (errors.table, repaired)
        )
        parts.append(
            Outcome(
                columns=np.full(len(rows), target.place),
                kinds=errors.kinds[rows, target.place].astype(np.int64),
                found=flagged[rows, target.place],
                truth=_standardised_truth(target, rows),
                dirty=dirty,
                repair=np.where(has_repair[rows, target.place], repair, np.nan),
                is_number=np.full(len(rows), target.holds_numbers),
            )
        )
    names = [field.name for field in fields(Outcome)]
    return Outcome(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _standardised_truth(target: Target, rows: Ints) -> Floats:
    """What stood in these rows; see Outcome."""
    if not target.holds_numbers:
        return np.ones(len(rows))
    mean, sd = target.mean_and_sd
    return (target.numbers(rows) - mean) / sd


def _standardised(target: Target, rows: Ints, cells: pa.ChunkedArray) -> Floats:
    """What cells (n,) put into these rows; see Outcome."""
    put = target.read(cells)
    if target.holds_numbers:
        mean, sd = target.mean_and_sd
        return np.nan_to_num((as_numbers(put) - mean) / sd)  # no number is as bad as the mean
    stood = plain(target.understood).take(pa.array(rows)).to_pylist()
    same = [level_text(one) == level_text(other) for one, other in zip(stood, put.to_pylist(), strict=True)]
    return np.array(same, dtype=np.float64)


def _share(holds: Mask) -> float | None:
    return float(holds.mean()) if len(holds) else None


@dataclass(frozen=True)
class Evaluation:
    """How well errors that were put into a table were found and repaired."""

    rows: int
    columns: int
    by_kind: pa.Table  # kind, errors, found, avpr, repaired, closer, repair_error
    by_column: pa.Table  # column, errors, found, precision, avpr, repaired, closer, right_changed, repair_error
    by_cause: pa.Table  # cause, flagged, precision, columns: which causes the findings name, and where
    overall: dict[str, float]  # NaN where there is nothing to measure
    baselines: pa.Table | None  # method, avpr, repaired, repair_error; the latter of all errors in modelled columns

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON holds it; None where there is nothing to measure."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "overall": {name: None if np.isnan(value) else value for name, value in self.overall.items()},
            "by_kind": self.by_kind.to_pylist(),
            "by_column": self.by_column.to_pylist(),
            "by_cause": self.by_cause.to_pylist(),
            "baselines": None if self.baselines is None else self.baselines.to_pylist(),
        }


def evaluate(
    table: pa.Table, *, mender: CellMender, share: float, seed: int, fdr: float, baselines: Sequence[str] = ()
) -> Evaluation:
    """Put known errors into a share of the rows of a table, fit to it, and see what is found and repaired at `fdr`.

    found         share of the errors that are flagged: recall
    precision     share of the flagged cells that are such errors. The table's own errors are there too and count as
                  false alarms, so it is a lower bound
    avpr          average precision of a column's cells by suspicion, mean over the columns that have errors; of one
                  kind with the errors of other kinds left out
    repaired      share of the found errors whose repair is right: the same text or level, or a number off by at most
                  5 % of the column's standard deviation; to abstain is not right
    closer        share of the repairs of errors that are closer to what stood there than the error was; of a level or a
                  text, that are right. Of all columns together: the median of the columns
    right_changed cells that were right, and got a repair; the table's own errors count among them
    repair_error  of the found errors that got a repair: squared error of numbers over that of the mean, and share
                  wrong of levels

    Beside `false_share`, 1 - precision, stands `expected_false_share`, which the method itself promises. Errors are
    made as `inject` says: none in missing cells, and what comes out as it was is none; in columns left out of the model
    only typos and copies. `mender` has the settings and stays as it is.

    The baselines judge the modelled columns as they were understood, in which any text that is no number is an error
    for all of them. Beside them stands cellmend, all asked about every error, found or not.

    >>> x = np.random.default_rng(0).normal(size=200).round(2)
    >>> table = pa.table({"x": x, "y": (3 * x).round(2), "z": (1 - x).round(2)})
    >>> mender = CellMender(epochs=5, hidden_dim=16, random_state=0)
    >>> evaluate(table, mender=mender, share=0.2, seed=0, fdr=0.1).by_kind["kind"].to_pylist()
    ['gaussian', 'swap', 'unit', 'decimal', 'copied']
    """
    _check(share, fdr, baselines)
    errors = inject(table, schema=mender.schema, share=share, seed=seed)
    fitted: CellMender = clone(mender).fit(errors.table)
    mended = fitted.mend(errors.table, fdr=fdr, impute=False)
    flagged, has_repair = flags(mended, errors)
    outcome = follow(errors, flagged, mended.repaired, has_repair)
    return Evaluation(
        rows=errors.table.num_rows,
        columns=errors.table.num_columns,
        by_kind=by_kind(errors, outcome, mended.matrix),
        by_column=by_column(errors, outcome, mended.matrix, flagged, has_repair),
        by_cause=by_cause(errors, mended.found),
        overall=overall(errors, outcome, mended, flagged, has_repair),
        baselines=_compare(errors, fitted, mended.matrix, baselines, seed) if baselines else None,
    )


def _check(share: float, fdr: float, baselines: Sequence[str]) -> None:
    """Refuse before the long work what cannot be."""
    if not 0 < share <= 1:
        raise EvaluationError(f"The share of rows that get errors must be above 0 and at most 1; it is {share!r}.")
    check_number("fdr", fdr)
    for name in baselines:
        if name not in BASELINES:
            known = ", ".join(BASELINES)
            raise EvaluationError(
                f"A baseline must be one of {known}; {name!r} is none.{did_you_mean(name, BASELINES)}"
            )
        if name.startswith("LightGBM") and find_spec("lightgbm") is None:
            raise MissingExtraError(f"The baseline {name} needs LightGBM. Hint: pip install 'cellmend[bench]'.")


def flags(mended: Mended, errors: Injected) -> tuple[Mask, Mask]:
    """Which cells are flagged, and which of them got a repair, both (N, D)."""
    flagged, has_repair = np.zeros((2, *errors.kinds.shape), dtype=bool)
    places = {name: place for place, name in enumerate(errors.table.column_names)}
    for finding in mended.found:
        flagged[finding.row, places[finding.column]] = True
        has_repair[finding.row, places[finding.column]] = finding.repair is not None
    return flagged, has_repair


def by_kind(errors: Injected, outcome: Outcome, suspicion: Floats) -> pa.Table:
    """The measures of each kind of error that was made."""
    lines = []
    for number, name in enumerate(NAMES):
        own = errors.kinds == number
        if own.any():
            # Below all others, errors of another kind do not count.
            avprs = cell_avprs(np.where(errors.mask & ~own, -1.0, suspicion), own)
            measures = outcome.measures(outcome.kinds == number)
            lines.append({"kind": name, "avpr": float(np.nanmean(avprs))} | measures)
    return _as_table(lines, {"kind": pa.string()}, ("errors", "found", "avpr", "repaired", "closer", "repair_error"))


def by_column(errors: Injected, outcome: Outcome, suspicion: Floats, flagged: Mask, has_repair: Mask) -> pa.Table:
    """The measures of each column that errors were made in, or cells flagged in."""
    avprs, lines = cell_avprs(suspicion, errors.mask), []
    for place, name in enumerate(errors.table.column_names):
        if errors.mask[:, place].any() or flagged[:, place].any():
            precision = _share(errors.mask[flagged[:, place], place])
            avpr = None if np.isnan(avprs[place]) else float(avprs[place])
            measures = outcome.measures(outcome.columns == place)
            changed = int((has_repair & ~errors.mask)[:, place].sum())
            line = {"column": name, "precision": precision, "avpr": avpr, "right_changed": changed}
            lines.append(line | measures)
    shown = ("errors", "found", "precision", "avpr", "repaired", "closer", "right_changed", "repair_error")
    return _as_table(lines, {"column": pa.string()}, shown)


def by_cause(errors: Injected, found: Sequence[Finding]) -> pa.Table:
    """How often each cause was named, the most frequent first, how often rightly, and in which columns."""
    places = {name: place for place, name in enumerate(errors.table.column_names)}
    by_name: dict[str, list[Finding]] = {}
    for finding in found:
        by_name.setdefault(finding.cause, []).append(finding)
    lines = [
        (
            cause,
            len(own),
            float(np.mean([errors.mask[each.row, places[each.column]] for each in own])),
            ", ".join(column for column, _ in Counter(each.column for each in own).most_common(SHOWN_COLUMNS)),
        )
        for cause, own in sorted(by_name.items(), key=lambda pair: -len(pair[1]))
    ]
    types = {"cause": pa.string(), "flagged": pa.int64(), "precision": pa.float64(), "columns": pa.string()}
    columns = zip(*lines, strict=True) if lines else ([] for _ in types)
    return pa.table([pa.array(cells, type_) for cells, type_ in zip(columns, types.values(), strict=True)], list(types))


def _middle(shares: Sequence[float | None]) -> float | None:
    """The median of the columns that have one."""
    known = [each for each in shares if each is not None]
    return float(np.median(known)) if known else None


def _as_table(lines: Sequence[Mapping[str, Any]], first: Mapping[str, pa.DataType], numbers: Sequence[str]) -> pa.Table:
    types = dict(first) | {name: pa.int64() if name in COUNTS else pa.float64() for name in numbers}
    return pa.table({name: pa.array([line[name] for line in lines], type_) for name, type_ in types.items()})


def overall(errors: Injected, outcome: Outcome, mended: Mended, flagged: Mask, has_repair: Mask) -> dict[str, float]:
    """The measures of all errors together."""
    measures = outcome.measures(np.ones(len(outcome.found), dtype=bool))
    flagged_cells, hits = int(flagged.sum()), int(outcome.found.sum())
    precision = hits / flagged_cells if flagged_cells else np.nan
    right_changed = int((has_repair & ~errors.mask).sum())
    found = {
        "errors": measures["errors"],
        "flagged": flagged_cells,
        "found": hits,
        "precision": precision,
        "recall": measures["found"],
        "f1": 2 * hits / (flagged_cells + len(outcome.found)),
        "avpr": float(np.nanmean(cell_avprs(mended.matrix, errors.mask))),
        "false_share": 1 - precision,
        "expected_false_share": mended.expected_false / flagged_cells if flagged_cells else np.nan,
        "repaired": measures["repaired"],
        "closer": _middle([outcome.measures(outcome.columns == d)["closer"] for d in np.unique(outcome.columns)]),
        "right_changed": right_changed,
        "right_changed_share": right_changed / errors.mask.size,
        "repair_error": measures["repair_error"],
    }
    return {name: np.nan if value is None else value for name, value in found.items()}


# ---------------------------------------------------------------- against others


def _compare(errors: Injected, fitted: CellMender, suspicion: Floats, names: Sequence[str], seed: int) -> pa.Table:
    """cellmend and the baselines, each asked about every cell, and what it would put into those with an error."""
    typed, unreadable = as_typed(errors.table, fitted)
    device = str(fitted.network_.decoder_output.bias.device)
    schema = Schema(tuple(column for column in fitted.schema_ if column.name in typed.column_names))
    asked = replace(errors, targets=tuple(each for each in errors.targets if each.name in typed.column_names))
    lines = [_line("cellmend", asked, suspicion, fitted.reconstruct(errors.table))]
    detectors: dict[str, Any] = {}
    for name in names:
        method = METHODS[name]
        shared = method.fitted_as or name
        if shared not in detectors:
            detectors[shared] = method.make(schema=schema, random_state=seed, device=device).fit(typed)
        detector = method.asked(detectors[shared])
        scores = detector.cell_scores(typed) if method.score is None else detector.cell_scores(typed, kind=method.score)
        whole = over_all_columns(scores, sorted(fitted.encoder_.positions), unreadable)
        seen = detector.reconstruct(typed) if hasattr(detector, "reconstruct") else None
        lines.append(_line(name, asked, whole, seen))
    return _as_table(lines, {"method": pa.string()}, ("avpr", "repaired", "repair_error"))


def over_all_columns(scores: Floats, places: Sequence[int], unreadable: Mask) -> Floats:
    """Scores of the columns at some places of the table, (N, D): the lowest elsewhere, the highest if unreadable.

    >>> over_all_columns(np.array([[0.5], [2.0]]), [1], np.array([[False, True], [False, False]]))
    array([[0.5, 3. ],
           [0.5, 2. ]])
    """
    whole = np.full(unreadable.shape, scores.min())
    whole[:, places] = scores
    whole[unreadable] = scores.max() + 1
    return whole


def as_typed(table: pa.Table, fitted: CellMender) -> tuple[pa.Table, Mask]:
    """The modelled columns as understood, text as categories, and which cells of the table cannot be read, (N, D).

    As categories, texts are not looked at for misspellings: a baseline is what it was published as.
    """
    understood = understand(read_frame(table).arrow, fitted.model_.reader.notations)
    unreadable = np.zeros((table.num_rows, table.num_columns), dtype=bool)
    columns = {}
    for place in sorted(fitted.encoder_.positions):
        column = understood.column(place)
        if pa.types.is_floating(column.type):
            unreadable[:, place] = pc.is_nan(column).fill_null(False).to_numpy()
        is_text = family(column.type) == "text" and not pa.types.is_dictionary(column.type)
        columns[understood.column_names[place]] = column.dictionary_encode() if is_text else column
    return pa.table(columns), unreadable


def _line(name: str, errors: Injected, scores: Floats, seen: pa.Table | None) -> dict[str, Any]:
    """How well a method's scores (N, D) find the errors, and what it sees in the modelled columns repairs them."""
    avpr = float(np.nanmean(cell_avprs(scores, errors.mask)))
    if seen is None:
        return {"method": name, "avpr": avpr, "repaired": None, "repair_error": None}
    every = np.ones(errors.kinds.shape, dtype=bool)
    outcome = follow(errors, every, seen, every)
    return {"method": name, "avpr": avpr} | outcome.measures(np.ones(len(outcome.found), dtype=bool))
