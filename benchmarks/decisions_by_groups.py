"""How many decisions clean a really dirty table completely, by groups, values and patterns.

    CELLMEND_DATA=folder python benchmarks/decisions_by_groups.py hospital beers

The table is cleaned as `cellmend clean` does it. Then somebody who knows the clean table decides on the review page:
takes what is offered for whole columns, types the patterns below, replaces values, edits single cells, rejects or
unticks what is right as it is, and accepts all that is left of a column or a group. Each of these is one decision.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from cellmend import CellMender
from cellmend.decisions.decision import RIGHT, WRONG
from cellmend.files.formats import read_file
from cellmend.jobs import Cleaning, clean
from cellmend.review.groups import OpenGroup
from cellmend.review.ledger import Cell
from cellmend.review.many import Edit, Pick, Rewriting, decide_groups, edit_values, rewrite, rewritten, rows_of
from cellmend.review.results import open_results
from cellmend.review.review import Review
from cellmend.review.rows import Filter, text_of
from cellmend.settings import FDR, Threshold

TABLES = ("hospital", "beers")
CLOSE = 1e-6  # numbers that are the same but for their last digits
TYPED: Mapping[str, Sequence[Rewriting]] = {
    "hospital": (Rewriting("sample", r"^(\d+) [a-z]+$", r"\1 patients", is_pattern=True),),
    "beers": (
        Rewriting("city", r"^.* ([A-Z]{2})$", r"\1", is_pattern=True, into="state"),
        Rewriting("city", r" [A-Z]{2}$", "", is_pattern=True),
        Rewriting("ounces", r"\.0$", "", is_pattern=True),
    ),
}  # patterns that somebody sees who looks through the values


class Player:
    """Somebody who knows the clean table and decides about the dirty one; counts what was done."""

    def __init__(self, review: Review, truth: pa.Table) -> None:
        self.review, self.truth = review, truth
        self.done: Counter[str] = Counter()

    def meant(self, cell: Cell) -> str:
        return text_of(self.truth, *cell) or ""

    def holds(self, cell: Cell) -> str:
        """What the cell is now."""
        decision = self.review.ledger.of(cell)
        return (decision.repair if decision and decision.repair is not None else self.review.text(cell)) or ""

    def is_right(self, cell: Cell) -> bool:
        return same(self.holds(cell), self.meant(cell))

    def wrong_cells(self) -> list[Cell]:
        names, rows = self.review.table.column_names, range(self.review.table.num_rows)
        return [(row, name) for name in names for row in rows if not self.is_right((row, name))]

    def clean(self, typed: Iterable[Rewriting]) -> None:
        """Decide until nothing is wrong any more."""
        for name in self.review.table.column_names:
            self.rewrite(Rewriting(name, ""), "units and words for missing values taken away")
        for each in typed:
            self.rewrite(each, "patterns typed")
        self.replace_values()
        for name in self.review.table.column_names:
            self.accept(name)
        for cell in self.wrong_cells():
            self.edit(cell)

    def rewrite(self, asked: Rewriting, what: str) -> None:
        """Take a rewriting if all cells come right by it."""
        found, name = rewritten(self.review, asked), asked.into or asked.column
        news = [found.news[place] for place in found.which.tolist()]
        cells = [(row, name) for row in found.rows.tolist()]
        if cells and all(same(new, self.meant(cell)) for cell, new in zip(cells, news, strict=True)):
            rewrite(self.review, asked, count=len(cells))
            self.done[what] += 1

    def replace_values(self) -> None:
        """What no proposed repair puts right, value by value, and cell by cell where a value means several things."""
        values: dict[tuple[str, str], list[Cell]] = defaultdict(list)
        for cell in self.wrong_cells():
            flag = self.review.flagged.get(cell)
            if flag is None or flag.repair is None or not same(flag.repair, self.meant(cell)):
                values[cell[1], self.holds(cell)].append(cell)
        for (name, value), cells in values.items():
            edit = Edit(name, (value, None) if value == "" else (value,), self.meant(cells[0]))
            rows = rows_of(self.review, edit).tolist()
            if len(rows) > 1 and all(same(edit.repair, self.meant((row, name))) for row in rows):
                edit_values(self.review, [edit], count=len(rows), insist=True)
                self.done["values replaced"] += 1
            else:
                for cell in cells:
                    self.edit(cell)

    def accept(self, name: str) -> None:
        """Accept the repairs of a column at once or group by group, whichever takes fewer decisions."""
        groups = self.review.groups(Filter(column=name))
        good = [group for group in groups if any(self.helps(each.cell) for each in group.cells)]
        at_once = 1 + sum(len(self.false(group)) for group in groups)
        one_by_one = sum(1 + len(self.false(group)) for group in good)
        if not good:
            return
        for group in groups if at_once < one_by_one else good:
            for pick in self.false(group):
                self.decide([pick], RIGHT, "lines rejected and cells unticked")
        if at_once < one_by_one:
            left = self.review.groups(Filter(column=name))
            self.decide([Pick(group.place) for group in left], WRONG, "columns accepted")
        else:
            for group in good:
                self.decide([Pick(group.place)], WRONG, "groups accepted")

    def helps(self, cell: Cell) -> bool:
        flag = self.review.flagged.get(cell)
        return flag is not None and flag.repair is not None and not self.is_right(cell)

    def false(self, group: OpenGroup) -> list[Pick]:
        """What must be rejected before the repairs of a group are accepted: lines, and cells of lines."""
        found = []
        for line in group.lines:
            false = [each for each in line.cells if each.repair is not None and self.is_right(each.cell)]
            if false and len(false) == len(line.cells):
                found.append(Pick(group.place, line.place))
            else:
                rows = {each.row for each in line.cells}
                found += [Pick(group.place, line.place, frozenset(rows - {each.row})) for each in false]
        return found

    def decide(self, picks: Sequence[Pick], verdict: str, what: str) -> None:
        cells = [
            each
            for group in self.review.groups(Filter())
            for line in group.lines
            for pick in picks
            if pick.group == group.place and pick.line in (None, line.place)
            for each in line.cells
            if each.row not in pick.besides and (verdict == RIGHT or each.repair is not None)
        ]
        decide_groups(self.review, picks, Filter(), verdict, len(cells))
        self.done[what] += 1

    def edit(self, cell: Cell) -> None:
        self.review.accept(cell, self.meant(cell), seen=self.review.ledger.of(cell), insist=True)
        self.done["single cells edited"] += 1


def same(one: str, other: str) -> bool:
    """Do two texts say the same, as numbers if they are?"""
    try:
        return one == other or abs(float(one) - float(other)) <= CLOSE * abs(float(other))
    except ValueError:
        return False


def play(folder: Path, truth: pa.Table, typed: Sequence[Rewriting]) -> Counter[str]:
    """Decide about a folder of results until its table is clean, export, and look whether it is."""
    player = Player(Review(open_results(folder, None)), truth)
    wrong = len(player.wrong_cells())
    player.review.start()
    wait_for_teacher()
    player.clean(typed)
    player.review.export()
    written = read_file(player.review.results.reviewed).table
    left = sum(
        not same(text_of(written, row, name) or "", player.meant((row, name)))
        for name in truth.column_names
        for row in range(truth.num_rows)
    )
    many = ", ".join(f"{count} {what}" for what, count in player.done.most_common())
    tell(f"  {wrong:,} wrong cells, {player.done.total()} decisions ({many}); {left} cells are wrong afterwards")
    return player.done


def wait_for_teacher() -> None:
    """Until the model is read."""
    for thread in threading.enumerate():
        if thread.name == "teacher":
            thread.join()


def tell(sentence: str) -> None:
    """Print it at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", default=TABLES)
    data = Path(os.environ.get("CELLMEND_DATA", "."))
    for name in parser.parse_args().tables:
        dirty, truth = (data / f"pair_{name}_{state}.csv.gz" for state in ("dirty", "clean"))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "results"
            source = read_file(str(dirty))
            clean(source, CellMender(random_state=0), Cleaning(folder, Threshold(fdr=FDR), table=str(dirty)))
            for what, typed in (("with patterns", TYPED.get(name, ())), ("without patterns", ())):
                tell(f"{name}, {what}:")
                play(folder, read_file(str(truth)).table, typed)
                (folder / "decisions.jsonl").unlink()


if __name__ == "__main__":
    main()
