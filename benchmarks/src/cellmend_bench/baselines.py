"""Isolation Forest, OC-SVM, Marginals, OC-SVM + Marginals: each has those methods of CellMender that it can have.

A baseline learns from encoded cells in `learn` and answers in `judge_rows`, `judge` and `expect`; reading tables
and giving them back is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import OneClassSVM

from cellmend.model.columns import EncodedColumn, LevelColumn
from cellmend.model.encoding import Cells, TableEncoder
from cellmend.table.kinds import refuse_unmodelled, resolve_schema
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Schema

Floats = NDArray[np.float64]
IMPOSSIBLE = 100.0  # score of a value that its column cannot hold, as CellMender has it
MOST_COMPONENTS = 40
PATIENCE = 5  # components more without a lower BIC end the search
MOST_POINTS = 1000  # of a column that a mixture is fitted to; more are binned
SVM_ROWS = 5_000  # an SVM is quadratic in rows: it learns from a sample of this size and scores all


@dataclass(kw_only=True, eq=False)
class Baseline(ABC):
    """A detector of rows."""

    schema: Schema | Mapping[Any, Any] | None = None
    random_state: int = 0

    def fit(self, X: Any) -> Self:
        """Learn from a dirty table."""
        self.learn(self.start(X))
        return self

    def start(self, X: Any) -> Cells:
        """Schema and encoding; returns what to learn from."""
        table = read_typed(X)
        self.schema_ = resolve_schema(table.arrow, self.schema, all_real=table.frame.is_array)
        refuse_unmodelled(self.schema_)
        self.encoder_ = TableEncoder.fit(self.schema_, table)
        return self.encoder_.encode(table)

    def row_scores(self, X: Any) -> Floats:
        """How bad each row is, (N,), higher = worse."""
        return self.judge_rows(self.encoder_.encode(read_typed(X)))

    @property
    def columns(self) -> list[EncodedColumn]:
        """The modelled columns, grouped by kind."""
        return self.encoder_.columns

    @abstractmethod
    def learn(self, cells: Cells) -> None: ...

    @abstractmethod
    def judge_rows(self, cells: Cells) -> Floats: ...


class CellBaseline(Baseline):
    """A detector of cells, (N, D); a row is as bad as the sum of its cells."""

    def cell_scores(self, X: Any) -> Floats:
        """How bad each cell is, (rows, columns), higher = worse; 0 for gaps and columns left out."""
        table = read_typed(X)
        return self.encoder_.spread(self.judge_known(self.encoder_.encode(table)), table)

    def judge_rows(self, cells: Cells) -> Floats:
        return self.judge_known(cells).sum(axis=1)

    def judge_known(self, cells: Cells) -> Floats:
        """The scores, 0 for a gap, and for a value that its column cannot hold that of an impossible one."""
        possible = np.where(cells.values.isfinite().numpy(), self.judge(cells), IMPOSSIBLE)
        return np.where(cells.observed.numpy(), possible, 0.0)

    @abstractmethod
    def judge(self, cells: Cells) -> Floats: ...


@dataclass(frozen=True)
class Expected:
    """What a baseline expects in each cell: values (N, D) in model units, and {column: (N, levels)}."""

    values: Floats
    probabilities: dict[int, Floats]


class RepairBaseline(CellBaseline):
    """A detector of cells that can repair them."""

    def reconstruct(self, X: Any) -> Any:
        """Every modelled cell as the baseline expects it; the kind of X."""
        table = read_typed(X)
        values = self.expect(self.encoder_.encode(table)).values
        return self.encoder_.replace(table, values, np.ones(values.shape, dtype=bool))

    def reconstruct_proba(self, X: Any) -> dict[str, Any]:
        """For each column of levels a table rows × levels of probabilities."""
        table = read_typed(X)
        expected = self.expect(self.encoder_.encode(table)).probabilities
        return {
            column.name: table.frame.matrix_of(expected[d], column.levels)
            for d, column in enumerate(self.columns)
            if isinstance(column, LevelColumn)
        }

    @abstractmethod
    def expect(self, cells: Cells) -> Expected: ...


def one_hot(cells: Cells, columns: list[EncodedColumn]) -> Floats:
    """Numbers as they are, levels as one-hot blocks, 0 where unknown: (N, numbers + all levels)."""
    known = (cells.observed & cells.values.isfinite()).numpy()
    values = np.where(known, cells.values.double().numpy(), 0.0)
    blocks = [
        (values[:, d, None] == np.arange(len(column.levels))) & known[:, d, None]
        if isinstance(column, LevelColumn)
        else values[:, d, None]
        for d, column in enumerate(columns)
    ]
    return np.concatenate(blocks, axis=1, dtype=np.float64)


class IsolationForestRows(Baseline):
    """scikit-learn's Isolation Forest on one-hot rows, half of them per tree."""

    def learn(self, cells: Cells) -> None:
        forest = IsolationForest(max_samples=0.5, contamination=0.2, random_state=self.random_state)
        self.forest_ = forest.fit(one_hot(cells, self.columns))

    def judge_rows(self, cells: Cells) -> Floats:
        return -self.forest_.score_samples(one_hot(cells, self.columns))


class OneClassSVMRows(Baseline):
    """scikit-learn's one-class SVM on one-hot rows: RBF, nu 0.2, gamma 0.1."""

    def learn(self, cells: Cells) -> None:
        rows = one_hot(cells, self.columns)
        sample = rows[np.random.default_rng(self.random_state).permutation(len(rows))[:SVM_ROWS]]
        self.svm_ = OneClassSVM(nu=0.2, gamma=0.1).fit(sample)
        # Platt scaling: how probably a row lies inside, from its distance to the border.
        side = self.svm_.decision_function(sample)
        self.platt_ = LogisticRegression().fit(side[:, None], side >= 0)

    def judge_rows(self, cells: Cells) -> Floats:
        return -self.svm_.decision_function(one_hot(cells, self.columns))

    def log_inside(self, cells: Cells) -> Floats:
        """Log probability that each row lies inside, (N,)."""
        return -np.logaddexp(0, -self.platt_.decision_function(-self.judge_rows(cells)[:, None]))


class Marginals(RepairBaseline):
    """Each column for itself: a Gaussian mixture, components by BIC, or the frequencies of the levels."""

    def learn(self, cells: Cells) -> None:
        self.marginals_: list[Frequencies | Mixture] = [
            Frequencies.fit(known, len(column.levels)) if isinstance(column, LevelColumn) else Mixture.fit(known)
            for column, known in zip(self.columns, _known(cells), strict=True)
        ]

    def judge(self, cells: Cells) -> Floats:
        values = cells.values.double().numpy()
        return np.stack([-m.log_density(values[:, d]) for d, m in enumerate(self.marginals_)], axis=1)

    def expect(self, cells: Cells) -> Expected:
        values = cells.values.double().numpy()
        shares = {d: m.shares for d, m in enumerate(self.marginals_) if isinstance(m, Frequencies)}
        return Expected(
            np.stack([m.expect(values[:, d]) for d, m in enumerate(self.marginals_)], axis=1),
            {d: np.tile(share, (len(values), 1)) for d, share in shares.items()},
        )


class SVMAndMarginals(CellBaseline):
    """Platt-scaled log probability of the row by OC-SVM plus the cell's marginal log-likelihood."""

    def learn(self, cells: Cells) -> None:
        self.svm_ = OneClassSVMRows(random_state=self.random_state)
        self.marginals_ = Marginals(random_state=self.random_state)
        for part in (self.svm_, self.marginals_):
            part.encoder_ = self.encoder_
            part.learn(cells)

    def judge(self, cells: Cells) -> Floats:
        return self.marginals_.judge(cells) - self.svm_.log_inside(cells)[:, None]

    def judge_rows(self, cells: Cells) -> Floats:
        return self.marginals_.judge_rows(cells) - self.svm_.log_inside(cells)


@dataclass(frozen=True)
class Frequencies:
    """Shares of the levels, (C,), none of them quite 0."""

    shares: Floats

    @classmethod
    def fit(cls, values: Floats, levels: int) -> Frequencies:
        """Count."""
        counts = np.bincount(values.astype(np.int64), minlength=levels) + 1e-3
        return cls(counts / counts.sum())

    def log_density(self, values: Floats) -> Floats:
        """Log share of each value's level."""
        return np.log(self.shares)[np.nan_to_num(values).astype(np.int64)]

    def expect(self, values: Floats) -> Floats:
        """The most frequent level."""
        return np.full(len(values), float(self.shares.argmax()))


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians in one dimension, K components, all arrays (K,)."""

    weights: Floats
    means: Floats
    sds: Floats

    @classmethod
    def fit(cls, values: Floats) -> Mixture:
        """The mixture of 1 to 40 components with the lowest BIC; the search ends when more do not help."""
        points, counts = _points(values)
        best, lowest, since = cls(np.ones(1), np.zeros(1), np.ones(1)), np.inf, 0  # of an empty column
        for components in range(1, min(MOST_COMPONENTS, len(points)) + 1):
            mixture = cls._fit(points, counts, components)
            bic = -2 * counts @ mixture.log_density(points) + (3 * components - 1) * np.log(counts.sum())
            best, lowest, since = (mixture, bic, 0) if bic < lowest else (best, lowest, since + 1)
            if since == PATIENCE:
                break
        return best

    @classmethod
    def _fit(cls, points: Floats, counts: Floats, components: int, rounds: int = 100) -> Mixture:
        """EM on weighted points, started at the quantiles."""
        share = (np.arange(components) + 0.5) / components
        means = np.interp(share, (counts.cumsum() - counts / 2) / counts.sum(), points)
        spread = np.sqrt(np.average((points - np.average(points, weights=counts)) ** 2, weights=counts))
        floor = max(1e-3 * spread, 1e-6)
        mixture = cls(np.full(components, 1 / components), means, np.full(components, max(spread / components, floor)))
        for _ in range(rounds):
            each = mixture.log_each(points)
            share_of_each = counts[:, None] * np.exp(each - logsumexp(each, axis=1, keepdims=True))
            mass = share_of_each.sum(axis=0) + 1e-10
            means = share_of_each.T @ points / mass
            variance = (share_of_each * (points[:, None] - means) ** 2).sum(axis=0) / mass
            mixture = cls(mass / mass.sum(), means, np.sqrt(np.maximum(variance, floor**2)))
        return mixture

    def log_each(self, values: Floats) -> Floats:
        """log weight + log N of every component, (N, K)."""
        z = (values[:, None] - self.means) / self.sds
        return np.log(self.weights) - 0.5 * z**2 - np.log(self.sds) - 0.5 * np.log(2 * np.pi)

    def log_density(self, values: Floats) -> Floats:
        """Log density of each value."""
        return logsumexp(self.log_each(np.nan_to_num(values)), axis=1)

    def expect(self, values: Floats) -> Floats:
        """The nearest mean of a component."""
        return self.means[np.abs(np.nan_to_num(values)[:, None] - self.means).argmin(axis=1)]


def _points(values: Floats) -> tuple[Floats, Floats]:
    """The distinct values and how often they occur; when there are many, the means of fine bins."""
    points, counts = np.unique(values, return_counts=True)
    if len(points) > MOST_POINTS:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, MOST_POINTS + 1)))
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        counts = np.bincount(place, minlength=len(edges) - 1)
        points = np.bincount(place, weights=values, minlength=len(edges) - 1)[counts > 0] / counts[counts > 0]
        counts = counts[counts > 0]
    return points, counts.astype(np.float64)


def _known(cells: Cells) -> Iterator[Floats]:
    """The observed values of each column."""
    values, observed = cells.values.double().numpy(), cells.observed.numpy()
    for d in range(values.shape[1]):
        yield values[observed[:, d] & np.isfinite(values[:, d]), d]
