"""What a results file says: averages over tables and seeds, t-tests, and the charts and tables of each experiment."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from cellmend_bench.errors import ResultsError

TEXTS = ("experiment", "table", "method", "status")
OFTEN_EMPTY = ("noise", "error")
RUN = ["experiment", "table", "noise", "level", "seed", "method", "setting"]  # what makes a run the same run


@dataclass(frozen=True)
class Measure:
    """One column of the results file and how to read it."""

    key: str
    label: str
    of: str = ""
    lower_is_better: bool = False

    @property
    def name(self) -> str:
        """The label and which columns it is about."""
        return f"{self.label}, {self.of}" if self.of else self.label


CELL, ROW = Measure("cell_avpr", "cell AVPR"), Measure("row_avpr", "row AVPR")
CELL_KINDS = [
    Measure("cell_avpr_real", "cell AVPR", of="numbers"),
    Measure("cell_avpr_category", "cell AVPR", of="categories"),
]
REPAIR = Measure("repair", "repair error", lower_is_better=True)
REPAIR_KINDS = [
    Measure("repair_real", "repair error (SMSE)", of="numbers", lower_is_better=True),
    Measure("repair_category", "repair error (Brier)", of="categories", lower_is_better=True),
]
ROW_AUC = Measure("row_auc", "row AUC")
CALIBRATION = [
    Measure("calibration_error", "calibration error", lower_is_better=True),
    Measure("false_share", "false alarms at fdr = 0.1", lower_is_better=True),
    Measure("found_share", "errors found by them"),
]
WRONG = Measure("reliability", "share of cells that are wrong")
ALL_THREE = [CELL, ROW, REPAIR]
MEASURES = [*ALL_THREE, *CELL_KINDS, *REPAIR_KINDS, ROW_AUC, *CALIBRATION]

TABLES = {"wine": "Wine", "adult": "Adult", "credit_default": "Credit Default", "letter": "Letter"}
NOISES = {
    "gaussian": "Gaussian 5 sd, beta 0",
    "laplace4-0.5": "Laplace 4 sd, beta 0.5",
    "laplace4-0.8": "Laplace 4 sd, beta 0.8",
    "laplace8-0.8": "Laplace 8 sd, beta 0.8",
    "lognormal": "Log-normal 0.75, beta 0",
    "mixture": "Two Gaussians 3 sd, beta 0",
}
BETA = "A corrupted category becomes another one with probability proportional to its frequency to the power beta."
PAPER_ROW_AUC = {  # RVAE, ABDA
    "abda_letter": ("Letter", 0.8359, 0.7036),
    "abda_breast": ("Breast", 0.9815, 0.9836),
    "abda_pen_global": ("Pen Global", 0.9316, 0.8987),
    "abda_pen_local": ("Pen Local", 0.9053, 0.9086),
    "abda_satellite": ("Satellite", 0.9460, 0.9455),
    "abda_thyroid": ("Thyroid", 0.8211, 0.8488),
    "abda_shuttle": ("Shuttle", 0.9985, 0.7861),
    "abda_aloi": ("Aloi", 0.5515, 0.4720),
    "abda_speech": ("Speech", 0.5584, 0.4696),
    "abda_kdd": ("KDD", 0.9993, 0.9979),
}
PAPER_P_VALUES = [(CELL, 0.121, 0.070), (ROW, 0.040, 0.227), (REPAIR, 0.025, 0.013)]  # CondPred, VAE


@dataclass
class Panel:
    """The lines of one small plot: mean, sd and seeds by (line, place on the x axis)."""

    title: str
    measure: Measure
    means: pd.DataFrame


@dataclass
class Chart:
    """Panels over one x axis, which become a picture and a table."""

    name: str
    caption: str
    x: str
    panels: list[Panel]
    columns: int
    notes: list[str] = field(default_factory=list)


@dataclass
class Sheet:
    """A table that is no figure's."""

    caption: str
    header: list[str]
    lines: list[list[str]]
    notes: list[str] = field(default_factory=list)


Part = Callable[[pd.DataFrame], list[Chart | Sheet]]  # from finished runs to what shows them


@dataclass(frozen=True)
class Experiment:
    """The question an experiment answers, in a word and in a sentence."""

    title: str
    question: str


def read_results(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """One row per run, the last line that speaks of it, and remarks on lines left out; a half last line is ignored."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    runs, unread = [], []
    for number, line in enumerate(lines, start=1):
        run = _parse(line)
        if run is not None:
            runs.append(run)
        elif line.strip() and number < len(lines):
            unread.append(number)
    if not runs:
        raise ResultsError(f"{path} must hold one JSON object per line, one per run; none was found.")
    table = pd.DataFrame(runs).drop_duplicates(RUN, keep="last", ignore_index=True).replace([np.inf, -np.inf], np.nan)
    unknown = sorted(set(table.experiment) - set(EXPERIMENTS))
    remarks = [f"Lines that could not be read: {', '.join(map(str, unread))}."] if unread else []
    remarks += [f"Experiments this report does not know: {', '.join(unknown)}."] if unknown else []
    return _name_settings(table), remarks


def _parse(line: str) -> dict[str, Any] | None:
    """The run that a line describes, None if the line is no run."""
    try:
        run = json.loads(line)
        setting = run.pop("setting", None) or {}
        texts = {key: str(run.pop(key)) for key in TEXTS} | {key: str(run.pop(key, None) or "") for key in OFTEN_EMPTY}
        unknown = dict.fromkeys(("level", "alpha", *(measure.key for measure in MEASURES)), np.nan)
        numbers = {key: float(value) for key, value in run.items() if not isinstance(value, list | dict | None)}
        bins = {WRONG.key: run.get(WRONG.key), "alpha": setting.get("alpha", np.nan)}
        return (
            texts
            | unknown
            | numbers
            | bins
            | {"seed": int(run["seed"]), "setting": json.dumps(setting, sort_keys=True)}
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _name_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Where one method ran with several settings on the same data, the setting becomes part of its name."""
    same_data = [key for key in RUN if key != "setting"]
    several = runs.groupby(same_data, dropna=False).setting.transform("nunique") > 1
    several = several.groupby([runs.experiment, runs.method]).transform("any") & (runs.experiment != "alpha")
    named = runs.method + " " + runs.setting.str.strip("{}").str.replace('"', "")
    return runs.assign(method=runs.method.where(~several, named.str.strip()))


# Averaging


def averages(runs: pd.DataFrame, measure: str, by: Sequence[str]) -> pd.DataFrame:
    """Mean, sd and number of seeds of a measure by some keys, averaged over tables, noises and levels not among them.

    The average is taken for each seed first, and only where every combination was run: columns mean, sd, seeds.
    """
    known = runs.dropna(subset=[measure])
    over = [key for key in ("table", "noise", "level") if key not in by]
    needed = len(known[over].drop_duplicates()) if over else 1
    seeds = known.groupby([*by, "seed"], sort=False)[measure].agg(["mean", "size"])
    complete = seeds[seeds["size"] == needed]
    grouped = complete.groupby(list(by))["mean"]
    return pd.DataFrame({"mean": grouped.mean(), "sd": grouped.std(ddof=1), "seeds": grouped.size()})


def _missing_notes(runs: pd.DataFrame, measures: Sequence[Measure], by: Sequence[str]) -> list[str]:
    """Which lines miss from which averages, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for measure in measures:
        known = runs.dropna(subset=[measure.key])
        tried = pd.MultiIndex.from_frame(known[list(by)].drop_duplicates())
        lost = tried.difference(averages(runs, measure.key, by).index)
        for line, gone in lost.to_frame(index=False).groupby(by[0]):
            has = set(known.table[known[by[0]] == line])
            absent = [table_name(table) for table in in_order(known.table, TABLES) if table not in has]
            places = [tick(by[-1], place) for place in gone[by[-1]]]
            why = f"not run on {', '.join(absent)}" if absent else f"not complete at {', '.join(places)}"
            reasons.setdefault((line_name(line), why), []).append(measure.name)
    return [f"{line} is left out of the average {' and '.join(of)}: {why}." for (line, why), of in reasons.items()]


def in_order(values: Iterable[str], known: Iterable[str]) -> list[str]:
    """Distinct values, the known ones first and in their order, then the others by name."""
    present = set(values)
    first = [value for value in known if value in present]
    return first + sorted(present - set(first))


def table_name(table: str) -> str:
    """A table as people call it."""
    return TABLES.get(table, table)


def tick(x: str, place: float) -> str:
    """A place on the x axis as text."""
    return f"{100 * place:g} %" if x == "level" else f"{place:g}"


def line_name(line: Any) -> str:
    """A line is a method, or a level of corruption."""
    return line if isinstance(line, str) else f"{tick('level', line)} of rows"


def mean_sd(means: pd.DataFrame, key: Any) -> str:
    """Mean ± sd, the mean alone for one seed, a dash where nothing was run."""
    if key not in means.index:
        return "–"
    mean, sd = means.loc[key, "mean"], means.loc[key, "sd"]
    return number(mean) if np.isnan(sd) else f"{number(mean)} ± {number(sd)}"


def number(value: float) -> str:
    """Three decimals, fewer digits for what explodes; a dash if there is no number."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.3g}"


def show(name: str, runs: pd.DataFrame) -> list[Chart | Sheet]:
    """The charts and tables of an experiment."""
    finished = runs[(runs.experiment == name) & (runs.status == "ok")]
    return [shown for part in SHOWN[name] for shown in part(finished)] if len(finished) else []


def _averages(
    name: str, caption: str, measures: Sequence[Measure] = ALL_THREE, line: str = "method", x: str = "level"
) -> Part:
    """A panel per measure, averaged over the tables."""

    def chart(runs: pd.DataFrame) -> list[Chart | Sheet]:
        by, known = [line, x], [measure for measure in measures if runs[measure.key].notna().any()]
        panels = [Panel(_of_tables(runs, each), each, averages(runs, each.key, by)) for each in known]
        return _unless_empty(Chart(name, caption, x, panels, len(panels), _missing_notes(runs, measures, by)))

    return chart


def _of_tables(runs: pd.DataFrame, measure: Measure) -> str:
    tables = runs.table[runs[measure.key].notna()].unique()
    which = f"average of {len(tables)} tables" if len(tables) > 1 else table_name(tables[0])
    return f"{measure.of}, {which}" if measure.of else which


def _each(name: str, caption: str, measures: Sequence[Measure] = ALL_THREE, rows: str = "table") -> Part:
    """A panel per table, or per noise averaged over the tables, and measure, against the level."""
    names, by = TABLES if rows == "table" else NOISES, ["method", "level"]

    def chart(runs: pd.DataFrame) -> list[Chart | Sheet]:
        known = [measure for measure in measures if runs[measure.key].notna().any()]
        panels, notes = [], [] if rows == "table" else [BETA]
        for value in in_order(runs[rows], names):
            part, title = runs[runs[rows] == value], names.get(value, value)
            panels += [Panel(title, measure, averages(part, measure.key, by)) for measure in known]
            notes += [] if rows == "table" else [f"{title}: {note}" for note in _missing_notes(part, known, by)]
        columns = len(known) if len(known) > 1 else min(2, len(panels))
        return _unless_empty(Chart(name, caption, "level", panels, columns, notes))

    return chart


def _unless_empty(chart: Chart) -> list[Chart | Sheet]:
    return [chart] if any(len(panel.means) for panel in chart.panels) else []


def _calibration(runs: pd.DataFrame) -> list[Chart | Sheet]:
    """Is suspicion a probability? Reliability of each table, and what flagging at 10 % false alarms gives."""
    runs = runs[(runs.method == "cellmend") & runs[WRONG.key].notna()]
    if runs.empty:
        return []
    bins = {table_name(table): np.sum([*part.reliability], axis=0) for table, part in runs.groupby("table")}
    exact = sum(bins.values())  # (bins, 3): cells, suspicion, wrong
    lines = {name: each[:, 2] / each[:, 0].clip(1) for name, each in bins.items()}
    lines["exact"] = exact[:, 1] / exact[:, 0].clip(1)
    places = (np.arange(len(exact)) + 0.5) / len(exact)
    means = pd.DataFrame(
        {"mean": share, "sd": np.nan, "seeds": 1} for each in lines.values() for share in each
    ).set_index(pd.MultiIndex.from_product([lines, places.round(2)], names=["method", "level"]))
    chart = Chart(
        "reliability", "Is suspicion a probability?", "suspicion", [Panel("all levels and seeds", WRONG, means)], 1
    )
    error = float(np.abs(exact[:, 1] - exact[:, 2]).sum() / exact[:, 0].sum())
    high = exact[len(exact) // 2 + 1 :].sum(axis=0)
    note = (
        f"All cells together: expected calibration error {error:.4f}; of the most suspicious bins the mean suspicion "
        f"is {high[1] / high[0]:.3f}, and {high[2] / high[0]:.3f} are wrong."
    )
    lines_of_sheet = [
        [table_name(table), tick("level", level)]
        + [mean_sd(averages(part, measure.key, ["method"]), "cellmend") for measure in CALIBRATION]
        for (table, level), part in runs.groupby(["table", "level"])
    ]
    header = ["table", "rows corrupted", *(measure.label for measure in CALIBRATION)]
    return [chart, Sheet("Flagging with at most 10 % false alarms expected", header, lines_of_sheet, [note])]


def p_values(runs: pd.DataFrame, measure: str, one: str, other: str) -> list[float]:
    """Two-sided independent t-tests over seeds between two methods, one for each table, noise and level."""
    found = []
    for _, part in runs.dropna(subset=[measure]).groupby(["table", "noise", "level"]):
        a, b = (part.loc[part.method == method, measure].to_numpy() for method in (one, other))
        if min(len(a), len(b)) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # seeds that agree to the last digit
                found.append(float(ttest_ind(a, b).pvalue))
    return [p for p in found if not np.isnan(p)]


def _p_value(found: Sequence[float]) -> str:
    """The average and how many tests it is of."""
    if not found:
        return "–"
    average = float(np.mean(found))
    return f"{'< 0.001' if average < 0.001 else f'{average:.3f}'} ({len(found)})"


def _p_value_sheet(runs: pd.DataFrame) -> list[Chart | Sheet]:
    """Average p-values next to the paper's, against each rival in its best version that was run."""
    present = set(runs.method)
    rivals = [f"{name}-L2" if f"{name}-L2" in present else name for name in ("CondPred", "VAE")]
    lines = []
    for measure, *published in PAPER_P_VALUES:
        line = [measure.label]
        for rival, paper in zip(rivals, published, strict=True):
            found = p_values(runs, measure.key, "RVAE", rival)
            line += [_p_value(found), f"{paper:.3f}"]
        lines.append(line)
    header = ["", *(text for rival in rivals for text in (f"RVAE and {rival}: ours (tests)", "paper"))]
    note = (
        "Independent two-sided t-tests over seeds, one per table and level; the p-values are averaged, as in the paper."
    )
    return [Sheet("Could the differences be chance? Average p-values", header, lines, [note])]


def _rows(runs: pd.DataFrame) -> list[Chart | Sheet]:
    """Row AUC of each set, ours and as published."""
    methods = in_order(runs.method, ["RVAE", "RVAE nll"])
    means = averages(runs, ROW_AUC.key, ["method", "table"])
    overall = averages(runs, ROW_AUC.key, ["method"])
    sets = in_order(runs.table[runs[ROW_AUC.key].notna()], PAPER_ROW_AUC)
    published = [PAPER_ROW_AUC.get(name, (name, np.nan, np.nan)) for name in sets]
    lines = [
        [label, *(mean_sd(means, (method, name)) for method in methods), *(number(auc) for auc in paper)]
        for name, (label, *paper) in zip(sets, published, strict=True)
    ]
    paper_means = [number(float(np.mean(column))) for column in list(zip(*published, strict=True))[1:]]
    lines.append(["Average", *(mean_sd(overall, method) for method in methods), *paper_means])
    not_run = [label for name, (label, *_) in PAPER_ROW_AUC.items() if name not in sets]
    notes = [f"Averages over the {len(sets)} sets that were run; not run: {', '.join(not_run) or 'none'}."]
    notes += [f"{m} has no average: it was not run on every set." for m in methods if m not in overall.index]
    header = ["set", *(f"{method}, ours" for method in methods), "RVAE, paper", "ABDA, paper"]
    return [Sheet("Row AUC, higher is better (supplement 9)", header, lines, notes)]


def _layouts(runs: pd.DataFrame) -> list[Chart | Sheet]:
    """Each place of errors and share of them: ranking of all cells, found and false ones, mean over the tables."""
    measures = {"all_cells_ap": "AP", "found_share": "found", "false_share": "false"}
    methods = list(dict.fromkeys(runs.method))
    lines = [
        [noise, f"{level:g}", *(number(part.loc[part.method == m, key].mean()) for m in methods for key in measures)]
        for (noise, level), part in runs.groupby(["noise", "level"])
    ]
    header = ["errors", "share", *(f"{method}, {short}" for method in methods for short in measures.values())]
    notes = ["AP over all cells as one list; found and false among the flagged at a false alarm rate of 10 %."]
    return [Sheet("Errors in rows, in columns or scattered", header, lines, notes)]


def _by_folder(caption: str, *measures: str) -> Part:
    """Each folder of dirty tables: measures, and where people answered, before any answer and after more of them."""

    def sheet(runs: pd.DataFrame) -> list[Chart | Sheet]:
        runs = runs.dropna(axis=1, how="all")  # what only other experiments measure
        asked = [""] + [key.removeprefix("f1") for key in runs if key.startswith("f1 ")]
        shown = [f"{measure}{when}" for measure in measures for when in asked if f"{measure}{when}" in runs]
        folders = runs.assign(folder=runs.table.str.split("/").str[0]).groupby("folder")
        lines = [[name, str(len(part)), *(number(part[key].mean()) for key in shown)] for name, part in folders]
        header = ["folder", "tables", *(key.replace("_", " ") for key in shown)]
        return [Sheet(caption, header, lines, ["Means over the tables."])]

    return sheet


EXPERIMENTS = {
    "detection": Experiment("Detection", "How well are corrupted rows and cells found?"),
    "l2": Experiment("Regularisation", "How much do the rivals owe to L2, which needs labelled data to tune?"),
    "repair": Experiment("Repair", "How close do repaired cells come to the truth?"),
    "noises": Experiment("Other noises", "Does the ranking hold when the errors are of another kind?"),
    "alpha": Experiment("Prior belief", "Does it matter how clean we believe the table to be?"),
    "weights": Experiment("Weights", "Are the weights of the cells better computed or predicted by a network?"),
    "seeds": Experiment("Chance", "Are the differences larger than those between random corruptions?"),
    "inference": Experiment("Inference", "Does sampling find and repair better than one pass?"),
    "rows": Experiment("Row outliers", "How well are whole outlying rows found on public sets?"),
    "default": Experiment("Our default", "Is cellmend better than the paper and than boosted trees?"),
    "unseen-noises": Experiment("Unseen noises", "Is it so with noises that nobody tuned on?"),
    "unseen-tables": Experiment("Unseen tables", "Is it so on tables that nobody tuned on?"),
    "layouts": Experiment("Layouts", "Does it matter where the errors lie, and how many they are?"),
    "log": Experiment("Log", "What is found in a log of sensors?"),
    "dirt": Experiment("Dirty tables", "What is found of the errors that people really make?"),
    "decisions": Experiment("Decisions", "How much do people's answers help, and how many does it take?"),
}
_SAME = "The same for each table"
_FOUND = ("precision", "recall", "f1", "best_f1", "repaired_right")
SHOWN: dict[str, tuple[Part, ...]] = {
    "detection": (
        _averages("detection", "Finding corrupted rows and cells (the paper's Figure 2)", [ROW, CELL]),
        _each("detection-tables", f"{_SAME} (supplement 4)", [ROW, CELL]),
        _averages("detection-kinds", "Cells by kind of column (Figure 3)", CELL_KINDS),
    ),
    "l2": (_averages("l2", "With and without L2, which needs labels to tune (Figure 1)", [ROW, CELL]),),
    "repair": (
        _averages("repair", "Error of the repaired cells (Figure 4)", [REPAIR]),
        _averages("repair-kinds", "By kind of column (Figure 5)", REPAIR_KINDS),
        _each("repair-tables", "For each table (supplement 5)", [REPAIR]),
    ),
    "noises": (_each("noises", "Each noise, average of the tables (Figure 6, supplement 7)", rows="noise"),),
    "alpha": (
        _averages("alpha", "RVAE with several beliefs alpha that a cell is clean (Figure 7)", line="level", x="alpha"),
    ),
    "weights": (_each("weights", "RVAE (coordinate ascent) against RVAE-AVI (a second network) (supplement 6)"),),
    "seeds": (_each("seeds", "Mean and standard deviation over corruption seeds (supplement 8)"), _p_value_sheet),
    "inference": (
        _averages("inference", "RVAE is MAP; one-stage and two-stage are pseudo-Gibbs sampling (supplement 10)"),
        _each("inference-tables", _SAME),
    ),
    "rows": (_rows,),
    "default": (
        _averages("default", "Our default, the published model and the best peers"),
        _each("default-tables", _SAME),
        _calibration,
    ),
    "unseen-noises": (_each("unseen-noises", "Noises that the default was not tuned on", rows="noise"),),
    "unseen-tables": (_each("unseen-tables", "Tables that the default was not tuned on"),),
    "layouts": (_layouts,),
    "log": (_by_folder("Spikes, stuck sensors and shifted blocks", *_FOUND),),
    "dirt": (_by_folder("Really dirty tables, cells that are empty left out", *_FOUND),),
    "decisions": (
        _by_folder("Dirty tables and people's answers, empty cells left out", "f1", "repair_f1", "precision"),
    ),
}
