"""How well real errors are found and repaired: dirty tables whose clean version is known (`make bench-real`).

The tables come from the Raha and REIN benchmarks; CELLMEND_DATA names the folder that holds them.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rich.console import Console

from cellmend import CellMender
from cellmend.files.formats import read_file
from cellmend.table.notation import tidy

PAIRS = ("hospital", "beers", "breast_cancer", "bike")
FDR = 0.1  # the default of `cellmend clean`
CLOSE = 1e-6
say = Console(highlight=False, soft_wrap=True).print


def main() -> None:
    folder = Path(os.environ.get("CELLMEND_DATA", "."))
    for name in sys.argv[1:] or PAIRS:
        dirty, clean = (read_file(folder / f"pair_{name}_{state}.csv.gz").table for state in ("dirty", "clean"))
        start = time.perf_counter()
        mender = CellMender(random_state=0).fit(dirty)
        mended = mender.mend(dirty, fdr=FDR)
        seconds = time.perf_counter() - start
        wrong = ~equal(dirty, clean)
        flagged, right = np.zeros_like(wrong), np.zeros_like(wrong)
        repaired = equal(mended.repaired, clean)
        for finding in mended.found:
            cell = finding.row, dirty.column_names.index(finding.column)
            flagged[cell] = True
            right[cell] = finding.repair is not None and repaired[cell]
        abstained = sum(finding.repair is None for finding in mended.found)
        say(f"\n{name}: {dirty.num_rows:,} x {dirty.num_columns}, {wrong.sum():,} wrong cells, {seconds:.0f} s")
        say(f"  cells               {measures(flagged, wrong)}")
        gaps = missing(dirty)
        say(f"  without missing     {measures(flagged & ~gaps, wrong & ~gaps)}")
        plain = tidy(dirty, mender.model_.reader.notations)
        by_column = np.stack(
            [
                pc.not_equal(a, b).to_numpy(zero_copy_only=False)
                for a, b in zip(dirty.columns, plain.columns, strict=True)
            ],
            axis=1,
        )
        if by_column.any():
            say(f"  with whole columns  {measures(flagged | by_column, wrong)}")
            say(f"  but for those cells {measures(flagged & ~by_column, wrong & ~by_column)}")
        made = flagged.sum() - abstained
        say(f"  repairs             {right.sum()} of {made} equal the clean value, {abstained} abstained")
        for d, column in enumerate(dirty.column_names):
            if wrong[:, d].any() or flagged[:, d].any():
                counts = (each[:, d].sum() for each in (wrong, flagged, wrong & flagged, right))
                say("    {:28} wrong {:5} flagged {:5} of them wrong {:5} repaired right {:5}".format(column, *counts))


def measures(flagged: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> str:
    """Precision, recall and F1 in words."""
    both = (flagged & wrong).sum()
    precision, recall = both / max(flagged.sum(), 1), both / max(wrong.sum(), 1)
    return f"precision {precision:.3f} recall {recall:.3f} F1 {2 * both / max(flagged.sum() + wrong.sum(), 1):.3f}"


def equal(one: Any, other: Any) -> NDArray[np.bool_]:
    """Which cells hold the same text, or the same number but for the last digits; (rows, columns)."""
    columns = []
    for a, b in zip(one.columns, other.columns, strict=True):
        texts = pc.equal(a, b).to_numpy(zero_copy_only=False)
        numbers = [np.array([as_number(text) for text in column.to_pylist()]) for column in (a, b)]
        columns.append(texts | (np.abs(numbers[0] - numbers[1]) <= CLOSE * np.abs(numbers[1])))
    return np.stack(columns, axis=1)


def as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def missing(table: pa.Table) -> NDArray[np.bool_]:
    return np.stack([pc.equal(column, "").to_numpy(zero_copy_only=False) for column in table.columns], axis=1)


if __name__ == "__main__":
    main()
