"""Per-column gradient boosting, the peer that practitioners reach for: LightGBM, out of fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

from cellmend.errors import MissingExtraError
from cellmend.model.columns import EncodedColumn, LevelColumn
from cellmend.model.encoding import Cells
from cellmend_bench.baselines import CellBaseline, Expected, Floats, Marginals, RepairBaseline

FOLDS = 3
# With LightGBM's own regularisation rare classes diverge.
TREES: dict[str, Any] = {
    "n_estimators": 100,
    "num_leaves": 31,
    "min_sum_hessian_in_leaf": 1.0,
    "reg_lambda": 1.0,
    "verbose": -1,
}
LEAST_PROBABILITY = 1e-9


@dataclass(kw_only=True, eq=False)
class LightGBMColumns(RepairBaseline):
    """Each column from all others by boosted trees; a cell is predicted by trees that did not see its row.

    Numbers: Gaussian score of the residual with a robust scale. Levels: -log p. `loss` is "l2" or "l1".
    """

    loss: str = "l2"
    jobs: int = 1

    def learn(self, cells: Cells) -> None:
        """Fit every column and fold, and keep the out-of-fold answers for this table."""
        self.fold_ = np.random.default_rng(self.random_state).integers(0, FOLDS, len(cells))
        self.cells_, self.models_ = cells, [self._fit_column(cells, d) for d in range(len(self.columns))]
        self.out_of_fold_ = [self._predict(cells, d, self.fold_) for d in range(len(self.columns))]
        values, known = cells.values.double().numpy(), (cells.observed & cells.values.isfinite()).numpy()
        self.scales_ = [
            _robust_scale((values[:, d] - predicted[:, 0])[known[:, d]])
            for d, predicted in enumerate(self.out_of_fold_)
        ]

    def judge(self, cells: Cells) -> Floats:
        """How improbable each cell is given the others of its row, (N, D)."""
        values = cells.values.double().numpy()
        answers = self._answers(cells)
        return np.stack(
            [_surprise(column, values[:, d], answers[d], self.scales_[d]) for d, column in enumerate(self.columns)],
            axis=1,
        )

    def expect(self, cells: Cells) -> Expected:
        """The predictions."""
        answers = self._answers(cells)
        coded = [isinstance(column, LevelColumn) for column in self.columns]
        values = [a.argmax(axis=1) if is_coded else a[:, 0] for a, is_coded in zip(answers, coded, strict=True)]
        return Expected(
            np.stack(values, axis=1).astype(np.float64), {d: answers[d] for d in np.flatnonzero(coded).tolist()}
        )

    def _answers(self, cells: Cells) -> list[Floats]:
        """Out-of-fold answers for the fitted table; for another one the first fold's model answers."""
        if torch.equal(cells.values.nan_to_num(), self.cells_.values.nan_to_num()) and torch.equal(
            cells.observed, self.cells_.observed
        ):
            return self.out_of_fold_
        return [self._predict(cells, d, np.zeros(len(cells), dtype=int)) for d in range(len(self.columns))]

    def _fit_column(self, cells: Cells, d: int) -> list[Any]:
        """One model per fold, trained on the other folds."""
        try:
            import lightgbm
        except ImportError:
            raise MissingExtraError("This method needs LightGBM. Hint: pip install 'cellmend[bench]'.") from None
        values, known = cells.values.double().numpy(), cells.observed.numpy()[:, d]
        settings = TREES | {"n_jobs": self.jobs, "random_state": self.random_state}
        models = []
        for fold in range(FOLDS):
            rows = known & (self.fold_ != fold) & np.isfinite(values[:, d])
            coded = isinstance(self.columns[d], LevelColumn)
            model = (
                lightgbm.LGBMClassifier(**settings)
                if coded
                else lightgbm.LGBMRegressor(**settings, objective=self.loss)
            )
            models.append(model.fit(self._others(cells, d)[rows], values[rows, d], categorical_feature=self._coded(d)))
        return models

    def _predict(self, cells: Cells, d: int, fold: Any) -> Floats:
        """Predicted numbers (N, 1) or probabilities (N, C), each row by the model of its fold."""
        column, others = self.columns[d], self._others(cells, d)
        width = len(column.levels) if isinstance(column, LevelColumn) else 1
        answer = np.full((len(cells), width), LEAST_PROBABILITY if width > 1 else 0.0)
        for number, model in enumerate(self.models_[d]):
            rows = np.flatnonzero(fold == number)
            if len(rows) == 0:
                continue
            if isinstance(column, LevelColumn):
                answer[np.ix_(rows, model.classes_.astype(int))] = model.predict_proba(others[rows])
            else:
                answer[rows, 0] = model.predict(others[rows])
        return answer

    def _others(self, cells: Cells, d: int) -> Floats:
        """All other columns; LightGBM takes level numbers as they are and NaN as missing."""
        values = np.where(cells.observed.numpy(), cells.values.double().numpy(), np.nan)
        return np.delete(values, d, axis=1)

    def _coded(self, d: int) -> list[int]:
        rest = [column for place, column in enumerate(self.columns) if place != d]
        return [place for place, column in enumerate(rest) if column.kind == "category"]


@dataclass(kw_only=True, eq=False)
class LightGBMAndMarginals(CellBaseline):
    """The sum of both detectors' rank tails: how rare within its column a score as high is. A row is its worst cell.

    Frequencies say nothing of a level that the trees do not know; the marginals of numbers do.
    """

    jobs: int = 1

    def learn(self, cells: Cells) -> None:
        """Learn both."""
        self.trees_, self.marginals_ = LightGBMColumns(jobs=self.jobs, random_state=self.random_state), Marginals()
        for part in (self.trees_, self.marginals_):
            part.encoder_ = self.encoder_
            part.learn(cells)

    def judge(self, cells: Cells) -> Floats:
        """Sum of -log of the share of cells of the column that score as high, (N, D)."""
        trees, marginals = (rank_tail(part.judge_known(cells)) for part in (self.trees_, self.marginals_))
        numbers = [not isinstance(column, LevelColumn) for column in self.columns]
        return trees + np.where(numbers, marginals, 0.0)

    def judge_rows(self, cells: Cells) -> Floats:
        """The worst cell."""
        return self.judge_known(cells).max(axis=1)


def rank_tail(scores: Floats) -> Floats:
    """-log of the share of a column's cells that score at least as high, (N, D).

    >>> np.exp(-rank_tail(np.array([[3.0], [1.0], [2.0], [2.0]]))).round(3).T
    array([[0.25 , 1.   , 0.625, 0.625]])
    """
    return -np.log(rankdata(-scores, axis=0) / len(scores))


def _surprise(column: EncodedColumn, values: Floats, answer: Floats, scale: float) -> Floats:
    if isinstance(column, LevelColumn):
        chance = answer[np.arange(len(values)), np.nan_to_num(values).astype(int)]
        return -np.log(np.maximum(chance, LEAST_PROBABILITY))
    return 0.5 * np.square((values - answer[:, 0]) / scale) + np.log(scale)


def _robust_scale(residuals: Floats) -> float:
    """The deviation of a Gaussian with this median absolute residual; of a spiky column, its mean."""
    absolute = np.abs(residuals)
    return float(max(1.4826 * np.median(absolute), 0.1 * absolute.mean(), 1e-6))
