"""A table of people, to inject errors into."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = {"secret": "ignore", "rank": "count"}


def people(rows: int = 90) -> pa.Table:
    """All kinds of columns, as text and typed, with gaps; `secret` is not to be touched."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    born = [datetime.date(1970, 1, 1) + datetime.timedelta(int(days)) for days in rng.integers(0, 9000, rows)]
    cells: dict[str, Any] = {
        "height": [f"{170 + 10 * each:.1f}" for each in x],
        "weight": [f"{60 + 9 * each:.2f} kg" for each in x],
        "reach": [f"{171 + 10 * each:.1f}" for each in x],
        "income": pa.array((30_000 + 5_000 * x).round(), pa.int32()),
        "score": np.round(3 + x, 2),
        "rank": rng.poisson(1.5, rows),
        "city": rng.choice(["Rome", "Oslo", "Lima"], rows).tolist(),
        "town": rng.choice(["Rome", "Bonn", "Cork"], rows).tolist(),
        "size": pa.array(rng.choice(["S", "M", "L"], rows)).dictionary_encode(),
        "smoker": rng.random(rows) < 0.3,
        "born": [f"{day:%d.%m.%Y}" for day in born],
        "seen": pa.array([datetime.datetime(2024, 3, 1, int(h)) for h in rng.integers(0, 24, rows)]),
        "id": np.arange(rows),
        "secret": rng.choice(["yes", "no"], rows).tolist(),
    }
    cells["height"][3], cells["city"][4], cells["weight"][5], cells["born"][6] = "", "n/a", "unknown", ""
    table = pa.table(cells)
    place = table.column_names.index("seen")
    moments = table["seen"].cast(pa.timestamp("us")).combine_chunks()
    return table.set_column(place, "seen", moments.cast(pa.timestamp("us", tz="Europe/Rome")))
