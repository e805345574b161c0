"""Natural extremes: where the line through the usual rows leads to a number beyond nearly all others."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from cellmend import CellMender
from cellmend.model.encoding import Cells, TableEncoder
from cellmend.model.extremes import NATURAL, Extremes
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Schema


def cars(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Price, power and weight follow from one thing, prices over powers of ten; row 5 is the dearest by far."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows)
    size[5] = 5.0
    own = rng.normal(0, 0.1, (3, rows))
    return pd.DataFrame(
        {"price": 2e4 * np.exp(size + own[0]), "power": 100 + 30 * (size + own[1]), "weight": own[2] + size}
    )


def learned(table: pd.DataFrame) -> tuple[Extremes, Cells]:
    encoder = TableEncoder.fit(Schema.from_dict(dict.fromkeys(table, "real")), read_typed(table), robust=True)
    cells = encoder.encode(read_typed(table))
    return Extremes.learn(encoder.columns, cells), cells


def test_an_extreme_row_that_hangs_together_is_excused_and_a_single_extreme_is_not() -> None:
    table = cars()
    table.loc[9, "power"] = table["power"].max()
    extremes, cells = learned(table)
    before = torch.full(cells.values.shape, -50.0, dtype=torch.float64)
    after = extremes.excuse(cells, before)
    assert (after[5] > -10).all()
    assert after[9, 1] < -40
    assert after[50].tolist() == [-50.0] * 3, "within the usual range nothing is said"


def test_a_number_is_borne_out_by_other_extremes_of_its_row_though_no_line_comes_near_it() -> None:
    table = cars()
    table.loc[9, "power"] = table["power"].max()
    table.loc[5, "power"] *= 4
    moderate = int(table["weight"].sub(table["weight"].quantile(0.9)).abs().argmin())
    table.loc[moderate, "power"] *= 8
    extremes, cells = learned(table)
    borne_out = extremes.borne_out(cells)
    assert borne_out[5].all()
    assert not borne_out[moderate].any(), "the rest of its row is usual"
    assert not borne_out[9].any()
    assert not borne_out[50].any()


def test_what_a_line_says_is_the_density_of_a_gaussian_around_it() -> None:
    """Of columns that do not need logarithms, by the definition."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 1))
    table = pd.DataFrame(x + rng.normal(0, 0.3, (500, 3)), columns=["a", "b", "c"])
    table.iloc[7] = [4.0, 4.2, 3.9]
    extremes, cells = learned(table)
    assert extremes.origin == (None, None, None)
    scaled = (cells.values[7].double().numpy() - np.array(extremes.middle)) / np.array(extremes.spread)
    expected = np.array(extremes.slopes)[0] @ scaled
    width = 1.5 * extremes.widths[0] * np.sqrt(1 + (scaled**2).sum() / 500)
    density = norm.pdf(scaled[0], expected, width) / extremes.spread[0]
    after = extremes.excuse(cells, torch.full(cells.values.shape, -200.0, dtype=torch.float64))
    assert float(after[7, 0]) == pytest.approx(np.log(NATURAL * density), abs=1e-6)


def test_an_extreme_to_which_no_line_leads_is_not_excused_however_loose_the_line() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(500, 1)) + rng.normal(0, 1.0, (500, 3)), columns=["a", "b", "c"])
    table.iloc[9] = [4.0, 0.0, 0.0]
    extremes, cells = learned(table)
    after = extremes.excuse(cells, torch.full(cells.values.shape, -50.0, dtype=torch.float64))
    assert after[9].tolist() == [-50.0] * 3


def test_gaps_and_few_columns_say_nothing() -> None:
    table = cars()[["price", "power"]]
    extremes, cells = learned(table)
    assert extremes.places == ()
    before = torch.zeros(cells.values.shape, dtype=torch.float64)
    assert torch.equal(extremes.excuse(cells, before), before)
    gaps = cars()
    gaps.loc[5, "price"] = np.nan
    extremes, cells = learned(gaps)
    assert not cells.observed[5, 0]
    assert extremes.excuse(cells, torch.full((400, 3), -50.0, dtype=torch.float64))[5, 0] == -50.0


def test_a_row_is_excused_alike_wherever_it_stands() -> None:
    extremes, cells = learned(cars(600))
    before = torch.full(cells.values.shape, -50.0, dtype=torch.float64)
    whole = extremes.excuse(cells, before)
    pieces = [extremes.excuse(cells[first : first + 7], before[first : first + 7]) for first in range(0, 600, 7)]
    assert torch.equal(whole, torch.cat(pieces))


def test_extremes_come_back_from_a_file_as_they_were() -> None:
    extremes, _ = learned(cars())
    assert Extremes.from_json(json.loads(json.dumps(asdict(extremes)))) == extremes
    assert Extremes.from_json(None).places == ()


@pytest.mark.slow
def test_the_dearest_car_is_not_repaired_and_a_wrong_one_is() -> None:
    table = cars(300)
    table.loc[20, "power"] = 260.0
    found = CellMender(epochs=40, random_state=0).fit(table).findings(table)
    assert 5 not in set(found["row"])
    assert 20 in set(found["row"])


def test_a_rare_level_that_comes_with_far_numbers_bears_them_out() -> None:
    """A timeout takes long; a slow answer without one does not, nor does a quick timeout, nor one slow page in twenty
    that were not found."""
    rng = np.random.default_rng(0)
    status = np.where(np.arange(1000) % 50 == 0, 503, 200)
    slow = np.where(status == 503, 3000.0, 100.0) + rng.normal(0, 10, 1000)
    status[np.arange(1000) % 50 == 1] = 404
    slow[1] = 3000.0
    table = read_typed(pd.DataFrame({"status": status.astype(str), "ms": slow}))
    encoder = TableEncoder.fit(Schema.from_dict({"status": "category", "ms": "real"}), table)
    cells = encoder.encode(table)
    extremes = Extremes.learn(encoder.columns, cells)
    again = Extremes.from_json(json.loads(json.dumps(asdict(extremes))))
    assert again == extremes
    borne_out = again.borne_out(cells).numpy()
    np.testing.assert_array_equal(borne_out, np.repeat((status == 503)[:, None], 2, axis=1))
    others = read_typed(pd.DataFrame({"status": ["200", "503"], "ms": [3000.0, 100.0]}))
    assert not again.borne_out(encoder.encode(others)).any()
