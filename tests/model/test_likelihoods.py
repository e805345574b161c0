"""Every formula against scipy or a value worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import expit, log_softmax, softmax

from cellmend.model.columns import CountColumn, LevelColumn, RealColumn
from cellmend.model.likelihoods import (
    FAR,
    LOG_VARIANCE,
    MIXTURE_LOG_VARIANCE,
    Category,
    Count,
    Distributions,
    GaussianLogDensity,
    Ordinal,
    Real,
    log_sigmoid_difference,
    poisson_quantile,
    room_for_uniform,
    sample_levels,
)
from cellmend.model.measures import KNOTS
from tests.conftest import KNOTS_AT, PUBLISHED

ROWS = 7
RNG = np.random.default_rng(1)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def levels_column(name: str, count: int, kind: str = "category") -> LevelColumn:
    return LevelColumn(name, kind, tuple(range(count)))


def real() -> Real:
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "ab"]
    likelihood = Real(columns, PUBLISHED)
    with torch.no_grad():
        likelihood.log_variance.copy_(torch.tensor([-1.0, -9.0]))  # the second is clamped to -3
    return likelihood


def category() -> Category:
    return Category([levels_column("a", 3), levels_column("b", 5), levels_column("c", 2)], PUBLISHED)


def count() -> Count:
    columns = [CountColumn("a", "count", 2.0, 1.5, 0), CountColumn("b", "count", 40.0, 5.0, 0)]
    return Count(columns, PUBLISHED)


def ordinal() -> Ordinal:
    likelihood = Ordinal([levels_column("a", 4, "ordinal"), levels_column("b", 2, "ordinal")], PUBLISHED)
    with torch.no_grad():
        likelihood.raw_steps.add_(torch.tensor([[0.3, -0.4]]))
    return likelihood


def numbers(*shape: int) -> torch.Tensor:
    return torch.tensor(RNG.normal(size=shape), dtype=torch.float32)


def test_real_is_gaussian_when_clean_and_a_wide_gaussian_when_corrupted() -> None:
    values, decoded = numbers(ROWS, 2), numbers(ROWS, 2)
    sd = np.exp([-0.5, -1.5])
    expected = stats.norm.logpdf(values.numpy(), decoded.numpy(), sd)
    np.testing.assert_allclose(real().log_clean(values, decoded).detach(), expected, rtol=1e-5, atol=1e-5)
    wide = stats.norm.logpdf(values.numpy(), 0, 2)
    np.testing.assert_allclose(real().log_corrupted(values), wide, rtol=1e-5)


def test_the_variance_of_a_real_is_held_within_bounds() -> None:
    likelihood = real()
    with torch.no_grad():
        likelihood.log_variance.copy_(torch.tensor([9.0, -9.0]))
    at_mean = likelihood.log_clean(torch.zeros(1, 2), torch.zeros(1, 2)).detach()[0]
    np.testing.assert_allclose(at_mean, stats.norm.logpdf(0, 0, np.exp([1.5, -1.5])), rtol=1e-5)


def test_category_is_softmax_when_clean_and_uniform_when_corrupted() -> None:
    decoded = 20 * numbers(ROWS, 10)  # far apart: a shared maximum would underflow
    values = torch.stack([torch.randint(0, c, (ROWS,)) for c in (3, 5, 2)], dim=1)
    blocks = np.split(decoded.numpy(), [3, 8], axis=1)
    expected = np.stack([log_softmax(b, axis=1)[np.arange(ROWS), values[:, d]] for d, b in enumerate(blocks)], axis=1)
    np.testing.assert_allclose(category().log_clean(values.float(), decoded), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(category().log_corrupted(values.float())[0], np.log([1 / 3, 1 / 5, 1 / 2]), rtol=1e-6)


def test_no_level_is_less_likely_than_a_float_can_say() -> None:
    """Beyond exp(-80) all levels are alike, and the gradient still points to the chosen one."""
    decoded = torch.tensor([[0.0, 300.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    found = category().log_clean(torch.zeros(1, 3), decoded)
    assert found[0, 0].item() == pytest.approx(-80.0)
    (gradient,) = torch.autograd.grad(found[0, 0], decoded)
    torch.testing.assert_close(gradient[0, :3], torch.tensor([1.0, -1.0, 0.0]))


def test_category_probabilities_are_the_softmax_and_nothing_beyond_a_columns_levels() -> None:
    decoded = numbers(ROWS, 10)
    probabilities = category().probabilities(decoded)
    np.testing.assert_allclose(probabilities.sum(-1), 1.0, rtol=1e-6)
    assert probabilities[:, 2, 2:].abs().max() == 0
    np.testing.assert_allclose(probabilities[:, 1], decoded[:, 3:8].softmax(-1), rtol=1e-6)


def test_count_is_poisson_when_clean_and_poisson_of_a_large_rate_when_corrupted() -> None:
    values, decoded = torch.tensor([[0.0, 40.0], [5.0, 120.0]]), numbers(2, 2)
    rate = np.exp(decoded.numpy()) * [2.0, 40.0]
    np.testing.assert_allclose(
        count().log_clean(values, decoded), stats.poisson.logpmf(values.numpy(), rate), rtol=1e-4
    )
    large = [2.0 + 2 * 1.5, 40.0 + 2 * 5.0]
    np.testing.assert_allclose(count().log_corrupted(values), stats.poisson.logpmf(values.numpy(), large), rtol=1e-4)


def test_a_mixed_count_is_a_mixture_of_poissons_when_clean_and_half_a_cauchy_when_corrupted() -> None:
    columns = [CountColumn("a", "count", 2.0, 1.5, 0), CountColumn("b", "count", 40.0, 5.0, 0)]
    likelihood = Count(columns, Distributions("cauchy", 2.0, components=3, binned=True))
    values, decoded = torch.tensor([[0.0, 40.0], [5.0, 120.0]]), numbers(2, 2 * 5)
    own = decoded.numpy().reshape(2, 2, 5)
    shared = np.broadcast_to(likelihood.log_rates.detach().exp().numpy(), (2, 2, 3))
    rates = np.concatenate([np.exp(own[..., :1]) * [[2.0], [40.0]], shared], -1)
    weights = np.exp(own[..., 1:]) / np.exp(own[..., 1:]).sum(-1, keepdims=True)
    mixture = (weights * stats.poisson.pmf(values.numpy()[..., None], rates)).sum(-1)
    np.testing.assert_allclose(likelihood.log_clean(values, decoded).detach(), np.log(mixture), rtol=1e-4)
    np.testing.assert_allclose(likelihood.best(decoded).detach(), np.round((weights * rates).sum(-1)))
    scale = np.array([2.0 + 2 * 1.5, 40.0 + 2 * 5.0])
    between = stats.halfcauchy.cdf(values.numpy() + 1, scale=scale) - stats.halfcauchy.cdf(values.numpy(), scale=scale)
    np.testing.assert_allclose(likelihood.log_corrupted(values).exp(), between, rtol=1e-4)
    far = likelihood.log_corrupted(torch.tensor([[1e6, 1e6]])).exp()  # about 2 s / (pi k^2)
    np.testing.assert_allclose(far[0], 2 * scale / np.pi / 1e12, rtol=1e-3)
    low, high = likelihood.interval(decoded)
    for bound, share in ((low, 0.05), (high, 0.95)):
        at_most = (weights * stats.poisson.cdf(bound.detach().numpy()[..., None], rates)).sum(-1)
        below = (weights * stats.poisson.cdf(bound.detach().numpy()[..., None] - 1, rates)).sum(-1)
        assert (at_most >= share - 1e-5).all()
        assert (below < share + 1e-5).all()


def test_a_mixed_count_is_drawn_from_all_its_components() -> None:
    likelihood = Count(
        [CountColumn("a", "count", 2.0, 1.5, 0)], Distributions("cauchy", 2.0, components=1, binned=True)
    )
    with torch.no_grad():
        likelihood.log_rates.fill_(math.log(100.0))
    decoded = torch.tensor([[0.0, math.log(0.75), math.log(0.25)]]).expand(20_000, 3)
    drawn = likelihood.sample(decoded, torch.Generator().manual_seed(0))
    assert drawn.mean().item() == pytest.approx(0.75 * 2 + 0.25 * 100, rel=0.03)
    assert (drawn > 50).float().mean().item() == pytest.approx(0.25, abs=0.01)


def test_ordinal_is_a_cumulative_logit_when_clean_and_uniform_when_corrupted() -> None:
    likelihood, place = ordinal(), numbers(ROWS, 2)
    steps = torch.nn.functional.softplus(likelihood.raw_steps).detach().numpy()
    thresholds = [-np.inf, -2.0, -2.0 + steps[0, 0] + 1e-4, -2.0 + steps[0].sum() + 2e-4, np.inf]
    values = torch.stack([torch.randint(0, 4, (ROWS,)), torch.randint(0, 2, (ROWS,))], dim=1)
    logistic = stats.logistic.cdf
    first = [
        np.log(logistic(thresholds[k + 1] - p) - logistic(thresholds[k] - p))
        for k, p in zip(values[:, 0], place[:, 0].numpy(), strict=True)
    ]
    below = expit(0.0 - place[:, 1].numpy())
    second = np.log(np.where(values[:, 1] == 0, below, 1 - below))
    found = likelihood.log_clean(values.float(), place).detach()
    np.testing.assert_allclose(found, np.stack([first, second], 1), rtol=1e-4)
    np.testing.assert_allclose(likelihood.log_corrupted(values.float())[0], np.log([1 / 4, 1 / 2]), rtol=1e-6)


@pytest.mark.parametrize("make", [category, ordinal])
def test_probabilities_are_those_of_log_clean(make) -> None:
    likelihood = make()
    decoded = numbers(1, likelihood.width)
    probabilities = likelihood.probabilities(decoded)[0].detach()
    for level in range(2):
        values = torch.full((1, len(probabilities)), float(level))
        log_clean = likelihood.log_clean(values, decoded)[0].detach()
        np.testing.assert_allclose(probabilities[:, level], log_clean.exp(), rtol=1e-4)


def test_thresholds_start_evenly_over_the_middle() -> None:
    likelihood = Ordinal([levels_column("a", 6, "ordinal"), levels_column("b", 2, "ordinal")], PUBLISHED)
    bounds = likelihood._bounds().detach()[0]
    np.testing.assert_allclose(bounds[0, 1:-1], [-2, -1, 0, 1, 2], atol=1e-3)
    assert bounds[1, 1] == 0


def test_log_sigmoid_difference_keeps_digits_far_out() -> None:
    """sigmoid(-99) - sigmoid(-100) = e^-99 - e^-100 to all digits of a float."""
    found = log_sigmoid_difference(torch.tensor(-100.0), torch.tensor(-99.0))
    assert found.item() == pytest.approx(-99 + np.log(1 - np.exp(-1)), rel=1e-6)


@pytest.mark.parametrize("make", [real, category, count, ordinal])
def test_samples_follow_the_clean_component(make) -> None:
    """Mean and variance of many draws against the distribution's own."""
    likelihood = make()
    one = 0.5 * numbers(1, likelihood.width)
    draws = likelihood.sample(one.expand(40_000, -1), generator()).detach().double().numpy()
    if likelihood.coded:
        p = likelihood.probabilities(one)[0].detach().double().numpy()
        level = np.arange(p.shape[1])
        mean = p @ level
        variance = p @ level**2 - mean**2
    elif make is real:
        mean, variance = one[0].numpy(), np.exp([-1.0, -3.0])
    else:
        mean = variance = np.exp(one[0].numpy()) * [2.0, 40.0]
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * np.sqrt(variance.max() / 40_000))
    np.testing.assert_allclose(draws.var(0), variance, rtol=0.05)


@pytest.mark.parametrize("make", [category, count, ordinal])
def test_the_mode_is_the_most_probable_value(make) -> None:
    likelihood = make()
    decoded = numbers(ROWS, likelihood.width)
    mode = likelihood.best(decoded)
    at_mode = likelihood.log_clean(mode, decoded)
    for other in range(2):
        assert (likelihood.log_clean(torch.full_like(mode, float(other)), decoded) <= at_mode + 1e-5).all()


def test_the_interval_of_a_real_holds_ninety_percent() -> None:
    decoded = numbers(ROWS, 2)
    low, high = real().interval(decoded)
    expected = stats.norm.interval(0.9, decoded.numpy(), np.exp([-0.5, -1.5]))
    np.testing.assert_allclose(torch.stack([low, high]).detach(), expected, rtol=1e-4, atol=1e-5)


def test_the_interval_of_a_count_is_the_poisson_quantiles() -> None:
    decoded = torch.linspace(-5, 3, 401)[:, None].expand(-1, 2)
    low, high = count().interval(decoded)
    rate = np.exp(decoded.numpy()) * [2.0, 40.0]
    np.testing.assert_array_equal(low, stats.poisson.ppf(0.05, rate))
    np.testing.assert_array_equal(high, stats.poisson.ppf(0.95, rate))


def test_the_interval_of_an_ordinal_holds_at_least_ninety_percent() -> None:
    likelihood, decoded = ordinal(), numbers(ROWS, 2)
    low, high = likelihood.interval(decoded)
    p = likelihood.probabilities(decoded)
    level = torch.arange(4)
    inside = torch.where((level >= low[..., None]) & (level <= high[..., None]), p, 0.0).sum(-1)
    assert (inside >= 0.9 - 1e-5).all()
    places = torch.linspace(-8, 8, 400)[:, None].expand(-1, 2)
    at_most = likelihood.probabilities(places).cumsum(-1).detach().numpy()  # (B, D, C)
    np.testing.assert_array_equal(likelihood.interval(places)[0].numpy(), (at_most >= 0.05).argmax(-1))


def test_a_category_has_no_interval() -> None:
    low, high = category().interval(numbers(ROWS, 10))
    assert low.isnan().all()
    assert high.isnan().all()


def test_sampling_never_leaves_a_columns_levels() -> None:
    probabilities = torch.zeros(50_000, 1, 4)
    probabilities[..., 1] = 0.7
    probabilities[..., 2] = 0.3000001
    drawn = sample_levels(probabilities, generator())
    assert set(drawn.unique().tolist()) == {1.0, 2.0}


@pytest.fixture
def mixture() -> Real:
    """Two columns, each a Gaussian of the decoder and three components of the column."""
    how = Distributions(outlier="cauchy", outlier_scale=2.0, components=3, binned=True)
    made = Real([RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "ab"], how)
    with torch.no_grad():
        made.log_variance.copy_(torch.tensor([-1.0, 0.5]))
        made.places.copy_(torch.tensor([[-1.0, 0.0, 2.0], [0.0, 1.0, 5.0]]))
        made.widths.copy_(torch.tensor([[0.0, -2.0, 1.0], [-3.0, 0.0, 0.0]]))
    return made


def mixture_of(decoded: torch.Tensor, column: int) -> list[tuple[float, float, float]]:
    """(weight, mean, deviation) of each component, from one row's decoded numbers."""
    own = decoded[6 * column : 6 * column + 6].numpy()
    places = ([-1.0, 0.0, 2.0], [0.0, 1.0, 5.0])[column]
    logs = ([-1.0 + own[1], 0.0, -2.0, 1.0], [0.5 + own[1], -3.0, 0.0, 0.0])[column]
    return list(zip(softmax(own[2:]), [own[0], *places], np.exp(0.5 * np.array(logs)), strict=True))


def test_a_mixture_is_the_decoders_gaussian_and_the_columns_own(mixture: Real) -> None:
    values, decoded = numbers(ROWS, 2), numbers(ROWS, 12)
    found, best = mixture.log_clean(values, decoded).detach(), mixture.best(decoded).detach()
    low, high = (bound.detach() for bound in mixture.interval(decoded))
    for row in range(ROWS):
        for column in range(2):
            parts = mixture_of(decoded[row], column)
            density = sum(w * stats.norm.pdf(values[row, column].item(), m, s) for w, m, s in parts)
            assert found[row, column] == pytest.approx(np.log(density), abs=1e-4)
            assert best[row, column] == pytest.approx(sum(w * m for w, m, _ in parts), abs=1e-4)
            for bound, share in ((low, 0.05), (high, 0.95)):
                below = sum(w * stats.norm.cdf(bound[row, column].item(), m, s) for w, m, s in parts)
                assert below == pytest.approx(share, abs=1e-3)


def test_draws_from_a_mixture_have_its_mean_and_spread(mixture: Real) -> None:
    decoded = numbers(1, 12).expand(40_000, 12)
    drawn = mixture.sample(decoded, torch.Generator().manual_seed(0)).detach()
    for column in range(2):
        parts = mixture_of(decoded[0], column)
        mean = sum(w * m for w, m, _ in parts)
        variance = sum(w * (s**2 + m**2) for w, m, s in parts) - mean**2
        assert drawn[:, column].mean() == pytest.approx(mean, abs=0.05)
        assert drawn[:, column].var() == pytest.approx(variance, rel=0.05)


def test_far_numbers_stay_possible_under_a_cauchy(mixture: Real) -> None:
    values = torch.tensor([[0.0, -3.0], [50.0, 1e4]])
    np.testing.assert_allclose(mixture.log_corrupted(values), stats.cauchy.logpdf(values, scale=2.0), rtol=1e-5)


def test_binned_inputs_say_how_far_each_stretch_is_passed() -> None:
    knots = (0.0, 1.0, 1.0, 3.0, *([5.0] * (KNOTS - 4)))  # two knots coincide at 1: a step
    how = Distributions(outlier="gaussian", outlier_scale=2.0, components=0, binned=True)
    real = Real([RealColumn("a", "real", 0.0, 1.0, None, knots)], how)
    found = real.inputs(torch.tensor([[-9.0], [0.25], [1.0], [2.0], [99.0]]))[:, 0]
    assert found.shape == (5, KNOTS + 1)
    np.testing.assert_allclose(
        found[:, -2:].numpy(), [[np.log(10), 0], [0, 0], [0, 0], [0, 0], [0, np.log(95)]], rtol=1e-5
    )
    expected = [[0, 0, 0, 0], [0.25, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0.5, 0], [1, 1, 1, 1]]
    np.testing.assert_allclose(found[:, :4], expected, atol=1e-6)


def slow_mixture(real: Real, values: torch.Tensor, decoded: torch.Tensor) -> torch.Tensor:
    """The same density by torch's own operations, whose gradients torch works out."""
    own = decoded.view(*decoded.shape[:-1], real.columns, real.each)
    shape = *own.shape[:-1], real.how.components
    means = torch.cat([own[..., :1], real.places.expand(shape)], -1)
    log_variances = torch.cat([own[..., 1:2] + real.log_variance[:, None], real.widths.expand(shape)], -1)
    scales = (0.5 * log_variances.clamp(*MIXTURE_LOG_VARIANCE)).exp()
    components = torch.distributions.Normal(means, scales)
    weights = torch.distributions.Categorical(logits=own[..., 2:])
    return torch.distributions.MixtureSameFamily(weights, components).log_prob(values)


def test_gradients_of_a_mixture_are_those_of_torch(mixture: Real) -> None:
    """Also where a variance is at its bound, and where stacked networks have their own columns."""
    values, decoded = numbers(ROWS, mixture.columns), numbers(ROWS, mixture.width).requires_grad_()
    with torch.no_grad():
        mixture.widths[0, 0] = -9.0
        decoded[0, 1] = 7.0
    weights = [decoded, *mixture.parameters()]
    factor = numbers(ROWS, mixture.columns)
    found = torch.autograd.grad((mixture.log_clean(values, decoded) * factor).sum(), weights)
    expected = torch.autograd.grad((slow_mixture(mixture, values, decoded) * factor).sum(), weights)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


def test_gradients_of_a_gaussian_and_of_levels_are_those_of_torch() -> None:
    values, mean, spread = numbers(ROWS, 3), numbers(ROWS, 3), numbers(3)
    spread[1] = 2 + LOG_VARIANCE[1]  # beyond what it may be
    weights = [mean.requires_grad_(), spread.requires_grad_()]
    factor = numbers(ROWS, 3)
    found = GaussianLogDensity.apply(values, mean, spread)
    expected = torch.distributions.Normal(mean, (0.5 * spread.clamp(*LOG_VARIANCE)).exp()).log_prob(values)
    torch.testing.assert_close(found, expected)
    pairs = [(found, expected, weights)]
    levels, decoded = torch.tensor([[0, 4, 1]] * ROWS), (5 * numbers(ROWS, 10)).requires_grad_()
    blocks = decoded.split([3, 5, 2], -1)
    plain = torch.stack([b.log_softmax(-1).gather(-1, levels[:, d, None])[:, 0] for d, b in enumerate(blocks)], -1)
    pairs.append((category().log_clean(levels.float(), decoded), plain, [decoded]))
    for own, other, by in pairs:
        for one, two in zip(
            torch.autograd.grad((own * factor).sum(), by), torch.autograd.grad((other * factor).sum(), by), strict=True
        ):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def test_room_is_the_share_of_p0_that_fits_between_the_values_of_a_column() -> None:
    """A core with 30 % of its own p0, a core alone, a core with a tail on one side, and a column of one value."""
    rng = np.random.default_rng(0)
    core, p0 = rng.normal(0, 1, 20_000), 2 * np.tan(np.pi * (rng.random(20_000) - 0.5))
    some = rng.random(20_000) < 0.3
    columns = [np.where(some, p0, core), core, np.where(some, np.abs(p0), core), np.where(some, p0, 0.0)]
    known = [RealColumn("x", "real", 0.0, 1.0, None, (0.0,) * KNOTS, (-1e6, 1e6), 0.0, 1.0, d == 3) for d in range(4)]
    likelihood = Real(known, Distributions("cauchy", 2.0, 8, binned=True))
    values = torch.from_numpy(np.stack(columns, axis=1))
    room = likelihood.room(values, torch.ones_like(values, dtype=torch.bool)).tolist()
    # Of p0 so much lies within 4 of its widths.
    assert room[0] == pytest.approx(0.3 * 2 * np.arctan(4) / np.pi, abs=0.02)
    assert max(room[1:3]) < 0.005
    assert room[3] == pytest.approx(0.3, abs=0.02)


def test_values_drawn_by_chance_follow_p0_as_far_out_as_errors_are_looked_for() -> None:
    """By scipy: the quantiles of a Cauchy between -FAR and FAR widths, of a Gaussian, and of half a Cauchy."""
    uniform = torch.tensor([[0.0], [0.2], [0.5], [0.9], [1.0]], dtype=torch.float64)
    column = RealColumn("a", "real", 0.0, 1.0, None, KNOTS_AT, middle=0.5, spread=2.0)
    drawn = Real([column], Distributions("cauchy", 3.0, 2, True)).chance(uniform)
    cut = stats.cauchy.cdf(FAR)
    expected = stats.cauchy.ppf((1 - cut) + (2 * cut - 1) * uniform.numpy(), loc=0.5, scale=6.0)
    np.testing.assert_allclose(drawn.numpy(), expected, rtol=1e-5)
    gaussian = Real([column], Distributions("gaussian", 3.0, 0, False)).chance(uniform[1:4])
    np.testing.assert_allclose(gaussian.numpy(), stats.norm.ppf(uniform[1:4].numpy(), scale=3.0), rtol=1e-5)
    half = Count([CountColumn("a", "count", 4.0, 2.0, 0)], Distributions("cauchy", 3.0, 2, True)).chance(uniform)
    cut = stats.halfcauchy.cdf(FAR)
    np.testing.assert_allclose(half.numpy(), np.floor(stats.halfcauchy.ppf(cut * uniform.numpy(), scale=10.0) + 1e-9))


def test_both_ends_of_an_interval_of_counts_are_quantiles() -> None:
    rates = torch.tensor([[0.02], [0.4], [3.0], [50.0]], dtype=torch.float64)
    for share in (0.05, 0.5, 0.95):
        found = poisson_quantile(torch.ones_like(rates), rates, share).numpy()
        np.testing.assert_array_equal(found, stats.poisson.ppf(share, rates.numpy()[:, 0]))


def test_ranks_beyond_the_range_of_p0_leave_it_no_room() -> None:
    """Of 1,200 cells a tenth lies in the range, evenly; a rank of 1 or more lies beyond it."""
    ranks = torch.cat([torch.linspace(0, 0.999, 120), torch.full((1080,), 1.0)]).double()[:, None]
    assert room_for_uniform(ranks, ranks >= 0).item() == pytest.approx(12 * (10 + 1.63 * 10**0.5) / 1200, rel=1e-6)


def test_components_start_where_the_values_of_their_column_lie() -> None:
    how = Distributions("cauchy", 3.0, 3, True)
    knots = tuple(np.linspace(1.0, 4.0, KNOTS).tolist())
    numbers = Real([RealColumn("a", "real", 0.0, 1.0, None, knots)], how)
    np.testing.assert_allclose(numbers.places.detach(), [[1.0, 2.5, 4.0]], rtol=1e-6)
    np.testing.assert_allclose(numbers.widths.detach(), [[math.log((3 / 3) ** 2)] * 3], atol=1e-6)
    counts = Count([CountColumn("b", "count", 10.0, 2.0, 0)], how)  # a tenth of the mean, and 4 deviations above it
    np.testing.assert_allclose(counts.log_rates.detach().exp(), [[1.0, 10 + 2 * 1.55, 10 + 2 * 4.0]], rtol=1e-5)


def test_levels_that_share_an_output_have_its_probability_by_their_shares() -> None:
    """Two columns: of the first the last two levels share an output, one to three; the second has two of its own."""
    shared = LevelColumn("a", "category", ("x", "y", "z"), outputs=(0, 1, 1), shares=(1.0, 0.25, 0.75))
    likelihood = Category([shared, levels_column("b", 2)], PUBLISHED)
    found = likelihood.probabilities(torch.tensor([[math.log(3.0), 0.0, 0.0, math.log(4.0)]]))
    np.testing.assert_allclose(found[0], [[0.75, 0.25 * 0.25, 0.25 * 0.75], [0.2, 0.8, 0.0]], rtol=1e-6)
