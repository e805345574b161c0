"""Learning new rows: levels that grow, and what was learned before is not lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from cellmend import CellMender, SettingError, load
from cellmend.errors import TrainingError
from cellmend.evaluation.evaluation import cell_avprs
from cellmend.model.columns import EncodedColumn, LevelColumn, RealColumn
from cellmend.model.encoding import Cells
from cellmend.model.network import RVAE, Shape, grow, stack
from cellmend.model.update import remember
from tests.conftest import KNOTS_AT, PUBLISHED, SMALL

SCHEMA = {"size": "real", "weight": "real", "arm": "real", "city": "category", "land": "category", "code": "category"}
LANDS = {"Rome": "Italy", "Pisa": "Tuscany", "Oslo": "Norway", "Bergen": "Hordaland", "Lima": "Peru", "Cusco": "Inca"}


def people(rows: int, cities: list[str], slope: float, seed: int) -> pd.DataFrame:
    """Size, weight and arm tell each other, by a slope, and so do city, land and code."""
    rng = np.random.default_rng(seed)
    size, city = rng.normal(170, 10, rows), rng.choice(cities, rows)
    table = pd.DataFrame({"size": size.round(1), "weight": (slope * size + rng.normal(0, 1, rows)).round(1)})
    table["arm"] = (0.4 * size + rng.normal(0, 0.5, rows)).round(1)
    return table.assign(city=city, land=[LANDS[name] for name in city], code=[name[:2] for name in city])


OLD, NEW = (["Rome", "Pisa", "Oslo", "Bergen"], 0.5), (["Lima", "Cusco"], 0.9)


def spoiled(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """With every column wrong in 3 % of the rows: the cell of another row."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(table.shape) < 0.03
    other = table.iloc[rng.permutation(len(table))].reset_index(drop=True)
    dirty = table.mask(wrong, other)
    return dirty, (dirty != table).to_numpy()


@pytest.fixture(scope="module")
def mender() -> CellMender:
    """Tests must not change it: they copy it by `again`."""
    settings = SMALL | {"epochs": 40, "hidden_dim": 64}
    return CellMender(**settings, schema=SCHEMA).fit(spoiled(people(1000, *OLD, seed=0), 0)[0])


@pytest.fixture
def again(mender: CellMender, tmp_path) -> CellMender:
    mender.save(tmp_path / "m")
    return load(tmp_path / "m")


def quality(mender: CellMender, table: pd.DataFrame, wrong: np.ndarray) -> float:
    """By rows alone: a whole table would tell much of what is new in it."""
    return float(np.nanmean(cell_avprs(mender.score_rows(table)[0], wrong)))


@pytest.mark.slow
def test_new_rows_are_learned_and_old_ones_not_forgotten(again: CellMender) -> None:
    old, new = spoiled(people(1000, *OLD, seed=5), 5), spoiled(people(800, *NEW, seed=6), 6)
    before = quality(again, *old), quality(again, *new)
    again.update(new[0])
    after = quality(again, *old), quality(again, *new)
    assert after[0] > before[0] - 0.05
    assert after[1] > before[1] + 0.3


@pytest.mark.slow
def test_without_remembered_rows_the_old_ones_are_forgotten(again: CellMender, monkeypatch) -> None:
    old = spoiled(people(1000, *OLD, seed=5), 5)
    before = quality(again, *old)
    monkeypatch.setattr("cellmend.model.update.REMEMBERED", (0, 0))
    again.update(spoiled(people(800, *NEW, seed=6), 6)[0])
    assert quality(again, *old) < before - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("keep_rows", [0, 30, 5000])
def test_rows_are_kept_only_if_asked_and_each_as_likely_as_any_other(keep_rows: int, tmp_path) -> None:
    mender = CellMender(**(SMALL | {"epochs": 1}), schema=SCHEMA, keep_rows=keep_rows).fit(people(300, *OLD, seed=0))
    assert len(mender.model_.replay.cells) == min(keep_rows, 300)
    mender.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    torch.testing.assert_close(loaded.model_.replay.cells.values, mender.model_.replay.cells.values)
    assert torch.equal(loaded.model_.replay.cells.observed, mender.model_.replay.cells.observed)
    loaded.update(people(150, *NEW, seed=1))
    is_new = loaded.model_.replay.cells.values[:, -1] >= 4
    assert (len(is_new), int(is_new.sum())) == {0: (0, 0), 30: (30, 10), 5000: (450, 150)}[keep_rows]
    assert loaded.model_.replay.stands_for == 450


@pytest.mark.slow
def test_imagined_rows_are_like_those_that_were_learned(mender: CellMender) -> None:
    imagined = remember(mender.model_, 1000)
    assert len(imagined) == 2000
    city, land = (next(c for c in mender.encoder_.columns if c.name == name) for name in ("city", "land"))
    places = [mender.encoder_.columns.index(column) for column in (city, land)]
    pairs = [(city.levels[int(a)], land.levels[int(b)]) for a, b in imagined.values[:, places].tolist()]
    assert np.mean([LANDS[a] == b for a, b in pairs]) > 0.6, "by chance a quarter"


@pytest.mark.slow
def test_new_levels_are_known_after_an_update_and_rare_or_misspelled_ones_are_not(again: CellMender) -> None:
    new = people(300, *NEW, seed=6)
    new.loc[:3, "city"] = "Paris"
    new.loc[10:14, "city"] = "Bergem"
    again.update(new)
    city, land = (next(c for c in again.encoder_.columns if c.name == name) for name in ("city", "land"))
    assert city.levels == ("Bergen", "Oslo", "Pisa", "Rome", "Cusco", "Lima")
    assert land.levels == ("Hordaland", "Italy", "Norway", "Tuscany", "Inca", "Peru")
    assert list(again.reconstruct_proba(new)["land"].columns) == list(land.levels)
    assert {"Lima", "Cusco"} <= set(again.model_.reader.checks.texts["city"].counts)


@pytest.mark.slow
def test_levels_that_the_schema_declares_stay() -> None:
    schema = SCHEMA | {"land": {"kind": "category", "levels": list(LANDS.values())[:4]}}
    mender = CellMender(**(SMALL | {"epochs": 1}), schema=schema).fit(people(100, *OLD, seed=0))
    mender.update(people(100, *NEW, seed=1))
    assert next(c for c in mender.encoder_.columns if c.name == "land").levels == tuple(LANDS.values())[:4]


@pytest.mark.slow
def test_an_update_is_repeatable_and_survives_the_file(again: CellMender, mender: CellMender, tmp_path) -> None:
    new = spoiled(people(200, *NEW, seed=6), 6)[0]
    again.set_params(epochs=2).update(new).save(tmp_path / "updated")
    loaded = load(tmp_path / "updated")
    np.testing.assert_array_equal(loaded.cell_scores(new), again.cell_scores(new))
    assert (loaded.model_.profile, loaded.model_.calibration) == (again.model_.profile, again.model_.calibration)
    repeated = load(tmp_path / "m").set_params(epochs=2).update(new)
    np.testing.assert_array_equal(repeated.cell_scores(new), again.cell_scores(new))
    assert len(again.history_) == len(mender.history_) + 2
    loaded.update(new)
    assert len(loaded.history_) == len(mender.history_) + 4


@pytest.mark.slow
def test_a_table_that_was_learned_has_not_moved(again: CellMender) -> None:
    new = people(2500, *NEW, seed=6)
    assert set(again.moved_columns(new)) == {"weight", "city", "land", "code"}
    again.set_params(epochs=1).update(new)
    assert again.moved_columns(people(500, *NEW, seed=7)) == {}


@pytest.mark.slow
def test_neither_a_small_table_that_was_learned_nor_those_before_it_have_moved(again: CellMender, tmp_path) -> None:
    old, new = people(1000, *OLD, seed=0), people(150, *NEW, seed=6)
    assert again.moved_columns(new)
    again.set_params(epochs=1).update(new).update(people(2500, *OLD, seed=8))
    again.save(tmp_path / "updated")
    for mender in (again, load(tmp_path / "updated")):
        assert mender.moved_columns(new) == {}
        assert mender.moved_columns(old) == {}
        assert "weight" in mender.moved_columns(new.assign(weight=85.0))


@pytest.mark.slow
def test_few_new_rows_change_rates_little(again: CellMender, mender: CellMender) -> None:
    again.set_params(epochs=1).update(people(20, *OLD, seed=6))
    assert again.model_.calibration.rates.rows == pytest.approx(mender.model_.calibration.rates.rows, rel=0.05)
    assert again.model_.profile.rows == 1020


@pytest.mark.slow
def test_an_update_that_fails_changes_nothing(again: CellMender, monkeypatch) -> None:
    new = people(100, *NEW, seed=6)
    before = again.cell_scores(new)

    def diverged(*_, **__) -> None:
        raise TrainingError("Training must end in finite weights.")

    monkeypatch.setattr("cellmend.model.learning.train", diverged)
    with pytest.raises(TrainingError):
        again.update(new)
    np.testing.assert_array_equal(again.cell_scores(new), before)
    assert len(again.encoder_.columns[-1].levels) == 4


@pytest.mark.slow
def test_a_network_of_another_size_is_one_sentence(again: CellMender) -> None:
    with pytest.raises(SettingError, match="sizes of the network must be as they were when fitted"):
        again.set_params(hidden_dim=32).update(people(100, *NEW, seed=6))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{"networks": 2}, {"weights": "amortized", "hide": 0.0}, {"hide": 0.0, "repair_method": "map", "kl_weight": 1.0}],
)
def test_every_kind_of_network_can_be_updated(settings) -> None:
    mender = CellMender(**(SMALL | {"epochs": 2}), **settings, schema=SCHEMA).fit(people(100, *OLD, seed=0))
    new = people(60, *NEW, seed=1)
    scores = mender.update(new).cell_suspicion(new).to_numpy()
    assert scores.shape == new.shape
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_one_row_of_gaps_can_be_learned(again: CellMender) -> None:
    gaps = people(1, *OLD, seed=0).assign(size=np.nan, city=None)
    again.set_params(epochs=1).update(gaps)
    assert np.isfinite(again.offset_)


# ---------------------------------------------------------------- growing


def columns(levels: tuple[int, int]) -> list[EncodedColumn]:
    return [
        RealColumn("a", "real", 0.0, 1.0, None, KNOTS_AT),
        LevelColumn("b", "category", tuple(range(levels[0]))),
        LevelColumn("c", "category", tuple(range(levels[1]))),
        LevelColumn("d", "ordinal", (1, 2, 3, 4)),
    ]


def network(levels: tuple[int, int], seed: int = 0) -> RVAE:
    made = RVAE(columns(levels), PUBLISHED, Shape(3, 11, 5), amortized=True, masked=True)
    made.initialize(torch.Generator().manual_seed(seed))
    return made


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("levels", [(3, 4), (5, 4), (3, 40), (6, 7)])
def test_a_grown_network_says_the_same_but_for_what_new_levels_take(networks: int, levels: tuple[int, int]) -> None:
    draw = torch.Generator().manual_seed(3)
    values = torch.stack([torch.randn(32, generator=draw), *(torch.randint(0, 3, (32,)).float() for _ in range(3))], 1)
    observed = torch.rand(32, 4, generator=draw) < 0.8
    small, large = network((3, 4)), network(levels, seed=9)
    if networks == 2:
        small, large = stack([small, network((3, 4), 1)]), stack([large, network(levels, 8)])
        values, observed = (each.expand(2, *each.shape) for each in (values, observed))
    grow(small, large)
    cells = Cells(values, observed)
    before, after = (each.decode(each.encode(cells).mu) for each in (small, large))
    torch.testing.assert_close(after[..., :1], before[..., :1])
    torch.testing.assert_close(large.log_clean(cells, after)[..., 3], small.log_clean(cells, before)[..., 3])
    torch.testing.assert_close(large.weight_logits(large.inputs(cells)), small.weight_logits(small.inputs(cells)))
    (_, old), (_, new) = (next(iter(each.probabilities(what))) for each, what in ((small, before), (large, after)))
    for column, (had, has) in enumerate(zip((3, 4), levels, strict=True)):
        left = new[..., column, :had]
        torch.testing.assert_close(left / left.sum(-1, keepdim=True), old[..., column, :had])
        assert (new[..., column, had:has] > 0).all()


@pytest.mark.slow
def test_scores_of_old_rows_are_the_same_before_training(mender: CellMender, again: CellMender, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.model.learning.train", lambda *_, **__: torch.zeros(1))
    again.update(people(200, *NEW, seed=6))
    assert len(next(c for c in again.encoder_.columns if c.name == "city").levels) == 6
    old = people(200, *OLD, seed=9)
    numbers = [again.cell_scores(old, "nll")[:, :3], mender.cell_scores(old, "nll")[:, :3]]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-5)
    now, then = (each.reconstruct_proba(old)["city"][["Rome", "Pisa", "Oslo", "Bergen"]] for each in (again, mender))
    np.testing.assert_allclose(now.div(now.sum(axis=1), axis=0), then, atol=1e-4)
