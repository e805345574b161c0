"""What hashing a category of very many values into few classes costs in quality.

    python benchmarks/hashing.py [--device cuda]

Items of a shop, 2,000 of them, some far more frequent than others; each has a group and a usual price. One item in a
hundred is another one by mistake. Told are the wrong items, from the item itself and from its hash.
"""

from __future__ import annotations

import argparse
import zlib

import numpy as np
import pyarrow as pa
from rich.console import Console
from sklearn.metrics import average_precision_score

from cellmend import CellMender

ITEMS, ROWS, CLASSES = 2000, 30_000, (1024, 256, 64)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="auto")
    device = parser.parse_args().device
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, ITEMS + 1)
    item = rng.choice(ITEMS, ROWS, p=share / share.sum())
    price, group = rng.lognormal(3, 1, ITEMS)[item] * rng.lognormal(0, 0.05, ROWS), rng.integers(0, 30, ITEMS)[item]
    wrong = rng.random(ROWS) < 0.01
    item = np.where(wrong, rng.choice(ITEMS, ROWS, p=share / share.sum()), item)
    names = np.array([f"item {number:05d}" for number in range(ITEMS)])
    for classes in (ITEMS, *CLASSES):
        code = np.arange(ITEMS) if classes == ITEMS else np.array([zlib.crc32(n.encode()) % classes for n in names])
        named = [f"c{each}" for each in code[item]]
        table = pa.table({"item": named, "log_price": np.log(price), "group": group.astype(str)})
        mender = CellMender(schema={"item": "category", "group": "category"}, random_state=0, device=device).fit(table)
        found = average_precision_score(wrong, mender.score_rows(table)[0][:, 0])
        Console().print(f"{classes:5d} classes: average precision of wrong items {found:.3f}")


if __name__ == "__main__":
    main()
