"""What to expect on a table of one's own: known errors are put into it, and it is seen which are found and repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import average_precision_score

from cellmend.errors import EvaluationError
from cellmend.estimator import CellMender
from cellmend.evaluation.planting import Floats, Mask, Planted, Target, plant
from cellmend.evaluation.vandal_kinds import NAMES
from cellmend.findings.finding import Finding, Mended
from cellmend.settings import Share, check
from cellmend.table.values import level_text, plain

SHOWN_COLUMNS = 5  # in which a cause acted most often
RIGHT = 0.05  # standard deviations that a repaired number may be off
TYPES = {"errors": pa.int64(), "right_changed": pa.int64(), "flagged": pa.int64()} | dict.fromkeys(
    ("kind", "column", "cause", "columns", "method"), pa.string()
)  # of what is printed; all else is a share


# ---------------------------------------------------------------- how well they are found and repaired


def follow(errors: Planted, flagged: Mask, repaired: pa.Table, has_repair: Mask) -> pd.DataFrame:
    """What became of every error in a column that `repaired` has; flagged cells and those with a repair are (N, D).

    A line for each error: column and kind by number, found, truth, dirty and repair, and whether the repair is right
    and closer to the truth than the error. Values are in standard deviations from the column's mean. Of a level the
    truth is 1, and what was put there 1 if it is the same and 0 if not: the squared error over the squared truth is
    then the share that is wrong.
    """
    places, rows = np.nonzero(errors.mask.T)
    values, tolerance = np.full((3, len(rows)), np.nan), np.zeros(len(rows))
    for place in np.unique(places).tolist():
        target, own = errors.targets[place], places == place
        if target.name in repaired.column_names:
            values[:, own] = _compared(target, rows[own], errors.table[target.name], repaired[target.name])
            tolerance[own] = RIGHT if target.holds_numbers else 0.0
    truth, dirty, repair = values
    repair[~has_repair[rows, places]] = np.nan
    off = np.abs(repair - truth)
    outcome = {"column": places, "kind": errors.kinds[rows, places], "found": flagged[rows, places]}
    outcome |= {"truth": truth, "dirty": dirty, "repair": repair}
    outcome |= {"right": off <= tolerance, "closer": off < np.abs(dirty - truth)}
    return pd.DataFrame(outcome).dropna(subset="truth")


def measures(outcome: pd.DataFrame) -> dict[str, float | None]:
    """How many errors there are, which share is found, and how well those are repaired."""
    found, made = outcome[outcome.found], outcome[outcome.repair.notna()]
    return {
        "errors": len(outcome),
        "found": _share(outcome.found),
        "repaired": _share(found.right),
        "closer": _share(made.closer),
        "repair_error": repair_error(found.truth.to_numpy(), found.repair.to_numpy()),
    }


def repair_error(truth: Floats, repair: Floats) -> float | None:
    """SMSE of numbers in standard deviations from the mean, share wrong of levels; None if nothing was repaired.

    >>> repair_error(np.array([1.0, -1.0, 2.0]), np.array([0.0, -1.0, np.nan]))
    0.5
    """
    made = np.isfinite(repair)
    return smse(truth[made], repair[made], mean=0.0) if np.any(truth[made]) else None


def cell_avprs(scores: Floats, mask: Mask) -> Floats:
    """Average precision of each column's cells, (D,); NaN for a column without a dirty cell.

    >>> cell_avprs(np.array([[0.9, 0.0], [0.1, 0.0]]), np.array([[True, False], [False, False]]))
    array([ 1., nan])
    """
    return np.array(
        [average_precision_score(m, s) if m.any() else np.nan for m, s in zip(mask.T, scores.T, strict=True)]
    )


def smse(clean: Floats, repaired: Floats, mean: float) -> float:
    """Squared error over squared distance from the mean, of a column's dirty cells.

    >>> smse(np.array([1.0, 3.0]), np.array([1.0, 2.0]), mean=2.0)
    0.5
    """
    return float(np.square(clean - repaired).sum() / np.square(clean - mean).sum())


def _compared(target: Target, rows: NDArray[np.int64], *columns: pa.ChunkedArray) -> list[Floats]:
    """What stood in these rows of a column, and what stands there in others like it; see `follow`."""
    if target.holds_numbers:
        mean, sd = target.mean_and_sd
        each = (target.numbers(), *(target.numbers(column) for column in columns))
        return [np.nan_to_num((numbers[rows] - mean) / sd) for numbers in each]  # no number is as bad as the mean
    stood, *others = (
        [level_text(cell) for cell in plain(column).take(pa.array(rows)).to_pylist()]
        for column in (pa.chunked_array([target.cells]), *columns)
    )
    same = [np.array([one == other for one, other in zip(stood, texts, strict=True)], float) for texts in others]
    return [np.ones(len(rows)), *same]


def _share(holds: Mask | pd.Series) -> float | None:
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
        overall = {name: None if np.isnan(value) else value for name, value in self.overall.items()}
        tables = {"by_kind": self.by_kind, "by_column": self.by_column, "by_cause": self.by_cause}
        tables["baselines"] = self.baselines
        lines = {name: None if table is None else table.to_pylist() for name, table in tables.items()}
        return {"rows": self.rows, "columns": self.columns, "overall": overall} | lines


def evaluate(
    table: pa.Table, *, mender: CellMender, share: float, seed: int, fdr: float, baselines: Sequence[str] = ()
) -> Evaluation:
    """Put known errors into a share of the cells of a table, fit to it, and see what is found and repaired at `fdr`.

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
    made as `plant` says: none in missing cells, and what comes out as it was is none. `mender` has the settings and
    stays as it is.

    The baselines judge the modelled columns as they were understood, in which any text that is no number is an error
    for all of them. Beside them stands cellmend, all asked about every error, found or not.

    >>> x = np.random.default_rng(0).normal(size=200).round(2)
    >>> table = pa.table({"x": x, "y": (3 * x).round(2), "z": (1 - x).round(2)})
    >>> mender = CellMender(epochs=5, hidden_dim=16, random_state=0)
    >>> evaluate(table, mender=mender, share=0.1, seed=0, fdr=0.1).by_kind["kind"].to_pylist()[:5]
    ['sentinel', 'sign', 'decimal point', 'one digit', 'other unit']
    """
    if not 0 < share <= 1:
        raise EvaluationError(f"The share of cells that get errors must be above 0 and at most 1; it is {share!r}.")
    check("fdr", fdr, Share)
    if baselines:
        from cellmend_bench.compared import check_baselines, compare  # the experiments' methods are no part of this

        check_baselines(baselines)
    errors = plant(table, schema=mender.schema, share=share, seed=seed, decimal=mender.decimal)
    fitted: CellMender = clone(mender).fit(errors.table)
    trial = Trial(errors, fitted.mend(errors.table, fdr=fdr, impute=False))
    return Evaluation(
        rows=errors.table.num_rows,
        columns=errors.table.num_columns,
        by_kind=trial.by_kind(),
        by_column=trial.by_column(),
        by_cause=trial.by_cause(),
        overall=trial.overall(),
        baselines=compare(errors, fitted, trial.mended.matrix, baselines, seed) if baselines else None,
    )


@dataclass(frozen=True)
class Trial:
    """A table with known errors, and what was found in it."""

    errors: Planted
    mended: Mended

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.errors.table.column_names)}

    @cached_property
    def flagged(self) -> Mask:
        """Which cells are flagged, (N, D)."""
        return self._cells(self.mended.flagged)

    @cached_property
    def changed(self) -> Mask:
        """Which cells got a repair, (N, D)."""
        return self._cells([finding for finding in self.mended.flagged if finding.repair is not None])

    def _cells(self, findings: Sequence[Finding]) -> Mask:
        cells = np.zeros(self.errors.kinds.shape, dtype=bool)
        for finding in findings:
            cells[finding.row, self.places[finding.column]] = True
        return cells

    @cached_property
    def outcome(self) -> pd.DataFrame:
        """What became of every error."""
        return follow(self.errors, self.flagged, self.mended.repaired, self.changed)

    def by_kind(self) -> pa.Table:
        """The measures of each kind of error that was made."""
        lines = []
        for number, outcome in self.outcome.groupby("kind"):
            own = self.errors.kinds == number
            # Below all others, errors of another kind do not count.
            avprs = cell_avprs(np.where(self.errors.mask & ~own, -1.0, self.mended.matrix), own)
            lines.append({"kind": NAMES[number], "avpr": float(np.nanmean(avprs))} | measures(outcome))
        return as_table(lines, "kind", "errors", "found", "avpr", "repaired", "closer", "repair_error")

    def by_column(self) -> pa.Table:
        """The measures of each column that errors were made in, or cells flagged in."""
        wrong, lines = self.errors.mask, []
        avprs = cell_avprs(self.mended.matrix, wrong)
        for name, place in self.places.items():
            flagged = self.flagged[:, place]
            if wrong[:, place].any() or flagged.any():
                line: dict[str, Any] = {
                    "column": name,
                    "precision": _share(wrong[flagged, place]),
                    "avpr": None if np.isnan(avprs[place]) else float(avprs[place]),
                    "right_changed": int((self.changed & ~wrong)[:, place].sum()),
                }
                lines.append(line | measures(self.outcome[self.outcome.column == place]))
        shown = ("errors", "found", "precision", "avpr", "repaired", "closer", "right_changed", "repair_error")
        return as_table(lines, "column", *shown)

    def by_cause(self) -> pa.Table:
        """How often each cause was named, the most frequent first, how often rightly, and in which columns."""
        lines = []
        for cause, count in Counter(finding.cause for finding in self.mended.flagged).most_common():
            own = [finding for finding in self.mended.flagged if finding.cause == cause]
            right = [self.errors.mask[each.row, self.places[each.column]] for each in own]
            columns = [column for column, _ in Counter(each.column for each in own).most_common(SHOWN_COLUMNS)]
            line = {"cause": cause, "flagged": count, "precision": float(np.mean(right))}
            lines.append(line | {"columns": ", ".join(columns)})
        return as_table(lines, "cause", "flagged", "precision", "columns")

    def overall(self) -> dict[str, float]:
        """The measures of all errors together; NaN where there is nothing to measure."""
        flagged, hits, together = int(self.flagged.sum()), int(self.outcome.found.sum()), measures(self.outcome)
        precision = hits / flagged if flagged else np.nan
        right_changed = int((self.changed & ~self.errors.mask).sum())
        made = self.outcome[self.outcome.repair.notna()]
        found = {
            "errors": together["errors"],
            "flagged": flagged,
            "found": hits,
            "precision": precision,
            "recall": together["found"],
            "f1": 2 * hits / (flagged + len(self.outcome)),
            "avpr": float(np.nanmean(cell_avprs(self.mended.matrix, self.errors.mask))),
            "false_share": 1 - precision,
            "expected_false_share": float(1 - self.mended.matrix[self.flagged].mean()) if flagged else np.nan,
            "repaired": together["repaired"],
            "closer": float(made.groupby("column").closer.mean().median()),
            "right_changed": right_changed,
            "right_changed_share": right_changed / self.errors.mask.size,
            "repair_error": together["repair_error"],
        }
        return {name: np.nan if value is None else value for name, value in found.items()}


def as_table(lines: Sequence[Mapping[str, Any]], *names: str) -> pa.Table:
    """Lines as a table with these columns."""
    return pa.Table.from_pylist(lines, pa.schema([(name, TYPES.get(name, pa.float64())) for name in names]))
