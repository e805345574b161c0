"""The report: one self-contained HTML page around the figures and tables of a results file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from cellmend_bench.figures import MADE_BY, PANEL_INCHES, draw, explodes, lines_of, places_of, styles_of, write_file
from cellmend_bench.summaries import (
    EXPERIMENTS,
    WRONG,
    Chart,
    Panel,
    Sheet,
    line_name,
    mean_sd,
    number,
    read_results,
    show,
    tick,
)

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


def write_report(results: Path, folder: Path) -> Path:
    """Every figure the results file has rows for, as PNG and SVG, and the page that shows them all."""
    runs, remarks = read_results(results)
    shown = {name: show(name, runs) for name in EXPERIMENTS if (runs.experiment == name).any()}
    charts = [part for parts in shown.values() for part in parts if isinstance(part, Chart)]
    page = folder / "report.html"
    _refuse_what_is_not_ours([page, *(folder / f"{chart.name}.{kind}" for chart in charts for kind in ("png", "svg"))])
    folder.mkdir(parents=True, exist_ok=True)
    styles = styles_of(runs.method.unique())
    pictures = {chart.name: draw(chart, styles, folder) for chart in charts}
    write_file(page, _page(results.name, runs, shown, pictures, remarks).encode("utf-8", "backslashreplace"))
    return page


def _refuse_what_is_not_ours(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists() and MADE_BY.encode() not in path.read_bytes():
            raise FileExistsError(f"{path} is there already and is not ours. Hint: choose another folder.")


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
    notes = [*([] if chart.x == "suspicion" else [_seeds_note(chart)]), *_log_notes(chart), *chart.notes]
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
    exploding = [panel.means["mean"] for panel in chart.panels if explodes(panel)]
    if not exploding:
        return []
    worst = max(exploding, key=max)
    whose = line_name(worst.idxmax()[0])
    return [f"Logarithmic axis where errors explode; the worst is {number(worst.max())}, of {whose}."]


def _numbers(chart: Chart) -> str:
    """The means of all panels, a block per panel: methods down, places on the x axis across."""
    places = places_of(chart)
    head = "".join(f"<th>{escape(text)}</th>" for text in ["", *(tick(chart.x, place) for place in places)])
    blocks = "".join(_block(panel, lines_of(chart), places) for panel in chart.panels if len(panel.means))
    corner = "rows corrupted" if chart.x == "level" else chart.x
    head = head.replace("<th></th>", f"<th>{corner}</th>", 1)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{blocks}</table></div>'


def _block(panel: Panel, lines: Sequence[str], places: Sequence[float]) -> str:
    best = _best(panel)
    title = escape(f"{panel.measure.label}, {panel.title}")
    rows = [f'<tr><th colspan="{len(places) + 1}">{title}</th></tr>']
    for line in (line for line in lines if line in panel.means.index.get_level_values(0)):
        cells = []
        for place in places:
            text = mean_sd(panel.means, (line, place))
            is_best = (line, place) in panel.means.index and best[(line, place)]
            cells.append(f"<td><b>{text}</b></td>" if is_best else f"<td>{text}</td>")
        rows.append(f"<tr><td>{escape(line_name(line))}</td>{''.join(cells)}</tr>")
    return f"<tbody>{''.join(rows)}</tbody>"


def _best(panel: Panel) -> Any:
    """Where the best means are: of the methods at each level, or of the alphas for each level."""
    if panel.measure is WRONG:
        return panel.means["mean"] < 0
    means = panel.means["mean"]
    return means == means.groupby(level="level").transform("min" if panel.measure.lower_is_better else "max")


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
        [run.experiment, run.table, run.noise, "" if pd.isna(run.level) else tick("level", run.level),
         str(run.seed), run.method, run.setting.strip("{}").replace('"', ""), run.error]
        for run in failed.itertuples()
    ]  # fmt: skip
    table = _sheet(Sheet(f"{len(failed)} runs failed and are in no figure", header, lines))
    heading = '<h2 id="failed"><small>Failed runs</small>What did not finish?</h2>'
    return f'<section class="words">{heading}{table}</section>'
