"""Learn the weigher: spoil public tables, work out the evidence of their cells, train, and write the weights.

    python -m benchmarks.prior.learn words                     the words of those tables, written into the package
    python -m benchmarks.prior.learn gather WORK --silent      spoiled tables and their evidence, resumable
    python -m benchmarks.prior.learn train WORK --epochs 12    the weigher, written into the package
    python -m benchmarks.prior.learn gather FITTED             fewer tables, with a network fitted to each
    python -m benchmarks.prior.learn repairs FITTED            the part of the weigher that is about repairs

CELLMEND_DATA names the folder that holds `corpus`; only tables that are not kept for judging are learned from.
The same seed gives the same file on the same kind of machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import re
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cellmend import CellMender
from cellmend.findings.finder import Finder
from cellmend.findings.hypotheses import joined
from cellmend.findings.wording import Wording
from cellmend.model.judge import Judge, seen_of
from cellmend.posterior.evidence import NAMES, Figures
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.lexicon import LEAST_FAMILIES, Lexicon, never_seen
from cellmend.posterior.meant import FIGURES
from cellmend.posterior.weigher import FAMILIES, NETWORK, OF_CELL, RepairWeigher, Weigher, learned
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.readtable import DOUBTFUL
from cellmend_bench.families import family_of, is_kept
from cellmend_bench.wild import corpus_folder

from .made import made_table
from .spoil import KINDS, Spoiled, spoil

SEED = 0
REPAIRS = "repairs"
MOST_ROWS = 500  # of a spoiled table that are kept as examples
NOISE = (
    "gaussian_noise",
    "laplace_noise",
    "uniform_noise",
    "outlier",
    "off_by_one",
    "unrounded_noise",
    "other_level",
)  # as papers plant it
NOISY = 0.25  # of the spoiled tables have nothing but such noise
MOST_REPAIRS = 150  # wrong cells of a table whose hypotheses are kept, and right ones that look wrong
MOST_CELLS = 12_000  # of a spoiled table: more teach little
MADE, MADE_TABLES = "made_", 60  # tables that were not published but made
MEASURED = "abda_"  # tables of numbers; those that the paper's experiments are not about
MEASURED_TURNS = 8  # there are few of them
SILENT = 0.3  # of the times that a table is shown its network is silent
NUMBERS = tuple(f"{MEASURED}{name}" for name in ("breast", "satellite", "shuttle", "thyroid", "pen_local", "aloi"))
Example = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # evidence, seen, family, kind, network
WHOLE_WORD = re.compile(r"\b[^\W\d_]{3,}\b")
PACKAGE = Path(__file__).parents[2] / "src" / "cellmend" / "posterior"
WEIGHTS, WORDS = PACKAGE / "weigher.safetensors", PACKAGE / "words.gz"


def say(sentence: str) -> None:
    """Print it at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def corpus() -> list[Path]:
    """The tables of the corpus, in order."""
    return sorted(corpus_folder().glob("*.csv.gz"))


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


def learn_words() -> None:
    """Count in how many families of tables each word stands, and write the list into the package."""
    seen: dict[str, set[str]] = {}
    for path in corpus():
        if not is_kept(path.name):
            seen.setdefault(family_of(path.name), set()).update(words_of(read(path)))
    count = Counter(word for words in seen.values() for word in words)
    WORDS.write_bytes(Lexicon(dict(count)).to_bytes())
    say(f"{sum(times >= LEAST_FAMILIES for times in count.values())} words of {len(seen)} families")


def table_of(path: Path, rng: np.random.Generator) -> pd.DataFrame:
    """A table to be spoiled: made, measured (usual rows and some columns of one), or published."""
    if path.name.startswith(MADE):
        return made_table(rng)
    table = read(path)
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
    rows = min(len(table), max((1 + of_numbers) * MOST_CELLS // max(table.shape[1], 1), 100))
    first = int(rng.integers(len(table) - rows + 1))
    noisy = rng.random() < (0.5 if of_numbers else NOISY)
    without = [name for name in KINDS if name not in NOISE] if noisy else []
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


def gather_all(folder: Path, jobs: int, turns: int, every: int, *, kept: bool, silent: bool) -> None:
    """Spoil all tables that may be learned from, several times each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [path for path in corpus() if is_kept(path.name) == kept][::every]
    if not kept:
        paths += [Path(f"{MADE}{number:03}") for number in range(0, MADE_TABLES, every)]
    todo = [(path, turn, folder, silent) for turn in range(turns) for path in paths]
    if not kept:
        measured = [corpus_folder().parent / f"{name}.csv.gz" for name in NUMBERS]
        todo += [(path, turn, folder, silent) for turn in range(MEASURED_TURNS) for path in measured]
    Random(SEED).shuffle(todo)  # noqa: S311 (an interrupted run leaves a fair sample)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for done, line in enumerate(pool.imap_unordered(gather_one, todo), 1):
            if done % 50 == 0 or "Error" in line:
                say(f"{done}/{len(todo)} {line}")


class Examples:
    """Spoiled tables as tensors on one device."""

    def __init__(self, paths: list[Path], device: torch.device) -> None:
        self.tables: list[Example] = []
        self.repairs: list[tuple[Tensor, Tensor]] = []
        for path in paths:
            with np.load(path) as parts:
                if "right" in parts and len(parts["right"]):
                    self.repairs.append((torch.from_numpy(parts["repairs"]), torch.from_numpy(parts["right"])))
                names = ("evidence", "seen", "family", "kind", "network")
                self.tables.append(cast(Example, tuple(torch.from_numpy(parts[name]).to(device) for name in names)))

    def scale(self) -> tuple[Tensor, Tensor]:
        """Middle and spread of each sort of evidence, over a sample of the tables."""
        some = torch.cat([e[s][:: max(int(s.sum()) // 2000, 1)].float() for e, s, *_ in self.tables])
        return some.mean(0), some.std(0).clamp_min(0.05)


def is_aside(name: str) -> bool:
    """Is a spoiled table of the families on which choices are tried out, one in six?"""
    return int.from_bytes(hashlib.sha256(family_of(name).encode()).digest()[:4], "big") % 6 == 0


def some_rows(table: Example, most: int = 400) -> Example:
    """A stretch or a sample of the rows: a table of its own, for the weigher."""
    rows = len(table[0])
    if rows <= most:
        return table
    chosen = torch.randperm(rows)[:most].sort().values.to(table[0].device)
    return cast(Example, tuple(part[chosen] for part in table))


def loss_of(weigher: Weigher, table: Example, *, silent: bool, apart: Tensor) -> Tensor:
    """How badly the posterior foretells which cells are wrong and by which family; the network may be silent. Errors of
    the kinds that are set `apart` stand in the table, and nothing is said of them."""
    evidence, seen, family, kind, network = some_rows(table)
    evidence, network = evidence.float(), network.float() * (not silent)
    logs = weigher(evidence, seen, network, weigher.context(evidence, seen, network))
    told = seen & ~torch.isin(kind, apart)
    logs, family = logs[told], family[told].long()
    wrong = family > 0
    right, any_family = logs[:, 0], logs[:, 1:].logsumexp(-1)
    binary = -torch.where(wrong, any_family, right)
    which = -(logs.gather(1, family[:, None])[:, 0] - any_family)[wrong]
    return (binary.sum() + 0.3 * which.sum()) / len(family) ** 0.5 / 10


def begin(examples: Examples, start: Path | None) -> Weigher:
    """A weigher that knows nothing, or one that goes on from weights; parts that these do not have begin anew."""
    torch.manual_seed(SEED)
    weigher = Weigher(examples.tables[0][0].shape[-1], len(FIGURES)).to(examples.tables[0][0].device)
    if start is None:
        weigher.middle, weigher.spread = examples.scale()
    else:
        weigher.load_state_dict({name: value.float() for name, value in load_file(start).items()}, strict=False)
    return weigher


def train(weigher: Weigher, examples: Examples, asked: argparse.Namespace, apart: Tensor) -> None:
    """Make the weigher foretell best what was done to the tables: shown in an order drawn anew for each epoch, four of
    them a step. Three times in ten a network is silent, as at a first look."""
    # Few numbers that are the same for all cells take larger steps.
    few = [weigher.log_prior, weigher.log_belief, weigher.log_sharing, weigher.by_experts.weight]
    few += [weigher.excused, weigher.vouching]
    others = [each for each in weigher.parameters() if all(each is not other for other in few)]
    parts: list[dict[str, Any]] = [{"params": others}, {"params": few, "weight_decay": 0.0}]
    optimiser, rates = torch.optim.AdamW(parts, lr=asked.rate, weight_decay=1e-3), [asked.rate, 10 * asked.rate]
    steps = asked.epochs * (len(examples.tables) // 4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rates, total_steps=steps + 1, pct_start=0.1)
    order, start = torch.Generator().manual_seed(SEED), time.perf_counter()
    for epoch in range(asked.epochs):
        total = torch.zeros((), device=weigher.middle.device)
        for step, at in enumerate(torch.randperm(len(examples.tables), generator=order).tolist()):
            silent = float(torch.rand((), generator=order)) < SILENT
            loss = loss_of(weigher, examples.tables[at], silent=silent, apart=apart)
            (loss / 4).backward()
            total += loss.detach()
            if step % 4 == 3:
                torch.nn.utils.clip_grad_norm_(weigher.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad()
                schedule.step()
        optimiser.zero_grad()
        took = time.perf_counter() - start
        say(f"epoch {epoch + 1}: loss {float(total) / len(examples.tables):.4f}, {took:.0f} s")


def train_repairs(weigher: RepairWeigher, examples: Examples, device: torch.device, epochs: int = 120) -> None:
    """How probably cells were meant to say something else, from hypotheses about wrong cells and doubtful right ones.

    All hypotheses count alike: with tables weighed by their root, a tenth fewer were sure, and more of those wrong."""
    if not examples.repairs:
        return
    figures = torch.cat([each for each, _ in examples.repairs]).float().to(device)
    right = torch.cat([each for _, each in examples.repairs]).float().to(device)
    weigher.middle, weigher.spread = figures.mean(0), figures.std(0).clamp_min(0.05)
    optimiser = torch.optim.AdamW(weigher.parameters(), lr=3e-3, weight_decay=1e-3)
    order = torch.Generator().manual_seed(SEED)
    for _ in range(epochs):
        for batch in torch.randperm(len(figures), generator=order).split(4096):
            batch = batch.to(device)
            loss = F.binary_cross_entropy_with_logits(weigher(figures[batch]), right[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    chance = weigher(figures).sigmoid().detach()
    for low in (0.5, 0.8, 0.9, 0.95):
        some = chance >= low
        say(f"hypotheses said {low} and more: {int(some.sum())}, right {float(right[some].mean()):.3f}")


@torch.no_grad()
def report(weigher: Weigher, examples: Examples) -> None:
    """How well the posterior tells wrong cells on these tables, and how well it is calibrated."""
    from sklearn.metrics import average_precision_score

    kinds, scores, aps, f1s = list(KINDS), [], [], []
    for halves, seen, family, kind, said in examples.tables:
        evidence, network = halves.float(), said.float()
        logs = weigher(evidence, seen, network, weigher.context(evidence, seen, network))[seen]
        suspicion, wrong = (1 - logs[:, 0].exp()).double().cpu().numpy(), (family[seen] > 0).cpu().numpy()
        scores.append((suspicion, wrong, kind[seen].cpu().numpy()))
        flags = flagged(suspicion, 0.1)
        if wrong.any():
            aps.append(average_precision_score(wrong, suspicion))
            f1s.append(2 * (flags & wrong).sum() / (flags.sum() + wrong.sum()))
    suspicion, wrong, made_by = (np.concatenate(each) for each in zip(*scores, strict=True))
    flags = np.concatenate([flagged(s, 0.1) for s, _, _ in scores])
    clean = [(flagged(s, 0.1).sum(), len(s)) for s, w, _ in scores if not w.any()]
    precision, recall = wrong[flags].mean(), flags[wrong].mean()
    say(f"AP {np.mean(aps):.3f} F1 {np.mean(f1s):.3f} pooled precision {precision:.3f} recall {recall:.3f}")
    false, cells, sure = sum(a for a, _ in clean), sum(b for _, b in clean), wrong[suspicion > 0.9].mean()
    say(f"clean: {false} flags in {cells} cells; said .9 and more: {sure:.3f} wrong")
    for low, high in ((0.0, 0.003), (0.003, 0.03), (0.03, 0.15), (0.15, 1.0)):
        report_some([(s, w) for s, w, _ in scores if low < w.mean() <= high], f"share {low} to {high}")
    third = made_by % 3 == 1  # the kinds that --unseen leaves out, found among right cells
    some = flags & (third | ~wrong)
    say(f"every third kind: F1 {2 * (some & third).sum() / (some.sum() + third.sum()):.3f}")
    found = {name: flags[made_by == 1 + at] for at, name in enumerate(kinds)}
    say("recall by kind: " + ", ".join(f"{name} {own.mean():.2f}" for name, own in found.items() if len(own)))


def report_some(scores: list[tuple[np.ndarray, np.ndarray]], name: str) -> None:
    """The same of some of the tables: suspicion of their cells, and which are wrong."""
    if not scores:
        say(f"  {name}: no tables")
        return
    sure = np.concatenate([w[s > 0.9] for s, w in scores]).mean()
    false = 1 - np.concatenate([w[flagged(s, 0.1)] for s, w in scores]).mean()
    recall = np.concatenate([flagged(s, 0.1)[w] for s, w in scores]).mean()
    of_flagged = f"of flagged false {false:.3f}, recall {recall:.3f}"
    say(f"  {name}: {len(scores)} tables, of said .9 wrong {sure:.3f}, {of_flagged}")


def flagged(suspicion: np.ndarray, fdr: float) -> np.ndarray:
    """The most suspicious cells such that a share `fdr` of them at most is expected to be right."""
    order = np.argsort(-suspicion)
    expected = np.cumsum(1 - suspicion[order]) / np.arange(1, len(order) + 1)
    found = np.zeros(len(order), dtype=bool)
    found[order[: int((expected <= fdr).sum())]] = True
    return found


def provenance_of(weights: Path) -> dict[str, object]:
    """Where weights come from, as their file says."""
    with safe_open(weights, "pt") as file:
        return cast(dict[str, object], json.loads(file.metadata()["provenance"]))


def write(weigher: Weigher, target: Path, provenance: dict[str, object]) -> None:
    """The weights with their provenance."""
    tensors = {name: value.detach().cpu().half().contiguous() for name, value in weigher.state_dict().items()}
    save_file(tensors, target, metadata={"provenance": json.dumps(provenance, sort_keys=True)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("words", "gather", "train", REPAIRS))
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--silent", action="store_true", help="gather evidence at a first look, without networks")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--rate", type=float, default=2e-3, help="of learning, at its highest")
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument("--unseen", action="store_true", help="learn nothing of every third kind of error")
    parser.add_argument("--aside", action="store_true", help="learn from five families of six, report on the sixth")
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    asked = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if asked.what == "words":
        learn_words()
        return
    if asked.what == "gather":
        gather_all(asked.work, asked.jobs, asked.turns, asked.every, kept=asked.kept, silent=asked.silent)
        return
    paths = sorted(asked.work.glob("*.npz"))
    aside = [path for path in paths if asked.aside and is_aside(path.name)]
    examples = Examples([path for path in paths if path not in set(aside)], device)
    third = torch.arange(1, len(KINDS) + 1, 3, dtype=torch.int16, device=device)
    weigher = begin(examples, WEIGHTS if asked.what == REPAIRS else asked.start)
    if asked.what == REPAIRS:
        torch.manual_seed(SEED)
        weigher.repairs = RepairWeigher(len(FIGURES)).to(device)  # from nothing
        train_repairs(weigher.repairs, examples, device)
    else:
        before = {name: value.clone() for name, value in weigher.state_dict().items()}
        train(weigher, examples, asked, third if asked.unseen else third[:0])
        if asked.start:  # halfway old and new tables are both judged well (Wortsman et al. 2022)
            weigher.load_state_dict({name: (value + before[name]) / 2 for name, value in weigher.state_dict().items()})
    provenance = {
        "evidence": NAMES,
        "families": FAMILIES,
        "seed": SEED,
        "epochs": asked.epochs,
        "rate": asked.rate,
        "start": asked.start and hashlib.sha256(asked.start.read_bytes()).hexdigest(),
        "tables": len(examples.tables),
    }
    if asked.what == REPAIRS:  # all else stays as it was learned
        provenance = provenance_of(WEIGHTS) | {"tables_of_repairs": len(examples.repairs)}
    write(weigher, asked.output, provenance)
    judged = sorted(asked.report.glob("*.npz")) if asked.report else aside
    report(weigher, Examples(judged, device) if judged else examples)


if __name__ == "__main__":
    main()
