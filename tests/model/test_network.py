"""The network against a slow plain version, and the formulas of the lower bound against known values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.distributions import Bernoulli, Normal, kl_divergence

from cellmend.model.columns import CountColumn, EncodedColumn, LevelColumn, RealColumn
from cellmend.model.encoding import Cells
from cellmend.model.layers import Linear
from cellmend.model.likelihoods import Distributions
from cellmend.model.network import (
    LOG_IMPOSSIBLE,
    RVAE,
    Bound,
    Latent,
    Shape,
    clean_logit,
    elbo,
    gate_kl,
    latent_kl,
    rows_of,
    sample_latent,
    stack,
    unstack,
)
from tests.conftest import KNOTS_AT, PUBLISHED

ROWS = 40
COLUMNS: list[EncodedColumn] = [
    RealColumn("a", "real", 0.0, 1.0, None, KNOTS_AT),
    RealColumn("b", "real", 0.0, 1.0, None, KNOTS_AT),
    LevelColumn("c", "category", ("x", "y", "z")),
    LevelColumn("d", "category", tuple(range(7))),
    CountColumn("e", "count", 3.0, 2.0, 0),
    LevelColumn("f", "ordinal", (1, 2, 3, 4)),
]
KNOWN_LEVELS = {2: 3, 3: 7, 5: 4}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(amortized: bool = False) -> RVAE:
    made = RVAE(COLUMNS, PUBLISHED, Shape(3, 11, 5), amortized=amortized, masked=False)
    made.initialize(generator())
    return made


def cells(rows: int = ROWS, missing: float = 0.2) -> Cells:
    draw = generator(1)
    values = torch.randn(rows, 6, generator=draw)
    for column, levels in KNOWN_LEVELS.items():
        values[:, column] = torch.randint(0, levels, (rows,), generator=draw).float()
    values[:, 4] = torch.poisson(torch.full((rows,), 3.0), generator=draw)
    observed = torch.rand(rows, 6, generator=draw) >= missing
    return Cells(torch.where(observed, values, 0.0), observed)


def slow_hidden(net: RVAE, given: Cells) -> torch.Tensor:
    """The first layer of the encoder as the paper has it: one input vector a row, column by column."""
    layer, rows = net.encoder_input, []
    for values, observed in zip(given.values, given.observed, strict=True):
        total = layer.bias.clone()
        inputs = [values[0], values[1], torch.log1p(values[4]) - np.log1p(3.0)]
        for number, column in enumerate((0, 1, 4)):
            if observed[column]:
                total += inputs[number] * layer.number_weight[number]
        first = 0
        for place, (column, levels) in enumerate(KNOWN_LEVELS.items()):
            if observed[column]:
                embedding = net.embeddings.vectors[first + int(values[column])]
                total += embedding @ layer.level_weight[place]
            first += levels
        rows.append(total)
    return torch.stack(rows)


@pytest.mark.parametrize("rows", [ROWS, 3])  # look-up tables, and products for small batches and many levels
def test_the_first_layer_is_that_of_a_plain_version(rows: int, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.model.layers.SMALL_TABLE", 0)
    net, given = network(), cells(rows)
    hidden = slow_hidden(net, given).relu()
    plain = hidden @ net.encoder_output.weight + net.encoder_output.bias
    torch.testing.assert_close(torch.cat(net.encode(given), dim=1), plain)


def test_gradients_are_the_same_by_look_up_and_by_product(monkeypatch) -> None:
    """Seven levels at most: 40 rows are looked up at once, or multiplied four at a time."""
    monkeypatch.setattr("cellmend.model.layers.SMALL_TABLE", 0)
    net, given = network(), cells()
    net.encode(given).mu.square().sum().backward()
    looked_up = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    net.zero_grad()
    for first in range(0, ROWS, 4):
        net.encode(given[first : first + 4]).mu.square().sum().backward()
    for name, gradient in looked_up.items():
        torch.testing.assert_close(net.get_parameter(name).grad, gradient, msg=name)


@pytest.mark.parametrize("few", [0, 16])  # levels are looked up; levels are ones and zeros
def test_gradients_of_the_first_layer_are_those_of_the_plain_version(few: int, monkeypatch) -> None:
    """One column has many more levels than the others, so that they are multiplied in two groups."""
    monkeypatch.setattr("cellmend.model.layers.FEW_LEVELS", {"cpu": few})
    monkeypatch.setattr("cellmend.model.layers.WORTH_A_CUT", 1)
    net, given = network(), cells()
    assert len(net.embeddings.counts) == 2
    factor = torch.randn(ROWS, 11, generator=generator(3))
    weights = [net.embeddings.vectors, *net.encoder_input.parameters()]
    fast = net.encoder_input(net.inputs(given), net.embeddings)
    for one, two in zip(
        torch.autograd.grad((fast * factor).sum(), weights),
        torch.autograd.grad((slow_hidden(net, given) * factor).sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_the_kl_is_that_of_torch() -> None:
    mu, log_variance = (torch.randn(5, 3, generator=generator(seed)).requires_grad_() for seed in (0, 1))
    factor = torch.randn(5, generator=generator(2))
    plain = kl_divergence(Normal(mu, (0.5 * log_variance).exp()), Normal(0.0, 1.0)).sum(-1)
    found = torch.autograd.grad((latent_kl(Latent(mu, log_variance)) * factor).sum(), [mu, log_variance])
    for one, two in zip(found, torch.autograd.grad((plain * factor).sum(), [mu, log_variance]), strict=True):
        torch.testing.assert_close(one, two)


def test_a_missing_cell_does_not_enter() -> None:
    net, given = network(), cells()
    other = Cells(torch.where(given.observed, given.values, 1.0), given.observed)
    torch.testing.assert_close(net.encode(given).mu, net.encode(other).mu)


def test_embeddings_are_kept_to_norm_one() -> None:
    net = network()
    with torch.no_grad():
        net.embeddings.vectors.mul_(torch.linspace(0.5, 3, 14)[:, None])
    before = net.embeddings.vectors.detach().clone()
    net.embeddings.limit()
    norms = net.embeddings.vectors.detach().norm(dim=1)
    assert norms.max() <= 1 + 1e-6
    inside = before.norm(dim=1) < 1
    torch.testing.assert_close(net.embeddings.vectors.detach()[inside], before[inside])


def test_clean_logit_is_the_prior_when_both_explanations_agree() -> None:
    logit = clean_logit(torch.tensor(-3.0), torch.tensor(-3.0), alpha=0.8)
    assert logit.sigmoid().item() == pytest.approx(0.8)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.95])
@pytest.mark.parametrize(("log_clean", "log_corrupted"), [(-1.0, -2.0), (-6.0, -2.5), (0.5, -1.5)])
def test_pi_is_where_the_lower_bound_is_largest(alpha: float, log_clean: float, log_corrupted: float) -> None:
    """The closed form against a numerical search over the cell's part of the ELBO."""

    def minus_bound(pi: float) -> float:
        kl = pi * np.log(pi / alpha) + (1 - pi) * np.log((1 - pi) / (1 - alpha))
        return -(pi * log_clean + (1 - pi) * log_corrupted - kl)

    found = minimize_scalar(minus_bound, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9}).x
    logit = clean_logit(torch.tensor(log_clean), torch.tensor(log_corrupted), alpha=alpha)
    assert logit.sigmoid().item() == pytest.approx(found, abs=1e-4)


def test_latent_kl_is_that_of_torch_distributions() -> None:
    latent = Latent(torch.randn(5, 3), torch.randn(5, 3))
    expected = kl_divergence(Normal(latent.mu, (0.5 * latent.log_variance).exp()), Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(latent_kl(latent), expected)


def test_gate_kl_is_that_of_torch_distributions_and_finite_far_out() -> None:
    logit = torch.linspace(-12, 12, 9)
    expected = kl_divergence(Bernoulli(logits=logit), Bernoulli(0.95))
    torch.testing.assert_close(gate_kl(logit, alpha=0.95), expected, rtol=1e-4, atol=1e-5)
    far = gate_kl(torch.tensor([-200.0, 200.0]), alpha=0.95)
    torch.testing.assert_close(far, -torch.tensor([0.05, 0.95]).log())


def test_samples_of_z_have_the_encoders_mean_and_variance() -> None:
    latent = Latent(torch.tensor([[1.0, -2.0]]).expand(50_000, 2), torch.tensor([[0.0, -2.0]]).expand(50_000, 2))
    z = sample_latent(latent, generator())
    torch.testing.assert_close(z.mean(0), torch.tensor([1.0, -2.0]), atol=0.02, rtol=0)
    torch.testing.assert_close(z.var(0), torch.tensor([1.0, np.exp(-2.0)]).float(), atol=0, rtol=0.03)


def bound(net: RVAE, given: Cells, z: torch.Tensor, latent: Latent, *, alpha, **settings) -> torch.Tensor:  # type: ignore[no-untyped-def]
    return elbo(net, rows_of(net, given, alpha=alpha), z, latent, Bound(alpha=alpha, **settings))


def slow_elbo(net: RVAE, given: Cells, z: torch.Tensor, latent: Latent, alpha: float) -> torch.Tensor:
    """Equation 6 of the paper, cell by cell, with pi by equation 9."""
    log_clean, log_corrupted = net.log_clean(given, net.decode(z)), net.log_corrupted(given)
    bounds = []
    for n in range(len(given)):
        bound = -kl_divergence(Normal(latent.mu[n], (0.5 * latent.log_variance[n]).exp()), Normal(0.0, 1.0)).sum()
        for d in range(given.values.shape[1]):
            if given.observed[n, d]:
                clean, corrupted = log_clean[n, d].exp() * alpha, log_corrupted[n, d].exp() * (1 - alpha)
                pi = clean / (clean + corrupted)
                bound += pi * log_clean[n, d] + (1 - pi) * log_corrupted[n, d]
                bound -= kl_divergence(Bernoulli(pi), Bernoulli(alpha))
        bounds.append(bound)
    return torch.stack(bounds)


@pytest.mark.parametrize("rows", [ROWS, 3])
def test_stacked_networks_answer_as_each_does_alone(rows: int) -> None:
    networks, tables = [network(True), network(True)], [cells(rows), cells(rows, missing=0.5)]
    other = [CountColumn("e", "count", 9.0, 4.0, 0) if column.name == "e" else column for column in COLUMNS]
    networks[1] = RVAE(other, PUBLISHED, Shape(3, 11, 5), amortized=True, masked=False)
    networks[1].initialize(generator(5))
    both = stack(networks)
    joint = Cells(torch.stack([t.values for t in tables]), torch.stack([t.observed for t in tables]))
    for weights in ("coordinate", "amortized", "none"):
        latent = both.encode(joint)
        found = bound(
            both,
            joint,
            latent.mu,
            latent,
            weights=weights,
            alpha=torch.tensor([0.9, 0.5])[:, None, None],
            kl_weight=1.0,
        )
        for place, (net, given, alpha) in enumerate(zip(networks, tables, (0.9, 0.5), strict=True)):
            own = net.encode(given)
            expected = bound(net, given, own.mu, own, weights=weights, alpha=alpha, kl_weight=1.0)
            torch.testing.assert_close(found[place], expected, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        for parameter in both.parameters():
            parameter.add_(1.0)
    before = [net.decoder_output.weight.detach().clone() for net in networks]
    unstack(both, networks)
    for net, old in zip(networks, before, strict=True):
        torch.testing.assert_close(net.decoder_output.weight.detach(), old + 1)


@torch.no_grad()
def test_the_bound_is_equation_6() -> None:
    net, given = network(), cells(12)
    latent = net.encode(given)
    z = sample_latent(latent, generator())
    found = bound(net, given, z, latent, weights="coordinate", alpha=0.9, kl_weight=1.0)
    torch.testing.assert_close(found, slow_elbo(net, given, z, latent, 0.9), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_without_weights_the_bound_is_that_of_a_vae() -> None:
    net, given = network(), cells()
    latent = net.encode(given)
    found = bound(net, given, latent.mu, latent, weights="none", alpha=0.9, kl_weight=1.0)
    log_clean = net.log_clean(given, net.decode(latent.mu))
    torch.testing.assert_close(found, (log_clean * given.observed).sum(1) - latent_kl(latent))


def test_the_gradient_of_the_decoder_is_weighted_by_pi() -> None:
    """Equation 7 of the paper: clean cells count fully, corrupted ones hardly."""
    net, given = network(), cells()
    latent = net.encode(given)
    z = sample_latent(latent, generator()).detach()
    bound(net, given, z, latent, weights="coordinate", alpha=0.9, kl_weight=1.0).sum().backward()
    found = net.decoder_output.weight.grad
    assert found is not None
    log_clean = net.log_clean(given, net.decode(z))
    odds = (log_clean.detach() - net.log_corrupted(given)).exp() * 0.9 / 0.1
    weighted = odds / (1 + odds) * log_clean * given.observed
    (expected,) = torch.autograd.grad(weighted.sum(), net.decoder_output.weight)
    torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_the_amortized_bound_equals_the_coordinate_bound_when_its_head_gives_the_same_pi(monkeypatch) -> None:
    net, given = network(amortized=True), cells()
    latent = net.encode(given)
    coordinate = bound(net, given, latent.mu, latent, weights="coordinate", alpha=0.9, kl_weight=1.0)
    best = clean_logit(net.log_clean(given, net.decode(latent.mu)), net.log_corrupted(given), alpha=0.9)
    other = bound(net, given, latent.mu, latent, weights="amortized", alpha=0.9, kl_weight=1.0)
    assert (other <= coordinate + 1e-4).all()  # pi of equation 9 is the best there is
    monkeypatch.setattr(net, "weight_logits", lambda _: best)
    same = bound(net, given, latent.mu, latent, weights="amortized", alpha=0.9, kl_weight=1.0)
    torch.testing.assert_close(same, coordinate)


def test_the_amortized_head_follows_the_gradient_of_the_whole_bound() -> None:
    """d bound / d logit = pi (1 - pi) (log p - log p0 + log odds of alpha - logit), by hand."""
    net, given = network(amortized=True), cells()
    latent = net.encode(given)
    bound(net, given, latent.mu, latent, weights="amortized", alpha=0.9, kl_weight=1.0).sum().backward()
    with torch.no_grad():
        logit = net.weight_logits(net.inputs(given))
        odds = net.log_clean(given, net.decode(latent.mu)) - net.log_corrupted(given) + np.log(0.9 / 0.1)
        pi = logit.sigmoid()
        by_logit = pi * (1 - pi) * (odds - logit) * given.observed
        torch.testing.assert_close(net.weight_output.bias.grad, by_logit.sum(0), rtol=1e-3, atol=1e-3)
    assert net.weight_input.bias.grad is not None
    assert net.weight_input is not net.encoder_input


@torch.no_grad()
def test_the_bound_at_the_best_pi_is_the_log_likelihood_of_the_mixture() -> None:
    net, given = network(), cells(missing=0.0)
    latent = net.encode(given)
    found = bound(net, given, latent.mu, latent, weights="coordinate", alpha=0.9, kl_weight=1.0) + latent_kl(latent)
    clean, corrupted = net.log_clean(given, net.decode(latent.mu)), net.log_corrupted(given)
    mixture = torch.logaddexp(clean + np.log(0.9), corrupted + np.log(0.1)).sum(1)
    torch.testing.assert_close(found, mixture, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_value_that_its_column_cannot_hold_is_impossible_when_clean() -> None:
    net, given = network(), cells(5, missing=0.0)
    given.values[2, 3] = torch.nan
    log_clean = net.log_clean(given, net.decode(net.encode(given).mu))
    assert log_clean.isfinite().all()
    assert log_clean[2, 3] == LOG_IMPOSSIBLE
    logit = clean_logit(log_clean, net.log_corrupted(given), alpha=0.95)
    assert logit[2, 3].sigmoid() < 1e-30


@torch.no_grad()
def test_probabilities_name_each_coded_kind_once() -> None:
    net, given = network(), cells(5)
    spans = [span for span, _ in net.probabilities(net.decode(net.encode(given).mu))]
    assert spans == [slice(2, 4), slice(5, 6)]


OURS = Distributions(outlier="cauchy", outlier_scale=2.0, components=3, binned=True)


def masked_network(seed: int = 0) -> RVAE:
    made = RVAE(COLUMNS, OURS, Shape(3, 11, 5), amortized=False, masked=True)
    made.initialize(generator(seed))
    return made


def slow_decode_hidden(net: RVAE, given: Cells) -> torch.Tensor:
    """Column by column: hide it, go through the whole network, and keep its own outputs."""
    found = torch.full((len(given), net.outputs), torch.nan)
    for part in net.parts:
        owner = part.likelihood.owner + part.columns.start
        for column in range(part.columns.start, part.columns.stop):
            observed = given.observed.clone()
            observed[:, column] = False
            decoded = net.decode(net.encode(Cells(given.values, observed)).mu)[:, part.outputs]
            found[:, part.outputs.start : part.outputs.stop][:, owner == column] = decoded[:, owner == column]
    return found


@pytest.mark.parametrize("rows", [3, ROWS])  # fewer rows than levels multiply, more look up
@pytest.mark.parametrize("make", [network, masked_network])
def test_hiding_each_cell_at_once_is_hiding_them_one_by_one(make, rows: int) -> None:
    net, given = make(), cells(rows)
    torch.testing.assert_close(net.decode_hidden(given), slow_decode_hidden(net, given), rtol=1e-4, atol=1e-5)


def test_stacked_networks_hide_as_each_does_alone() -> None:
    networks, given = [masked_network(0), masked_network(1)], cells()
    both = Cells(given.values.expand(2, -1, -1), given.observed.expand(2, -1, -1))
    expected = torch.stack([net.decode_hidden(given) for net in networks])
    torch.testing.assert_close(stack(networks).decode_hidden(both), expected, rtol=1e-4, atol=1e-5)


def test_a_masked_network_tells_a_hidden_cell_from_an_average_one() -> None:
    net = masked_network()
    values = torch.zeros(1, 6)
    values[0, 0] = KNOTS_AT[0]  # encoded as all zeros, as a hidden cell is
    seen = [
        net.encode(Cells(values, torch.tensor([[known, True, True, True, True, True]]))).mu for known in (True, False)
    ]
    assert not torch.allclose(*seen)


def test_the_kl_weight_counts_the_kl_so_many_times() -> None:
    net, given = network(), cells()
    latent = net.encode(given)
    settings = {"weights": "coordinate", "alpha": 0.9}
    whole, none = (bound(net, given, latent.mu, latent, kl_weight=weight, **settings) for weight in (1.0, 0.0))
    torch.testing.assert_close(none - whole, latent_kl(latent))


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("relu", [True, False])
def test_gradients_of_a_dense_layer_are_those_of_torch(relu: bool, outputs: int | None) -> None:
    """All of its outputs, or the first three."""
    layer = Linear(4, 5)
    layer.initialize(generator())
    x = torch.randn(6, 4, generator=generator(1)).requires_grad_()
    plain = ((x.relu() if relu else x) @ layer.weight + layer.bias)[:, :outputs]
    found, factor = layer(x, relu=relu, outputs=outputs), torch.randn(plain.shape, generator=generator(2))
    torch.testing.assert_close(found, plain)
    weights = [x, layer.weight, layer.bias]
    for one, two in zip(
        torch.autograd.grad((found * factor).sum(), weights),
        torch.autograd.grad((plain * factor).sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(one, two)
