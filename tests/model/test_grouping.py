"""Columns of thousands of levels: groups that share an output, and what stays as if they did not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from cellmend.model.columns import LevelColumn
from cellmend.model.grouping import OWN, SHARED, Groups, group_levels, with_more
from cellmend.model.likelihoods import Category, Distributions
from cellmend.table.schema import Column

HOW = Distributions("cauchy", 3.0, 8, True)
SMALL = LevelColumn("sex", "category", ("f", "m"))
LARGE = LevelColumn("city", "category", ("a", "b", "c", "d"), outputs=(0, 1, 1, 2), shares=(1.0, 0.7, 0.3, 1.0))


def many_levels() -> Groups:
    return group_levels(np.random.default_rng(0).zipf(1.3, 5000).clip(0, 10_000))


def test_frequent_levels_have_an_output_of_their_own_and_groups_hold_neighbours() -> None:
    groups = many_levels()
    outputs, shares = np.array(groups.outputs), np.array(groups.shares)
    sizes = np.bincount(outputs)
    assert OWN <= len(sizes) <= OWN + SHARED
    assert (sizes == 1).sum() >= OWN
    rest = outputs[sizes[outputs] > 1]
    assert (np.diff(rest) >= 0).all()
    np.testing.assert_allclose(np.bincount(outputs, shares), 1.0)


def test_small_columns_and_tables_share_nothing() -> None:
    assert group_levels(np.full(OWN + SHARED, 10**6)) == group_levels(np.full(3000, 1)) == Groups()


def test_new_levels_join_their_neighbours() -> None:
    groups = with_more(Groups((0, 1, 1, 2, 2), (1.0, 0.5, 0.5, 0.9, 0.1)), ["k", "a", "b", "x", "y"], ["c", "z", "A"])
    assert groups.outputs[5:] == (1, 2, 1)
    assert groups.shares[5:] == (0.5, 0.1, 0.5)


def test_a_level_has_the_probability_of_its_group_times_its_share() -> None:
    category = Category([SMALL, LARGE], HOW)
    decoded = torch.tensor([[0.3, -0.2, 1.0, 0.5, -1.0]])
    city = decoded[0, 2:].softmax(0)
    levels = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    found = category.log_clean(levels, decoded.expand(4, -1)).exp()
    torch.testing.assert_close(found[:, 1], torch.stack([city[0], 0.7 * city[1], 0.3 * city[1], city[2]]))
    torch.testing.assert_close(found[:, 0], decoded[0, :2].softmax(0)[1].expand(4))
    probabilities = category.probabilities(decoded)
    assert probabilities.shape == (1, 2, 4)
    torch.testing.assert_close(probabilities[0, 1], found[:, 1])
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(1, 2))


def test_the_best_level_is_the_likeliest_of_all_not_that_of_the_likeliest_group() -> None:
    category = Category([SMALL, LARGE], HOW)
    decoded = torch.tensor([[0.0, 1.0, 1.0, 1.2, 0.0], [1.0, 0.0, 0.0, 3.0, 0.0]])
    assert category.best(decoded).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert torch.equal(category.best(decoded), category.probabilities(decoded).argmax(-1).float())


def test_gradients_reach_the_logits_of_the_group() -> None:
    category = Category([SMALL, LARGE], HOW)
    decoded = torch.randn(3, 5, dtype=torch.double, requires_grad=True, generator=torch.Generator().manual_seed(0))
    values = torch.tensor([[0.0, 2.0], [1.0, 3.0], [1.0, 0.0]])
    assert torch.autograd.gradcheck(lambda each: category.log_clean(values, each), (decoded,))


@pytest.mark.parametrize("robust", [True, False])
def test_columns_of_thousands_of_levels_are_grouped_unless_as_published(robust: bool) -> None:
    values = pa.chunked_array([[f"{code:05d}" for code in np.random.default_rng(0).integers(0, 4000, 20_000)]])
    column = LevelColumn.fit(Column("zip", "category"), values, robust=robust)
    assert bool(column.outputs) is robust
    assert len(column.grown(pa.chunked_array([["99999"] * 9]), ()).outputs) == (len(column.levels) + 1) * robust
