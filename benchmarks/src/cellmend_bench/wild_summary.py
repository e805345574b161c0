"""What the judged tables say together, as lines of text and as a list of flags for people to look at."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cellmend.evaluation.vandal_kinds import NAMES
from cellmend.files.places import whole_file
from cellmend_bench.judging import BOUNDS, FDR, FOREIGN, MIXED, SHARES, UNSPOILED
from cellmend_bench.metrics import scores
from cellmend_bench.results import Outcome

SURE = 0.9  # the suspicion from which on nearly all cells should be wrong
LISTED = ("table", "row", "column", "value", "suspicion", "cause", "repair", "reason", "whole_row", "samples")
REPAIRS = ("repaired_right", "repaired_wrong", "right_cells_changed")


def pooled(outcomes: Sequence[Outcome]) -> tuple[float, float, float]:
    """Precision, recall and F1 over the cells of all tables."""
    wrong, flagged, found = (sum(each[name] for each in outcomes) for name in ("wrong", "flagged", "found"))
    return scores(wrong, flagged, found)


def by_table(outcomes: Sequence[Outcome]) -> list[tuple[float, float]]:
    """Mean and standard deviation over tables of precision, recall and F1."""
    each = np.array([scores(one["wrong"], one["flagged"], one["found"]) for one in outcomes])
    return list(zip(each.mean(axis=0).tolist(), each.std(axis=0).tolist(), strict=True))


def false_share(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """The share of right cells among the flagged: over all cells, and mean over tables where something is flagged."""
    some = [each for each in outcomes if each["flagged"]]
    shares = [1 - each["found"] / each["flagged"] for each in some]
    flagged = sum(each["flagged"] for each in some)
    whole = 1 - sum(each["found"] for each in some) / flagged if flagged else math.nan
    return whole, float(np.mean(shares)) if shares else math.nan


def sure_cells(outcomes: Sequence[Outcome]) -> tuple[int, float, float]:
    """How many cells are surely suspected, the share of them that is wrong, and the share that was promised."""
    place = BOUNDS.index(SURE)
    cells, wrong, promised = (sum(each["by_suspicion"][place][part] for each in outcomes) for part in range(3))
    return int(cells), wrong / cells if cells else math.nan, promised / cells if cells else math.nan


def recall_by_kind(outcomes: Sequence[Outcome]) -> dict[str, list[int]]:
    """For each kind of error: cells, found, the same where the clean column has none of it, and where it recurs."""
    total: dict[str, list[int]] = {}
    for outcome in outcomes:
        for kind, counts in outcome["by_kind"].items():
            total[kind] = [a + b for a, b in zip(total.get(kind, [0] * 6), counts, strict=True)]
    return {kind: total[kind] for kind in NAMES if kind in total}


def flags_per_thousand(outcomes: Sequence[Outcome]) -> float:
    """Flagged cells among a thousand filled ones."""
    return 1000 * sum(each["flagged"] for each in outcomes) / max(sum(each["cells"] for each in outcomes), 1)


# ---------------------------------------------------------------- words


def summary(outcomes: Iterable[Outcome]) -> str:
    """All that was measured, as text."""
    every = list(outcomes)
    ways = {way: [each for each in every if each["way"] == way and "failed" not in each] for way in _ways(every)}
    lines = [f"{len({each['table'] for each in every})} tables kept for judging, {len(every)} runs"]
    lines += _failures(every)
    for way in (MIXED, FOREIGN):
        lines += _found(way, ways[way]) if ways.get(way) else []
    lines += _kinds(ways[MIXED]) if ways.get(MIXED) else []
    lines += _calibration({way: own for way, own in ways.items() if own and way not in (FOREIGN, UNSPOILED)})
    lines += _unspoiled(ways[UNSPOILED]) if ways.get(UNSPOILED) else []
    return "\n".join(lines)


def _ways(outcomes: list[Outcome]) -> list[str]:
    order = [MIXED, *map(str, SHARES)]
    found = {each["way"] for each in outcomes}
    return [way for way in order if way in found] + sorted(found - set(order))


def _failures(outcomes: list[Outcome]) -> list[str]:
    failed = [each for each in outcomes if "failed" in each]
    lines = [f"left out, since they failed: {len(failed)} runs"] if failed else []
    counts = {each["failed"]: sum(other["failed"] == each["failed"] for other in failed) for each in failed}
    return lines + [f"  {count:4}  {text[:150]}" for text, count in counts.items()]


def _found(way: str, outcomes: list[Outcome]) -> list[str]:
    means = "  ".join(
        f"{name} {mean:.3f} ± {spread:.3f}" for name, (mean, spread) in zip("PRF", by_table(outcomes), strict=True)
    ).replace("F ", "F1 ")
    whole = "  ".join(f"{name} {value:.3f}" for name, value in zip(("P", "R", "F1"), pooled(outcomes), strict=True))
    repairs = ", ".join(f"{name.replace('_', ' ')} {sum(each[name] for each in outcomes)}" for name in REPAIRS)
    wrong, cells = (sum(each[name] for each in outcomes) for name in ("wrong", "cells"))
    return [
        "",
        f"{way}: {len(outcomes)} runs, {wrong} of {cells} cells wrong",
        f"  over tables  {means}  (± standard deviation)",
        f"  pooled       {whole}",
        f"  repairs      {repairs}",
    ]


def _kinds(outcomes: list[Outcome]) -> list[str]:
    lines = ["", f"recall by kind of error ({MIXED}): all, where the clean column has none of it, where it recurs"]
    for kind, (cells, found, new, new_found, often, often_found) in recall_by_kind(outcomes).items():
        parts = [_share(found, cells), _share(new_found, new), _share(often_found, often)]
        lines.append(f"  {kind:17}" + "".join(parts))
    return lines


def _share(part: int, whole: int) -> str:
    return f"{part / whole:6.2f} of {whole:6}" if whole else f"{'-':>6} {'':9}"


def _calibration(ways: dict[str, list[Outcome]]) -> list[str]:
    if not ways:
        return []
    lines = [
        "",
        f"by share of wrong cells: F1; false among the flagged at fdr={FDR}; cells of suspicion {SURE} and more",
    ]
    for way, outcomes in ways.items():
        (whole, mean), (cells, wrong, promised) = false_share(outcomes), sure_cells(outcomes)
        f1 = f"F1 {by_table(outcomes)[2][0]:.3f}, pooled {pooled(outcomes)[2]:.3f}"
        false = f"false {whole:.3f}, mean of tables {mean:.3f}"
        lines.append(f"  {way:6} {f1}   {false}   wrong {wrong:.3f} of {cells} (said {promised:.3f})")
    return lines


def _unspoiled(outcomes: list[Outcome]) -> list[str]:
    flagged, cells = (sum(each[name] for each in outcomes) for name in ("flagged", "cells"))
    changed = sum(each["right_cells_changed"] for each in outcomes)
    rate = flags_per_thousand(outcomes)
    words = f"{rate:.2f} flags per 1,000 cells ({flagged} of {cells}), {changed} cells changed; some are real errors"
    return ["", f"{UNSPOILED}: {words}"]


def write_flags(outcomes: Iterable[Outcome], path: Path) -> int:
    """The flags on unspoiled tables as CSV, one line each; how many there are."""
    rows = [{"table": one["table"], **flag} for one in outcomes for flag in one.get("listed", ())]
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, LISTED)
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)
