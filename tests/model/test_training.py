from __future__ import annotations

import pytest
import torch

from cellmend.errors import TrainingError
from cellmend.model.columns import LevelColumn, RealColumn
from cellmend.model.encoding import Cells
from cellmend.model.learning import threads_for
from cellmend.model.network import RVAE, Bound, Shape, elbo, gates, rows_of, stack, unstack
from cellmend.model.optimiser import Adam, Ascent, Watch, nothing
from cellmend.model.training import Lesson, hide_some, train
from tests.conftest import KNOTS_AT, PUBLISHED


def small_network(amortized: bool = False) -> RVAE:
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "abc"]
    made = RVAE(columns, PUBLISHED, Shape(2, 8, 2), amortized=amortized, masked=False)
    made.initialize(torch.Generator().manual_seed(0))
    return made


def line_cells(rows: int = 100) -> Cells:
    """Three columns that follow one another."""
    x = torch.randn(rows, 1, generator=torch.Generator().manual_seed(1))
    return Cells(x * torch.tensor([1.0, -1.0, 1.0]), torch.ones(rows, 3, dtype=torch.bool))


def run(network: RVAE, cells: Cells, *, seed: int = 0, learning_rate: float = 1e-2, **changes) -> torch.Tensor:
    own = {"weights": "coordinate", "alpha": 0.95, "kl_weight": 1.0, "hide": 0.0, "revise": None} | changes
    bound = Bound(own.pop("weights"), own.pop("alpha"), own.pop("kl_weight"))
    lesson = Lesson(cells, bound, own.pop("hide"), own.pop("revise"))
    watch = Watch(on_epoch=own.pop("on_epoch", nothing))
    steps = {"epochs": 5, "batch_size": 30, "weight_decay": 0.0, "schedule": "constant"} | own
    ascent = Ascent(learning_rate=learning_rate, **steps)
    return train(network, lesson, ascent, torch.Generator().manual_seed(seed), watch)


@pytest.mark.parametrize("weights", ["coordinate", "amortized", "none"])
def test_the_bound_rises(weights: str) -> None:
    history = run(small_network(weights == "amortized"), line_cells(), weights=weights, epochs=30)
    assert len(history) == 30
    assert history[-1] > history[0] + 0.5


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second, third = small_network(), small_network(), small_network()
    run(first, line_cells())
    run(second, line_cells())
    run(third, line_cells(), seed=1)
    assert torch.equal(first.decoder_output.weight, second.decoder_output.weight)
    assert not torch.equal(first.decoder_output.weight, third.decoder_output.weight)


def test_every_row_is_seen_once_an_epoch_in_a_new_order(monkeypatch) -> None:
    network, cells, seen = small_network(), line_cells(7), []
    inputs_of = network.inputs_of
    monkeypatch.setattr(
        network, "inputs_of", lambda values, known: seen.append(values[:, 0]) or inputs_of(values, known)
    )
    run(network, cells, batch_size=3, epochs=2)
    assert [len(batch) for batch in seen] == [3, 3, 1, 3, 3, 1]
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert torch.equal(first.sort().values, cells.values[:, 0].sort().values)
    assert torch.equal(second.sort().values, cells.values[:, 0].sort().values)
    assert not torch.equal(first, second)


def test_each_cell_has_the_alpha_that_was_last_revised(monkeypatch) -> None:
    """Revisions depend on the value, so that every batch shows whether its rows got their own."""
    cells, used, asked = line_cells(50), [], []

    def revise() -> torch.Tensor:
        asked.append(len(used))
        return (cells.values * len(asked)).sigmoid()

    def spy(network, batch, *others, **settings):  # type: ignore[no-untyped-def]
        used.append(batch)
        return elbo(network, batch, *others, **settings)

    monkeypatch.setattr("cellmend.model.training.elbo", spy)
    monkeypatch.setattr("cellmend.model.training.REVISIONS", (0.5, 0.75, 1.0))
    network = small_network()
    run(network, cells, batch_size=25, epochs=4, revise=revise)
    assert asked == [4, 6]  # after two and three epochs of two batches; not after the last
    for place, rows in enumerate(used):
        alpha = torch.tensor(0.95) if place < 4 else (rows.values * (1 if place < 6 else 2)).sigmoid()
        log_corrupted = network.log_corrupted(Cells(rows.values, rows.known.bool()))
        for found, expected in zip((rows.favour, rows.floor), gates(log_corrupted, alpha=alpha), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_weight_decay_pulls_the_weights_to_zero() -> None:
    free, held = small_network(), small_network()
    run(free, line_cells(), weights="none", epochs=40)
    run(held, line_cells(), weights="none", epochs=40, weight_decay=10.0)
    assert held.decoder_output.weight.norm() < 0.2 * free.decoder_output.weight.norm()


def test_weight_decay_is_relative_to_the_bound_summed_over_rows() -> None:
    """The first step of Adam with weight decay, by hand: rate times the sign of gradient plus decay times weight."""
    network, cells = small_network(), line_cells(20)
    with torch.no_grad():  # no noise in z, so that the gradient is known
        network.encoder_output.bias[2:] = -15.0
        network.encoder_output.weight[:, 2:] = 0.0
    latent = network.encode(cells)
    rows = rows_of(network, cells, alpha=0.95)
    (-elbo(network, rows, latent.mu, latent, Bound("none", 0.95, 1.0)).sum()).backward()
    before, gradient = network.decoder_output.weight.detach().clone(), network.decoder_output.weight.grad.clone()
    run(network, cells, weights="none", epochs=1, batch_size=20, weight_decay=3.0)
    step = -1e-2 * torch.sign(gradient + 3.0 * before)
    torch.testing.assert_close(network.decoder_output.weight.detach() - before, step, atol=1e-3, rtol=0)
    assert (torch.sign(gradient / 20 + 3.0 * before) != torch.sign(gradient + 3.0 * before)).any()


def test_embeddings_stay_within_norm_one_while_training() -> None:
    columns = [LevelColumn("a", "category", ("x", "y", "z"))]
    network = RVAE(columns, PUBLISHED, Shape(1, 4, 3), amortized=False, masked=False)
    network.initialize(torch.Generator().manual_seed(0))
    assert network.embeddings.vectors.norm(dim=1).max() <= 1 + 1e-6
    values = torch.randint(0, 3, (60, 1), generator=torch.Generator().manual_seed(0)).float()
    run(network, Cells(values, torch.ones(60, 1, dtype=torch.bool)), epochs=20, learning_rate=0.1)
    assert network.embeddings.vectors.norm(dim=1).max() <= 1 + 1e-6


def test_each_epoch_is_reported() -> None:
    seen: list[int] = []
    history = run(small_network(), line_cells(), epochs=3, batch_size=50, on_epoch=seen.append)
    assert seen == [0, 1, 2]
    assert history.shape == (3,)


def test_stacked_networks_learn_what_each_would_alone() -> None:
    """One step on one batch each: the weights after it are those of two separate trainings."""
    tables = [line_cells(20), Cells(line_cells(20).values + 1, torch.ones(20, 3, dtype=torch.bool))]
    alone, stacked = [small_network(), small_network()], [small_network(), small_network()]
    with torch.no_grad():
        for first, second in (alone, stacked):
            second.decoder_output.weight.mul_(2)
            for network in (first, second):
                network.encoder_output.bias[2:] = -15.0  # no noise in z, so that no draw matters
                network.encoder_output.weight[:, 2:] = 0.0
    settings = {"epochs": 1, "batch_size": 20, "weight_decay": 0.1}
    for network, cells, alpha in zip(alone, tables, (0.9, 0.6), strict=True):
        run(network, cells, alpha=alpha, **settings)
    both = stack(stacked)
    cells = Cells(torch.stack([t.values for t in tables]), torch.stack([t.observed for t in tables]))
    history = run(both, cells, alpha=torch.tensor([0.9, 0.6])[:, None, None], **settings)
    unstack(both, stacked)
    assert history.shape == (1, 2)
    for own, other in zip(alone, stacked, strict=True):
        for name, parameter in own.named_parameters():
            torch.testing.assert_close(other.get_parameter(name), parameter, rtol=1e-3, atol=1e-5, msg=name)


def test_divergence_is_one_sentence() -> None:
    with pytest.raises(TrainingError, match="diverged at learning_rate=1e\\+30"):
        run(small_network(), line_cells(), learning_rate=1e30)


@pytest.mark.slow
def test_a_corrupted_cell_moves_the_weights_less_than_in_a_plain_vae() -> None:
    """The point of the method: a far outlier is given to the corrupted component."""
    cells = line_cells(300)
    cells.values[0, 0] = 40.0
    robust, plain = small_network(), small_network()
    run(robust, cells, epochs=40)
    run(plain, cells, epochs=40, weights="none")
    with torch.no_grad():
        errors = [(net.decode(net.encode(cells).mu)[0, 0] - 40.0).abs().item() for net in (robust, plain)]
    assert errors[0] > errors[1] + 5


def test_weight_decay_of_each_stacked_network_is_adams() -> None:
    decays = [0.0, 3.0]
    pairs = [stack([small_network(), small_network()]) for _ in range(3)]
    table = line_cells()
    cells = Cells(table.values.expand(2, -1, -1), table.observed.expand(2, -1, -1))
    for network, decay in zip(pairs, (*decays, torch.tensor(decays)), strict=True):
        run(network, cells, weight_decay=decay)
    for without, with_decay, of_each in zip(*(pair.parameters() for pair in pairs), strict=True):
        torch.testing.assert_close(of_each[0], without[0])
        torch.testing.assert_close(of_each[1], with_decay[1])


def test_a_random_share_of_each_row_is_hidden() -> None:
    rows, columns = 4000, 50
    observed = torch.arange(rows * columns).view(rows, columns) % 7 > 0
    seen, asked = hide_some(observed.float(), 0.6, torch.Generator().manual_seed(0), observed.shape[:1])
    assert torch.equal(seen + asked, observed.float())
    assert not (seen * asked).any()
    share = asked.sum(1) / observed.sum(1)
    assert abs(share.mean() - 0.3) < 0.01
    # Uniform between 0 and 0.6, and on top of it the chance of each cell.
    assert abs(share.var() - (0.6**2 / 12 + (0.3 - 0.12) / 43)) < 0.003
    assert share.max() < 0.9


def test_hidden_cells_are_learned_from_the_others() -> None:
    """Without hiding a network may copy; with it, a cell follows from the rest of its row."""
    columns = [RealColumn(name, "real", 0.0, 1.0, None, KNOTS_AT) for name in "abc"]
    network = RVAE(columns, PUBLISHED, Shape(2, 32, 2), amortized=False, masked=True)
    network.initialize(torch.Generator().manual_seed(0))
    cells = line_cells(300)
    run(network, cells, epochs=60, hide=0.5, kl_weight=0.0)
    found = network.decode_hidden(cells)
    assert torch.corrcoef(torch.stack([found[:, 1], cells.values[:, 1]]))[0, 1] > 0.95


def test_without_kl_nothing_is_drawn_but_the_order_of_rows() -> None:
    """One batch of all rows: then not even the order matters, and any seed gives the same weights."""
    first, second = small_network(), small_network()
    for seed, network in enumerate((first, second)):
        run(network, line_cells(), seed=seed, kl_weight=0.0, batch_size=100)
    torch.testing.assert_close(first.decoder_output.weight, second.decoder_output.weight, rtol=1e-3, atol=1e-5)


def test_the_learning_rate_falls_along_a_cosine() -> None:
    """With a rate of nearly 0 in the last epochs weights hardly move any more."""
    moved = {}
    for schedule in ("constant", "cosine"):
        network, seen = small_network(), []
        run(
            network,
            line_cells(),
            kl_weight=0.0,
            epochs=40,
            schedule=schedule,
            on_epoch=lambda epoch, network=network, seen=seen: seen.append(network.decoder_output.weight.clone()),
        )
        moved[schedule] = (seen[-1] - seen[-2]).abs().max()
    assert moved["cosine"] < 0.02 * moved["constant"]


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adam_is_that_of_torch(weight_decay: float) -> None:
    ours, theirs = (torch.nn.Linear(3, 2) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, torch.tensor(0.01), weight_decay)
    other = torch.optim.Adam(theirs.parameters(), lr=0.01, weight_decay=weight_decay)
    for x in torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(0)):
        adam.step(-ours(x).square().sum())
        other.zero_grad()
        theirs(x).square().sum().backward()
        other.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


def test_adam_takes_gradients_however_they_lie_in_memory() -> None:
    weights = [torch.nn.Parameter(torch.arange(6.0).view(2, 3)) for _ in range(2)]
    factor = torch.arange(6.0).view(3, 2)
    gains = (weights[0].T * factor).sum(), (weights[1] * factor.T.contiguous()).sum()
    for weight, gain in zip(weights, gains, strict=True):
        Adam(torch.nn.ParameterList([weight]), torch.tensor(0.1), 0.0).step(gain)
    torch.testing.assert_close(*weights)


def test_training_ends_when_nothing_is_learned_any_more() -> None:
    """At a rate of nearly 0 the bound does not rise; with z drawn anew it goes up and down."""
    assert len(run(small_network(), line_cells(), epochs=60, learning_rate=1e-9, patience=3)) < 30
    assert len(run(small_network(), line_cells(), epochs=20, patience=3)) > 5
    assert len(run(small_network(), line_cells(), epochs=60, learning_rate=1e-9)) == 60


@pytest.mark.parametrize(("rows", "wanted"), [(20, 1), (2000, 3)])
def test_small_batches_are_trained_by_one_thread_and_the_user_gets_the_others_back(rows: int, wanted: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with threads_for(rows):
            assert torch.get_num_threads() == wanted
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
