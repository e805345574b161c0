"""All evidence of a table: finite whatever the table, the same of pieces as of the whole, the same after JSON."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cellmend.posterior.evidence import NAMES, Figures, Portrait, places_of
from cellmend.posterior.experts import EXPERTS
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.known import Coded
from cellmend.posterior.pairs import MISSING
from cellmend.posterior.posterior import Posterior, Sample, weigh
from cellmend.posterior.priors import FARTHEST, TOGETHER
from cellmend.posterior.weigher import FAMILIES, Context, learned
from cellmend.table.packing import pack, unpack
from cellmend.table.readtable import DOUBTFUL, read_typed

CELL = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["12", "-3.5", "1e400", "1e-9", "2024-01-02", "n/a", "Rome", "rome", "a\nb", "\x00", " "])
)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[CELL] * width), max_size=30).map(
        lambda rows: pa.table({f"c{at}": pa.array([row[at] for row in rows], pa.string()) for at in range(width)})
    )
)


def people(rows: int = 150) -> pa.Table:
    rng = np.random.default_rng(3)
    city = rng.integers(0, 4, rows)
    names = np.array(["Denver", "Boston", "Louisville", "New York"])[city].astype(object)
    names[7], names[20], names[33] = "denver", "Lousiville", None
    amounts = [f"{value:.2f}" for value in rng.normal(50, 5, rows)]
    amounts[11] = "5021.00"
    return pa.table(
        {
            "city": pa.array(names, pa.string()),
            "zip": np.array(["80201", "02101", "40201", "10001"])[city],
            "amount": amounts,
            "id": [f"A-{row:04}" for row in range(rows)],
            "empty": pa.nulls(rows, pa.string()),
        }
    )


def coded_of(table: pa.Table) -> list[Coded]:
    return [Coded.of(column) for column in table.columns]


def all_of(figures: Figures) -> np.ndarray:
    return figures[np.arange(len(figures))]


def with_silence(figures: Figures) -> Figures:
    return figures.with_more(np.zeros((*figures.codes.shape, len(EXPERTS))))


@given(TABLES)
@settings(max_examples=30)
@example(pa.table({"c0": pa.nulls(30, pa.string())}))
@example(pa.table({"c0": ["x"], "c1": pa.nulls(1, pa.string())}))
@example(pa.table({"c0": ["5"] * 25, "c1": [str(row) for row in range(25)]}))
def test_figures_are_finite_whatever_the_table(table: pa.Table) -> None:
    portrait, coded = Portrait.learn(table)
    for alone in (False, True):
        figures = portrait.figures(coded, rows_alone=alone)
        found = all_of(figures)
        assert found.shape == (table.num_rows, table.num_columns, len(NAMES))
        assert np.isfinite(found).all()
        assert (np.abs(found) <= FARTHEST).all()
        assert not found[~figures.observed].any()


@given(TABLES, TABLES)
@settings(max_examples=20)
def test_figures_of_another_table_are_finite_too(learned_from: pa.Table, other: pa.Table) -> None:
    width = min(learned_from.num_columns, other.num_columns)
    portrait, _ = Portrait.learn(learned_from.select(range(width)))
    figures = portrait.figures(coded_of(other.select(range(width))), rows_alone=True)
    assert np.isfinite(all_of(figures)).all()


def test_places_are_those_of_the_learned_texts() -> None:
    portrait, _ = Portrait.learn(pa.table({"a": ["x", "y", None]}))
    assert places_of(portrait.columns, coded_of(pa.table({"a": ["y", "q", None]}))).tolist() == [[1], [-1], [MISSING]]


def weighed(figures: Figures, context: Context) -> Posterior:
    return weigh(learned(), figures, context).posterior(context.rates)


@pytest.mark.parametrize("step", [1, 7, TOGETHER, 64])
def test_pieces_of_a_table_have_the_figures_of_the_whole_bit_for_bit(step: int) -> None:
    table = people()
    portrait, coded = Portrait.learn(table)
    whole = portrait.figures(coded, rows_alone=True)
    for first in range(0, table.num_rows, step):
        piece = portrait.figures(coded_of(table.slice(first, step)), rows_alone=True)
        np.testing.assert_array_equal(all_of(piece), whole[slice(first, first + step)])


@pytest.mark.parametrize("step", [1, 7, TOGETHER, 2 * TOGETHER])
def test_pieces_of_a_table_are_weighed_as_the_whole_is_bit_for_bit(step: int) -> None:
    table = people()
    portrait, coded = Portrait.learn(table)
    context = Sample.of(learned(), with_silence(portrait.figures(coded))).context()
    whole = weighed(with_silence(portrait.figures(coded, rows_alone=True)), context)
    for first in range(0, table.num_rows, step):
        piece = portrait.figures(coded_of(table.slice(first, step)), rows_alone=True)
        found = weighed(with_silence(piece), context)
        np.testing.assert_allclose(found.logs, whole.logs[first : first + step], rtol=1e-9)
        np.testing.assert_array_equal(found.logs, whole.logs[first : first + step])


def test_rows_are_weighed_alike_however_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    portrait, coded = Portrait.learn(people())
    figures = with_silence(portrait.figures(coded))
    context = Sample.of(learned(), figures).context()
    whole = weighed(figures, context)
    monkeypatch.setattr("cellmend.posterior.posterior.WEIGHED_CELLS", 1)
    np.testing.assert_array_equal(weighed(figures, context).logs, whole.logs)


def test_a_table_without_rows_is_weighed_to_nothing() -> None:
    portrait, coded = Portrait.learn(people())
    context = Sample.of(learned(), with_silence(portrait.figures(coded))).context()
    figures = portrait.figures(coded_of(people().slice(0, 0)), rows_alone=True)
    assert weighed(with_silence(figures), context).suspicion.shape == (0, 5)


def test_a_posterior_says_how_wrong_a_cell_is_and_why() -> None:
    chances = np.full((1, 2, 1 + len(FAMILIES)), 1e-9)
    chances[0, 0, :4] = 0.4, 0.1, 0.3, 0.2
    chances[0, 1] = [0.95] + len(FAMILIES) * [0.001]
    posterior = Posterior(np.log(chances), np.array([[True, False]]), np.full((2, len(FAMILIES)), 0.01))
    assert posterior.suspicion[0].tolist() == pytest.approx([0.6, 0])
    assert posterior.scores[0].tolist() == pytest.approx([-np.log(0.4), 0])
    assert posterior.family(0, 0) == FAMILIES[1]
    assert posterior.families(0, 0)[:3].tolist() == pytest.approx([1 / 6, 1 / 2, 1 / 3], rel=1e-6)
    assert posterior.families(0, 0).sum() == pytest.approx(1)
    assert posterior.shows_in_text[0].tolist() == [True, False]  # nothing speaks against the second


def test_probabilities_of_every_cell_sum_to_one() -> None:
    portrait, coded = Portrait.learn(people())
    figures = with_silence(portrait.figures(coded))
    logs = weighed(figures, Sample.of(learned(), figures).context()).logs
    np.testing.assert_allclose(np.exp(logs).sum(-1), 1, rtol=1e-9)


def test_a_portrait_and_a_context_survive_json_with_the_same_figures() -> None:
    portrait, coded = Portrait.learn(people())
    again = unpack(Portrait, json.loads(json.dumps(pack(portrait))))
    one, two = portrait.figures(coded), again.figures(coded)
    np.testing.assert_array_equal(all_of(one), all_of(two))
    context = Sample.of(learned(), with_silence(one)).context()
    back = Context.from_json(json.loads(json.dumps(context.to_json())))
    assert torch.equal(back.rates, context.rates)
    np.testing.assert_array_equal(weighed(with_silence(one), context).logs, weighed(with_silence(two), back).logs)


def test_a_first_look_survives_json_and_hides_the_same_cells() -> None:
    table = read_typed(people())
    look, (kept, figures, *_) = FirstLook.learn(table, learned())
    again = unpack(FirstLook, json.loads(json.dumps(pack(look))))
    assert pack(again) == pack(look)
    seen, found, *_ = again.look(table, learned())
    assert seen.understood.equals(kept.understood)
    np.testing.assert_array_equal(all_of(found), all_of(figures))


def test_a_first_look_hides_the_cells_that_are_more_probably_wrong() -> None:
    table = read_typed(people())
    look, (kept, figures, *_) = FirstLook.learn(table, learned())
    doubtful = weighed(figures, look.context).of_text >= DOUBTFUL
    assert doubtful[7, 0]  # denver
    assert doubtful.mean() < 0.02
    for place, name in enumerate(table.names):
        gone = kept.understood[name].is_null().to_numpy() & ~table.understood[name].is_null().to_numpy()
        assert gone.tolist() == doubtful[:, place].tolist()
    assert kept.arrow.equals(table.arrow)
