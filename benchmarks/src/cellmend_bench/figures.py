"""The charts of a report as PNG and SVG: one colour and marker a method in every figure, legible without colour."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator

from cellmend.files.places import whole_file
from cellmend_bench.summaries import Chart, Panel, in_order, line_name, tick

MADE_BY = "cellmend bench report"  # stands in every file we write: only such files are overwritten
INK, PAPER_COLOUR = "#1b1b1b", "#fefefe"
LOG_FROM = 10.0  # the worst error over the best, from which an axis is logarithmic
PANEL_INCHES = (3.4, 2.7)


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
    "cellmend": Style(INK, "*"),
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
X_LABELS = {
    "level": "% of rows corrupted",
    "alpha": "alpha, belief that a cell is clean",
    "suspicion": "suspicion",
}
LEVELS = [Style(c, m) for c, m in zip((BROWN, ORANGE, GREEN, BLUE, PURPLE), "osD^v", strict=True)]


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """The style of each method, the same in every figure; methods the paper does not have get their own."""
    others = [method for method in in_order(methods, METHODS) if method not in METHODS]
    return METHODS | {method: OTHERS[place % len(OTHERS)] for place, method in enumerate(others)}


def lines_of(chart: Chart) -> list[Any]:
    """The lines of a chart in the order of the legend."""
    names = {line for panel in chart.panels for line in panel.means.index.get_level_values(0)}
    return sorted(names) if chart.x == "alpha" else in_order(names, METHODS)


def places_of(chart: Chart) -> list[float]:
    """The distinct values on the x axis."""
    return sorted({place for panel in chart.panels for place in panel.means.index.get_level_values(1)})


def draw(chart: Chart, styles: dict[str, Style], folder: Path) -> str:
    """Write the chart as PNG and SVG; returns the SVG for the page."""
    lines = lines_of(chart)
    if chart.x != "level":
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
        longest = max(len(line_name(line)) for line in lines)
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
        shown = {line_name(line): handles[line_name(line)] for line in lines}
        figure.legend(
            shown.values(), shown.keys(), loc="outside lower center", ncols=per_row, frameon=False, handlelength=3.2
        )
        return _save(figure, chart.name, folder)


def _draw_panel(ax: Axes, panel: Panel, chart: Chart, lines: Sequence[str], styles: dict[str, Style]) -> None:
    places = places_of(chart)
    for line in lines:
        if line not in panel.means.index.get_level_values(0):
            continue
        style, means = styles[line], panel.means.loc[line]
        ax.errorbar(
            [places.index(x) for x in means.index], means["mean"], yerr=means["sd"], label=line_name(line),
            color=style.colour,
            marker=style.marker, linestyle=style.dashes, linewidth=1.7, markersize=6.5, capsize=3, elinewidth=1.2,
            markerfacecolor=style.colour if style.filled else PAPER_COLOUR,
            markeredgecolor=style.colour if not style.filled else PAPER_COLOUR,
            markeredgewidth=1.4 if not style.filled else 0.5, zorder=3 if line in ("cellmend", "RVAE") else 2,
        )  # fmt: skip
    ax.set_title(panel.title, loc="left")
    better = "lower" if panel.measure.lower_is_better else "higher"
    ax.set_ylabel(panel.measure.label + ("" if chart.x == "suspicion" else f"\n({better} is better)"))
    ax.set_xticks(range(len(places)), [tick(chart.x, place).removesuffix(" %") for place in places])
    ax.set_xlim(-0.3, len(places) - 0.7)
    ax.set_xlabel(X_LABELS[chart.x])
    ax.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
    if panel.means.empty:
        ax.text(0.5, 0.5, "no result", transform=ax.transAxes, ha="center")
    _scale(ax, panel)


def _scale(ax: Axes, panel: Panel) -> None:
    """AVPR from 0 to 1; errors from 0, or logarithmic where one of them explodes."""
    if not panel.measure.lower_is_better:
        ax.set_ylim(0, 1.02)
    elif explodes(panel):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_minor_formatter(lambda value, _: "")
        ax.set_ylabel(f"{panel.measure.label}\n(log scale, lower is better)")
    else:
        ax.set_ylim(bottom=0)


def explodes(panel: Panel) -> bool:
    """Is the worst error so far above the best that a linear axis would hide the rest?"""
    means = panel.means["mean"]
    return panel.measure.lower_is_better and bool((means > 0).all() and means.max() > LOG_FROM * means.min())


def _save(figure: Figure, name: str, folder: Path) -> str:
    png, svg = io.BytesIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, saved twice
    figure.savefig(png, format="png", dpi=150, facecolor=PAPER_COLOUR, metadata={"Software": MADE_BY})
    figure.savefig(svg, format="svg", facecolor=PAPER_COLOUR, metadata={"Creator": MADE_BY, "Date": None})
    write_file(folder / f"{name}.png", png.getvalue())
    write_file(folder / f"{name}.svg", svg.getvalue())
    return _inline(svg.getvalue().decode(), name)


def _inline(svg: str, name: str) -> str:
    """The SVG for a page that holds several: own ids, colours of the page, no comments."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    for colour, name_on_page in ON_PAGE.items():
        svg = svg.replace(colour.lower(), f"var(--{name_on_page})")
    return svg.replace("\n", " ")


def write_file(path: Path, content: bytes) -> None:
    """The file is whole or not there."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
