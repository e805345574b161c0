"""CellMender: the table of contents. Each method is a few named steps; follow them into the modules."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Generator, Tensor
from torch.nn.functional import softplus

import cellmend
from cellmend.errors import ModelFileError, SettingError, TableError
from cellmend.findings.findings import (
    EXPLAINED,
    Expectation,
    Finding,
    Mended,
    Wording,
    about,
    doubt,
    expect,
    explain,
    explain_suspect,
    short,
    swapped,
    with_reasons,
)
from cellmend.model.encoding import Cells, EncodedColumn, LevelColumn, TableEncoder
from cellmend.model.file import load_model, save_model
from cellmend.model.inference import (
    Evidence,
    Reconstruction,
    cell_nll,
    cell_pi,
    cell_pi_clamped,
    each_chunk,
    filled_up,
    for_each_network,
    hidden_ratio,
    imagine,
    in_chunks,
    judge,
    level_probabilities,
    log_hidden,
    lower_bound,
    reconstruct,
)
from cellmend.model.likelihoods import Distributions
from cellmend.model.network import RVAE, grow, stack, unstack
from cellmend.model.profile import RECENT, Summary, moved
from cellmend.model.suspicion import (
    RARE_SHARE,
    ErrorRates,
    clean_priors,
    estimate_rates,
    expected_errors,
    log_odds,
    wrong_alone,
    wrong_by,
)
from cellmend.model.training import Keeper, Team, decay_of_each, progress, train
from cellmend.settings import SCORES, Threshold, check_method, check_settings, one_of
from cellmend.table.checks import Checks, check, learn_checks
from cellmend.table.frames import Suspect, Table, read_table
from cellmend.table.notation import (
    Dates,
    Numbers,
    Reader,
    describe_columns,
    learn_reader,
    learn_readers,
    readers_from_json,
    readers_to_json,
    understand,
)
from cellmend.table.schema import DATE, IGNORE, Schema, declared_kinds, resolve_schema

SMALL_TABLE = 4000  # rows
STEPS = (40, 16)  # an epoch of small and of other tables, unless batch_size is given: more rows do not need more steps
RATES = (0.002, 0.004)  # learning rates, unless one is given: of small batches and of those of FULL_RATE rows
FULL_RATE = 256
KEPT_VALUES, KEPT_OBSERVED = "kept.values", "kept.observed"  # names in the model file
REMEMBERED = (RECENT, 10_000)  # rows, as many as are new within these: an update learns them again beside the new ones


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
    time_limit : seconds after which training ends with as many epochs as it had; None: all of them. A falling learning
        rate falls with the time, so that the last state is the best.
    patience : training ends once the bound has not risen for so many epochs; None: never before the last.
    repair_method : "hidden" (each cell is judged and repaired by a row in which it is hidden, and so are the cells
        that look wrong), or the paper's "map", "one-stage" or "two-stage"; scores follow it.
    threshold : cells at least this suspicious are flagged and repaired.
    impute : should `repair` also fill missing cells?
    schema : a Schema, or a mapping of column to kind; what it does not name is inferred.
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
    >>> mender = CellMender(random_state=0).fit(table)
    >>> mender.findings(table)[["row", "column", "value"]].head(1).values.tolist()
    [[7, 'x1', 9.0]]
    """

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
        patience: int | None = None,
        learning_rate: float | None = None,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        repair_method: str = "hidden",
        threshold: float = 0.5,
        impute: bool = False,
        schema: Schema | Mapping[Any, Any] | None = None,
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
        self.patience = patience
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.repair_method = repair_method
        self.threshold = threshold
        self.impute = impute
        self.schema = schema
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what clean rows of X look like, X itself being dirty; y is ignored."""
        table, cells = self._start(X)
        history = self._train(self.network_, *self._lessons(cells))
        self._finish(table, cells, history)
        return self

    def _start(self, X: Any) -> tuple[Table, Cells]:
        """Schema, encoding and an untrained network; returns what to train on."""
        check_settings(self.get_params(deep=False))
        self.__dict__.pop("offset_", None)  # set last: a fit that fails leaves the estimator unfitted
        table = self._read(X, reset=True)
        self.readers_ = {} if table.is_array else learn_readers(table.arrow, declared_kinds(self.schema))
        table = _understood(table, self.readers_)
        dates = [name for name, reader in self.readers_.items() if isinstance(reader, Dates)]
        self.schema_ = resolve_schema(table.understood, self.schema, all_real=table.is_array, dates=dates)
        self.checks_ = learn_checks(table, self.schema_)
        table = check(table, self.checks_)
        self.encoder_ = TableEncoder.fit(self.schema_, table, robust=self.binned)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31))
        self.network_ = _as_one(self._members()).to(self._device())
        return table, self._sample(self.encoder_.encode(table)).to(self._device())

    def _sample(self, cells: Cells) -> Cells:
        """The rows to learn from: all, or `train_rows` of them."""
        if self.train_rows is None or len(cells) <= self.train_rows:
            return cells
        drawn = torch.randperm(len(cells), generator=torch.Generator().manual_seed(self.seed_))
        return cells[drawn[: self.train_rows].sort().values]

    def _lessons(self, cells: Cells) -> tuple[Cells, float, float, Callable[[], Tensor]]:
        """What `_train` needs beside the network to learn from these cells (N, D) alone."""
        of_each = for_each_network(self.network_, cells)

        def revise() -> Tensor:
            return clean_priors(hidden_ratio(self.network_, cells), cells.observed).expand(of_each.values.shape)

        return of_each, self.alpha, self.weight_decay, revise

    def _train(
        self,
        network: RVAE,
        cells: Cells,
        alpha: float | Tensor,
        weight_decay: float | Tensor,
        revise: Callable[[], Tensor],
        team: Team | None = None,
        keeper: Keeper | None = None,
    ) -> Tensor:
        """Train one or many; `revise` gives the alpha of every cell that the network would now have."""
        batch_size = self.batch_size or _batch_for(cells.values.shape[-2] if team is None else len(team.place))
        with progress("Fitting", self.epochs, shown=self.verbose) as show:
            return train(
                network,
                cells,
                weights=self.weights,
                alpha=alpha,
                kl_weight=self.kl_weight,
                hide=self.hide,
                epochs=self.epochs,
                time_limit=self.time_limit,
                patience=self.patience,
                batch_size=batch_size,
                learning_rate=self.learning_rate or _rate_for(batch_size),
                schedule=self.schedule,
                weight_decay=weight_decay,
                generator=self._generator(),
                on_epoch=lambda epoch: show(epoch + 1),
                revise=revise if self.hide and self.weights != "none" else None,
                team=team,
                keeper=keeper,
            )

    def _finish(self, table: Table, cells: Cells, history: Tensor) -> None:
        self.history_ = _mean_history(history)
        self.fitted_method_ = self.repair_method
        self.summary_ = Summary.learn(self.encoder_.columns, cells)
        self.kept_, self.learned_rows_ = self._keep(cells[:0], 0, cells), len(cells)
        self.rates_, self.offset_ = self._figures(table, cells)

    def _keep(self, kept: Cells, stand_for: int, new: Cells) -> Cells:
        """`keep_rows` rows, of those kept, which stand for so many, and of new ones: each is as likely as any other."""
        wanted = min(self.keep_rows, len(kept) + len(new))
        from_new = max(round(wanted * len(new) / (stand_for + len(new))), wanted - len(kept))
        generator = torch.Generator().manual_seed(self.seed_)
        chosen = [
            cells[torch.randperm(len(cells), generator=generator)[:count].sort().values.to(cells.values.device)]
            for cells, count in ((kept, wanted - from_new), (new, from_new))
        ]
        return _one_below_the_other(*chosen)

    def _figures(self, table: Table, cells: Cells) -> tuple[ErrorRates, float]:
        """Error rates and the threshold of `predict`, from a table and those of its rows that were learned from."""
        hidden = self.repair_method == "hidden"
        if self.hide or hidden:
            ratio = hidden_ratio(self.network_, cells)
            rates = estimate_rates(ratio, cells.observed, rare=RARE_SHARE)
        else:
            rates = self._rates()
        scores = expected_errors(ratio, cells, rates).cpu().numpy() if hidden else self._row_scores(table)
        if hidden and len(cells) == table.arrow.num_rows:
            scores = scores + self._suspected(table)
        return rates, float(np.quantile(-scores, 1 - self.alpha))

    # ------------------------------------------------------------ learning more

    def update(self, X: Any) -> Self:
        """Learn from the new rows X, too, and keep what was learned before; X is dirty, as when fitting.

        Scales stay as fitted. A value that a category did not have becomes a level of it if several rows hold it and it
        looks like no misspelling, unless the schema declares the levels. What was learned before is remembered by rows
        that the model itself imagines, and by those that it kept (`keep_rows`). An update that fails changes nothing.
        """
        table = self._read(X)
        check_settings(self.get_params(deep=False))
        updated = copy.copy(self)
        updated._learn_more(table)
        self.__dict__.update(updated.__dict__)
        return self

    def _learn_more(self, table: Table) -> None:
        """New levels, and weights that know the new rows too."""
        free = [column.name for column in self.schema_ if column.kind == "category" and not column.levels]
        doubtful = {name: self.checks_.doubtful(table.understood, name) for name in free}
        self.encoder_ = self.encoder_.grown(table, doubtful)
        self.summary_ = self.summary_.grown(self.encoder_.columns)
        self.network_ = self._grown_network()
        new = self._sample(self.encoder_.encode(table)).to(self._device())
        history = self._train(self.network_, *self._lessons(_one_below_the_other(new, self._remember(len(new)))))
        self._bring_up_to_date(table, new, history)

    def _bring_up_to_date(self, table: Table, new: Cells, history: Tensor) -> None:
        """All that is known beside the weights, by new rows; of few new rows figures keep a part of what they were."""
        rates, offset = self._figures(table, new)
        share = min(len(new) / RECENT, 1.0) if self.fitted_method_ == self.repair_method else 1.0
        both = zip(astuple(self.rates_), astuple(rates), strict=True)
        self.rates_ = ErrorRates(*(_between(old, own, share) for old, own in both))
        self.offset_ = _between(self.offset_, offset, share)
        self.fitted_method_ = self.repair_method
        self.history_ = [*self.history_, *_mean_history(history)]
        self.summary_ = self.summary_.followed_by(self.summary_.of(new))
        self.kept_ = self._keep(self.kept_.to(self._device()), self.learned_rows_, new)
        self.learned_rows_ += len(new)
        self.checks_ = self.checks_.followed_by(learn_checks(table, self.schema_))

    def _grown_network(self) -> RVAE:
        """A copy of the network with room for all levels that the encoder has."""
        grown = _as_one(self._members()).to(self._device())
        try:
            grow(self.network_, grown)
        except (RuntimeError, AttributeError) as error:
            raise SettingError(
                f"To update, the sizes of the network must be as they were when fitted; they are not ({error}). "
                "Hint: fit again."
            ) from None
        return grown

    def _remember(self, rows: int) -> Cells:
        """Rows to learn again beside so many new ones: those that were kept, and imagined ones to make up enough."""
        kept, (least, most) = self.kept_.to(self._device()), REMEMBERED
        more = max(min(max(rows, least), most) - len(kept), 0)
        start = self.summary_.draw(more, np.random.default_rng(self.seed_)).to(self._device())
        imagined = Cells(imagine(self.network_, start.values, self._generator()), start.observed)
        return _one_below_the_other(kept, imagined)

    # ------------------------------------------------------------ which cells, which rows

    def cell_suspicion(self, X: Any) -> Any:
        """Probability in [0, 1] that each cell is corrupted; the kind and shape of X.

        With the methods of the paper it is 1 - pi, for weights="none" by Bayes' rule on the fitted VAE. With hidden
        cells the share of dirty rows and of wrong cells in them is estimated from the table when fitting.
        """
        table = self._read(X)
        return table.matrix_of(self._whole_suspicion(table))

    def cell_scores(self, X: Any, kind: str | None = None) -> NDArray[np.float64]:
        """How bad each cell is, (rows, columns), higher = worse: kind "suspicion" (-log(1 - suspicion)), or the
        paper's "pi" (-log pi) or "nll" (-log p)."""
        score = {"pi": cell_pi, "nll": cell_nll, "suspicion": self._doubt}[self._score_kind(kind)]
        table = self._read(X)
        return self.encoder_.spread(self._score(table, score)[0], table)

    def row_scores(self, X: Any, kind: str | None = None) -> NDArray[np.float64]:
        """How bad each row is, (rows,), higher = worse: the expected number of its wrong cells (kind "suspicion"),
        or the paper's sum of its cells' scores, with pi clamped."""
        return self._row_scores(self._read(X), kind)

    def score_rows(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Suspicion of every cell (rows, columns) and row scores (rows,), each row judged by itself: X may be any piece
        of a table, and the answers are the same, bit for bit.

        What only other rows can tell is not looked for: identifiers that stand twice, words that slipped into the
        neighbouring column, and whether a rare spelling is that of several rows.
        """
        if self.repair_method in ("one-stage", "two-stage"):
            raise SettingError(
                f"To judge rows by themselves repair_method must be 'hidden' or 'map'; {self.repair_method!r} draws "
                "for all rows together. Hint: set_params(repair_method='map')."
            )
        table = self._read(X, alone=True)
        cells, rows = self._score(table, self._suspicion, self._row_share)
        return self._with_suspects(table, cells), rows.sum(axis=1) + (
            self._suspected(table) if self.repair_method == "hidden" else 0.0
        )

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Minus the row scores: lower = worse, as in scikit-learn."""
        return -self.row_scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Below 0 for rows that `predict` calls corrupted."""
        check_is_fitted(self)
        if self.repair_method != self.fitted_method_:
            raise SettingError(
                f"`predict` compares with the fitted rows, so repair_method must be {self.fitted_method_!r} as it was "
                f"then; it is {self.repair_method!r}. Hint: fit again."
            )
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for rows as bad as the worst share 1 - alpha of the fitted rows, 1 for the others."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def score(self, X: Any, y: Any = None) -> float:
        """What GridSearchCV compares by default, higher = better: mean log probability of a row, its cells hidden
        in turn; with the methods of the paper the mean ELBO."""
        method = check_method(self.repair_method, self.get_params(deep=False))
        hiding, bounds = method == "hidden", []
        for first, cells in in_chunks(self.network_, self.encoder_.encode(self._read(X))):
            if hiding:
                evidence, _ = self._judge(first, cells, method)
                bounds.append(log_hidden(evidence, cells, alpha=self.alpha))
            else:
                bounds.append(
                    lower_bound(
                        self.network_,
                        cells,
                        weights=self.weights,
                        alpha=self.alpha,
                        kl_weight=self.kl_weight,
                        generator=self._generator(first),
                    )
                )
        return float(torch.cat(bounds).double().mean())

    # ------------------------------------------------------------ what they should have been

    def reconstruct(self, X: Any, method: str | None = None) -> Any:
        """Every modelled cell as the clean component sees it, missing ones included; the kind of X."""
        table = self._read(X)
        values = torch.cat([seen.values for *_, seen in self._examine(table, method)]).double().cpu().numpy()
        return self._write(table, values, np.ones(values.shape, dtype=bool))

    def reconstruct_proba(self, X: Any, method: str | None = None) -> dict[str, Any]:
        """For each category or ordinal column, a table rows × levels of probabilities."""
        table = self._read(X)
        parts: dict[int, list[Tensor]] = {}
        for *_, seen in self._examine(table, method):
            for d, probabilities in level_probabilities(self.network_, seen):
                parts.setdefault(d, []).append(probabilities.cpu())
        return {
            column.name: table.matrix_of(torch.cat(parts[d])[:, : len(column.levels)].numpy(), column.levels)
            for d, column in enumerate(self.encoder_.columns)
            if isinstance(column, LevelColumn)
        }

    def mend(
        self,
        X: Any,
        *,
        fdr: float | None = None,
        suspicion: float | None = None,
        top: int | None = None,
        impute: bool | None = None,
        alone: bool = False,
    ) -> Mended:
        """Findings, repaired table and the suspicion of every cell at once; which cells are flagged: see `findings`.

        With `alone` every row is judged by itself, so that X may be any piece of a table: see `score_rows`.
        """
        table = self._read(X, alone=alone)
        whole = self._whole_suspicion(table)
        found = self._find(table, whole, self._flagged(whole, fdr, suspicion, top))[:top]
        repaired = self._repaired(table, found, fill=self.impute if impute is None else impute)
        return Mended(table, whole, found, repaired)

    def findings(
        self, X: Any, fdr: float | None = None, *, suspicion: float | None = None, top: int | None = None
    ) -> Any:
        """One line per flagged cell, the most suspicious first: row, column, value, suspicion, repair,
        low, high, reason; a DataFrame of the kind of X.

        Flagged are cells of at least `threshold` suspicion, or of `suspicion`; with `fdr` as many as keep the expected
        share of false alarms among them at most that; with `top` so many. A cell that looks wrong while nothing says
        what it was has no repair.
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

    def column_findings(self, X: Any) -> dict[str, str]:
        """What holds for whole columns, in words: units, words for missing values; column to sentence."""
        table = self._read(X)
        return describe_columns(table.arrow, table.readers)

    def moved_columns(self, X: Any) -> dict[str, str]:
        """Columns that look otherwise than when the model learned, or was last updated, and how; column to sentence."""
        return self.moved_since(self.summarise(X))

    def summarise(self, X: Any) -> Summary:
        """How many cells of each column lie where, to be compared; those of pieces of a table add up."""
        return self.summary_.of(self.encoder_.encode(self._read(X, alone=True)))

    def moved_since(self, now: Summary) -> dict[str, str]:
        """`moved_columns` by a summary."""
        return moved(self.encoder_.columns, self.summary_, now, self._in_words)

    # ------------------------------------------------------------ keeping

    def save(self, path: str | Path) -> None:
        """Write the fitted model as one file; `cellmend.load` reads it."""
        check_is_fitted(self)
        header = {
            "versions": {"cellmend": cellmend.__version__, "torch": torch.__version__},
            "settings": self._settings(),
            "schema": self.schema_.to_dict(),
            "readers": readers_to_json(self.readers_),
            "checks": self.checks_.to_json(),
            "columns": self.encoder_.to_json(),
            "named": hasattr(self, "feature_names_in_"),
            "names": self.names_,
            "seed": self.seed_,
            "offset": self.offset_,
            "fitted_method": self.fitted_method_,
            "rates": asdict(self.rates_),
            "history": self.history_,
            "summary": self.summary_.to_json(),
            "learned_rows": self.learned_rows_,
        }
        kept = {KEPT_VALUES: self.kept_.values, KEPT_OBSERVED: self.kept_.observed}
        save_model(path, header, self.network_.state_dict() | kept)

    # ------------------------------------------------------------ steps shared by the above

    def _read(self, X: Any, *, reset: bool = False, alone: bool = False) -> Table:
        if not reset:
            check_is_fitted(self)
        table = read_table(X)
        if reset and table.arrow.num_rows < 2:
            raise TableError("A table must have at least 2 rows to learn from; this one has 1 sample.")
        validate_data(self, table.native, reset=reset, skip_check_array=True)
        if reset:
            self.names_ = None if table.is_array else table.arrow.column_names
        elif not (table.is_array or self.names_ in (None, table.arrow.column_names)):
            # scikit-learn compares names only if they are text.
            raise TableError(
                f"The table must have the columns that it was fitted with, {_some(self.names_)}; "
                f"it has {_some(table.arrow.column_names)}. Hint: select them in that order."
            )
        if reset:
            return table
        return check(_understood(table, self._readers_for(table, alone=alone)), self.checks_, alone=alone)

    def _readers_for(self, table: Table, *, alone: bool) -> dict[str, Reader]:
        """As learned; a column that was fitted in a type of its own and comes as text is read as of its kind."""
        readers = dict(self.readers_)
        for place, column in enumerate(self.schema_):
            typed = readers.get(column.name) in (None, Dates())
            numbers = column.kind != "category" and not any(isinstance(level, str) for level in column.levels or ())
            if typed and numbers and column.kind != IGNORE and not table.is_array and table.holds_text(place):
                plainly = alone and column.kind != DATE  # else this piece's way to write numbers would be learned
                reader = Numbers() if plainly else learn_reader(table.arrow.column(place), column.kind)
                readers |= {column.name: reader} if reader is not None else {}
        return readers

    def _judge(self, first: int, cells: Cells, method: str) -> tuple[Evidence, Generator]:
        generator = self._generator(first)
        evidence = judge(
            self.network_, cells, method=method, weights=self.weights, alpha=self.alpha, generator=generator
        )
        return evidence, generator

    def _score(self, table: Table, *scores: Callable[[Evidence, Cells], Tensor]) -> list[NDArray[np.float64]]:
        """Each score of every modelled cell, (N, D); 0 where missing."""
        method = check_method(self.repair_method, self.get_params(deep=False))
        rows = table.arrow.num_rows
        encoded = self.encoder_.encode(table)[filled_up(torch.arange(rows))]

        def scored(first: int, cells: Cells) -> list[NDArray[np.float64]]:
            evidence, _ = self._judge(first, cells, method)
            each = [torch.where(cells.observed, score(evidence, cells), 0.0).double() for score in scores]
            return [found.contiguous().cpu().numpy() for found in each]

        parts, done = [], 0
        with progress("Scoring", rows, shown=self.verbose) as show:
            for part in each_chunk(self.network_, encoded, scored):
                parts.append(part)
                done += len(part[0])
                show(min(done, rows))
        return [np.concatenate(each)[:rows] for each in zip(*parts, strict=True)]

    def _row_scores(self, table: Table, kind: str | None = None) -> NDArray[np.float64]:
        kind = self._score_kind(kind)
        if kind != "suspicion":
            return self._score(table, {"pi": cell_pi_clamped, "nll": cell_nll}[kind])[0].sum(axis=1)
        if self.repair_method != "hidden":
            return self._score(table, self._suspicion)[0].sum(axis=1)
        cells = self.encoder_.encode(table)[filled_up(torch.arange(table.arrow.num_rows))].to(self._device())
        errors = expected_errors(hidden_ratio(self.network_, cells), cells, self.rates_).cpu().numpy()
        return errors[: table.arrow.num_rows] + self._suspected(table)

    def _suspected(self, table: Table) -> NDArray[np.float64]:
        """Suspicion of the cells of each row that the model does not see, (N,)."""
        modelled, rows = set(self.encoder_.positions), np.zeros(table.arrow.num_rows)
        for each in table.suspects:
            if each.column not in modelled or each.hidden:
                rows[each.row] += each.suspicion
        return rows

    def _examine(
        self, table: Table, method: str | None = None, rows: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Cells, Evidence, Reconstruction]]:
        """Rows, their cells, evidence and reconstruction, in chunks; of these rows, or of all."""
        method = check_method(method or self.repair_method, self.get_params(deep=False))
        if rows is None or method in ("one-stage", "two-stage"):  # what is drawn for a row depends on its chunk
            rows = np.arange(table.arrow.num_rows)
        encoded = self.encoder_.encode(table)[filled_up(torch.from_numpy(rows))]

        def examined(first: int, cells: Cells) -> tuple[NDArray[np.int64], Cells, Evidence, Reconstruction]:
            evidence, generator = self._judge(first, cells, method)
            seen = reconstruct(self.network_, cells, evidence, method=method, generator=generator)
            own = rows[first : first + len(cells)]
            return own, cells[: len(own)], evidence.first(len(own)), seen.first(len(own))

        yield from each_chunk(self.network_, encoded, examined)

    def _rates(self) -> ErrorRates:
        """As estimated when fitting; with the methods of the paper, which may be asked for later, as alpha says."""
        return self.rates_ if self.repair_method == "hidden" else ErrorRates(rows=1.0, cells=1 - self.alpha, rare=0.0)

    def _suspicion(self, evidence: Evidence, cells: Cells) -> Tensor:
        return wrong_by(evidence, cells, rates=self._rates(), alpha=self.alpha).sigmoid()

    def _doubt(self, evidence: Evidence, cells: Cells) -> Tensor:
        """-log(1 - suspicion), from the log odds so that nothing is cut off."""
        return softplus(wrong_by(evidence, cells, rates=self._rates(), alpha=self.alpha))

    def _row_share(self, evidence: Evidence, cells: Cells) -> Tensor:
        """What each cell adds to the score of its row, (B, D)."""
        kind = self._score_kind(None)
        if kind == "suspicion":
            return wrong_alone(evidence.alone - log_odds(self.alpha), cells, self.rates_)
        return {"pi": cell_pi_clamped, "nll": cell_nll}[kind](evidence, cells)

    def _whole_suspicion(self, table: Table) -> NDArray[np.float64]:
        """Of every cell of the table, (N, all columns), by the model and by its column alone."""
        return self._with_suspects(table, self._score(table, self._suspicion)[0])

    def _with_suspects(self, table: Table, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Suspicion of the modelled cells (N, D) to that of all, (N, all columns), checks included."""
        whole = self.encoder_.spread(cells, table)
        for suspect in table.suspects:
            whole[suspect.row, suspect.column] = max(whole[suspect.row, suspect.column], suspect.suspicion)
        return whole

    def _flagged(
        self, whole: NDArray[np.float64], fdr: float | None, suspicion: float | None, top: int | None
    ) -> NDArray[np.bool_]:
        """Which cells the user asked for, by one of the three or by the threshold of the settings, (N, all columns)."""
        nothing_asked = fdr is None and suspicion is None and top is None
        return Threshold(fdr, self.threshold if nothing_asked else suspicion, top).flag(whole)

    def _find(self, table: Table, whole: NDArray[np.float64], flagged: NDArray[np.bool_]) -> list[Finding]:
        """The flagged cells with reasons, the most suspicious first."""
        words = Wording(table, self.encoder_)
        suspects = {(each.row, each.column): each for each in table.suspects}
        modelled = set(self.encoder_.positions)
        abstain = self.repair_method == "hidden"  # the methods of the paper always have an answer
        scored = [
            (doubt(each.suspicion), explain_suspect(each, table))
            for each in table.suspects
            if each.column not in modelled and flagged[each.row, each.column]
        ]
        for score, expected in self._expectations(words, suspects, whole, flagged):
            cell = expected.row, self.encoder_.positions[expected.column]
            finding = explain(expected, float(whole[cell]), suspects.get(cell), words, abstain=abstain)
            scored.append((max(score, doubt(finding.suspicion)), finding))
        scored.sort(key=lambda pair: -pair[0])
        found = [finding for _, finding in scored]
        return swapped(found) if abstain else found

    def _expectations(
        self,
        words: Wording,
        suspects: Mapping[tuple[int, int], Suspect],
        whole: NDArray[np.float64],
        flagged: NDArray[np.bool_],
    ) -> Iterator[tuple[float, Expectation]]:
        """What is expected at each flagged cell of the model, with a score that is finer than suspicion."""
        where = flagged[:, self.encoder_.positions]  # (N, D)
        least = np.sort(whole[flagged])[-EXPLAINED:][:1]  # suspicion from which on reasons are worked out
        for rows, cells, evidence, seen in self._examine(words.table, rows=np.flatnonzero(where.any(axis=1))):
            own = torch.from_numpy(where[rows]).to(cells.values.device)
            expected = expect(self.network_, cells, seen, own, words.meant(rows, suspects))
            trusted = cells.observed & cells.values.isfinite() & (self._suspicion(evidence, cells) < 0.5)
            positions = self.encoder_.positions
            why = [each for each in expected if whole[rows[each.row], positions[each.column]] >= least]
            others = [each for each in expected if whole[rows[each.row], positions[each.column]] < least]
            scores = self._doubt(evidence, cells).tolist()
            for each in [*with_reasons(self.network_, cells, trusted, why), *others]:
                yield scores[each.row][each.column], replace(each, row=int(rows[each.row]))

    def _repaired(self, table: Table, found: Sequence[Finding], *, fill: bool) -> Any:
        """The user's table with repairs written in, and missing cells filled if `fill`."""
        words = Wording(table, self.encoder_)
        repaired = table.with_cells(words.changes(found))
        if not fill:
            return repaired
        values, missing = [], []
        for _, cells, _, seen in self._examine(table):
            values.append(seen.values.double().cpu())
            missing.append(~cells.observed.cpu())
        gaps = torch.cat(missing).numpy()
        places = {position: d for d, position in enumerate(self.encoder_.positions)}
        for each in table.suspects:  # the model takes some of them for missing
            if each.column in places:
                gaps[each.row, places[each.column]] = False
        return self._write(replace(table, native=repaired), torch.cat(values).numpy(), gaps)

    def _write(self, table: Table, values: NDArray[np.float64], where: NDArray[np.bool_]) -> Any:
        """The user's table with model values (N, D) in the cells `where` (N, D)."""
        return self.encoder_.replace(table, values, where, Wording(table, self.encoder_).writers())

    def _in_words(self, column: EncodedColumn, value: float) -> str:
        """A model value for a sentence about its column."""
        decoded, reader = column.decode_one(value), self.readers_.get(column.name)
        if isinstance(reader, Dates):
            return short(reader.write(decoded, getattr(column, "decimals", None)))
        return short(decoded) if isinstance(column, LevelColumn) else about(decoded)  # type: ignore[arg-type]

    def _score_kind(self, kind: str | None) -> str:
        if kind == "pi" and self.weights == "none":
            raise SettingError('Score "pi" needs weights; with weights="none" only kind="nll" can be had.')
        best = "suspicion" if self.repair_method == "hidden" else "nll" if self.weights == "none" else "pi"
        return one_of("kind", kind or best, SCORES)

    def _members(self) -> list[RVAE]:
        """Untrained networks, each drawn by its own seed."""
        members = []
        for number in range(self.networks):
            member = RVAE(
                self.encoder_.columns,
                Distributions(self.outlier, self.outlier_scale, self.components, self.binned),
                latent_dim=self.latent_dim,
                hidden_dim=self.hidden_dim,
                embedding_dim=self.embedding_dim,
                amortized=self.weights == "amortized",
                masked=self.hide > 0,
            )
            member.initialize(torch.Generator().manual_seed(self.seed_ + number))
            members.append(member)
        return members

    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return torch.empty(0, device=self.device).device
        except (RuntimeError, AssertionError):
            raise SettingError(
                f"device must be 'auto' or one that torch has here; {str(self.device)!r} is none. Hint: use 'auto'."
            ) from None

    def _generator(self, first_row: int = 0) -> Generator:
        device = self.network_.decoder_output.bias.device
        return torch.Generator(device).manual_seed(self.seed_ + first_row)

    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments as JSON holds them."""
        settings = self.get_params(deep=False)
        settings = {name: v.item() if isinstance(v, np.generic) else v for name, v in settings.items()}
        if not isinstance(settings["random_state"], int):
            settings["random_state"] = None
        if self.schema is not None:
            settings["schema"] = Schema.of(self.schema).to_dict()
        return settings | {"device": str(self.device)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def fit_together(menders: Sequence[CellMender], tables: Sequence[Any]) -> None:
    """Fit each mender to its own table, all networks trained as one: on a GPU many cost little more than one.

    Settings must be equal but for alpha, weight_decay, random_state and schema, and so must rows, kinds and levels
    of the tables. Each network starts as it would alone; the order of rows and the samples of z are drawn together.
    """
    free = dict.fromkeys(("alpha", "weight_decay", "random_state", "schema"))
    if len({str(sorted((mender.get_params() | free).items())) for mender in menders}) > 1:
        raise SettingError(f"Menders fitted together must have equal settings but for {', '.join(free)}.")
    started = [mender._start(X) for mender, X in zip(menders, tables, strict=True)]
    first, device = menders[0], menders[0]._device()
    try:
        members = [[member.to(device) for member in mender._members()] for mender in menders]
        flat = [member for own in members for member in own]  # the networks of one mender side by side
        together = stack(flat)
        pieces = [(c.values, c.observed) for _, c in started]
        of_each = Cells(*(torch.stack(each).repeat_interleave(first.networks, 0) for each in zip(*pieces, strict=True)))
    except RuntimeError as error:
        raise TableError(f"Tables fitted together must have equal rows, kinds and levels ({error}).") from None
    decays = [mender.weight_decay for mender in menders for _ in range(mender.networks)]
    alphas = [mender.alpha for mender in menders for _ in range(mender.networks)]
    alpha = torch.tensor(alphas, device=device)[:, None, None]

    def revise() -> Tensor:
        unstack(together, flat)
        ratios = [hidden_ratio(_as_one(own), cells) for own, (_, cells) in zip(members, started, strict=True)]
        priors = [clean_priors(ratio, cells.observed) for ratio, (_, cells) in zip(ratios, started, strict=True)]
        return torch.stack(priors).repeat_interleave(first.networks, 0)

    history = first._train(together, of_each, alpha, decay_of_each(decays, device), revise)
    unstack(together, flat)
    of_menders = history.view(-1, len(menders), first.networks).mean(-1)  # (epochs, menders)
    for place, (mender, own, (table, cells)) in enumerate(zip(menders, members, started, strict=True)):
        mender.network_ = _as_one(own)
        mender._finish(table, cells, of_menders[:, place])


def load(path: str | Path, *, device: str | None = None) -> CellMender:
    """A fitted CellMender from a file that `save` wrote, for this device; no code in the file is run."""
    header, weights = load_model(path)
    try:
        mender = CellMender(**header["settings"])
        mender.device = device or mender.device
        mender.schema = None if mender.schema is None else Schema.of(mender.schema)
        mender.schema_ = Schema.from_dict(header["schema"])
        mender.readers_ = readers_from_json(header["readers"])
        mender.checks_ = Checks.from_json(header["checks"])
        names = [column.name for column in mender.schema_]
        mender.names_ = header["names"]
        mender.encoder_ = TableEncoder.from_json(header["columns"], names)
        mender.seed_ = header["seed"]
        mender.network_ = _as_one(mender._members())
        mender.kept_ = Cells(weights.pop(KEPT_VALUES), weights.pop(KEPT_OBSERVED))
        mender.learned_rows_ = header["learned_rows"]
        mender.network_.load_state_dict(weights)
        mender.rates_ = ErrorRates(**header["rates"])
        mender.fitted_method_ = header["fitted_method"]
        mender.offset_, mender.history_ = header["offset"], header["history"]
        mender.summary_ = Summary.from_json(header["summary"])
        mender.n_features_in_ = len(names)
        if header["named"]:
            mender.feature_names_in_ = np.array(names, dtype=object)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The parts of a model file must fit together; those of {Path(path).name} do not ({error}). "
            "Hint: save the model again."
        ) from None
    try:
        mender.network_.to(mender._device())
    except SettingError:  # fitted on a device that this machine does not have
        mender.device = "auto"
        mender.network_.to(mender._device())
    return mender


def _batch_for(rows: int) -> int:
    """How many of so many rows a step takes.

    >>> [_batch_for(rows) for rows in (100, 2000, 5000, 50_000)]
    [16, 50, 312, 1024]
    """
    return min(max(rows // STEPS[rows >= SMALL_TABLE], 16), 1024)


def _rate_for(batch_size: int) -> float:
    """The learning rate that suits batches of so many rows: small ones say less, and large steps would go astray.

    >>> [round(_rate_for(rows), 4) for rows in (16, 128, 1024)]
    [0.002, 0.0028, 0.004]
    """
    low, high = RATES
    return min(max(high * math.sqrt(batch_size / FULL_RATE), low), high)


def _mean_history(history: Tensor) -> list[float]:
    """Mean bound of each epoch, also of several networks, (epochs,) or (epochs, M)."""
    return (history.mean(-1) if history.dim() == 2 else history).tolist()


def _one_below_the_other(above: Cells, below: Cells) -> Cells:
    return Cells(torch.cat([above.values, below.values]), torch.cat([above.observed, below.observed]))


def _between(old: float, new: float, share: float) -> float:
    """A figure of which the new one makes up a share.

    >>> _between(0.2, 0.4, 0.5), _between(0.2, 0.4, 1.0)
    (0.30000000000000004, 0.4)
    """
    return (1 - share) * old + share * new


def _understood(table: Table, readers: Mapping[str, Reader]) -> Table:
    return replace(table, readers=readers, understood=understand(table.arrow, readers))


def _as_one(members: Sequence[RVAE]) -> RVAE:
    return members[0] if len(members) == 1 else stack(members)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
