"""Which runs there are, that they can be stopped at any moment, and that one failure stops nothing."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cellmend_bench import experiments, methods
from cellmend_bench.errors import UnknownNameError
from cellmend_bench.experiments import EXPERIMENTS, Narrow, groups, plan, run_experiments
from cellmend_bench.methods import METHODS, Method, choose, dataset_of
from cellmend_bench.results import Results, Run

WINE = ["fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides", "free_sulfur_dioxide",
        "total_sulfur_dioxide", "density", "pH", "sulphates", "alcohol", "quality"]  # fmt: skip
QUICK = ["Marginals", "OC-SVM", "Isolation Forest"]


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    """A small table of wine's columns; a user's machine has no other."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    table = pd.DataFrame({name: (x + rng.normal(size=150)).round(2) for name in WINE})
    table["wine_type"] = np.where(x > 0, "red", "white")
    folder = tmp_path_factory.mktemp("data")
    with gzip.open(folder / "wine.csv.gz", "wt") as file:
        table.to_csv(file, index=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CELLMEND_DATA", str(folder))
        choose.cache_clear()
        dataset_of.cache_clear()
        yield folder
    choose.cache_clear()
    dataset_of.cache_clear()


@pytest.fixture
def chosen_anew():
    """For a test that changes what a method is."""
    choose.cache_clear()
    yield
    choose.cache_clear()


def narrow(**changes) -> Narrow:
    return Narrow(**{"tables": ["wine"], "levels": [0.05, 0.2], "seeds": 2, "methods": QUICK} | changes)


def run(path, names=("detection",), asked: Narrow | None = None, jobs: int = 1) -> str:
    quiet = {"device": "cpu", "jobs": jobs, "report": lambda done, everything, what: None}
    run_experiments(list(names), Results(path), asked or narrow(), **quiet)
    return path.read_text()


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory) -> str:
    """The results of an experiment that nothing stopped."""
    return run(tmp_path_factory.mktemp("undisturbed") / "results.jsonl")


def test_an_experiment_is_all_its_combinations() -> None:
    runs = plan("alpha", Narrow())
    assert len(runs) == 4 * 5 * 5 * 3
    assert len({one.key for one in runs}) == len(runs)
    assert {one.setting["alpha"] for one in runs} == {0.2, 0.5, 0.8, 0.9, 0.99}


def test_every_experiment_of_the_paper_is_there() -> None:
    names = {"detection", "l2", "repair", "noises", "alpha", "weights", "seeds", "inference", "rows"}
    assert names <= set(EXPERIMENTS)
    assert all(method in METHODS for experiment in EXPERIMENTS.values() for method in experiment.methods)


def test_an_experiment_can_be_narrowed() -> None:
    runs = plan("detection", narrow())
    assert len(runs) == 2 * 2 * 3
    with pytest.raises(UnknownNameError, match="experiment must be one of detection"):
        plan("detektion", narrow())
    with pytest.raises(UnknownNameError, match="one is 'RVEA'"):
        plan("detection", narrow(methods=["RVEA"]))


def test_methods_that_only_ask_otherwise_share_a_fit() -> None:
    asked = narrow(methods=["RVAE", "RVAE nll", "RVAE two-stage"], levels=[0.05], seeds=1)
    (group,) = groups(plan("detection", asked) + plan("inference", asked), "cpu")
    assert [(one.experiment, one.method) for one in group[0]] == [
        ("detection", "RVAE"),
        ("detection", "RVAE nll"),
        ("inference", "RVAE"),
        ("inference", "RVAE two-stage"),
    ]


def test_on_a_gpu_networks_of_one_table_are_made_as_one() -> None:
    runs = plan("detection", narrow(methods=["RVAE", "Marginals"]))
    assert [len(group) for group in groups(runs, "cuda")] == [4, 1, 1, 1, 1]
    assert [len(group) for group in groups(runs, "cpu")] == [1] * 8


@pytest.mark.slow
def test_results_hold_one_line_a_run_with_its_measures(undisturbed: str) -> None:
    rows = [json.loads(line) for line in undisturbed.splitlines()]
    assert len(rows) == 12
    assert all(row["status"] == "ok" for row in rows)
    marginals = next(row for row in rows if row["method"] == "Marginals")
    assert {"cell_avpr", "cell_avpr_real", "cell_avpr_category", "row_avpr", "row_auc", "repair"} <= set(marginals)
    assert "cell_avpr" not in next(row for row in rows if row["method"] == "OC-SVM")


def test_networks_answer_all_that_is_asked_of_one_fit(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(methods.PAPER, "epochs", 2)
    asked = narrow(methods=["RVAE", "RVAE nll", "RVAE one-stage", "RVAE two-stage"], levels=[0.2], seeds=1)
    rows = [json.loads(line) for line in run(tmp_path / "r.jsonl", ["detection", "inference"], asked).splitlines()]
    by_method = {row["method"]: row for row in rows if row["status"] == "ok"}
    assert set(by_method) == set(asked.methods or ())
    assert by_method["RVAE"]["row_avpr"] != by_method["RVAE nll"]["row_avpr"]
    assert by_method["RVAE one-stage"]["cell_avpr"] == by_method["RVAE two-stage"]["cell_avpr"]
    assert by_method["RVAE one-stage"]["repair"] != by_method["RVAE two-stage"]["repair"]


@pytest.mark.slow
def test_finished_runs_are_not_made_again(undisturbed: str, tmp_path, monkeypatch) -> None:
    (tmp_path / "results.jsonl").write_text(undisturbed)
    monkeypatch.setattr(experiments, "make", None)
    assert run(tmp_path / "results.jsonl") == undisturbed


@pytest.mark.slow
def test_a_run_cut_off_at_any_byte_ends_as_an_undisturbed_one(tmp_path) -> None:
    asked = narrow(methods=["OC-SVM"])
    whole = run(tmp_path / "whole.jsonl", asked=asked)
    for cut in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1, len(whole)):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_text(whole[:cut])
        assert run(path, asked=asked) == whole


@pytest.mark.slow
@pytest.mark.process
def test_a_killed_process_ends_as_an_undisturbed_one_when_started_again(tmp_path, data, undisturbed: str) -> None:
    path = tmp_path / "results.jsonl"
    code = f"""
import os, signal
from pathlib import Path
from cellmend_bench.experiments import Narrow, run_experiments
from cellmend_bench.results import Results

def report(done, everything, what):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

asked = Narrow(tables=["wine"], levels=[0.05, 0.2], seeds=2, methods={QUICK})
run_experiments(["detection"], Results(Path({str(path)!r})), asked, device="cpu", jobs=1, report=report)
"""
    killed = subprocess.run([sys.executable, "-c", code], env=os.environ | {"CELLMEND_DATA": str(data)})  # noqa: S603
    assert killed.returncode == -signal.SIGKILL
    assert len(path.read_text().splitlines()) == 3
    assert run(path) == undisturbed


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(tmp_path) -> None:
    asked = narrow(seeds=1, methods=["Isolation Forest"])
    assert run(tmp_path / "two.jsonl", asked=asked, jobs=2) == run(tmp_path / "one.jsonl", asked=asked)


@pytest.mark.slow
def test_a_failing_method_is_recorded_and_stops_nothing(tmp_path, monkeypatch, chosen_anew) -> None:
    def broken(**settings):
        raise ZeroDivisionError("of all things")

    monkeypatch.setitem(METHODS, "OC-SVM", Method(broken))
    rows = [json.loads(line) for line in run(tmp_path / "results.jsonl", asked=narrow(levels=[0.2])).splitlines()]
    found = {row["method"]: row["status"] for row in rows}
    assert found == {"Marginals": "ok", "OC-SVM": "failed", "Isolation Forest": "ok"}
    assert "ZeroDivisionError: of all things" in {row.get("error") for row in rows}


@pytest.mark.slow
def test_failed_runs_are_made_again_when_asked(tmp_path, monkeypatch, chosen_anew) -> None:
    path, asked = tmp_path / "results.jsonl", narrow(levels=[0.2], seeds=1)
    with monkeypatch.context() as patched:
        patched.setitem(METHODS, "OC-SVM", Method(None))  # type: ignore[arg-type]
        run(path, asked=asked)
    assert "failed" in run(path, asked=asked)
    Results(path, retry=True)
    assert "failed" not in run(path, asked=asked)


@pytest.mark.parametrize("asked", [{"tables": ["wien"]}, {"levels": [0.3]}, {"methods": ["CondPred"]}])
def test_nothing_to_run_is_one_sentence(tmp_path, asked) -> None:
    with pytest.raises(UnknownNameError, match="must be something to run"):
        run(tmp_path / "results.jsonl", asked=narrow(**asked))


def test_a_device_that_is_not_there_writes_nothing(tmp_path) -> None:
    with pytest.raises(UnknownNameError, match="device must be cpu"):
        run_experiments(["detection"], Results(tmp_path / "r"), narrow(), device="cudaa", jobs=1, report=print)
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_every_run_has_its_own_table_seed_and_setting(monkeypatch, tmp_path) -> None:
    seen = []

    def recorded(schema, random_state, device, **setting):
        class Detector:
            def fit(self, table):
                seen.append((random_state, tuple(setting.items()), table.to_csv()))
                return self

            def row_scores(self, table):
                return np.zeros(len(table))

        return Detector()

    monkeypatch.setitem(METHODS, "RVAE", Method(recorded))
    for name in ("alpha", "noises"):
        run(tmp_path / "results.jsonl", [name], narrow(methods=["RVAE"]))
    assert len(seen) == 5 * 2 * 2 + 5 * 2 * 2
    assert {setting for _, setting, _ in seen} >= {(("alpha", alpha),) for alpha in experiments.ALPHAS}
    assert {seed for seed, _, _ in seen} == {0, 1}
    # Of a category of two levels beta 0.5 and 0.8 leave the same other one: four kinds of noise here, not five.
    assert len({table for _, _, table in seen}) == 2 * 2 + 4 * 2 * 2


def test_a_missing_table_is_one_sentence_and_stops_nothing(tmp_path) -> None:
    asked = Narrow(tables=["abda_speech", "abda_kdd"], seeds=1)
    rows = [json.loads(line) for line in run(tmp_path / "results.jsonl", ["rows"], asked).splitlines()]
    assert {row["status"] for row in rows} == {"failed"}
    assert all("CELLMEND_DATA" in row["error"] for row in rows)


@pytest.mark.slow
def test_what_another_experiment_has_measured_is_taken_over(tmp_path, monkeypatch) -> None:
    path = tmp_path / "results.jsonl"
    asked = narrow(levels=[0.2], seeds=1, methods=["Marginals"])
    run(path, asked=asked)
    monkeypatch.setattr(experiments, "make", None)
    rows = [json.loads(line) for line in run(path, ["repair"], asked).splitlines()]
    assert [row["experiment"] for row in rows].count("repair") == 1


class Labelled:
    """Finds errors as well as its quality says; learns from all rows and is asked about a tenth."""

    def __init__(self, quality: float) -> None:
        self.quality = quality

    def fit(self, table):
        assert len(table) == 150
        self.learned_from = set(table.index)
        return self

    def cell_scores(self, table):
        assert len(table) == 15
        assert self.learned_from.issuperset(table.index)
        clean = dataset_of("wine").frame.loc[table.index]
        return self.quality * (table.to_numpy() != clean.to_numpy()) + np.random.default_rng(0).random(table.shape)


@pytest.fixture
def labelled(monkeypatch):
    grid = tuple({"quality": quality} for quality in (0.0, np.nan, 5.0, 0.1))
    made = Method(lambda schema, random_state, device, quality: Labelled(quality), grid=grid)
    monkeypatch.setitem(METHODS, "test", made)
    monkeypatch.setattr(methods, "VALIDATION_LEVEL", 0.9)


def test_a_setting_is_chosen_by_labels_that_only_the_choice_sees(labelled) -> None:
    assert choose("wine", "test", "cpu") == {"quality": 5.0}


@pytest.mark.slow
def test_a_choice_is_taken_from_the_results_if_it_stands_there(tmp_path, monkeypatch) -> None:
    asked, path = narrow(methods=["VAE-L2"], levels=[0.2], seeds=1), tmp_path / "r.jsonl"
    monkeypatch.setitem(methods.PAPER, "epochs", 1)
    first = run(path, asked=asked)
    choice = json.loads(first)["choice"]
    monkeypatch.setattr(experiments, "choose", None)
    rows = [json.loads(line) for line in run(path, asked=narrow(methods=["VAE-L2"], levels=[0.2])).splitlines()]
    assert [row["choice"] for row in rows] == [choice, choice]


def test_a_run_is_found_by_all_that_it_is() -> None:
    one = Run("detection", "wine", "gaussian", 0.05, 0, "RVAE")
    assert one.key != Run("detection", "wine", "gaussian", 0.05, 0, "RVAE", {"alpha": 0.5}).key
