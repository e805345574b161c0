"""What a review found wrong once, seen as a user would see it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender
from cellmend.findings.contradictions import Contradiction, _apart

SMALL = {"epochs": 5, "hidden_dim": 16, "latent_dim": 4, "random_state": 0}
ROWS = 200


def towns() -> pd.DataFrame:
    """A column of numbers that another one decides."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Ulm", "Bonn", "Kiel"], ROWS)
    zips = pd.Series(city).map({"Ulm": 89073, "Bonn": 53111, "Kiel": 24103})
    return pd.DataFrame({"city": city, "x": rng.normal(size=ROWS).round(2), "zip": zips})


def test_a_column_that_comes_as_text_contradicts_nothing() -> None:
    found = CellMender(**SMALL).fit(towns()).findings(towns().astype({"zip": str}))
    assert found["contradiction"].notna().sum() == 0


def test_a_taught_model_can_be_asked_by_the_methods_of_the_paper() -> None:
    table = towns()
    mender = CellMender(**SMALL).fit(table)
    decisions = [
        {"row": row, "column": "x", "value": table.x[row], "verdict": verdict}
        for row, verdict in ((3, "wrong"), (4, "right"))
    ]
    mender.learn(table, decisions)
    suspicion = mender.set_params(repair_method="map").cell_suspicion(table)
    assert (suspicion.x[3], suspicion.x[4]) == (1.0, 0.0)


def test_a_level_that_reads_like_a_placeholder_may_be_what_was_meant() -> None:
    table = towns().assign(status=np.random.default_rng(1).choice(["pending", "shipped", "returned"], ROWS))
    table.loc[30, "status"] = "pendng"
    found = CellMender(**SMALL).fit(table).findings(table)
    assert found[(found.row == 30) & (found.column == "status")].repair.tolist() == ["pending"]


def test_a_contradiction_that_is_open_goes_before_one_that_is_explained() -> None:
    explained = Contradiction(((0, 0), (0, 1), (0, 2)), (0.99, 0.1, 0.1), 0.99, "arithmetic", ("a",), ("p", "q", "t"))
    still_open = Contradiction(((0, 2), (0, 3), (0, 4)), (0.1, 0.1, 0.1), 0.92, "arithmetic", ("b",), ("t", "x", "g"))
    assert _apart([explained, still_open]) == [still_open]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_the_threshold_of_predict_means_the_same_after_an_update(monkeypatch) -> None:
    def streets(seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=ROWS).round(2)
        table = pd.DataFrame({"x": x, "y": (2 * x + 0.1 * rng.normal(size=ROWS)).round(2)})
        for number in range(4):
            names = [f"{rng.choice(['Main', 'Park', 'Hill'])} Street {rng.integers(1, 999)}" for _ in range(ROWS)]
            for row in rng.integers(0, ROWS, 12):
                names[row] = names[row].replace("Street", "Stret")
            table[f"street{number}"] = names
        return table

    monkeypatch.setattr("cellmend.model.update.RECENT", ROWS)  # the new rows alone decide
    mender = CellMender(**SMALL).fit(streets(0)).update(streets(1))
    assert (mender.predict(streets(1)) == -1).mean() < 0.1


def test_impute_fills_what_stands_for_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS).round(2)
    table = pd.DataFrame({"x": x, "size": np.where(x > 0, "large", "small"), "y": (2 * x).round(1)}).astype(str)
    table.loc[[5, 9], "size"] = "TBD"
    mender = CellMender(**SMALL | {"epochs": 40}).fit(table)
    assert mender.repair(table).loc[[5, 9], "size"].tolist() == ["TBD", "TBD"]
    assert set(mender.repair(table, impute=True).loc[[5, 9], "size"]) <= {"large", "small"}


def test_a_first_look_leaves_each_column_something_to_learn_from() -> None:
    """Most cells hold words that are read as gaps; the few numbers look wrong, and the column must not end up empty."""
    rng = np.random.default_rng(0)
    said = ["NO SPECIAL FLOOD HAZARD AREAS"] * 130 + ["12000"] * 27 + ["6000"] * 8 + [""] * 235
    scale = rng.choice(["6000", "12000", "24000"], 400)
    table = pd.DataFrame({"reason": said, "scale": scale, "panel": [f"{n:04d}C" for n in rng.integers(0, 99, 400)]})
    assert CellMender(**SMALL).fit(table).cell_suspicion(table).shape == table.shape
