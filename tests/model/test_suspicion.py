"""The probability that a cell is wrong, against all ways in which the cells of a row can be, one by one."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence
from cellmend.model.suspicion import (
    ErrorRates,
    Suspicions,
    clean_priors,
    dirty_log_odds,
    estimate_rates,
    expected_errors,
    hiding_alpha,
    in_usual_rows,
    like_chance,
    log_odds,
    rates_between,
    standing_out,
    suspicion_log_odds,
    temper,
    who_did_it,
    wrong_log_odds,
)
from cellmend.settings import fdr_cutoff

NONE = torch.empty(0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def evidence_of(logit: torch.Tensor, alone: torch.Tensor) -> Evidence:
    """One reading of each row."""
    return Evidence(NONE, NONE, NONE, NONE, NONE, alone, logit.unsqueeze(0), torch.zeros(1, len(logit)))


def slow_wrong(ratio: list[float], rates: ErrorRates) -> tuple[list[float], float]:
    """All 2^D ways in which cells of a row may be wrong, and the row that is not dirty, weighed one by one."""
    columns, clean_row = len(ratio), 1 - rates.rows
    total, dirty, wrong = clean_row, 0.0, [0.0] * columns
    for which in itertools.product((False, True), repeat=columns):
        weight = rates.rows
        for is_wrong, each in zip(which, ratio, strict=True):
            weight *= rates.cells * math.exp(-each) if is_wrong else 1 - rates.cells
        total, dirty = total + weight, dirty + weight
        wrong = [w + weight * is_wrong for w, is_wrong in zip(wrong, which, strict=True)]
    return [w / total for w in wrong], dirty / total


@pytest.mark.parametrize("rates", [ErrorRates(0.1, 0.2, 0.01), ErrorRates(0.7, 0.01, 0.0), ErrorRates(1.0, 0.05, 0.0)])
def test_errors_that_come_in_rows_are_weighed_as_all_their_ways_are(rates: ErrorRates) -> None:
    ratio = torch.randn(20, 4, generator=generator()) * 4
    everything = torch.ones(20, 4, dtype=torch.bool)
    cells, rows = wrong_log_odds(ratio, ratio, everything, rates), dirty_log_odds(ratio, everything, rates)
    for place in range(20):
        expected, dirty = slow_wrong(ratio[place].tolist(), rates)
        assert cells[place].sigmoid().tolist() == pytest.approx(expected, abs=1e-5)
        assert rows[place].sigmoid().item() == pytest.approx(dirty, abs=1e-5)


def test_a_missing_cell_says_nothing_of_its_row() -> None:
    ratio, observed = torch.tensor([[-3.0, 2.0, -50.0]]), torch.tensor([[True, True, False]])
    rates, without = ErrorRates(0.1, 0.2, 0.0), (ratio[:, :2], observed[:, :2])
    found = wrong_log_odds(ratio, ratio, observed, rates)
    torch.testing.assert_close(found[:, :2], wrong_log_odds(ratio[:, :2], *without, rates))
    torch.testing.assert_close(dirty_log_odds(ratio, observed, rates), dirty_log_odds(*without, rates))


def drawn_ratios(wrong: torch.Tensor) -> torch.Tensor:
    """log p - log p0 of draws from N(0, 1), or where wrong from N(4, 1)."""
    x = torch.randn(wrong.shape, generator=generator(1)) + 4 * wrong
    return 0.5 * (x - 4).square() - 0.5 * x.square()


def test_rates_are_found_whether_errors_come_in_rows_or_not() -> None:
    everything = torch.ones(20_000, 10, dtype=torch.bool)
    draw = torch.rand(20_000, 11, generator=generator())
    in_rows = (draw[:, :1] < 0.08) & (draw[:, 1:] < 0.25)
    found = estimate_rates(drawn_ratios(in_rows), everything, rare=0.0)
    assert (found.rows, found.cells) == (pytest.approx(0.08, abs=0.01), pytest.approx(0.25, abs=0.02))
    scattered = draw[:, 1:] < 0.02
    found = estimate_rates(drawn_ratios(scattered), everything, rare=0.0)
    assert found.cells == pytest.approx(1 / 11)  # no fewer than about one cell of a dirty row
    assert found.rows * found.cells == pytest.approx(0.02, abs=0.01)


def test_gaps_say_nothing_of_the_rates() -> None:
    """The same table with half of its cells missing, which hold the worst ratios there are."""
    draw = torch.rand(20_000, 11, generator=generator())
    ratio = drawn_ratios((draw[:, :1] < 0.08) & (draw[:, 1:] < 0.25))
    observed = torch.rand(ratio.shape, generator=generator(5)) < 0.5
    found = estimate_rates(torch.where(observed, ratio, -1e3), observed, rare=0.0)
    assert (found.rows, found.cells) == (pytest.approx(0.075, abs=0.015), pytest.approx(0.25, abs=0.03))


def test_rare_cells_are_not_counted_as_errors() -> None:
    """1 % of the cells are odd, scattered, and count a fifth as rare ones; taken at their word they would be wrong."""
    ratio = torch.full((20_000, 10), 4.0)
    ratio[torch.rand(ratio.shape, generator=generator()) < 0.01] = -9.0
    everything = torch.ones(ratio.shape, dtype=torch.bool)
    tempered, plain = (estimate_rates(ratio, everything, rare=rare) for rare in (0.05, 0.0))
    assert plain.rows * plain.cells > 0.005 > 0.002 > tempered.rows * tempered.cells


def test_with_every_row_dirty_and_nothing_rare_suspicion_is_one_minus_pi() -> None:
    logit = torch.tensor([[1.5, -2.0]])
    cells = Cells(torch.zeros(1, 2), torch.ones(1, 2) > 0)
    found = suspicion_log_odds(evidence_of(logit, logit), cells, rates=ErrorRates(1.0, 0.05, 0.0), alpha=0.95)
    torch.testing.assert_close(found, -logit.double())


def test_a_cell_is_judged_by_itself_and_its_row_by_the_first_look() -> None:
    """The own ratio comes from the last round, what the others say of the row from the first."""
    observed, rates = torch.ones(1, 2, dtype=torch.bool), ErrorRates(0.1, 0.2, 0.01)
    alone, last = torch.tensor([[-8.0, -3.0]]), torch.tensor([[-8.0, 4.0]])
    evidence = evidence_of(last + log_odds(0.95), alone + log_odds(0.95))
    found = suspicion_log_odds(evidence, Cells(alone, observed), rates=rates, alpha=0.95)
    expected = wrong_log_odds(temper(last, 0.01), temper(alone, 0.01), observed, rates)
    torch.testing.assert_close(found, expected.double(), atol=1e-5, rtol=0)
    assert found[0, 0] > wrong_log_odds(temper(last, 0.01), temper(last, 0.01), observed, rates)[0, 0]


def test_a_cell_is_as_wrong_as_its_readings_say_on_average() -> None:
    """One reading of the row says wrong, the other clean, three to one."""
    observed, rates = torch.ones(1, 2, dtype=torch.bool), ErrorRates(0.1, 0.2, 0.0)
    ratios = torch.tensor([[[-8.0, 3.0]], [[5.0, -8.0]]])
    evidence = Evidence(
        NONE, NONE, NONE, NONE, NONE, ratios[0], ratios, torch.tensor([[math.log(0.75)], [math.log(0.25)]])
    )
    found = suspicion_log_odds(evidence, Cells(ratios[0], observed), rates=rates, alpha=0.5).sigmoid()
    each = [wrong_log_odds(ratio, ratios[0], observed, rates).sigmoid() for ratio in ratios]
    torch.testing.assert_close(found, (0.75 * each[0] + 0.25 * each[1]).double(), atol=1e-6, rtol=0)


def test_the_errors_of_a_row_are_the_sum_over_all_their_ways() -> None:
    ratio, rates = torch.tensor([[-8.0, -3.0, 4.0]]), ErrorRates(0.1, 0.2, 0.0)
    observed = torch.tensor([[True, True, False]])
    expected = sum(slow_wrong(ratio[0, :2].tolist(), rates)[0])
    assert expected_errors(ratio, Cells(ratio, observed), rates).item() == pytest.approx(expected, abs=1e-6)


def test_what_a_column_cannot_hold_is_an_error_for_the_cell_and_for_the_row() -> None:
    ratio, rates = torch.tensor([[5.0, -2.0] + [9.0] * 50]), ErrorRates(0.01, 0.5, 0.05)
    cells = Cells(torch.where(ratio == 5.0, torch.nan, ratio), torch.ones(1, 52, dtype=torch.bool))
    assert suspicion_log_odds(evidence_of(ratio, ratio), cells, rates=rates, alpha=0.5)[0, 0].sigmoid() > 0.999
    assert expected_errors(ratio, cells, rates).item() >= 1


def test_a_cell_is_believed_as_its_row_is() -> None:
    """In a table of many usual rows and a few full of errors, an odd cell counts little against a usual row."""
    ratio = torch.full((1000, 6), 3.0)
    ratio[:50, :3] = -8.0
    ratio[999, 0] = -8.0
    everything = torch.ones(1000, 6, dtype=torch.bool)
    rates = estimate_rates(ratio, everything, rare=0.0)
    found = clean_priors(ratio, everything, rates)
    for row, column in [(0, 0), (0, 5), (999, 0), (999, 1), (500, 2)]:
        odds = [0.0 if place == column else each for place, each in enumerate(ratio[row].tolist())]
        wrong = slow_wrong(odds, rates)[0][column]  # the cell itself says nothing
        assert found[row, column].item() == pytest.approx(min(max(1 - wrong, 0.02), 0.9999), abs=1e-4)
    assert found[999, 0] > 0.99 > 0.6 > found[0, 0]


def test_a_table_that_says_nothing_is_believed_to_be_clean() -> None:
    """p and p0 are alike: any share of dirty rows is as likely as any other."""
    rates = estimate_rates(torch.zeros(500, 6), torch.ones(500, 6, dtype=torch.bool), rare=0.0)
    assert rates.rows < 0.04


def test_of_a_rare_cell_the_evidence_counts_a_fifth() -> None:
    ratio = torch.tensor([-60.0, 5.0])
    expected = [math.log(0.99 * math.exp(r) + 0.01 * math.exp(0.2 * r)) for r in ratio.tolist()]
    assert temper(ratio, 0.01).tolist() == pytest.approx(expected, abs=1e-5)
    assert torch.equal(temper(ratio, 0.0), ratio)


def test_fdr_keeps_the_expected_share_of_clean_cells() -> None:
    chances = torch.rand(500, generator=generator()).double().square().numpy().round(2)  # with ties
    for fdr in (0.05, 0.1, 0.4):
        cutoff = fdr_cutoff(chances, fdr)
        flagged = chances[chances >= cutoff]
        assert (1 - flagged).mean() <= fdr + 1e-9
        next_one = chances[chances < cutoff].max()
        assert next_one < 0.5 or (1 - chances[chances >= next_one]).mean() > fdr
        assert cutoff >= 0.5


def slow_wrong_with_columns(ratio: list[float], rates: ErrorRates) -> list[float]:
    """All ways in which a row is dirty or not and its cells are wrong, because of the row, the column or both."""
    total, wrong = 0.0, [0.0] * len(ratio)
    for dirty in (False, True):
        for which in itertools.product((False, True), repeat=len(ratio)):
            weight = rates.rows if dirty else 1 - rates.rows
            for is_wrong, each, column in zip(which, ratio, rates.columns, strict=True):
                share = 1 - (1 - column) * (1 - rates.cells * dirty)
                weight *= share * math.exp(-each) if is_wrong else 1 - share
            total += weight
            wrong = [w + weight * is_wrong for w, is_wrong in zip(wrong, which, strict=True)]
    return [w / total for w in wrong]


def test_a_cell_may_be_wrong_because_of_its_row_or_its_column() -> None:
    ratio, rates = (
        torch.randn(20, 4, generator=generator()).double() * 4,
        ErrorRates(0.1, 0.2, 0.0, (0.0, 0.3, 0.01, 0.5)),
    )
    found = wrong_log_odds(ratio, ratio, torch.ones(20, 4, dtype=torch.bool), rates).sigmoid()
    for place in range(20):
        assert found[place].tolist() == pytest.approx(slow_wrong_with_columns(ratio[place].tolist(), rates), abs=1e-9)


def test_rates_of_columns_are_found_beside_those_of_rows() -> None:
    """A column errs in 30 % of its cells; rows in 5 %, a fifth of their cells each."""
    draw = torch.rand(20_000, 11, generator=generator())
    wrong = (draw[:, :1] < 0.05) & (draw[:, 1:] < 0.2)
    wrong[:, 3] |= torch.rand(20_000, generator=generator(3)) < 0.3
    start = [0.0, 0.0, 0.0, *[0.1] * 7]
    found = estimate_rates(drawn_ratios(wrong), torch.ones_like(wrong), rare=0.0, columns=start)
    assert found.columns[3] == pytest.approx(0.3, abs=0.02)
    assert found.columns[:3] == (0.0, 0.0, 0.0)
    assert max(found.columns[4:]) < 0.01
    assert (found.rows, found.cells) == (pytest.approx(0.05, abs=0.015), pytest.approx(0.2, abs=0.04))


def test_columns_err_at_first_as_often_as_their_values_leave_room() -> None:
    nothing, everything = torch.zeros(100, 4), torch.ones(100, 4, dtype=torch.bool)
    learned = Suspicions(torch.tensor([0.3, 0.0, 0.0, math.nan]))
    raised = learned.revise(nothing + 5, nothing - 20, everything)
    assert list(learned.rates.columns) == pytest.approx([0.3, 0.0, 0.0, 0.0])
    assert list(raised.columns) == pytest.approx([0.5, 0.0, 0.0, 0.0])
    assert learned.first_alpha(0.95).tolist() == pytest.approx([0.5, 0.95, 0.95, 0.95])


def drawn_by_chance(shares: list[float], rows: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Ratios of cells of which such a share of each column is drawn by chance, and of chance itself."""
    chance = torch.randn(2, rows, len(shares), generator=generator(4), dtype=torch.float64) - 6
    wrong = torch.rand(rows, len(shares), generator=generator(5)) < torch.tensor(shares)
    return torch.where(wrong, chance[0], 4.0), chance[1]


def test_the_share_of_a_column_that_looks_drawn_by_chance_is_found() -> None:
    ratio, by_chance = drawn_by_chance([0.0, 0.1, 0.4])
    found = like_chance(ratio, by_chance, torch.ones_like(ratio))
    assert found[0].tolist() == pytest.approx([0.0, 0.1, 0.4], abs=0.05)
    assert found[-1].tolist() == pytest.approx([0.0, 0.1, 0.4], abs=0.03)


def test_a_column_is_seen_to_err_by_itself_and_rows_are_not_mistaken_for_columns() -> None:
    ratio, by_chance = drawn_by_chance([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
    dirty = torch.rand(4000, 1, generator=generator(6)) < 0.15
    in_rows = torch.where(dirty & (torch.rand(4000, 6, generator=generator(7)) < 0.5), by_chance.roll(1, 0), ratio)
    for cells, erring in ((ratio, [2]), (in_rows, [2])):
        learned = Suspicions(torch.full((6,), math.nan))
        for _ in range(3):
            learned.revise(cells, by_chance, torch.ones(4000, 6, dtype=torch.bool))
        rates = learned.settle(cells, by_chance, torch.ones(4000, 6, dtype=torch.bool), rare=0.0)
        assert [place for place, rate in enumerate(rates.columns) if rate > 0] == erring
        assert rates.columns[2] == pytest.approx(0.2, abs=0.05)


def test_a_column_that_its_rows_do_not_tell_is_not_held_to_err() -> None:
    """Its cells are all like chance."""
    ratio, by_chance = drawn_by_chance([1.0, 0.0, 0.0])
    learned = Suspicions(torch.full((3,), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(4000, 3, dtype=torch.bool))
    assert learned.rates.columns == (0.0, 0.0, 0.0)


def test_a_column_that_is_spread_evenly_does_not_stand_out_as_one_that_errs() -> None:
    assert standing_out(torch.tensor([0.04, 0.04, 0.03])).tolist() == [0.0, 0.0, 0.0]
    assert standing_out(torch.tensor([0.6, 0.3, 0.02, 0.0, 0.0])).tolist() == pytest.approx([0.0, 0.3, 0.0, 0.0, 0.0])


def test_few_errors_everywhere_make_no_column_one_that_errs() -> None:
    """No column stands out: rows tell better where so few cells are wrong."""
    ratio, by_chance = drawn_by_chance([0.07] * 6)
    learned = Suspicions(torch.full((6,), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(4000, 6, dtype=torch.bool))
    assert learned.rates.columns == (0.0,) * 6


def test_errors_everywhere_are_held_to_lie_in_columns_that_rows_do_not_tell_of() -> None:
    """Four columns err and none is clean: the fifth, all like chance, is held to err as often; in a table of clean
    columns it is not."""
    everything = torch.ones(4000, 5, dtype=torch.bool)
    for shares, held in (([0.2, 0.2, 0.25, 0.2, 1.0], 0.2), ([0.0, 0.0, 0.2, 0.0, 1.0], 0.0)):
        ratio, by_chance = drawn_by_chance(shares)
        learned = Suspicions(torch.full((5,), math.nan))
        for _ in range(3):
            learned.revise(ratio, by_chance, everything)
        assert learned.rates.columns[4] == pytest.approx(held, abs=0.03)


def test_a_few_cells_like_chance_make_no_column_of_a_small_table_one_that_errs() -> None:
    ratio, by_chance = drawn_by_chance([0.0, 0.2, 0.0, 0.0], rows=40)
    learned = Suspicions(torch.full((4,), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(40, 4, dtype=torch.bool))
    assert learned.rates.columns == (0.0,) * 4


def test_suspicions_go_on_from_what_was_kept() -> None:
    everything = torch.ones(4000, 5, dtype=torch.bool)
    ratio, by_chance = drawn_by_chance([0.2, 0.2, 0.25, 0.2, 1.0])
    learned, again = Suspicions(torch.full((5,), math.nan)), Suspicions(torch.full((5,), math.nan))
    for _ in range(4):
        learned.revise(ratio, by_chance, everything)
    again.restore(learned.state())
    assert again.revise(ratio, by_chance, everything) == learned.revise(ratio, by_chance, everything)
    assert again.settle(ratio, by_chance, everything, rare=0.0) == learned.settle(
        ratio, by_chance, everything, rare=0.0
    )


def test_rates_go_a_share_of_the_way_to_new_ones() -> None:
    old, new = ErrorRates(0.2, 0.3, 0.04, (0.1, 0.0)), ErrorRates(0.4, 0.1, 0.02, (0.5, 0.2))
    found = rates_between(old, new, 0.25)
    assert (found.rows, found.cells, found.rare) == pytest.approx((0.25, 0.25, 0.035))
    assert found.columns == pytest.approx((0.2, 0.05))


@pytest.mark.parametrize(
    ("share", "usual", "stands_out"),
    [(0.07, 0.02, False), (0.09, 0.02, True), (0.09, 0.08, False), (0.11, 0.08, True), (0.6, 0.0, False)],
)
def test_a_column_stands_out_above_three_times_the_others_or_a_tenth_and_below_a_half(
    share: float, usual: float, stands_out: bool
) -> None:
    assert bool(standing_out(torch.tensor([usual] * 4 + [share]))[-1]) == stands_out


def test_twice_as_many_errors_as_are_seen_in_a_column_are_held_to_be_there_and_at_most_a_half() -> None:
    ratio, by_chance = drawn_by_chance([0.0, 0.1, 0.4])
    learned = Suspicions(torch.tensor([math.nan, 0.1, 0.4]))
    assert learned.first_alpha(0.95).tolist() == pytest.approx([0.95, 0.8, 0.5])
    held = learned.revise(ratio, by_chance, torch.ones(4000, 3, dtype=torch.bool))
    assert learned.rates.columns == pytest.approx((0.0, 0.1, 0.4))
    assert held.columns == pytest.approx((0.0, 0.2, 0.5))


def test_a_row_is_usual_by_its_other_cells_alone() -> None:
    """Each cell left out in turn; cells that are not observed tell nothing."""
    ratio, _ = drawn_by_chance([0.1, 0.1, 0.1, 0.1], rows=300)
    observed = torch.rand(300, 4, generator=generator(8)) < 0.8
    found, rates = in_usual_rows(ratio, observed), estimate_rates(ratio, observed, rare=0.0)
    for column in range(4):
        others = observed.clone()
        others[:, column] = False
        usual = (-dirty_log_odds(ratio, others, rates)).sigmoid()
        torch.testing.assert_close(found[:, column], torch.where(observed[:, column], usual, 0.0))


def test_what_rows_and_columns_do_is_told_apart_by_counting() -> None:
    """One round of EM on cells that are surely right or wrong: who did it is the share of each, by hand."""
    rates, everything = ErrorRates(0.5, 0.4, 0.0, (0.2, 0.1)), torch.ones(1, 2, dtype=torch.bool)
    ratio = torch.tensor([[-200.0, 200.0]], dtype=torch.float64)
    dirty, by_row, by_column = who_did_it(ratio, everything, rates)
    in_dirty, in_clean = 0.5 * (1 - 0.8 * 0.6) * (0.9 * 0.6), 0.5 * 0.2 * 0.9  # the first cell wrong, the second right
    share = in_dirty / (in_dirty + in_clean)
    assert float(dirty) == pytest.approx(share)
    assert by_row[0].tolist() == pytest.approx([share * 0.4 / 0.52, 0.0], abs=1e-9)
    assert by_column[0].tolist() == pytest.approx([1 - share + share * 0.2 / 0.52, 0.0], abs=1e-9)


def test_each_row_has_readings_of_its_own() -> None:
    """The first row holds with one reading, the second with the other."""
    rates = ErrorRates(0.1, 0.2, 0.0)
    alone, one, other = torch.tensor([[[2.0, 1.0], [3.0, 0.5]], [[-8.0, 3.0], [1.0, -2.0]], [[5.0, -8.0], [-3.0, 4.0]]])
    cells = Cells(alone, torch.ones(2, 2, dtype=torch.bool))
    shares = torch.tensor([[0.0, -99.0], [-99.0, 0.0]])
    both = Evidence(NONE, NONE, NONE, NONE, NONE, alone, torch.stack([one, other]), shares)
    found, first, second = (
        suspicion_log_odds(each, cells, rates=rates, alpha=0.5)
        for each in (both, evidence_of(one, alone), evidence_of(other, alone))
    )
    torch.testing.assert_close(found, torch.stack([first[0], second[1]]))


def test_more_cells_are_hidden_in_columns_that_err_more_often() -> None:
    hidden = hiding_alpha(ErrorRates(0.1, 0.2, 0.0, (0.0, 0.3)), 0.95, torch.zeros(1, 2))
    assert hidden.tolist() == pytest.approx([0.95, 0.7])
    assert hiding_alpha(ErrorRates(0.1, 0.2, 0.0), 0.95, torch.zeros(1, 2)) == 0.95


@pytest.mark.parametrize("rows", [10, 1000])
def test_one_dirty_row_and_a_hundredth_of_a_tenth_are_added_where_none_is_seen(rows: int) -> None:
    """Rows of four cells that are surely right, by a plain loop: of a dirty row a fifth of the cells is wrong."""
    rates = estimate_rates(torch.full((rows, 4), 50.0), torch.ones(rows, 4, dtype=torch.bool), rare=0.0)
    share, believed = 0.1, 1 + 0.1 * rows
    for _ in range(100):
        all_right = 0.8**4
        dirty = rows * share * all_right / (share * all_right + 1 - share)
        share = (dirty + 1 + 0.01 * believed) / (rows + 1 + believed)
    assert (rates.rows, rates.cells) == (pytest.approx(share, rel=0.01), pytest.approx(0.2))


@pytest.mark.parametrize(
    ("shares", "held"),
    [
        ([0.2, 0.2, 0.25, 0.0, 0.0, 0.0, 1.0], 0.0),
        ([0.2, 0.2, 0.25, 0.2, 0.0, 0.0, 0.0, 1.0], 0.2),
        ([0.2, 0.2, 1.0], 0.0),
    ],
)
def test_errors_lie_everywhere_if_more_columns_err_than_are_clean_and_three_at_least(
    shares: list[float], held: float
) -> None:
    ratio, by_chance = drawn_by_chance(shares)
    learned = Suspicions(torch.full((len(shares),), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(ratio.shape, dtype=torch.bool))
    assert learned.rates.columns[-1] == pytest.approx(held, abs=0.03)


def test_a_dozen_cells_like_chance_are_enough_to_see_that_a_column_errs() -> None:
    """Of 200 cells 40 are drawn by chance, of which three tenths, twelve, lie where natural ones do not."""
    ratio, by_chance = drawn_by_chance([0.0, 0.2, 0.0, 0.0], rows=200)
    learned = Suspicions(torch.full((4,), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(200, 4, dtype=torch.bool))
    assert learned.rates.columns == pytest.approx((0.0, 0.2, 0.0, 0.0), abs=0.06)


def test_errors_that_were_seen_everywhere_and_turn_out_natural_leave_no_rates() -> None:
    everything = torch.ones(4000, 5, dtype=torch.bool)
    ratio, by_chance = drawn_by_chance([0.2, 0.2, 0.25, 0.2, 1.0])
    learned = Suspicions(torch.full((5,), math.nan))
    for _ in range(3):
        learned.revise(ratio, by_chance, everything)
    rates = learned.revise(torch.full_like(ratio, 4.0), by_chance, everything)
    assert max(rates.columns) < 0.01


def test_columns_with_room_for_errors_that_have_none_do_not_make_all_others_err() -> None:
    ratio, by_chance = drawn_by_chance([0.0, 0.0, 0.0, 0.0, 1.0])
    learned = Suspicions(torch.tensor([0.2, 0.2, 0.2, 0.2, math.nan]))
    for _ in range(3):
        learned.revise(ratio, by_chance, torch.ones(4000, 5, dtype=torch.bool))
    assert not learned.everywhere
    assert learned.rates.columns[4] == 0.0
