"""Bayes' rule and the rates of causes, against plain loops; the weights that the package brings along."""

from __future__ import annotations

import json
import math
from importlib import resources

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from torch import Tensor

from cellmend.posterior.evidence import NAMES
from cellmend.posterior.experts import EXPERTS
from cellmend.posterior.meant import FIGURES
from cellmend.posterior.priors import LOWEST_RATE, ROUNDS
from cellmend.posterior.weigher import (
    ABOUT,
    FAMILIES,
    NETWORK,
    OF_CELL,
    WIDTH,
    Context,
    RepairWeigher,
    Weigher,
    learned,
    posterior,
)

COUNT, SORTS = len(FAMILIES), len(NAMES) + len(EXPERTS)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def slow_posterior(ratios: list[float], rates: list[float]) -> list[float]:
    """Probability of right and of each family of one cell, by Bayes' rule."""
    rates = [max(rate, LOWEST_RATE) for rate in rates]
    weights = [1 - sum(rates), *(rate * math.exp(ratio) for rate, ratio in zip(rates, ratios, strict=True))]
    return [weight / sum(weights) for weight in weights]


def small() -> Weigher:
    """A weigher with its own prior, belief and sharing of each family."""
    torch.manual_seed(0)
    weigher = Weigher(SORTS, 2, width=4).double().eval()
    with torch.no_grad():
        weigher.log_prior.copy_(torch.linspace(-6, -3, COUNT))
        weigher.log_belief.copy_(torch.linspace(1, 3, COUNT))
        weigher.log_sharing.copy_(torch.linspace(2, 0, COUNT))
    return weigher.requires_grad_(False)


# ---------------------------------------------------------------- Bayes' rule


def test_bayes_rule_by_hand() -> None:
    """Right: .7; two families that act in .1 and .2 of the cells and explain this one 4 times and half as well:
    .7 : .4 : .1."""
    found = posterior(doubles(math.log(4), math.log(0.5)).reshape(1, 1, 2), doubles(0.1, 0.2).reshape(1, 2)).exp()
    assert found.flatten().tolist() == pytest.approx([0.7 / 1.2, 0.4 / 1.2, 0.1 / 1.2], rel=1e-12)


@pytest.mark.parametrize("total", [1.0, 1.5, 8.0])
def test_a_column_is_right_in_a_twentieth_of_its_cells_whatever_the_rates(total: float) -> None:
    """Rates of 1 : 3 and more than there are cells: .05 : .95 / 4 : .95 * 3 / 4."""
    found = posterior(torch.zeros(1, 1, 2).double(), doubles(total / 4, 3 * total / 4).reshape(1, 2)).exp()
    assert found.flatten().tolist() == pytest.approx([0.05, 0.2375, 0.7125], rel=1e-6)


def test_rates_of_more_than_95_percent_leave_room_for_right_and_keep_their_proportion() -> None:
    right, *wrong = posterior(torch.zeros(1, 1, 2).double(), doubles(0.24, 0.72).reshape(1, 2)).exp().flatten().tolist()
    assert 0.05 - 1e-6 <= right <= 0.1
    assert wrong[1] / wrong[0] == pytest.approx(3, rel=1e-6)


def test_a_column_with_higher_rates_is_never_less_suspicious() -> None:
    right = [posterior(torch.zeros(1, 1, 1).double(), doubles(rate).reshape(1, 1))[0, 0, 0] for rate in (0.949, 0.951)]
    assert right[1] <= right[0]


@given(
    st.lists(st.floats(-40, 40), min_size=3, max_size=3),
    st.lists(st.floats(0, 0.3), min_size=3, max_size=3),
)
def test_the_posterior_of_a_cell_is_that_of_bayes_rule(ratios: list[float], rates: list[float]) -> None:
    found = posterior(doubles(*ratios).reshape(1, 1, 3), doubles(*rates).reshape(1, 3)).exp().flatten()
    assert float(found.sum()) == pytest.approx(1, rel=1e-12)
    assert found.tolist() == pytest.approx(slow_posterior(ratios, rates), rel=1e-9, abs=1e-300)


@given(st.lists(st.floats(-400, 400), min_size=2, max_size=2), st.lists(st.floats(0, 9), min_size=2, max_size=2))
def test_probabilities_sum_to_one_and_nothing_is_impossible(ratios: list[float], rates: list[float]) -> None:
    logs = posterior(doubles(*ratios).reshape(1, 1, 2), doubles(*rates).reshape(1, 2))
    assert bool(logs.isfinite().all())
    assert float(logs.exp().sum()) == pytest.approx(1, rel=1e-9)


# ---------------------------------------------------------------- rates


def slow_rates(weigher: Weigher, ratios: Tensor, observed: Tensor, rounds: int) -> list[list[float]]:
    """Rounds of expectation and maximisation, one cell at a time."""
    prior, belief, sharing = (
        each.exp().tolist() for each in (weigher.log_prior, weigher.log_belief, weigher.log_sharing)
    )
    rows, columns, families = ratios.shape
    rates = [list(prior) for _ in range(columns)]
    cells = [sum(bool(observed[row, column]) for row in range(rows)) for column in range(columns)]
    for _ in range(rounds):
        caused = [[0.0] * families for _ in range(columns)]
        for row in range(rows):
            for column in range(columns):
                if observed[row, column]:
                    chances = slow_posterior(ratios[row, column].tolist(), rates[column])[1:]
                    caused[column] = [a + b for a, b in zip(caused[column], chances, strict=True)]
        rates = [
            [
                (
                    prior[f] * belief[f]
                    + sharing[f] * (prior[f] * belief[f] + sum(each[f] for each in caused)) / (belief[f] + sum(cells))
                    + caused[column][f]
                )
                / (belief[f] + sharing[f] + cells[column])
                for f in range(families)
            ]
            for column in range(columns)
        ]
    return rates


@pytest.mark.parametrize("rounds", [1, 2, ROUNDS, 6])
def test_rates_are_those_of_a_plain_loop(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weigher, ratios = small(), torch.randn(30, 4, COUNT, generator=generator()).double() * 3 - 2
    observed = torch.rand(30, 4, generator=generator(1)) < 0.8
    observed[:, 3] = False  # a column without a cell
    monkeypatch.setattr("cellmend.posterior.weigher.ROUNDS", rounds)
    found = weigher.rates(ratios, observed)
    np.testing.assert_allclose(found.numpy(), slow_rates(weigher, ratios, observed, rounds), rtol=1e-9)


def ratios_with(wrong: int, columns: int = 1) -> tuple[Tensor, Tensor]:
    """Cells that look right, ratio -6, but for some of the first column, ratio +6."""
    ratios = torch.full((200, columns, COUNT), -6.0, dtype=torch.float64)
    ratios[:wrong, 0, 0] = 6.0
    return ratios, torch.ones(200, columns, dtype=torch.bool)


@pytest.mark.parametrize("own", [True, False])
def test_a_habit_raises_the_rate_of_its_column_and_the_suspicion_of_each_of_its_cells(own: bool) -> None:
    weigher = learned() if own else Weigher(SORTS, 2).double().eval()
    (habit, seen), (single, _) = ratios_with(10), ratios_with(1)
    often, once = weigher.rates(habit, seen), weigher.rates(single, seen)
    assert often[0, 0] > 2 * once[0, 0]
    assert posterior(habit, often)[0, 0, 0] < posterior(single, once)[0, 0, 0]
    assert posterior(habit, often)[0, 0, 1] > posterior(single, once)[0, 0, 1]
    assert posterior(habit, often)[-1, 0, 0].exp() > 0.95  # cells that look right stay so


@pytest.mark.parametrize("own", [True, False])
def test_columns_of_one_table_believe_in_each_other(own: bool) -> None:
    weigher = learned() if own else Weigher(SORTS, 2).double().eval()
    (habit, seen), (quiet, _) = ratios_with(40, columns=3), ratios_with(0, columns=3)
    beside_a_habit, beside_none = weigher.rates(habit, seen), weigher.rates(quiet, seen)
    assert (beside_a_habit[1:, 0] > beside_none[1:, 0]).all()
    assert (beside_a_habit[0, 0] > beside_a_habit[1:, 0]).all()


def test_cells_in_which_nothing_stands_do_not_count() -> None:
    weigher = small()
    ratios = torch.randn(20, 2, COUNT, generator=generator()).double()
    observed = torch.rand(20, 2, generator=generator(1)) < 0.6
    other = torch.where(observed.unsqueeze(-1), ratios, 30.0)
    assert weigher.rates(ratios, observed).tolist() == weigher.rates(other, observed).tolist()


def test_a_table_without_rows_has_rates_near_the_prior() -> None:
    weigher = small()
    found = weigher.rates(torch.zeros(0, 2, COUNT).double(), torch.zeros(0, 2, dtype=torch.bool))
    np.testing.assert_allclose(found.numpy(), weigher.log_prior.exp().expand(2, -1).numpy(), rtol=1e-12)


# ---------------------------------------------------------------- the whole weigher


def cells(rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Evidence, where something stands, and what the network says, which is silent of some cells."""
    evidence = torch.randn(rows, columns, SORTS, generator=generator()).double()
    observed = torch.rand(rows, columns, generator=generator(2)) < 0.7
    said = torch.randn(rows, columns, len(NETWORK), generator=generator(3)).double()
    said[..., NETWORK.index("says")] = 1.0
    return evidence, observed, torch.where((observed & (said[..., 1] > -0.5)).unsqueeze(-1), said, 0.0)


def weighed(weigher: Weigher, evidence: Tensor, observed: Tensor, said: Tensor) -> Tensor:
    return weigher(evidence, observed, said, weigher.context(evidence, observed, said))


def test_rows_do_not_speak_of_each_other_once_the_context_is_known() -> None:
    weigher, (evidence, observed, said) = small(), cells(6, 3)
    context = weigher.context(evidence, observed, said)
    whole = weigher(evidence, observed, said, context)
    for row in range(6):
        alone = weigher(*(each[row : row + 1] for each in (evidence, observed, said)), context)
        torch.testing.assert_close(alone[0], whole[row], rtol=1e-12, atol=1e-12)


def test_the_order_of_columns_and_rows_does_not_matter() -> None:
    weigher, table = small(), cells(8, 4)
    rows, columns = torch.randperm(8, generator=generator()), torch.randperm(4, generator=generator())
    mixed = [each[rows][:, columns] for each in table]
    torch.testing.assert_close(weighed(weigher, *mixed), weighed(weigher, *table)[rows][:, columns])


def test_what_stands_in_a_gap_does_not_matter() -> None:
    weigher, (evidence, observed, said) = small(), cells(8, 4)
    other = torch.where(observed.unsqueeze(-1), evidence, 9.0)
    one, two = (weighed(weigher, each, observed, said)[observed] for each in (evidence, other))
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("expert", ABOUT)
def test_before_any_training_the_log_odds_of_an_expert_count_as_they_are(expert: str) -> None:
    """Two more natural logarithms of an expert are two more of the family that it speaks about."""
    torch.manual_seed(0)
    weigher, family = Weigher(SORTS, 2).double().eval().requires_grad_(False), 1 + FAMILIES.index(ABOUT[expert])
    torch.nn.init.zeros_(weigher.odds.weight)  # all figures together say nothing yet
    evidence, said = torch.zeros(1, 1, SORTS).double(), torch.zeros(1, 1, len(NETWORK)).double()
    louder = evidence.clone()
    louder[..., EXPERTS.index(expert) - len(EXPERTS)] = 2.0
    observed = torch.ones(1, 1, dtype=torch.bool)
    context = weigher.context(evidence, observed, said)
    before, after = (weigher(each, observed, said, context)[0, 0] for each in (evidence, louder))
    assert float((after - before)[family] - (after - before)[0]) == pytest.approx(2.0)


def heard(rate: float, ratio: float) -> Tensor:
    """What the network says of one cell: the log of the column's rate, and its own log likelihood ratio."""
    said = torch.zeros(1, 1, len(NETWORK)).double()
    for name, value in (("says", 1.0), ("log_rate", rate), ("ratio", ratio)):
        said[..., NETWORK.index(name)] = value
    return said


@pytest.mark.parametrize(("rate", "ratio"), [(-4.0, 6.0), (-3.0, -2.0)])
def test_before_any_training_the_networks_word_is_one_more_explanation(rate: float, ratio: float) -> None:
    """p(right) : p(wrong) = 1 : (odds of the families + e^(rate + ratio)), worked out by hand."""
    torch.manual_seed(0)
    weigher, observed = Weigher(SORTS, 2).double().eval().requires_grad_(False), torch.ones(1, 1, dtype=torch.bool)
    evidence, silent = torch.zeros(1, 1, SORTS).double(), torch.zeros(1, 1, len(NETWORK)).double()
    context = weigher.context(evidence, observed, silent)
    weigher.expected.zero_()  # or a low ratio would speak for the cell in the families, too
    right = float(weigher(evidence, observed, silent, context)[0, 0, 0].exp())
    told = weigher(evidence, observed, heard(rate, ratio), context)[0, 0]
    assert float(told[0].exp()) == pytest.approx(1 / ((1 - right) / right + 1 + math.exp(rate + ratio)))
    assert float(told.exp().sum()) == pytest.approx(1.0)


def test_a_number_that_lies_where_one_beside_it_says_is_vouched_for_by_that_likelihood_ratio() -> None:
    """p(right) : p(wrong) = 1 : (odds of the families + e^(rate + ratio - 4)); no figure counts otherwise."""
    torch.manual_seed(0)
    weigher, observed = Weigher(SORTS, 2).double().eval().requires_grad_(False), torch.ones(1, 1, dtype=torch.bool)
    torch.nn.init.zeros_(weigher.first.weight)  # so that no figure counts but the one that is added as it is
    context = Context(
        torch.zeros(1, WIDTH).double(), torch.zeros(WIDTH).double(), torch.full((1, COUNT), 1e-9).double()
    )
    evidence = torch.zeros(1, 1, SORTS).double()
    alone = weigher(evidence, observed, heard(-5.0, 8.0), context)[0, 0].exp()
    evidence[..., NAMES.index("curve_confirms")] = 4.0
    together = weigher(evidence, observed, heard(-5.0, 8.0), context)[0, 0].exp()
    odds = [float((1 - each[0]) / each[0]) for each in (alone, together)]
    assert odds[0] - odds[1] == pytest.approx(math.exp(3.0) - math.exp(-1.0))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_natural_elsewhere_is_excused_where_the_network_expects_it(family: str) -> None:
    """A ratio of -3 is three natural logarithms less of values that other cells have by nature, nothing less of what
    only a slip writes, and a high one adds nothing."""
    torch.manual_seed(0)
    weigher, at = Weigher(SORTS, 2).double().eval().requires_grad_(False), FAMILIES.index(family)
    cell, evidence = torch.zeros(1, 1, WIDTH).double(), torch.zeros(1, 1, SORTS).double()
    low, none, high = (
        weigher.excused(weigher._ratios(cell, evidence), heard(-5.0, each))[0, 0, at] for each in (-3.0, 0.0, 3.0)
    )
    natural = family in ("number", "cut", "valid", "misplaced")
    assert float(none - low) == pytest.approx(3.0 * natural)
    assert float(high) == float(none)


def test_a_hypothesis_is_weighed_by_itself() -> None:
    torch.manual_seed(0)
    repairs = RepairWeigher(4).double()
    figures = np.random.default_rng(0).normal(size=(5, 4 + OF_CELL))
    whole = repairs.chances(figures)
    assert ((whole > 0) & (whole < 1)).all()
    np.testing.assert_allclose([repairs.chances(each[None])[0] for each in figures], whole, rtol=1e-12)
    assert len(repairs.chances(figures[:0])) == 0


def test_a_context_survives_json_bit_for_bit() -> None:
    context = small().context(*cells(6, 3))
    again = Context.from_json(context.to_json())
    for name in ("columns", "table", "rates"):
        assert torch.equal(getattr(again, name), getattr(context, name))


# ---------------------------------------------------------------- the weights of the package


def test_the_weights_fit_the_evidence_and_the_hypotheses() -> None:
    weigher = learned()
    assert weigher.middle.shape == (len(NAMES) + len(EXPERTS),)
    assert weigher.repairs.middle.shape == (len(FIGURES) + OF_CELL,)
    assert weigher.odds.out_features == len(FAMILIES)
    assert all(values.dtype == torch.float32 for name, values in weigher.state_dict().items() if "repairs" not in name)
    assert (weigher.spread > 0).all()
    assert (weigher.repairs.spread > 0).all()
    assert not any(values.requires_grad for values in weigher.parameters())


def test_all_weights_are_finite() -> None:
    assert [name for name, values in learned().state_dict().items() if not values.isfinite().all()] == []


def test_names_of_evidence_and_figures_are_different() -> None:
    for names in ((*NAMES, *EXPERTS, *NETWORK), FIGURES, FAMILIES):
        assert len(set(names)) == len(names)


def test_the_weights_say_where_they_come_from() -> None:
    with (
        resources.as_file(resources.files("cellmend.posterior").joinpath("weigher.safetensors")) as path,
        safe_open(path, "pt") as file,
    ):
        metadata = file.metadata()
    provenance = json.loads(metadata["provenance"])
    assert tuple(provenance["evidence"]) == NAMES
    assert tuple(provenance["families"]) == FAMILIES
    assert provenance["tables"] > 0


def test_the_prior_of_the_package_holds_most_cells_for_right() -> None:
    assert float(learned().log_prior.exp().sum()) < 0.1
