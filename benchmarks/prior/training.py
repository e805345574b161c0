"""Train the weigher on spoiled tables, and say how well it tells which of their cells are wrong."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cellmend.posterior.meant import FIGURES
from cellmend.posterior.weigher import OF_CELL, RepairWeigher, Weigher
from cellmend_bench.families import family_of

from .gathering import SEED, say
from .spoil import KINDS

SILENT = 0.3  # of the times that a table with a network is shown it is silent, as at a first look
SHOWN_ROWS = 400  # of a table at once
TOGETHER = 16  # tables of a step, of nearly the same width
DRAWN = 32 * TOGETHER  # tables that are sorted by their width before they are shown
MOST_CELLS = 200_000  # of a step, so that wide tables fit into memory
UNSEEN_EVIDENCE = 0.1  # of the figures stay unseen in a step, each as if it were as usual
DECAY = 0.03  # of weights
OF_FAMILY = 0.3  # of the loss: which family, where a cell is wrong
EPOCHS_OF_REPAIRS = 30  # with 120 of them and no figure unseen, .90 of what was said .98 on other families was right
FOLDS = 4  # by families of tables, to calibrate on tables that were not learned from


class Example(NamedTuple):
    """A spoiled table, or several of one shape."""

    evidence: Tensor  # (N, D, E)
    seen: Tensor  # (N, D)
    family: Tensor  # (N, D)
    kind: Tensor  # (N, D)
    network: Tensor  # (N, D, K)


class Repairs(NamedTuple):
    """Hypotheses about the cells of one table."""

    family: str
    figures: Tensor  # (H, k)
    right: Tensor  # (H,)


class Examples:
    """Spoiled tables as tensors on one device."""

    def __init__(self, paths: Sequence[Path], device: torch.device) -> None:
        self.tables: list[Example] = []
        self.repairs: list[Repairs] = []
        with ThreadPoolExecutor() as threads:
            for path, parts in zip(paths, threads.map(_read, paths), strict=True):
                if len(parts["right"]):
                    family = path.stem if path.name.startswith("made") else family_of(path.name)
                    self.repairs.append(Repairs(family, parts["repairs"], parts["right"]))
                self.tables.append(Example(*(parts[name].to(device) for name in Example._fields)))

    def scale(self) -> tuple[Tensor, Tensor]:
        """Middle and spread of each sort of evidence, over a sample of the tables."""
        some = self.tables[:: max(len(self.tables) // 500, 1)]
        cells = torch.cat([each.evidence[each.seen][:: max(int(each.seen.sum()) // 2000, 1)].float() for each in some])
        return cells.mean(0), cells.std(0).clamp_min(0.05)


def _read(path: Path) -> dict[str, Tensor]:
    with np.load(path) as parts:
        return {name: torch.from_numpy(part) for name, part in parts.items()}


def is_aside(name: str) -> bool:
    """Is a spoiled table of the families on which choices are tried out, one in six?"""
    return int.from_bytes(hashlib.sha256(family_of(name).encode()).digest()[:4], "big") % 6 == 0


def steps(tables: list[Example], dice: torch.Generator) -> Iterator[Example]:
    """All tables once, in an order drawn anew, several of nearly the same width together."""
    order = torch.randperm(len(tables), generator=dice).tolist()
    batches = []
    for first in range(0, len(order), DRAWN):
        some = sorted(order[first : first + DRAWN], key=lambda at: tables[at].seen.shape[1])
        while some:
            width = tables[some[min(TOGETHER, len(some)) - 1]].seen.shape[1]
            count = max(min(TOGETHER, MOST_CELLS // (SHOWN_ROWS * width)), 1)
            batches.append(some[:count])
            some = some[count:]
    for at in torch.randperm(len(batches), generator=dice).tolist():
        yield together([tables[each] for each in batches[at]], dice)


def together(tables: Sequence[Example], dice: torch.Generator) -> Example:
    """Some rows of each table, filled up with cells in which nothing stands, (T, N, D, ...)."""
    some = [some_rows(table, dice) for table in tables]
    rows, width = (max(each.seen.shape[axis] for each in some) for axis in (0, 1))

    def filled(part: Tensor) -> Tensor:
        before = (0, 0) * (part.dim() - 2)
        return F.pad(part, (*before, 0, width - part.shape[1], 0, rows - part.shape[0]))

    return Example(*(torch.stack([filled(part) for part in parts]) for parts in zip(*some, strict=True)))


def some_rows(table: Example, dice: torch.Generator) -> Example:
    """A sample of the rows: a table of its own, for the weigher."""
    rows = len(table.seen)
    if rows <= SHOWN_ROWS:
        return table
    chosen = torch.randperm(rows, generator=dice)[:SHOWN_ROWS].sort().values.to(table.seen.device)
    return Example(*(part[chosen] for part in table))


def loss_of(weigher: Weigher, shown: Example, heard: Tensor, apart: Tensor) -> Tensor:
    """How badly the posterior foretells which cells are wrong and by which family, in the mean of the tables, of which
    the networks of some are `heard`. Errors of kinds that are set `apart` stand there, and nothing is said of them."""
    told = shown.seen & ~torch.isin(shown.kind, apart)
    network = shown.network.float() * heard[:, None, None, None]
    hidden = torch.rand(len(weigher.middle), device=heard.device) < UNSEEN_EVIDENCE

    def of_table(evidence: Tensor, seen: Tensor, said: Tensor, family: Tensor, counts: Tensor) -> Tensor:
        evidence = torch.where(hidden, weigher.middle, evidence)
        logs = weigher(evidence, seen, said, weigher.context(evidence, seen, said))
        any_family, wrong = logs[..., 1:].logsumexp(-1), family > 0
        which = any_family - logs.gather(-1, family[..., None])[..., 0]
        binary = -torch.where(wrong, any_family, logs[..., 0])
        loss = torch.where(counts, binary + OF_FAMILY * which * wrong, 0.0).sum()
        return loss / counts.sum().clamp_min(1).sqrt() / 10

    each = torch.vmap(of_table, randomness="different")(
        shown.evidence.float(), shown.seen, network, shown.family.long(), told
    )
    return each.mean()


def train(weigher: Weigher, tables: list[Example], *, epochs: int, rate: float, apart: Tensor) -> None:
    """Make the weigher foretell best what was done to the tables."""
    # Few numbers that are the same for all cells take larger steps.
    few = [weigher.log_prior, weigher.log_belief, weigher.log_sharing, weigher.by_experts.weight]
    others = [each for each in weigher.parameters() if all(each is not other for other in few)]
    parts: list[dict[str, Any]] = [{"params": others}, {"params": few, "weight_decay": 0.0}]
    optimiser, dice = torch.optim.AdamW(parts, lr=rate, weight_decay=DECAY), torch.Generator().manual_seed(SEED)
    in_all = epochs * sum(1 for _ in steps(tables, torch.Generator().manual_seed(SEED))) * 21 // 20 + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, [rate, 10 * rate], total_steps=in_all, pct_start=0.1)
    start = time.perf_counter()
    weigher.train()
    for epoch in range(epochs):
        total, count = torch.zeros((), device=weigher.middle.device), 0
        for shown in steps(tables, dice):
            heard = (torch.rand(len(shown.seen), generator=dice) >= SILENT).to(shown.seen.device)
            loss = loss_of(weigher, shown, heard, apart)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weigher.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, count = total + loss.detach(), count + 1
        say(f"epoch {epoch + 1}: loss {float(total) / count:.4f}, {time.perf_counter() - start:.0f} s")
    weigher.eval()


def train_repairs(weigher: RepairWeigher, repairs: list[Repairs], device: torch.device) -> None:
    """How probably cells were meant to say something else, from hypotheses about wrong cells and doubtful right ones.

    All hypotheses count alike: with tables weighed by their root, a tenth fewer were sure, and more of those wrong.
    What it says is calibrated on families of tables that it did not learn from."""
    figures = torch.cat([each.figures for each in repairs]).float().to(device)
    right = torch.cat([each.right for each in repairs]).float().to(device)
    digests = [hashlib.sha256(each.family.encode()).digest()[0] % FOLDS for each in repairs]
    fold = torch.cat([torch.full((len(each.right),), own) for each, own in zip(repairs, digests, strict=True)]).to(
        device
    )
    said = torch.zeros_like(right)
    for own in range(FOLDS):
        other = RepairWeigher(figures.shape[1] - OF_CELL).to(device)
        _learn_hypotheses(other, figures[fold != own], right[fold != own])
        said[fold == own] = other(figures[fold == own]).detach()
    _learn_hypotheses(weigher, figures, right)
    scale, shift = calibrated(said, right)
    with torch.no_grad():
        weigher.second.weight.mul_(scale)
        weigher.second.bias.mul_(scale).add_(shift)
    say(f"calibrated by {scale:.2f} and {shift:.2f}; of families that were not learned from:")
    chance = (scale * said + shift).sigmoid()
    for low in (0.5, 0.8, 0.9, 0.95):
        some = chance >= low
        say(f"hypotheses said {low} and more: {int(some.sum())}, right {float(right[some].mean()):.3f}")


def _learn_hypotheses(weigher: RepairWeigher, figures: Tensor, right: Tensor) -> None:
    """From figures of hypotheses, (H, k), and whether they are right, (H,); some figures stay unseen in each step."""
    weigher.middle, weigher.spread = figures.mean(0), figures.std(0).clamp_min(0.05)
    optimiser = torch.optim.AdamW(weigher.parameters(), lr=3e-3, weight_decay=1e-2)
    dice = torch.Generator().manual_seed(SEED)
    for _ in range(EPOCHS_OF_REPAIRS):
        for batch in torch.randperm(len(figures), generator=dice).split(4096):
            own = batch.to(figures.device)
            hidden = (torch.rand(len(own), figures.shape[1], generator=dice) < UNSEEN_EVIDENCE).to(figures.device)
            seen = torch.where(hidden, weigher.middle, figures[own])
            loss = F.binary_cross_entropy_with_logits(weigher(seen), right[own])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def calibrated(said: Tensor, right: Tensor) -> tuple[float, float]:
    """By what log odds must be multiplied, and what be added, to foretell best what is right (Platt 1999)."""
    both = torch.tensor([1.0, 0.0], device=said.device, requires_grad=True)
    optimiser = torch.optim.LBFGS([both], max_iter=50)

    def loss() -> Tensor:
        optimiser.zero_grad()
        found = F.binary_cross_entropy_with_logits(both[0] * said + both[1], right)
        found.backward()
        return found

    optimiser.step(loss)
    return float(both[0].detach()), float(both[1].detach())


def begun(examples: Examples, width: int) -> Weigher:
    """A weigher that knows nothing but how large figures usually are."""
    torch.manual_seed(SEED)
    weigher = Weigher(examples.tables[0].evidence.shape[-1], len(FIGURES), width).to(examples.tables[0].evidence.device)
    weigher.middle, weigher.spread = examples.scale()
    return weigher


# ---------------------------------------------------------------- how well it does


class Scored(NamedTuple):
    """The filled cells of a table."""

    suspicion: np.ndarray
    wrong: np.ndarray
    kind: np.ndarray


@torch.no_grad()
def report(weigher: Weigher, tables: list[Example]) -> None:
    """How well the posterior tells wrong cells on these tables, and how well it is calibrated."""
    from sklearn.metrics import average_precision_score

    scored, aps, f1s = list[Scored](), [], []
    for table in tables:
        evidence, network, seen = table.evidence.float(), table.network.float(), table.seen
        logs = weigher(evidence, seen, network, weigher.context(evidence, seen, network))[seen].double()
        parts = (-torch.expm1(logs[:, 0]), table.family[seen] > 0, table.kind[seen])
        scored.append(Scored(*(part.cpu().numpy() for part in parts)))
        own = scored[-1]
        flags = flagged(own.suspicion, 0.1)
        if own.wrong.any():
            aps.append(average_precision_score(own.wrong, own.suspicion))
            f1s.append(2 * (flags & own.wrong).sum() / (flags.sum() + own.wrong.sum()))
    suspicion, wrong, made_by = (np.concatenate(each) for each in zip(*scored, strict=True))
    flags = np.concatenate([flagged(each.suspicion, 0.1) for each in scored])
    pooled = f"pooled precision {wrong[flags].mean():.3f} recall {flags[wrong].mean():.3f}"
    say(f"AP {np.mean(aps):.3f} F1 {np.mean(f1s):.3f} {pooled}")
    clean = [(flagged(each.suspicion, 0.1).sum(), len(each.wrong)) for each in scored if not each.wrong.any()]
    false, cells, sure = sum(a for a, _ in clean), sum(b for _, b in clean), wrong[suspicion > 0.9].mean()
    loss = -np.log(np.where(wrong, suspicion, 1 - suspicion).clip(1e-9)).mean()
    say(f"clean: {false} flags in {cells} cells; said .9 and more: {sure:.3f} wrong; log loss {loss:.5f}")
    for low, high in ((0.0, 0.003), (0.003, 0.03), (0.03, 0.15), (0.15, 1.0)):
        report_some([each for each in scored if low < each.wrong.mean() <= high], f"share {low} to {high}")
    third = made_by % 3 == 1  # the kinds that --unseen leaves out, found among right cells
    some = flags & (third | ~wrong)
    say(f"every third kind: F1 {2 * (some & third).sum() / max(some.sum() + third.sum(), 1):.3f}")
    found = {name: flags[made_by == 1 + at] for at, name in enumerate(KINDS)}
    say("recall by kind: " + ", ".join(f"{name} {own.mean():.2f}" for name, own in found.items() if len(own)))


def report_some(scored: list[Scored], name: str) -> None:
    """The same of some of the tables."""
    if not scored:
        say(f"  {name}: no tables")
        return
    flags = [flagged(each.suspicion, 0.1) for each in scored]
    sure = np.concatenate([each.wrong[each.suspicion > 0.9] for each in scored]).mean()
    false = 1 - np.concatenate([each.wrong[own] for each, own in zip(scored, flags, strict=True)]).mean()
    recall = np.concatenate([own[each.wrong] for each, own in zip(scored, flags, strict=True)]).mean()
    of_flagged = f"of flagged false {false:.3f}, recall {recall:.3f}"
    say(f"  {name}: {len(scored)} tables, of said .9 wrong {sure:.3f}, {of_flagged}")


def flagged(suspicion: np.ndarray, fdr: float) -> np.ndarray:
    """The most suspicious cells such that a share `fdr` of them at most is expected to be right."""
    order = np.argsort(-suspicion)
    expected = np.cumsum(1 - suspicion[order]) / np.arange(1, len(order) + 1)
    found = np.zeros(len(order), dtype=bool)
    found[order[: int((expected <= fdr).sum())]] = True
    return cast(np.ndarray, found)
