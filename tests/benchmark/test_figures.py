"""The report on a small results file made here: numbers by hand, every figure, and what killed runs leave behind."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from cellmend_bench.errors import ResultsError
from cellmend_bench.page import write_report
from cellmend_bench.summaries import averages, p_values, read_results

CHARTS = [
    *("detection", "detection-tables", "detection-kinds", "l2", "repair", "repair-kinds", "repair-tables"),
    *("noises", "alpha", "weights", "seeds", "inference", "inference-tables"),
    *("default", "default-tables", "reliability", "unseen-noises", "unseen-tables"),
]


def a_run(experiment: str = "detection", **changes: Any) -> dict[str, Any]:
    """One line of a results file; wine, 5 % of the rows, seed 0, RVAE unless told."""
    run: dict[str, Any] = {"experiment": experiment, "table": "wine", "noise": "gaussian", "level": 0.05, "seed": 0}
    return run | {"method": "RVAE", "setting": {}, "status": "ok", "error": None, "seconds": 1.0} | changes


def measured(value: float) -> dict[str, float]:
    kinds = {f"{name}_{kind}": value for name in ("cell_avpr", "repair") for kind in ("real", "category")}
    return {"cell_avpr": value, "row_avpr": value, "repair": value, **kinds}


def calibrated(seed: int) -> dict[str, Any]:
    """Four bins of suspicion: cells, sum of suspicion, wrong cells."""
    bins = [[100, 10, 8 + seed], [10, 4, 3], [10, 6, 7], [20, 18, 19]]
    return {"calibration_error": 0.01, "false_share": 0.1 + seed / 10, "found_share": 0.8, "reliability": bins}


def some_of_everything() -> list[dict[str, Any]]:
    """Two seeds of all experiments."""
    runs = []
    for seed in (0, 1):
        for name, methods in {
            "detection": ["RVAE", "OC-SVM + Marginals"],
            "l2": ["RVAE nll", "VAE", "VAE-L2"],
            "repair": ["RVAE", "VAE"],
            "weights": ["RVAE", "RVAE-AVI"],
            "seeds": ["RVAE", "CondPred", "VAE-L2"],
            "inference": ["RVAE", "RVAE one-stage", "RVAE two-stage"],
        }.items():
            runs += [a_run(name, seed=seed, method=m, **measured(0.5 + seed / 10 + k)) for k, m in enumerate(methods)]
        runs += [a_run("noises", seed=seed, noise=noise, **measured(0.4)) for noise in ("lognormal", "mixture")]
        runs += [a_run("alpha", seed=seed, setting={"alpha": alpha}, **measured(alpha)) for alpha in (0.2, 0.8)]
        for name in ("default", "unseen-noises", "unseen-tables"):
            runs += [a_run(name, seed=seed, method=m, **measured(0.6)) for m in ("RVAE", "LightGBM")]
            runs += [a_run(name, seed=seed, method="cellmend", **measured(0.7), **calibrated(seed))]
        sets = ("abda_letter", "abda_breast")
        runs += [a_run("rows", table=t, noise="", level=None, seed=seed, row_auc=0.8 + seed / 10) for t in sets]
    return runs


def write_results(folder: Path, runs: list[dict[str, Any]], end: str = "\n") -> Path:
    path = folder / "results.jsonl"
    path.write_text("\n".join(json.dumps(run) for run in runs) + end, encoding="utf-8")
    return path


def report(folder: Path, runs: list[dict[str, Any]], end: str = "\n") -> str:
    return write_report(write_results(folder, runs, end), folder / "out").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on all nine experiments."""
    folder = tmp_path_factory.mktemp("everything")
    return write_report(write_results(folder, some_of_everything()), folder / "out")


def cells(page: str, first: str) -> list[str]:
    """The cells of the first table row that begins with this text."""
    row = re.search(rf"<tr><td>{re.escape(first)}</td>(.*?)</tr>", page)
    assert row, f"no row {first!r}"
    return [re.sub("<[^>]+>", "", cell) for cell in re.findall("<td>(.*?)</td>", row[1])]


@pytest.mark.slow
def test_every_figure_is_there_as_png_and_svg_and_in_the_page(everything: Path) -> None:
    page = everything.read_text(encoding="utf-8")
    names = {path.name for path in everything.parent.iterdir()}
    assert names == {"report.html", *(f"{chart}.{kind}" for chart in CHARTS for kind in ("png", "svg"))}
    assert all((everything.parent / f"{chart}.png").read_bytes().startswith(b"\x89PNG") for chart in CHARTS)
    assert page.count("<svg ") == len(CHARTS)
    assert page.count("<h2 ") == 12


@pytest.mark.slow
def test_the_page_needs_no_network_runs_no_script_and_has_no_id_twice(everything: Path) -> None:
    page = everything.read_text(encoding="utf-8")
    ids: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in {"script", "link", "img", "iframe"}
            ids.extend(value or "" for name, value in attrs if name == "id")
            assert not [
                v for name, v in attrs if name in {"src", "href", "xlink:href"} and not (v or "").startswith("#")
            ]

    Reader().feed(page)
    assert "detection" in ids
    assert len(ids) == len(set(ids))
    assert len(page) < 5_000_000


def test_an_average_is_taken_over_tables_for_each_seed_first(tmp_path: Path) -> None:
    values = {("wine", 0): 0.2, ("adult", 0): 0.4, ("wine", 1): 0.4, ("adult", 1): 0.8}
    runs = [a_run("l2", table=t, seed=s, row_avpr=v, cell_avpr=v / 2) for (t, s), v in values.items()]
    page = report(tmp_path, runs)
    # seeds 0.3 and 0.6: mean 0.45, sd 0.3 / sqrt(2)
    assert cells(page, "RVAE") == ["0.450 ± 0.212"]
    assert "0.225 ± 0.106" in page
    assert "average of 2 tables" in page
    assert "standard deviation over 2 seeds" in page


def test_a_method_without_a_table_is_left_out_of_the_average_and_named(tmp_path: Path) -> None:
    runs = [a_run("l2", table=t, row_avpr=0.5) for t in ("wine", "letter")]
    page = report(tmp_path, [*runs, a_run("l2", method="VAE", row_avpr=0.9)])
    assert cells(page, "RVAE") == ["0.500"]
    assert "<tr><td>VAE</td>" not in page
    assert "VAE is left out of the average row AVPR: not run on Letter." in page
    assert "One seed, so there are no error bars." in page


def test_a_seed_without_a_table_does_not_count() -> None:
    runs = [a_run(table=t, seed=s, row_avpr=v) for t, s, v in [("wine", 0, 0.2), ("adult", 0, 0.4), ("wine", 1, 0.9)]]
    found = averages(pd.DataFrame(runs), "row_avpr", ["method", "level"]).loc[("RVAE", 0.05)]
    assert found["mean"] == pytest.approx(0.3)
    assert found["seeds"] == 1
    assert math.isnan(found["sd"])


def test_a_table_whose_columns_are_of_one_kind_is_not_missed_in_the_other(tmp_path: Path) -> None:
    runs = [a_run(cell_avpr_real=0.6, cell_avpr_category=0.2), a_run(table="letter", cell_avpr_category=0.4)]
    page = report(tmp_path, runs)
    assert "cell AVPR, numbers, Wine" in page
    assert "cell AVPR, categories, average of 2 tables" in page
    assert "left out" not in page


def test_p_values_are_those_of_the_two_sample_t_test() -> None:
    ours, theirs = [0.7, 0.9], [0.4, 0.6]
    runs = [a_run("seeds", seed=s, cell_avpr=v) for s, v in enumerate(ours)]
    runs += [a_run("seeds", seed=s, method="VAE-L2", cell_avpr=v) for s, v in enumerate(theirs)]
    t = (0.8 - 0.5) / 0.1 / math.sqrt(2)  # pooled variance 0.02, so the difference has deviation sqrt(0.02)
    expected = 1 - t / math.sqrt(t * t + 2)  # Student's distribution with two degrees of freedom
    assert p_values(pd.DataFrame(runs), "cell_avpr", "RVAE", "VAE-L2") == [pytest.approx(expected)]
    assert p_values(pd.DataFrame(runs), "cell_avpr", "RVAE", "CondPred") == []


def test_p_values_are_averaged_over_levels_and_stand_next_to_the_papers(tmp_path: Path) -> None:
    def t_test(seeds: dict[float, list[float]], method: str) -> list[dict[str, Any]]:
        return [
            a_run("seeds", level=level, seed=s, method=method, row_avpr=v)
            for level, values in seeds.items()
            for s, v in enumerate(values)
        ]

    runs = t_test({0.05: [0.7, 0.9], 0.1: [0.7, 0.9]}, "RVAE")
    page = report(tmp_path, runs + t_test({0.05: [0.4, 0.6], 0.1: [0.7, 0.9]}, "CondPred"))
    t = 3 / math.sqrt(2)
    average = (1 - t / math.sqrt(t * t + 2) + 1) / 2
    assert cells(page[page.index("Average p-values") :], "row AVPR") == [f"{average:.3f} (2)", "0.040", "–", "0.227"]


@pytest.mark.slow
def test_suspicion_is_compared_with_what_was_wrong(everything: Path) -> None:
    """By hand: |20 - 17| + |8 - 6| + |12 - 14| + |36 - 38| of 280 cells; above one half 36 of 40 suspected."""
    page = everything.read_text(encoding="utf-8")
    assert "expected calibration error 0.0321" in page
    assert "the mean suspicion is 0.900, and 0.950 are wrong" in page
    assert "<td>0.150 ± 0.071</td>" in page  # false alarms of two seeds
    assert "<td>0.085</td>" in page  # wrong of the first bin: 17 of 200


@pytest.mark.slow
def test_row_auc_stands_next_to_the_published_numbers(everything: Path) -> None:
    page = everything.read_text(encoding="utf-8")
    page = page[page.index('id="rows"') :]
    assert cells(page, "Letter") == ["0.850 ± 0.071", "0.836", "0.704"]
    assert cells(page, "Breast") == ["0.850 ± 0.071", "0.982", "0.984"]
    paper = [f"{(0.8359 + 0.9815) / 2:.3f}", f"{(0.7036 + 0.9836) / 2:.3f}"]
    assert cells(page, "Average") == ["0.850 ± 0.071", *paper]
    assert "not run: Pen Global" in page


@pytest.mark.slow
def test_the_best_alpha_of_each_level_is_bold(everything: Path) -> None:
    page = everything.read_text(encoding="utf-8")
    block = page[page.index('id="alpha"') : page.index('id="weights"')]
    assert cells(block, "5 % of rows") == ["0.200 ± 0.000", "0.800 ± 0.000"]
    assert block.count("<b>0.800 ± 0.000</b>") == 2  # cell and row AVPR
    assert block.count("<b>0.200 ± 0.000</b>") == 1  # repair error


@pytest.mark.slow
def test_an_error_that_explodes_gets_a_logarithmic_axis_and_a_word(tmp_path: Path) -> None:
    page = report(tmp_path, [a_run("repair", repair=0.5), a_run("repair", method="VAE", repair=2200.0)])
    assert "Logarithmic axis where errors explode; the worst is 2.2e+03, of VAE." in page


def test_a_half_last_line_is_ignored_and_a_broken_one_before_it_is_named(tmp_path: Path) -> None:
    path = write_results(tmp_path, [a_run(row_avpr=0.5)], end='\n{"experiment": "detec')
    assert read_results(path)[1] == []
    path.write_text('{"experi\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    runs, remarks = read_results(path)
    assert len(runs) == 1
    assert remarks == ["Lines that could not be read: 1."]


def test_a_line_cut_in_the_middle_of_a_letter_is_ignored(tmp_path: Path) -> None:
    path = write_results(tmp_path, [a_run(row_avpr=0.5)])
    path.write_bytes(path.read_bytes() + '{"error": "é'.encode()[:-1])
    assert len(read_results(path)[0]) == 1


def test_a_line_with_a_word_for_a_number_is_named(tmp_path: Path) -> None:
    path = write_results(tmp_path, [a_run(row_avpr="high"), a_run(row_avpr=0.5)])
    assert read_results(path)[1] == ["Lines that could not be read: 1."]


def test_an_infinite_error_is_no_result(tmp_path: Path) -> None:
    page = report(tmp_path, [a_run("repair", repair=0.5), a_run("repair", method="VAE", repair=math.inf)])
    assert cells(page, "RVAE") == ["0.500"]
    assert "<tr><td>VAE</td>" not in page


def test_failed_runs_are_listed_with_their_error_and_are_in_no_average(tmp_path: Path) -> None:
    failed = a_run("l2", seed=1, status="failed", error="out of memory", row_avpr=0.0)
    page = report(tmp_path, [a_run("l2", row_avpr=0.5), failed])
    assert cells(page, "RVAE") == ["0.500"]
    assert cells(page, "l2") == ["wine", "gaussian", "5 %", "1", "RVAE", "", "out of memory"]
    assert "2 runs, 1 of them failed." in page


def test_a_run_that_was_repeated_counts_once_as_it_ended(tmp_path: Path) -> None:
    page = report(tmp_path, [a_run("l2", status="failed", error="killed"), a_run("l2", row_avpr=0.5)])
    assert cells(page, "RVAE") == ["0.500"]
    assert "1 runs, none failed." in page


def test_an_experiment_of_which_all_runs_failed_says_so(tmp_path: Path) -> None:
    runs = [a_run("rows", noise="", level=None, status="failed", error="no file"), a_run("seeds", status="failed")]
    assert report(tmp_path, runs).count("No run has finished.") == 2


def test_several_settings_of_a_method_on_the_same_data_are_told_apart(tmp_path: Path) -> None:
    page = report(tmp_path, [a_run("l2", setting={"weight_decay": w}, row_avpr=w / 10) for w in (1.0, 5.0)])
    assert cells(page, "RVAE weight_decay: 1.0") == ["0.100"]
    assert cells(page, "RVAE weight_decay: 5.0") == ["0.500"]


def test_what_comes_from_the_data_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>--><b>$x_"
    failed = a_run("l2", method=evil, status="failed", error=evil, seed=1)
    page = report(tmp_path, [a_run("l2", method=evil, table=evil, row_avpr=0.5), failed, a_run(evil)])
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;--&gt;&lt;b&gt;$x_") >= 4
    assert "Experiments this report does not know" in page


def test_files_that_are_not_ours_stay_as_they_are(tmp_path: Path) -> None:
    results = write_results(tmp_path, [a_run("l2", row_avpr=0.5)])
    for name in ("report.html", "l2.png"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("my own work")
        with pytest.raises(FileExistsError, match=r"is not ours\. Hint: choose another folder"):
            write_report(results, folder)
        assert [path.read_text() for path in folder.iterdir()] == ["my own work"]


def test_our_own_report_is_replaced_and_other_files_are_left_alone(tmp_path: Path) -> None:
    report(tmp_path, [a_run("l2", row_avpr=0.5)])
    (tmp_path / "out" / "notes.txt").write_text("my own work")
    page = report(tmp_path, [a_run("l2", row_avpr=0.25)])
    assert cells(page, "RVAE") == ["0.250"]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["l2.png", "l2.svg", "notes.txt", "report.html"]
    assert (tmp_path / "out" / "notes.txt").read_text() == "my own work"


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    runs = [a_run("l2", row_avpr=0.5)]
    assert report(tmp_path, runs) == report(tmp_path, runs)


def test_a_file_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="must hold one JSON object per line"):
        write_report(write_results(tmp_path, [], end="[1]\nnull\n"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_layouts_logs_dirt_and_decisions_are_tables_of_means(tmp_path: Path) -> None:
    """Their measures are no measures of the paper: 0.5 and 0.7 have the mean 0.6."""
    layouts = [a_run("layouts", seed=s, all_cells_ap=0.5 + s / 5, found_share=0.2, false_share=0.1) for s in (0, 1)]
    found = {"precision": 0.9, "recall": 0.4, "best_f1": 0.6, "repaired_right": 0.3, "found_by_kind": {"typo": [1, 2]}}
    dirt = [a_run("dirt", table=f"some/{name}", level=None, f1=f1, **found) for name, f1 in (("a", 0.5), ("b", 0.7))]
    answered = {f"{name} {when}": 0.25 for name in ("f1", "repair_f1", "precision") for when in ("without", "5 rows")}
    page = report(tmp_path, [*layouts, *dirt, a_run("log", table="log", level=None, f1=0.8, **found),
                             a_run("decisions", table="some/a", level=None, **answered)])  # fmt: skip
    assert cells(page, "gaussian") == ["0.05", "0.600", "0.200", "0.100"]
    assert cells(page[page.index('id="dirt"') :], "some") == ["2", "0.900", "0.400", "0.600", "0.600", "0.300"]
    assert cells(page[page.index('id="decisions"') :], "some") == ["1", *["0.250"] * 6]
    assert "f1 5 rows" in page
    assert cells(page, "log")[3] == "0.800"
