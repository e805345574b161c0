"""CellMender: what users call. Each method is a few named steps; follow them into the packages."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cellmend.decisions.decision import as_decisions
from cellmend.errors import DecisionWarning, SettingError
from cellmend.findings.finder import Finder, refuse_unknown
from cellmend.findings.finding import Mended
from cellmend.findings.review import ask, learn_decisions
from cellmend.model.encoding import EncodedTable, TableEncoder
from cellmend.model.file import model_of, parts_that_fit, read_parts, save_model
from cellmend.model.judge import Judge
from cellmend.model.learning import learn
from cellmend.model.model import Model, find_device
from cellmend.model.network import RVAE
from cellmend.model.profile import Profile, moved
from cellmend.model.update import learn_more
from cellmend.settings import Settings, Threshold, Whole, check
from cellmend.table.frames import read_frame
from cellmend.table.notation import Notations
from cellmend.table.otherwise import describe_table
from cellmend.table.reader import TableReader
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.rules import Rules
from cellmend.table.schema import Schema


class CellMender(OneToOneFeatureMixin, TransformerMixin, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Find the corrupted cells of a table and what they should have been.

    Parameters
    ----------
    weights : "coordinate" (RVAE-CVI), "amortized" (RVAE-AVI) or "none" (a plain VAE).
    alpha : prior probability that a cell is clean, while learning the first one, and when judging that by which cells
        are hidden and readings weighed; `predict` calls the share 1 - alpha of the worst rows outliers.
    outlier, outlier_scale : the corrupted component of numbers, "gaussian" or "cauchy", and its width in standard
        deviations of the column.
    components : how many components the clean distribution of a real column has beside the decoder's Gaussian.
    binned : should numbers enter the network bounded, as how far they are along each of 16 stretches, and should
        gross ones not widen their column's scale?
    hide : while training, up to this share of a row's cells is hidden from the encoder, and only those are asked for.
    networks : how many are trained side by side; their probabilities are averaged.
    kl_weight : of the latent variable's KL in the bound, 1 in the paper; with 0 the latent variable is not random.
    latent_dim, hidden_dim, embedding_dim : sizes of the network.
    epochs, batch_size, learning_rate, schedule, weight_decay : training with Adam; batch_size None: a fortieth of the
        rows, of 4,000 and more a sixteenth, from 16 to 1024; learning_rate None: 0.002 to 0.004, larger for larger
        batches; it stays ("constant") or falls to 0 ("cosine").
    train_rows : at most so many rows, drawn at random, are trained on; None: all.
    keep_rows : so many of the rows that were learned from, drawn at random, are kept in the model and its file, as the
        network sees them: `update` then forgets less. 0: none, the file has no row of yours.
    time_limit : seconds after which fitting ends with as many epochs as it had, guessing kinds and searching for rules
        among them; None: all epochs. A falling learning rate falls with the time, so that the last state is the best.
    quick : should no network be trained? Seconds are enough then, and errors that only it sees are missed (see
        docs/performance.md).
    patience : training ends once the bound has not risen for so many epochs; None: never before the last.
    repair_method : "hidden" (each cell is judged and repaired by a row in which it is hidden, and so are the cells
        that look wrong), or the paper's "map", "one-stage" or "two-stage"; scores follow it.
    threshold : cells at least this suspicious are flagged; None: as many as keep the expected share of false alarms at
        10 %, as the commands do.
    repair_from : flagged cells whose repair is at least this probable are repaired; others are left for a person.
    protect : columns whose cells are flagged, but never changed.
    impute : should `repair` also fill missing cells?
    schema : a Schema, or a mapping of column to kind; what it does not name is inferred.
    rules : Rules, or a list of entries and of rules of one's own in plain words, such as "price > 0"; relations that
        the entries do not name are not used, and no row may break those that are sure.
    decimal : "." or ",", the mark of decimals in columns of text; None: found out.
    device : "auto", "cpu", "cuda" or a torch device.
    random_state : an int makes fits and answers repeatable.
    verbose : show a progress bar while fitting.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> table = np.column_stack([x, 2 * x, -x])
    >>> table[7, 1] = 9.0
    >>> mender = CellMender(epochs=20, random_state=0).fit(table)  # 100, unless it should be quick
    >>> mender.findings(table)[["row", "column", "value"]].head(1).values.tolist()
    [[7, 'x1', 9.0]]
    """

    model_: Model  # all that is learned; schema_, encoder_, network_ ... are parts of it

    def __init__(
        self,
        *,
        weights: str = "coordinate",
        alpha: float = 0.95,
        outlier: str = "cauchy",
        outlier_scale: float = 2.0,
        components: int = 8,
        binned: bool = True,
        hide: float = 0.5,
        networks: int = 1,
        kl_weight: float = 0.0,
        latent_dim: int = 64,
        hidden_dim: int = 400,
        embedding_dim: int = 50,
        epochs: int = 100,
        batch_size: int | None = None,
        train_rows: int | None = 50_000,
        keep_rows: int = 0,
        time_limit: float | None = None,
        quick: bool = False,
        patience: int | None = None,
        learning_rate: float | None = None,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        repair_method: str = "hidden",
        threshold: float | None = None,
        repair_from: float = 0.9,
        protect: Sequence[str] = (),
        impute: bool = False,
        schema: Schema | Mapping[Any, Any] | None = None,
        rules: Rules | Mapping[str, Any] | list[Any] | None = None,
        decimal: str | None = None,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.weights = weights
        self.alpha = alpha
        self.outlier = outlier
        self.outlier_scale = outlier_scale
        self.components = components
        self.binned = binned
        self.hide = hide
        self.networks = networks
        self.kl_weight = kl_weight
        self.latent_dim = latent_dim
        self.hidden_dim = hidden_dim
        self.embedding_dim = embedding_dim
        self.epochs = epochs
        self.batch_size = batch_size
        self.train_rows = train_rows
        self.keep_rows = keep_rows
        self.time_limit = time_limit
        self.quick = quick
        self.patience = patience
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.repair_method = repair_method
        self.threshold = threshold
        self.repair_from = repair_from
        self.protect = protect
        self.impute = impute
        self.schema = schema
        self.rules = rules
        self.decimal = decimal
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what clean rows of X look like, X itself being dirty; y is ignored."""
        self._learn(X)
        return self

    def fit_mend(
        self, X: Any, *, fdr: float | None = None, suspicion: float | None = None, top: int | None = None
    ) -> Mended:
        """Fit to X and mend it, read and encoded once; which cells are flagged: see `findings`."""
        judge, encoded = self._learn(X)
        threshold = Threshold.of(fdr, suspicion, top, otherwise=self.threshold)
        return Finder(judge).mend(encoded, threshold, impute=self.impute)

    def update(self, X: Any) -> Self:
        """Learn from the new rows X, too, and keep what was learned before; X is dirty, as when fitting.

        Scales stay as fitted. A value that a category did not have becomes a level of it if several rows hold it and it
        looks like no misspelling, unless the schema declares the levels. What was learned before is remembered by rows
        that the model itself imagines, and by those that it kept (`keep_rows`). An update that fails changes nothing.
        """
        table = self._read(X)
        self.model_ = learn_more(self.model_, table, self.settings())
        return self

    # ------------------------------------------------------------ what people decide

    def learn(self, X: Any, decisions: Any) -> Self:
        """Learn from what people decided about cells of X: dicts or a DataFrame of row, column, value (as seen),
        verdict ("right", "wrong" or "undo") and, if known, repair.

        A decision holds for its own cell and speaks for others that are alike; what changed in these stands in
        `learned_`. Where its cell is not in X, it holds for cells with the same value. It adds to what was taught
        before; docs/decisions.md.
        """
        judge, encoded = self._judged(X)
        threshold = Threshold.of(otherwise=self.threshold)
        self.model_, changed, told = learn_decisions(judge, encoded, as_decisions(decisions), threshold)
        if told:
            warnings.warn(f"{told}.", DecisionWarning, stacklevel=2)
        self.learned_ = encoded.table.frame.frame_of(changed)
        return self

    def questions(self, X: Any, n: int = 20, *, whole_rows: bool = False) -> Any:
        """The `n` cells of X whose answer would teach most, or all cells of `n` rows, as a DataFrame: row, column,
        value, suspicion, repair, cause, and for how many other cells the answer speaks."""
        judge, encoded = self._judged(X)
        asked = ask(Finder(judge), encoded, check("n", n, Whole), whole_rows=whole_rows)
        return encoded.table.frame.frame_of(asked)

    # ------------------------------------------------------------ which cells, which rows

    def cell_suspicion(self, X: Any) -> Any:
        """Probability in [0, 1] that each cell is corrupted; the kind and shape of X.

        With the methods of the paper it is 1 - pi, for weights="none" by Bayes' rule on the fitted VAE. With hidden
        cells the share of dirty rows and of wrong cells in them is estimated from the table when fitting.
        """
        judge, encoded = self._judged(X)
        return encoded.table.frame.matrix_of(judge.suspicion(encoded))

    def cell_scores(self, X: Any, kind: str | None = None) -> NDArray[np.float64]:
        """How bad each cell is, (rows, columns), higher = worse: kind "suspicion" (-log(1 - suspicion)), or the
        paper's "pi" (-log pi) or "nll" (-log p)."""
        judge, encoded = self._judged(X)
        return encoded.table.frame.in_own_order(judge.cell_scores(encoded, kind))

    def row_scores(self, X: Any, kind: str | None = None) -> NDArray[np.float64]:
        """How bad each row is, (rows,), higher = worse: the expected number of its wrong cells (kind "suspicion"),
        or the paper's sum of its cells' scores, with pi clamped."""
        judge, encoded = self._judged(X)
        return judge.row_scores(encoded, kind)

    def score_rows(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Suspicion of every cell (rows, columns) and row scores (rows,), each row judged by itself: X may be any piece
        of a table, and the answers are the same, bit for bit.

        What only other rows can tell is not looked for: identifiers that stand twice, words that slipped into the
        neighbouring column, and whether a rare spelling is that of several rows.
        """
        judge, encoded = self._judged(X, rows_alone=True)
        suspicion, rows = judge.suspicion_and_row_scores(encoded)
        return encoded.table.frame.in_own_order(suspicion), rows

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Minus the row scores: lower = worse, as in scikit-learn."""
        return -self.row_scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Below 0 for rows that `predict` calls corrupted."""
        check_is_fitted(self)
        fitted = self.model_.calibration.method
        if self.repair_method != fitted:
            raise SettingError(
                f"`predict` compares with the fitted rows, so repair_method must be {fitted!r} as it was "
                f"then; it is {self.repair_method!r}. Hint: fit again."
            )
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for rows as bad as the worst share 1 - alpha of the fitted rows, 1 for the others."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def score(self, X: Any, y: Any = None) -> float:
        """What GridSearchCV compares by default, higher = better: mean log probability of a row, its cells hidden
        in turn; with the methods of the paper the mean ELBO."""
        judge, encoded = self._judged(X)
        return judge.log_likelihood(encoded)

    # ------------------------------------------------------------ what they should have been

    def reconstruct(self, X: Any, method: str | None = None) -> Any:
        """Every modelled cell as the clean component sees it, missing ones included; the kind of X."""
        judge, encoded = self._judged(X, method)
        return Finder(judge).reconstruct(encoded)

    def reconstruct_proba(self, X: Any, method: str | None = None) -> dict[str, Any]:
        """For each category or ordinal column, a table rows × levels of probabilities."""
        judge, encoded = self._judged(X, method)
        return Finder(judge).level_probabilities(encoded)

    def mend(
        self,
        X: Any,
        *,
        fdr: float | None = None,
        suspicion: float | None = None,
        top: int | None = None,
        impute: bool | None = None,
        rows_alone: bool = False,
    ) -> Mended:
        """Findings, repaired table and the suspicion of every cell at once; which cells are flagged: see `findings`.

        With `rows_alone` every row is judged by itself, so that X may be any piece of a table: see `score_rows`.
        """
        judge, encoded = self._judged(X, rows_alone=rows_alone)
        threshold = Threshold.of(fdr, suspicion, top, otherwise=self.threshold)
        return Finder(judge).mend(encoded, threshold, impute=self.impute if impute is None else impute)

    def findings(
        self, X: Any, fdr: float | None = None, *, suspicion: float | None = None, top: int | None = None
    ) -> Any:
        """One line per flagged cell, the most suspicious first: row, column, value, suspicion, repair,
        low, high, reason, cause, repair_probability, contradiction; a DataFrame of the kind of X.

        Flagged are as many as keep the expected share of false alarms at most `fdr`, which is 0.1 if nothing is said;
        or cells of at least this `suspicion`, or so many as `top` says. Where nothing says what a cell was it has no
        repair.
        Cells of which one is wrong, and nothing tells which, have a line each and one number: a contradiction.
        """
        return self.mend(X, fdr=fdr, suspicion=suspicion, top=top, impute=False).findings

    def repair(
        self,
        X: Any,
        impute: bool | None = None,
        fdr: float | None = None,
        *,
        suspicion: float | None = None,
        top: int | None = None,
    ) -> Any:
        """X with its flagged cells repaired, and missing cells filled if `impute`; kind and types of X.

        Which cells are flagged: see `findings`; those without a repair stay as they are.
        """
        return self.mend(X, fdr=fdr, suspicion=suspicion, top=top, impute=impute).repaired

    def transform(self, X: Any) -> Any:
        """The same as `repair`, for pipelines."""
        return self.repair(X)

    # ------------------------------------------------------------ whole columns

    def column_findings(self, X: Any) -> dict[str, str]:
        """What holds for whole columns, in words: units, words for missing values, another way to write than the one
        learned; column to sentence."""
        return describe_table(self._read(X))

    def adapted_to(self, X: Any) -> tuple[CellMender, dict[str, str]]:
        """The same model for pieces of a table that is written as X is, and which columns are so otherwise than
        learned; column to sentence. Of a whole table this need not be asked for."""
        reader, otherwise = self.model_.reader.adapted_to(self._read(X, rows_alone=True).arrow)
        return self.reading({name: reader.notations[name] for name in otherwise}), otherwise

    def reading(self, notations: Notations) -> CellMender:
        """The same model, with other notations of these columns."""
        if not notations:
            return self
        other = copy.copy(self)
        other.model_ = replace(self.model_, reader=self.model_.reader.with_notations(notations))
        return other

    def moved_columns(self, X: Any) -> dict[str, str]:
        """Columns that look otherwise than when the model last learned, and how; column to sentence."""
        return self.moved_since(self.profile(X))

    def profile(self, X: Any) -> Profile:
        """How many cells of each column lie where; those of pieces of a table add up."""
        return self.model_.profile.of(self.encoder_.encode(self._read(X, rows_alone=True)))

    def moved_since(self, now: Profile) -> dict[str, str]:
        """`moved_columns` by a profile."""
        return moved(self.encoder_.columns, self.model_.profile, now, self.model_.say)

    # ------------------------------------------------------------ what was learned

    def save(self, path: str | Path) -> None:
        """Write the fitted model as one file; `cellmend.load` reads it."""
        check_is_fitted(self)
        save_model(path, self.model_, self.settings(), named=hasattr(self, "feature_names_in_"))

    def settings(self) -> Settings:
        """The arguments, checked."""
        return Settings(**self.get_params(deep=False))

    @property
    def schema_(self) -> Schema:
        """The kind of every column."""
        return self.model_.reader.schema

    @property
    def names_(self) -> list[str] | None:
        """The columns in their order; None if it was fitted to an array."""
        return self.model_.reader.names

    @property
    def encoder_(self) -> TableEncoder:
        """How tables become cells."""
        return self.model_.encoder

    @property
    def network_(self) -> RVAE:
        """The trained network."""
        return self.model_.network

    @property
    def offset_(self) -> float:
        """Minus the row score with which `predict` compares."""
        return self.model_.calibration.offset

    @property
    def history_(self) -> list[float]:
        """The mean bound of every epoch."""
        return self.model_.history

    def read_to_fit(self, X: Any, until: float = math.inf) -> tuple[TableReader, ReadTable]:
        """How to read X, and X as it was read; until a model of it is learned the estimator is not fitted."""
        self.__dict__.pop("model_", None)
        frame = read_frame(X)
        validate_data(self, frame.native, reset=True, skip_check_array=True)
        return TableReader.fit(frame, self.schema, self.rules, self.decimal, until)

    def _learn(self, X: Any) -> tuple[Judge, EncodedTable]:
        settings, start = self.settings(), time.perf_counter()
        until = math.inf if settings.time_limit is None else start + settings.time_limit
        reader, table = self.read_to_fit(X, until)
        refuse_unknown(settings.protect, table.names)
        judge, encoded = learn(reader, table, settings.since(start))
        self.model_ = judge.model
        return judge, encoded

    def _read(self, X: Any, *, rows_alone: bool = False) -> ReadTable:
        check_is_fitted(self)
        frame = read_frame(X)
        if frame.is_array or self.names_ is None:  # columns with names are checked by these
            validate_data(self, frame.native, reset=False, skip_check_array=True)
        return self.model_.reader.read(frame, rows_alone=rows_alone)

    def _judged(self, X: Any, method: str | None = None, *, rows_alone: bool = False) -> tuple[Judge, EncodedTable]:
        """Who judges X, and X as the network sees it."""
        table = self._read(X, rows_alone=rows_alone)
        judge = Judge(self.model_, self.settings(), method)
        return judge, judge.encode(table)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def load(path: str | Path, *, device: str | None = None) -> CellMender:
    """A fitted CellMender from a file that `save` wrote, for this device; no code in the file is run."""
    header, weights = read_parts(path)
    with parts_that_fit(path):
        mender = CellMender(**header["settings"])
        mender.device = device or mender.device
        mender.schema = None if mender.schema is None else Schema.of(mender.schema)
        mender.protect = tuple(mender.protect)
        mender.model_ = model_of(header, weights, mender.settings())
        mender.n_features_in_ = len(mender.schema_.columns)
        if header["named"]:
            mender.feature_names_in_ = np.array([column.name for column in mender.schema_], dtype=object)
    try:
        mender.network_.to(find_device(mender.device))
    except SettingError:  # fitted on a device that this machine does not have
        mender.device = "auto"
        mender.network_.to(find_device(mender.device))
    return mender
