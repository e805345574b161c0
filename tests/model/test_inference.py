"""Scores by hand, and pseudo-Gibbs on a linear Gaussian network whose answer is known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from cellmend.model import evidence as evidence_module
from cellmend.model.columns import LevelColumn, RealColumn
from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence, Reconstruction, in_chunks, level_probabilities
from cellmend.model.hidden import hidden_ratios, judge_hidden, log_hidden
from cellmend.model.likelihoods import Distributions
from cellmend.model.network import RVAE, Bound, Shape, clean_logit, stack
from cellmend.model.published import (
    cell_nll,
    cell_pi,
    cell_pi_clamped,
    judge_whole_rows,
    lower_bound,
    pseudo_gibbs,
    reconstruct,
)
from tests.conftest import KNOTS_AT, PUBLISHED

ROWS = 60_000
NONE = torch.empty(0)
ANY = Cells(NONE, NONE)
A = (0.5, 0.4)  # encoder: z has mean A[0] x0 + A[1] x1 and deviation S
S = 0.3
B = (0.0, 0.9)  # decoder: column d has mean B[d] z + C[d]
C = (2.0, 0.0)
SIGMA = math.exp(-1.0)  # deviation of both columns


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear_network() -> RVAE:
    """ReLU in pairs is linear: x = relu(x) - relu(-x)."""
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "ab"]
    net = RVAE(columns, PUBLISHED, Shape(1, 2, 1), amortized=False, masked=False)
    pair = torch.tensor([1.0, -1.0])
    with torch.no_grad():
        net.encoder_input.number_weight.copy_(torch.tensor(A)[:, None] * pair)
        net.encoder_input.bias.zero_()
        net.encoder_output.weight.copy_(torch.stack([pair, torch.zeros(2)], dim=1))
        net.encoder_output.bias.copy_(torch.tensor([0.0, 2 * math.log(S)]))
        net.decoder_hidden.weight.copy_(pair[None, :])
        net.decoder_hidden.bias.zero_()
        net.decoder_output.weight[:, :2] = pair[:, None] * torch.tensor(B)
        net.decoder_output.bias[:2] = torch.tensor(C)
        net.likelihoods[0].log_variance.fill_(2 * math.log(SIGMA))  # type: ignore[union-attr]
    return net


def judge(net: RVAE, cells: Cells, *, method: str, weights: str, alpha: float, generator: torch.Generator) -> Evidence:
    if method == "hidden":
        return judge_hidden(net, cells, alpha=alpha)
    return judge_whole_rows(net, cells, method, generator, weights=weights, alpha=alpha)


def seen_by(net: RVAE, cells: Cells, method: str, alpha: float = 0.95, seed: int = 0) -> Reconstruction:
    draws = generator(seed)
    evidence = judge(net, cells, method=method, weights="coordinate", alpha=alpha, generator=draws)
    return reconstruct(net, cells, evidence, method=method, generator=draws)


def same_rows(*row: float) -> Cells:
    values = torch.tensor([row]).expand(ROWS, len(row)).contiguous()
    return Cells(values, torch.ones(ROWS, len(row), dtype=torch.bool))


def test_map_decodes_the_encoders_mean() -> None:
    seen = seen_by(linear_network(), same_rows(2.0, 5.0), "map")
    z = A[0] * 2 + A[1] * 5
    torch.testing.assert_close(seen.values[0], torch.tensor([C[0], B[1] * z]))
    assert not seen.kept.any()


def test_one_stage_ends_in_the_known_distribution() -> None:
    """x0 is drawn around C[0] from the second round on; x1 follows z: means and variances by recursion."""
    mean, variance = torch.tensor([3.0, 5.0]), torch.zeros(2, 2)
    for _ in range(5):
        z_mean = A[0] * mean[0] + A[1] * mean[1]
        a = torch.tensor(A)
        z_variance = a @ variance @ a + S**2
        mean = torch.tensor([B[0] * z_mean + C[0], B[1] * z_mean + C[1]])
        b = torch.tensor(B)
        variance = torch.outer(b, b) * z_variance + SIGMA**2 * torch.eye(2)
    seen = seen_by(linear_network(), same_rows(3.0, 5.0), "one-stage")
    torch.testing.assert_close(seen.values.mean(0), mean, atol=0.01, rtol=0)
    torch.testing.assert_close(seen.values.T.cov(), variance, atol=0.01, rtol=0)


def test_one_stage_judges_the_observed_row_from_the_last_z() -> None:
    net, cells = linear_network(), same_rows(3.0, 5.0)
    found = judge(net, cells, method="one-stage", weights="coordinate", alpha=0.9, generator=generator(3))
    _, z = pseudo_gibbs(net, cells, torch.zeros_like(cells.observed), generator(3))
    expected = clean_logit(net.log_clean(cells, net.decode(z)), net.log_corrupted(cells), alpha=0.9)
    torch.testing.assert_close(found.logit, expected.detach())


def test_two_stage_holds_clean_cells_and_ends_in_the_known_distribution_elsewhere() -> None:
    """x0 = 2 is what the decoder expects, so it stays; x1 = 60 is dirty, starts from 0 and follows x0."""
    mean, variance = 0.0, 0.0
    for _ in range(5):
        z_mean, z_variance = A[0] * 2.0 + A[1] * mean, A[1] ** 2 * variance + S**2
        mean, variance = B[1] * z_mean, B[1] ** 2 * z_variance + SIGMA**2
    seen = seen_by(linear_network(), same_rows(2.0, 60.0), "two-stage")
    held = seen.kept[:, 0]
    assert held.float().mean() > 0.98
    assert not seen.kept[:, 1].any()
    assert (seen.values[held, 0] == 2.0).all()
    assert seen.values[held, 1].mean().item() == pytest.approx(mean, abs=0.01)
    assert seen.values[held, 1].var().item() == pytest.approx(variance, abs=0.01)


def test_two_stage_draws_which_cells_are_clean_by_the_pi_of_one_stage() -> None:
    """A cell that may be either is held about as often as its pi says, and not by a threshold."""
    net, cells = linear_network(), same_rows(2.0, 2.2)
    pi = judge(net, cells, method="one-stage", weights="coordinate", alpha=0.9, generator=generator()).logit.sigmoid()
    by_map = judge(net, cells, method="map", weights="coordinate", alpha=0.9, generator=generator()).logit.sigmoid()
    share, above_half = pi[:, 1].mean(), (pi[:, 1] > 0.5).float().mean()
    kept = seen_by(net, cells, "two-stage", alpha=0.9).kept[:, 1].float().mean()
    assert kept.item() == pytest.approx(share.item(), abs=0.01)
    assert abs(kept - above_half) > 0.03
    assert abs(kept - by_map[0, 1]) > 0.03


def test_two_stage_never_holds_an_impossible_cell() -> None:
    cells = same_rows(2.0, float("nan"))
    assert not seen_by(linear_network(), cells, "two-stage").kept[:, 1].any()


def test_the_amortized_weights_are_those_of_the_head() -> None:
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "ab"]
    net = RVAE(columns, PUBLISHED, Shape(1, 4, 1), amortized=True, masked=False)
    net.initialize(generator())
    cells = same_rows(2.0, 1.0)[:5]
    found = judge(net, cells, method="map", weights="amortized", alpha=0.9, generator=generator())
    torch.testing.assert_close(found.logit, net.weight_logits(net.inputs(cells)).detach())


def test_two_stage_never_holds_a_missing_cell() -> None:
    cells = same_rows(2.0, 0.0)
    cells.observed[:, 1] = False
    seen = seen_by(linear_network(), cells, "two-stage")
    assert not seen.kept[:, 1].any()
    assert seen.values[:, 1].std() > 0.1


def test_kept_levels_are_certain() -> None:
    columns = [LevelColumn("a", "category", ("x", "y", "z"))]
    net = RVAE(columns, PUBLISHED, Shape(1, 2, 2), amortized=False, masked=False)
    net.initialize(generator())
    decoded = net.decode(torch.zeros(2, 1)).detach()
    seen = Reconstruction(torch.tensor([[2.0], [1.0]]), decoded, torch.tensor([[True], [False]]))
    ((column, probabilities),) = level_probabilities(net, seen)
    assert column == 0
    assert probabilities[0].tolist() == [0.0, 0.0, 1.0]
    torch.testing.assert_close(probabilities[1], decoded[1, :3].softmax(-1))


def evidence_of(log_clean: torch.Tensor, logit: torch.Tensor, log_corrupted: torch.Tensor = NONE) -> Evidence:
    return Evidence(log_clean, log_corrupted, logit, NONE, NONE, NONE, NONE, NONE)


def test_scores_by_hand() -> None:
    evidence = evidence_of(torch.tensor([-2.0]), torch.tensor([math.log(3.0)]))  # pi = 3 / 4
    assert cell_nll(evidence, ANY).item() == 2.0
    assert cell_pi(evidence, ANY).item() == pytest.approx(-math.log(0.75))
    assert cell_pi_clamped(evidence, ANY).item() == pytest.approx(-math.log(0.75))


def test_far_cells_stay_ranked_and_rows_are_clamped() -> None:
    evidence = evidence_of(torch.zeros(3), torch.tensor([-300.0, -100.0, 100.0]))
    assert cell_pi(evidence, ANY).tolist() == [300.0, 100.0, pytest.approx(0.0)]
    assert cell_pi_clamped(evidence, ANY).tolist() == pytest.approx([-math.log(1e-6)] * 2 + [1e-6], abs=1e-6)


@pytest.mark.parametrize("weights", ["coordinate", "none"])
def test_the_mean_of_q_is_used_for_scores(weights: str) -> None:
    net, cells = linear_network(), same_rows(2.0, 1.0)
    found = judge(net, cells, method="map", weights=weights, alpha=0.95, generator=generator())
    m = B[1] * (A[0] * 2 + A[1])
    expected = torch.distributions.Normal(m, SIGMA).log_prob(torch.tensor(1.0))
    torch.testing.assert_close(found.log_clean[0, 1], expected)


def test_chunks_cover_every_row_once(monkeypatch) -> None:
    monkeypatch.setattr(evidence_module, "CHUNK_NUMBERS", 64)
    cells = same_rows(2.0, 1.0)[:101]
    cells.values[:, 0] = torch.arange(101)
    chunks = list(in_chunks(linear_network(), cells))
    assert len(chunks) > 3
    assert torch.equal(torch.cat([chunk.values for _, chunk in chunks]), cells.values)
    assert all(chunk.values[0, 0] == first for first, chunk in chunks)


def test_the_mean_lower_bound_is_that_of_many_draws() -> None:
    """Of a linear Gaussian network the expected bound is known: E log N(x | B z + C, SIGMA) - KL."""
    net, cells = linear_network(), same_rows(2.0, 1.0)
    found = lower_bound(net, cells, Bound("none", 0.95, 1.0), generator()).mean().item()
    mu = A[0] * 2 + A[1]
    squares = [(2.0 - C[0]) ** 2, (1.0 - B[1] * mu) ** 2 + B[1] ** 2 * S**2]
    log_p = sum(-0.5 * q / SIGMA**2 - math.log(SIGMA) - 0.5 * math.log(2 * math.pi) for q in squares)
    kl = 0.5 * (mu**2 + S**2 - 1 - 2 * math.log(S))
    assert found == pytest.approx(log_p - kl, abs=0.01)


def following_network() -> RVAE:
    """Both columns follow z."""
    net = linear_network()
    with torch.no_grad():
        net.decoder_output.weight[:, :2] = torch.tensor([[1.0], [-1.0]]) * torch.tensor([0.7, 0.9])
    return net


def test_a_wrong_cell_is_hidden_until_the_others_stand_for_themselves() -> None:
    """x1 = 50 first makes x0 look wrong too; with both hidden x0 is what is usual, and then says what x1 should be."""
    cells = Cells(torch.tensor([[2.0, 50.0], [2.0, 0.9]]), torch.ones(2, 2, dtype=torch.bool))
    seen = judge(following_network(), cells, method="hidden", weights="coordinate", alpha=0.95, generator=generator())
    assert (seen.alone[0] < 0).all()
    assert (seen.logit > 0).tolist() == [[True, False], [True, True]]
    torch.testing.assert_close(seen.alone[1], seen.logit[1])
    repaired = reconstruct(following_network(), cells, seen, method="hidden", generator=generator()).values
    torch.testing.assert_close(repaired[0], torch.tensor([2.0, 0.9 * A[0] * 2]))
    mean = 0.7 * A[1] * 0.9 + C[0]  # of x0 in the second row, from x1 alone
    density = -0.5 * ((2.0 - mean) / SIGMA) ** 2 - math.log(SIGMA * math.sqrt(2 * math.pi))
    assert seen.log_clean[1, 0].item() == pytest.approx(density, abs=1e-5)


def test_rows_are_judged_alike_whoever_stands_beside_them() -> None:
    draws = torch.randn(70, 2, generator=generator()) * 8
    cells = Cells(draws, torch.rand(70, 2, generator=generator(1)) < 0.9)
    settings = {"method": "hidden", "weights": "coordinate", "alpha": 0.95, "generator": generator()}
    whole = judge(following_network(), cells, **settings).logit
    each = torch.cat([judge(following_network(), cells[row : row + 1], **settings).logit for row in range(70)])
    torch.testing.assert_close(whole, each)


def test_the_ratio_of_a_cell_does_not_depend_on_the_order_of_rows() -> None:
    """To the twelfth digit: single precision takes the last few numbers of a tensor otherwise than the rest."""
    how = Distributions(outlier="cauchy", outlier_scale=2.0, components=3, binned=True)
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "abc"]
    net = RVAE(columns, how, Shape(16, 16, 1), amortized=False, masked=True)
    net.initialize(generator())
    cells = Cells(torch.randn(37, 3, generator=generator(1)), torch.ones(37, 3, dtype=torch.bool))
    for seed in range(5):
        order = torch.randperm(37, generator=generator(seed))
        torch.testing.assert_close(
            hidden_ratios(net, cells[order])[0], hidden_ratios(net, cells)[0][order], rtol=1e-12, atol=0
        )


def test_networks_are_averaged_by_their_probabilities() -> None:
    networks = [linear_network(), following_network()]
    cells = Cells(torch.tensor([[2.0, 0.9]]), torch.ones(1, 2, dtype=torch.bool))
    settings = {"method": "hidden", "weights": "coordinate", "alpha": 0.95, "generator": generator()}
    alone = [judge(net, cells, **settings) for net in networks]
    together = judge(stack(networks), cells, **settings)
    expected = torch.stack([seen.log_clean.exp() for seen in alone]).mean(0).log()
    torch.testing.assert_close(together.log_clean, expected)
    means = torch.stack([seen.decoded for seen in alone]).mean(0)
    found = reconstruct(stack(networks), cells, together, method="hidden", generator=generator()).values
    torch.testing.assert_close(found, means)


def test_the_level_of_several_networks_is_the_one_most_probable_on_average() -> None:
    columns = [LevelColumn("a", "category", ("x", "y", "z"))]
    logits = [torch.tensor([0.9, 0.1, 0.0]), torch.tensor([0.0, 0.45, 0.55])]  # x on average, though z wins once
    networks = []
    for shares in logits:
        net = RVAE(columns, PUBLISHED, Shape(1, 2, 2), amortized=False, masked=True)
        net.initialize(generator())
        with torch.no_grad():
            net.decoder_output.weight.zero_()
            net.decoder_output.bias[:3] = (shares + 1e-6).log()
        networks.append(net)
    cells = Cells(torch.tensor([[2.0]]), torch.ones(1, 1, dtype=torch.bool))
    net = stack(networks)
    seen = seen_by(net, cells, "hidden")
    assert seen.values.item() == 0
    ((_, probabilities),) = level_probabilities(net, seen)
    torch.testing.assert_close(probabilities[0], (logits[0] + logits[1]) / 2, atol=1e-4, rtol=0)


class Average:
    """Expects each cell to be the average of those of its row that are shown, give or take 20."""

    decoder_output = SimpleNamespace(bias=torch.empty(1))

    def decode_hidden(self, cells: Cells) -> torch.Tensor:
        shown, columns = cells.observed.float(), cells.values.shape[1]
        others = shown[:, None, :] * (1 - torch.eye(columns))  # (B, D, D)
        return (others * cells.values[:, None, :]).sum(-1) / others.sum(-1).clamp_min(1)

    def log_clean(self, cells: Cells, decoded: torch.Tensor) -> torch.Tensor:
        return -0.5 * ((cells.values - decoded) / 20).square()

    def log_corrupted(self, cells: Cells) -> torch.Tensor:
        return torch.full_like(cells.values, -0.5 * 1.5**2)  # the more likely one from 1.5 deviations on


def test_the_worst_cell_is_hidden_first_so_that_its_neighbours_are_believed() -> None:
    """100 makes the small cells look wrong and 50 right. Without it, 50 is the odd one."""
    cells = Cells(torch.tensor([[100.0, 50.0, 1.0, 1.1, 0.9]]), torch.ones(1, 5, dtype=torch.bool))
    seen = judge_hidden(Average(), cells, alpha=0.5)  # type: ignore[arg-type]
    assert (seen.alone < 0).tolist() == [[True, False, True, True, True]]
    assert (seen.logit < 0).tolist() == [[True, True, False, False, False]]
    torch.testing.assert_close(seen.decoded[0, :2], torch.tensor([1.0, 1.0]), atol=0.1, rtol=0)
    assert seen.log_shares.exp().squeeze().tolist() == [1.0, 0.0, 0.0, 0.0]  # all readings come to the same


def test_several_wrong_cells_are_hidden_before_the_rest_is_believed() -> None:
    wrong = [400.0, 300.0, 250.0, 200.0]
    cells = Cells(torch.tensor([[*wrong, *[1.0] * 6]]), torch.ones(1, 10, dtype=torch.bool))
    seen = judge_hidden(Average(), cells, alpha=0.5)  # type: ignore[arg-type]
    assert (seen.alone < 0).sum() > 6
    assert (seen.logit < 0).tolist() == [[True] * 4 + [False] * 6]
    torch.testing.assert_close(seen.decoded[0, :4], torch.ones(4))


class Twins:
    """Expects the first two cells to be alike, give or take 1, and nothing of the third."""

    decoder_output = SimpleNamespace(bias=torch.empty(1))

    def decode_hidden(self, cells: Cells) -> torch.Tensor:
        shown = torch.where(cells.observed, cells.values, 0.0)  # what is hidden is taken for 0
        return torch.stack([shown[:, 1], shown[:, 0], cells.values[:, 2]], 1)

    def log_clean(self, cells: Cells, decoded: torch.Tensor) -> torch.Tensor:
        return -0.5 * (cells.values - decoded).square()

    def log_corrupted(self, cells: Cells) -> torch.Tensor:
        return torch.full_like(cells.values, -2.0)


def test_readings_are_weighed_by_how_likely_they_make_the_row() -> None:
    """1.5 and -1.6 contradict each other. Without the one the other is usual, 1.5 a little more so."""
    cells = Cells(torch.tensor([[1.5, -1.6, 0.0]]), torch.ones(1, 3, dtype=torch.bool))
    seen = judge_hidden(Twins(), cells, alpha=0.5)  # type: ignore[arg-type]
    assert (seen.alone[0, :2] < 0).all()
    wrong, p0 = math.exp(-0.5 * 3.1**2), math.exp(-2)
    first, second = ((math.exp(-0.5 * kept**2) + p0) * (wrong + p0) for kept in (1.6, 1.5))
    shares = seen.log_shares.exp()
    assert sorted(shares[:2, 0].tolist()) == pytest.approx(
        [first / (first + second), second / (first + second)], abs=1e-5
    )
    assert shares[2:].max() == 0
    assert (seen.logit[0] > 0).tolist() == [True, False, True]


def test_a_gap_does_not_tell_readings_apart() -> None:
    """The row of the worst cell again, and a column in which nothing stands."""
    values = torch.tensor([[100.0, 50.0, 1.0, 1.1, 0.9, 0.0]])
    for gap in (-70.0, 0.0, 70.0):  # what a gap holds is of no meaning
        values[0, 5] = gap
        cells = Cells(values, torch.tensor([[True] * 5 + [False]]))
        seen = judge_hidden(Average(), cells, alpha=0.5)  # type: ignore[arg-type]
        assert seen.log_shares.exp().squeeze().tolist() == [1.0, 0.0, 0.0, 0.0]
        assert (seen.logit[0, :5] < 0).tolist() == [True, True, False, False, False]


def test_a_row_in_which_nothing_looks_wrong_has_one_reading() -> None:
    cells = Cells(torch.tensor([[1.0, 1.0, 0.0], [9.0, 1.0, 0.0]]), torch.ones(2, 3, dtype=torch.bool))
    seen = judge_hidden(Twins(), cells, alpha=0.5)  # type: ignore[arg-type]
    assert seen.log_shares[:, 0].exp().tolist() == [1.0, 0.0, 0.0]
    torch.testing.assert_close(seen.readings[0, 0], seen.alone[0])


def test_the_first_look_is_the_ratio_of_each_hidden_cell(monkeypatch) -> None:
    monkeypatch.setattr(evidence_module, "CHUNK_NUMBERS", 64)  # several chunks
    net = following_network()
    cells = Cells(torch.randn(30, 2, generator=generator()) * 3, torch.rand(30, 2, generator=generator(1)) < 0.9)
    seen = judge_hidden(net, cells, alpha=0.5)
    torch.testing.assert_close(hidden_ratios(net, cells)[0], seen.alone)
    two = stack([net, linear_network()])
    torch.testing.assert_close(hidden_ratios(two, cells)[0], judge_hidden(two, cells, alpha=0.5).alone)


def test_the_log_probability_of_a_row_counts_both_explanations_of_the_cells_that_are_there() -> None:
    log_clean, log_corrupted = torch.tensor([[-1.0, -3.0e8, -2.0]]), torch.tensor([[-4.0, -20.0, -5.0]])
    cells = Cells(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    found = log_hidden(evidence_of(log_clean, NONE, log_corrupted), cells, alpha=0.9).item()
    expected = math.log(0.9 * math.exp(-1) + 0.1 * math.exp(-4)) + math.log(0.1) - 20
    assert found == pytest.approx(expected, rel=1e-5)
