"""The figures and tables of the paper from a results file: PNG, SVG, and one self-contained HTML page."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator
from scipy.stats import ttest_ind

MADE_BY = "cellmend bench report"  # stands in every file we write: only such files are overwritten
INK, PAPER_COLOUR = "#1b1b1b", "#fefefe"
RUN = ["experiment", "table", "noise", "level", "seed", "method", "setting"]  # what makes a run the same run
LOG_FROM = 10.0  # the worst error over the best, from which an axis is logarithmic
PANEL_INCHES = (3.4, 2.7)


class ResultsError(ValueError):
    """The results file holds nothing to report."""


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
MEASURES = [CELL, ROW, *CELL_KINDS, REPAIR, *REPAIR_KINDS, ROW_AUC]

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


@dataclass(frozen=True)
class Style:
    """How a line looks in every figure; a method and its variants share a colour, never marker and dashes."""

    colour: str
    marker: str
    dashes: Any = "-"
    filled: bool = True


BLUE, SKY, GREEN, ORANGE, RED, PINK, BROWN, PURPLE = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#8C5A2B", "#6A3D9A",
)  # fmt: skip
ON_PAGE = {INK: "ink", PAPER_COLOUR: "paper", BLUE: "blue", BROWN: "brown", PURPLE: "purple"}  # follow its theme
DOTS, DASHES, DASH_DOT = (0, (1, 1.2)), (0, (4, 1.5)), (0, (5, 1.2, 1, 1.2))
METHODS = {
    "RVAE": Style(BLUE, "o"),
    "RVAE nll": Style(BLUE, "o", DASHES, filled=False),
    "RVAE-AVI": Style(SKY, "p", DASH_DOT),
    "RVAE one-stage": Style(PINK, "<", DASHES),
    "RVAE two-stage": Style(ORANGE, ">", DASH_DOT),
    "VAE": Style(RED, "s", DASHES, filled=False),
    "VAE-L2": Style(RED, "s"),
    "CondPred": Style(GREEN, "^", DASHES, filled=False),
    "CondPred-L2": Style(GREEN, "^"),
    "DeepRPCA": Style(PINK, "D", DASH_DOT),
    "Marginals": Style(ORANGE, "v"),
    "OC-SVM": Style(INK, "X", DASHES),
    "OC-SVM + Marginals": Style(INK, "P", DOTS),
    "Isolation Forest": Style(BROWN, "<", DASH_DOT),
    "LightGBM": Style(PURPLE, "h"),
    "LightGBM l1": Style(PURPLE, "8", DOTS, filled=False),
    "LightGBM + Marginals": Style(PURPLE, "d", DASHES, filled=False),
}
OTHERS = [
    Style(c, m, d) for d, (c, m) in product((DASH_DOT, DOTS, DASHES), zip((PINK, INK, RED, SKY), "H*dX", strict=True))
]
LEVELS = [Style(c, m) for c, m in zip((BROWN, ORANGE, GREEN, BLUE, PURPLE), "osD^v", strict=True)]


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


@dataclass(frozen=True)
class Experiment:
    """The question an experiment answers, in a word and in a sentence, and how it is shown."""

    title: str
    question: str
    show: Callable[[pd.DataFrame], list[Chart | Sheet]]


def write_report(results: Path, folder: Path) -> Path:
    """Every figure the results file has rows for, as PNG and SVG, and the page that shows them all."""
    runs, remarks = read_results(results)
    shown = {name: _show(name, runs) for name in EXPERIMENTS if (runs.experiment == name).any()}
    charts = [part for parts in shown.values() for part in parts if isinstance(part, Chart)]
    page = folder / "report.html"
    _refuse_what_is_not_ours([page, *(folder / f"{chart.name}.{kind}" for chart in charts for kind in ("png", "svg"))])
    folder.mkdir(parents=True, exist_ok=True)
    styles = _styles(runs.method.unique())
    pictures = {chart.name: _draw(chart, styles, folder) for chart in charts}
    _write(page, _page(results.name, runs, shown, pictures, remarks).encode("utf-8", "backslashreplace"))
    return page


def _refuse_what_is_not_ours(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists() and MADE_BY.encode() not in path.read_bytes():
            raise FileExistsError(f"{path} is there already and is not ours. Hint: choose another folder.")


def _write(path: Path, content: bytes) -> None:
    """Under a temporary name, then renamed: the file is whole or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# Reading


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
        texts = {key: str(run[key]) for key in ("experiment", "table", "method", "status")}
        texts |= {key: str(run.get(key) or "") for key in ("noise", "error")}
        keys = ("level", *(measure.key for measure in MEASURES))
        numbers = {key: np.nan if run.get(key) is None else float(run[key]) for key in keys}
        setting = json.dumps(run.get("setting") or {}, sort_keys=True)
        return {**texts, **numbers, "seed": int(run["seed"]), "setting": setting}
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
            absent = [_table_name(table) for table in _in_order(known.table, TABLES) if table not in has]
            places = [_tick(by[-1], place) for place in gone[by[-1]]]
            why = f"not run on {', '.join(absent)}" if absent else f"not complete at {', '.join(places)}"
            reasons.setdefault((_line_name(line), why), []).append(measure.name)
    return [f"{line} is left out of the average {' and '.join(of)}: {why}." for (line, why), of in reasons.items()]


def _in_order(values: Iterable[str], known: Iterable[str]) -> list[str]:
    """Distinct values, the known ones first and in their order, then the others by name."""
    present = set(values)
    first = [value for value in known if value in present]
    return first + sorted(present - set(first))


def _table_name(table: str) -> str:
    return TABLES.get(table, table)


def _tick(x: str, place: float) -> str:
    return f"{100 * place:g} %" if x == "level" else f"{place:g}"


# The experiments


def _show(name: str, runs: pd.DataFrame) -> list[Chart | Sheet]:
    finished = runs[(runs.experiment == name) & (runs.status == "ok")]
    return EXPERIMENTS[name].show(finished) if len(finished) else []


def _average_chart(
    runs: pd.DataFrame, name: str, caption: str, measures: Sequence[Measure], line: str = "method", x: str = "level"
) -> list[Chart | Sheet]:
    """A panel per measure, averaged over the tables."""
    by = [line, x]
    panels = [Panel(_of_tables(runs, m), m, averages(runs, m.key, by)) for m in measures if runs[m.key].notna().any()]
    notes = _missing_notes(runs, measures, by)
    return [Chart(name, caption, x, panels, len(panels), notes)] if any(len(p.means) for p in panels) else []


def _of_tables(runs: pd.DataFrame, measure: Measure) -> str:
    tables = runs.table[runs[measure.key].notna()].unique()
    which = f"average of {len(tables)} tables" if len(tables) > 1 else _table_name(tables[0])
    return f"{measure.of}, {which}" if measure.of else which


def _grid_chart(
    runs: pd.DataFrame, name: str, caption: str, measures: Sequence[Measure], rows: str = "table"
) -> list[Chart | Sheet]:
    """A panel per table, or per noise averaged over the tables, and measure, against the level."""
    measures = [m for m in measures if runs[m.key].notna().any()]
    names = TABLES if rows == "table" else NOISES
    panels = []
    for value, measure in product(_in_order(runs[rows], names), measures):
        part = runs[runs[rows] == value]
        panels.append(Panel(names.get(value, value), measure, averages(part, measure.key, ["method", "level"])))
    columns = len(measures) if len(measures) > 1 else min(2, len(panels))
    notes = [] if rows == "table" else [BETA] + [
        f"{names.get(value, value)}: {note}"
        for value in _in_order(runs[rows], names)
        for note in _missing_notes(runs[runs[rows] == value], measures, ["method", "level"])
    ]  # fmt: skip
    return [Chart(name, caption, "level", panels, columns, notes)] if any(len(p.means) for p in panels) else []


def _detection(runs: pd.DataFrame) -> list[Chart | Sheet]:
    return [
        *_average_chart(runs, "detection", "Finding corrupted rows and cells (the paper's Figure 2)", [ROW, CELL]),
        *_grid_chart(runs, "detection-tables", "The same for each table (supplement 4)", [ROW, CELL]),
        *_average_chart(runs, "detection-kinds", "Cells by kind of column (Figure 3)", CELL_KINDS),
    ]


def _l2(runs: pd.DataFrame) -> list[Chart | Sheet]:
    return _average_chart(runs, "l2", "With and without L2, which needs labels to tune (Figure 1)", [ROW, CELL])


def _repair(runs: pd.DataFrame) -> list[Chart | Sheet]:
    return [
        *_average_chart(runs, "repair", "Error of the repaired cells (Figure 4)", [REPAIR]),
        *_average_chart(runs, "repair-kinds", "By kind of column (Figure 5)", REPAIR_KINDS),
        *_grid_chart(runs, "repair-tables", "For each table (supplement 5)", [REPAIR]),
    ]


def _noises(runs: pd.DataFrame) -> list[Chart | Sheet]:
    caption = "Each noise, average of the tables (Figure 6, supplement 7)"
    return _grid_chart(runs, "noises", caption, [CELL, ROW, REPAIR], rows="noise")


def _alpha(runs: pd.DataFrame) -> list[Chart | Sheet]:
    alpha = [json.loads(setting).get("alpha") for setting in runs.setting]
    caption = "RVAE with several beliefs alpha that a cell is clean (Figure 7)"
    return _average_chart(runs.assign(alpha=alpha), "alpha", caption, [CELL, ROW, REPAIR], line="level", x="alpha")


def _weights(runs: pd.DataFrame) -> list[Chart | Sheet]:
    caption = "RVAE (coordinate ascent, CVI) against RVAE-AVI (a second network), each table (supplement 6)"
    return _grid_chart(runs, "weights", caption, [CELL, ROW, REPAIR])


def _seeds(runs: pd.DataFrame) -> list[Chart | Sheet]:
    caption = "Mean and standard deviation over corruption seeds, each table (supplement 8)"
    return [*_grid_chart(runs, "seeds", caption, [CELL, ROW, REPAIR]), *_p_value_sheet(runs)]


def _inference(runs: pd.DataFrame) -> list[Chart | Sheet]:
    caption = "RVAE is MAP; one-stage and two-stage are pseudo-Gibbs sampling (supplement 10)"
    return [
        *_average_chart(runs, "inference", caption, [CELL, ROW, REPAIR]),
        *_grid_chart(runs, "inference-tables", "The same for each table", [CELL, ROW, REPAIR]),
    ]


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
    methods = _in_order(runs.method, METHODS)
    means = averages(runs, ROW_AUC.key, ["method", "table"])
    overall = averages(runs, ROW_AUC.key, ["method"])
    sets = _in_order(runs.table[runs[ROW_AUC.key].notna()], PAPER_ROW_AUC)
    published = [PAPER_ROW_AUC.get(name, (name, np.nan, np.nan)) for name in sets]
    lines = [
        [label, *(_mean_sd(means, (method, name)) for method in methods), *(_number(auc) for auc in paper)]
        for name, (label, *paper) in zip(sets, published, strict=True)
    ]
    paper_means = [_number(float(np.mean(column))) for column in list(zip(*published, strict=True))[1:]]
    lines.append(["Average", *(_mean_sd(overall, method) for method in methods), *paper_means])
    not_run = [label for name, (label, *_) in PAPER_ROW_AUC.items() if name not in sets]
    notes = [f"Averages over the {len(sets)} sets that were run; not run: {', '.join(not_run) or 'none'}."]
    notes += [f"{m} has no average: it was not run on every set." for m in methods if m not in overall.index]
    header = ["set", *(f"{method}, ours" for method in methods), "RVAE, paper", "ABDA, paper"]
    return [Sheet("Row AUC, higher is better (supplement 9)", header, lines, notes)]


EXPERIMENTS = {
    "detection": Experiment("Detection", "How well are corrupted rows and cells found?", _detection),
    "l2": Experiment("Regularisation", "How much do the rivals owe to L2, which needs labelled data to tune?", _l2),
    "repair": Experiment("Repair", "How close do repaired cells come to the truth?", _repair),
    "noises": Experiment("Other noises", "Does the ranking hold when the errors are of another kind?", _noises),
    "alpha": Experiment("Prior belief", "Does it matter how clean we believe the table to be?", _alpha),
    "weights": Experiment(
        "Weights", "Are the weights of the cells better computed or predicted by a network?", _weights
    ),
    "seeds": Experiment("Chance", "Are the differences larger than those between random corruptions?", _seeds),
    "inference": Experiment("Inference", "Does sampling find and repair better than one pass?", _inference),
    "rows": Experiment("Row outliers", "How well are whole outlying rows found on public sets?", _rows),
}


# Drawing


def _styles(methods: Iterable[str]) -> dict[str, Style]:
    """The style of each method, the same in every figure; methods the paper does not have get their own."""
    others = [method for method in _in_order(methods, METHODS) if method not in METHODS]
    return METHODS | {method: OTHERS[place % len(OTHERS)] for place, method in enumerate(others)}


def _lines(chart: Chart) -> list[Any]:
    """The lines of a chart in the order of the legend."""
    names = {line for panel in chart.panels for line in panel.means.index.get_level_values(0)}
    return sorted(names) if chart.x == "alpha" else _in_order(names, METHODS)


def _line_name(line: Any) -> str:
    """A line is a method, or a level of corruption."""
    return line if isinstance(line, str) else f"{_tick('level', line)} of rows"


def _places(chart: Chart) -> list[float]:
    """The distinct values on the x axis."""
    return sorted({place for panel in chart.panels for place in panel.means.index.get_level_values(1)})


def _draw(chart: Chart, styles: dict[str, Style], folder: Path) -> str:
    """Write the chart as PNG and SVG; returns the SVG for the page."""
    lines = _lines(chart)
    if chart.x == "alpha":
        styles = {line: LEVELS[place % len(LEVELS)] for place, line in enumerate(lines)}
    look: dict[Any, Any] = {
        "text.parse_math": False, "svg.hashsalt": chart.name, "font.size": 9.5, "axes.titlesize": 10,
        "axes.facecolor": PAPER_COLOUR, "axes.edgecolor": INK, "axes.labelcolor": INK,
        "text.color": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    rows = -(-len(chart.panels) // chart.columns)
    width, height = PANEL_INCHES[0] * max(chart.columns, 1.6), PANEL_INCHES[1] * rows
    with mpl.rc_context(look):
        longest = max(len(_line_name(line)) for line in lines)
        per_row = max(1, min(len(lines), int(width / (0.8 + 0.07 * longest))))
        legend_rows = -(-len(lines) // per_row)
        figure = Figure(
            figsize=(width, height + 0.25 * legend_rows + 0.2), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
        )
        axes = figure.subplots(rows, chart.columns, squeeze=False).ravel()
        for panel, ax in zip(chart.panels, axes, strict=False):
            _draw_panel(ax, panel, chart, lines, styles)
        for ax in axes[len(chart.panels) :]:
            ax.set_axis_off()
        handles = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        shown = {_line_name(line): handles[_line_name(line)] for line in lines}
        figure.legend(
            shown.values(), shown.keys(), loc="outside lower center", ncols=per_row, frameon=False, handlelength=3.2
        )
        return _save(figure, chart.name, folder)


def _draw_panel(ax: Axes, panel: Panel, chart: Chart, lines: Sequence[str], styles: dict[str, Style]) -> None:
    places = _places(chart)
    for line in lines:
        if line not in panel.means.index.get_level_values(0):
            continue
        style, means = styles[line], panel.means.loc[line]
        ax.errorbar(
            [places.index(x) for x in means.index], means["mean"], yerr=means["sd"], label=_line_name(line),
            color=style.colour,
            marker=style.marker, linestyle=style.dashes, linewidth=1.7, markersize=6.5, capsize=3, elinewidth=1.2,
            markerfacecolor=style.colour if style.filled else PAPER_COLOUR,
            markeredgecolor=style.colour if not style.filled else PAPER_COLOUR,
            markeredgewidth=1.4 if not style.filled else 0.5, zorder=3 if line == "RVAE" else 2,
        )  # fmt: skip
    ax.set_title(panel.title, loc="left")
    ax.set_ylabel(f"{panel.measure.label}\n({'lower' if panel.measure.lower_is_better else 'higher'} is better)")
    ax.set_xticks(range(len(places)), [_tick(chart.x, place).removesuffix(" %") for place in places])
    ax.set_xlim(-0.3, len(places) - 0.7)
    ax.set_xlabel("alpha, belief that a cell is clean" if chart.x == "alpha" else "% of rows corrupted")
    ax.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
    if panel.means.empty:
        ax.text(0.5, 0.5, "no result", transform=ax.transAxes, ha="center")
    _scale(ax, panel)


def _scale(ax: Axes, panel: Panel) -> None:
    """AVPR from 0 to 1; errors from 0, or logarithmic where one of them explodes."""
    if not panel.measure.lower_is_better:
        ax.set_ylim(0, 1.02)
    elif _explodes(panel):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_minor_formatter(lambda value, _: "")
        ax.set_ylabel(f"{panel.measure.label}\n(log scale, lower is better)")
    else:
        ax.set_ylim(bottom=0)


def _explodes(panel: Panel) -> bool:
    means = panel.means["mean"]
    return panel.measure.lower_is_better and bool((means > 0).all() and means.max() > LOG_FROM * means.min())


def _save(figure: Figure, name: str, folder: Path) -> str:
    png, svg = io.BytesIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, saved twice
    figure.savefig(png, format="png", dpi=150, facecolor=PAPER_COLOUR, metadata={"Software": MADE_BY})
    figure.savefig(svg, format="svg", facecolor=PAPER_COLOUR, metadata={"Creator": MADE_BY, "Date": None})
    _write(folder / f"{name}.png", png.getvalue())
    _write(folder / f"{name}.svg", svg.getvalue())
    return _inline(svg.getvalue().decode(), name)


def _inline(svg: str, name: str) -> str:
    """The SVG for a page that holds several: own ids, colours of the page, no comments."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    for colour, name_on_page in ON_PAGE.items():
        svg = svg.replace(colour.lower(), f"var(--{name_on_page})")
    return svg.replace("\n", " ")


# The page

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --quiet: #50555c; --rule: #c9ced6; --band: #f1f4f8;
  --blue: #0072b2; --brown: #8c5a2b; --purple: #6a3d9a; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181c; --ink: #eceef1; --quiet: #b3bac4; --rule: #454c56; --band: #21262d;
    --blue: #3d9fe0; --brown: #c08a55; --purple: #a984dc; }
}
* { box-sizing: border-box; }
body { background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 72rem; padding: 1rem clamp(.8rem, 3vw, 2rem) 3rem; }
h1 { line-height: 1.2; margin-bottom: .3rem; }
h2 { border-top: 2px solid var(--rule); line-height: 1.25; margin: 3rem 0 .5rem; padding-top: 1.2rem; }
h2 small { color: var(--quiet); display: block; font-size: .8rem; font-weight: 600; letter-spacing: .05em;
  text-transform: uppercase; }
p { max-width: 46rem; } .quiet, .note { color: var(--quiet); } .note { font-size: .88rem; margin: .3rem 0; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; } a { color: inherit; }
figure { margin: 1.8rem 0; } figcaption { font-weight: 600; margin-bottom: .5rem; }
.wide { overflow-x: auto; } svg { display: block; height: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--rule); padding: .22rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { padding-left: .3rem; text-align: left; }
tbody th { background: var(--band); font-weight: 600; } .words :is(th, td) { text-align: left; vertical-align: top; }
.words td:last-child { min-width: 18rem; overflow-wrap: anywhere; white-space: normal; }
summary { cursor: pointer; margin: .5rem 0; }
@media print {
  :root { --paper: #fff; --ink: #000; --quiet: #333; --rule: #999; --band: #eee; color-scheme: light;
    --blue: #0072b2; --brown: #8c5a2b; --purple: #6a3d9a; }
  body { font-size: 9.5pt; max-width: none; padding: 0; } nav { display: none; } table { font-size: 7.5pt; }
  .picture, tbody, h2 { break-inside: avoid; } h2, figcaption { break-after: avoid; } .wide { overflow: visible; }
  svg { min-width: 0 !important; max-height: 22cm; }
  details::details-content { content-visibility: visible; display: block; } th, td { padding: .15rem .4rem; }
}
"""
GLOSSARY = (
    "AVPR: average precision, from 0 to 1, higher is better; for cells the mean over columns. "
    "Repair error: on corrupted cells only, squared error over variance (SMSE) for numbers and Brier score for "
    "categories, mean over columns, lower is better; an SMSE above 1 is worse than putting the column's mean. "
    "Numbers are means ± standard deviations over seeds; an average over tables is taken for each seed first. "
    "Bold: the best mean at each level of corruption."
)


def _page(
    source: str,
    runs: pd.DataFrame,
    shown: dict[str, list[Chart | Sheet]],
    pictures: dict[str, str],
    remarks: Sequence[str],
) -> str:
    failed = runs[runs.status != "ok"]
    counts = f"{source}: {len(runs)} runs" + (f", {len(failed)} of them failed." if len(failed) else ", none failed.")
    absent = [EXPERIMENTS[name].title for name in EXPERIMENTS if name not in shown]
    remarks = [*remarks, *([f"Not in this file: {', '.join(absent)}."] if absent else [])]
    links = "".join(f'<a href="#{name}">{escape(EXPERIMENTS[name].title)}</a>' for name in shown)
    links += '<a href="#failed">Failed runs</a>' if len(failed) else ""
    sections = "".join(_section(name, parts, pictures) for name, parts in shown.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="{MADE_BY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>cellmend: the paper's experiments</title><style>{STYLE}</style></head><body>"
        f'<h1>The paper\'s experiments</h1><p class="quiet">{escape(counts)}</p><p>{escape(GLOSSARY)}</p>'
        f"{_notes(remarks)}<nav>{links}</nav><main>{sections}{_failures(failed)}</main></body></html>\n"
    )


def _section(name: str, parts: Sequence[Chart | Sheet], pictures: dict[str, str]) -> str:
    experiment = EXPERIMENTS[name]
    body = "".join(_sheet(part) if isinstance(part, Sheet) else _chart(part, pictures[part.name]) for part in parts)
    heading = f'<h2 id="{name}"><small>{escape(experiment.title)}</small>{escape(experiment.question)}</h2>'
    return f"<section>{heading}{body or '<p>No run has finished.</p>'}</section>"


def _chart(chart: Chart, picture: str) -> str:
    notes = [_seeds_note(chart), *_log_notes(chart), *chart.notes]
    numbers = _numbers(chart)
    if len(chart.panels) > 3:
        numbers = f"<details><summary>Numbers for {len(chart.panels)} panels</summary>{numbers}</details>"
    least = round(60 * PANEL_INCHES[0] * max(chart.columns, 1.6))  # pixels below which the letters are too small
    full = f"min-width:{least}px;width:{round(1.6 * least)}px"
    svg = picture.replace("<svg ", f'<svg role="img" aria-label="{escape(chart.caption)}" style="{full}" ', 1)
    return (
        f'<figure><figcaption>{escape(chart.caption)}</figcaption><div class="wide picture">{svg}</div>'
        f"{_notes(notes)}{numbers}</figure>"
    )


def _seeds_note(chart: Chart) -> str:
    counts = sorted({int(count) for panel in chart.panels for count in panel.means["seeds"]})
    if counts in ([], [1]):
        return "One seed, so there are no error bars."
    return f"Error bars: standard deviation over {' to '.join(map(str, sorted({counts[0], counts[-1]})))} seeds."


def _log_notes(chart: Chart) -> list[str]:
    exploding = [panel.means["mean"] for panel in chart.panels if _explodes(panel)]
    if not exploding:
        return []
    worst = max(exploding, key=max)
    whose = _line_name(worst.idxmax()[0])
    return [f"Logarithmic axis where errors explode; the worst is {_number(worst.max())}, of {whose}."]


def _numbers(chart: Chart) -> str:
    """The means of all panels, a block per panel: methods down, places on the x axis across."""
    places = _places(chart)
    head = "".join(f"<th>{escape(text)}</th>" for text in ["", *(_tick(chart.x, place) for place in places)])
    blocks = "".join(_block(panel, _lines(chart), places) for panel in chart.panels if len(panel.means))
    corner = "alpha" if chart.x == "alpha" else "rows corrupted"
    head = head.replace("<th></th>", f"<th>{corner}</th>", 1)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{blocks}</table></div>'


def _block(panel: Panel, lines: Sequence[str], places: Sequence[float]) -> str:
    best = _best(panel)
    title = escape(f"{panel.measure.label}, {panel.title}")
    rows = [f'<tr><th colspan="{len(places) + 1}">{title}</th></tr>']
    for line in (line for line in lines if line in panel.means.index.get_level_values(0)):
        cells = []
        for place in places:
            text = _mean_sd(panel.means, (line, place))
            is_best = (line, place) in panel.means.index and best[(line, place)]
            cells.append(f"<td><b>{text}</b></td>" if is_best else f"<td>{text}</td>")
        rows.append(f"<tr><td>{escape(_line_name(line))}</td>{''.join(cells)}</tr>")
    return f"<tbody>{''.join(rows)}</tbody>"


def _best(panel: Panel) -> Any:
    """Where the best means are: of the methods at each level, or of the alphas for each level."""
    means = panel.means["mean"]
    return means == means.groupby(level="level").transform("min" if panel.measure.lower_is_better else "max")


def _mean_sd(means: pd.DataFrame, key: Any) -> str:
    """Mean ± sd, the mean alone for one seed, a dash where nothing was run."""
    if key not in means.index:
        return "–"
    mean, sd = means.loc[key, "mean"], means.loc[key, "sd"]
    return _number(mean) if np.isnan(sd) else f"{_number(mean)} ± {_number(sd)}"


def _number(value: float) -> str:
    """Three decimals, fewer digits for what explodes; a dash if there is no number."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.3g}"


def _sheet(sheet: Sheet) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in sheet.header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in sheet.lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f'<figure><figcaption>{escape(sheet.caption)}</figcaption><div class="wide">{table}</div>'
        f"{_notes(sheet.notes)}</figure>"
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _failures(failed: pd.DataFrame) -> str:
    """The runs that failed, with what they said."""
    if failed.empty:
        return ""
    header = ["experiment", "table", "noise", "rows corrupted", "seed", "method", "setting", "error"]
    lines = [
        [run.experiment, run.table, run.noise, "" if pd.isna(run.level) else _tick("level", run.level),
         str(run.seed), run.method, run.setting.strip("{}").replace('"', ""), run.error]
        for run in failed.itertuples()
    ]  # fmt: skip
    table = _sheet(Sheet(f"{len(failed)} runs failed and are in no figure", header, lines))
    heading = '<h2 id="failed"><small>Failed runs</small>What did not finish?</h2>'
    return f'<section class="words">{heading}{table}</section>'
