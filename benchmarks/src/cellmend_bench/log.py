"""A log of twelve signals with planted errors: spikes, sensors that are stuck, blocks that are shifted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend_bench.dirt import Pair, equal

LOG, LOG_ROWS = "log", 50_000  # the benchmark's table
DAY = 1440  # rows: one each minute
SPIKES = 0.003  # of the cells of a signal
BLOCKS_PER_ROW = 1 / 10_000  # stuck, and as many shifted
SHORTEST, LONGEST = 30, 200  # cells of a block
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sensor:
    """How a signal runs, with how many decimals it is written, and its noise from row to row."""

    run: Callable[[np.random.Generator, Floats], Floats]
    decimals: int
    noise: float
    drifts: bool = True  # can it be stuck or shifted? Counters are not


def _wave(rows: Floats, size: float, phase: float = 0.0) -> Floats:
    return size * np.sin(2 * np.pi * rows / DAY + phase)


def _wander(random: np.random.Generator, rows: Floats, size: float, hours: float) -> Floats:
    """A slow walk that comes back, of this deviation."""
    back = np.exp(-1 / (60 * hours))
    steps = random.normal(0, size * np.sqrt(1 - back**2), len(rows))
    walk = np.empty(len(rows))
    walk[0] = random.normal(0, size)
    for row in range(1, len(rows)):
        walk[row] = back * walk[row - 1] + steps[row]
    return walk


SENSORS = {
    "room": Sensor(lambda g, t: 21 + _wave(t, 3) + _wander(g, t, 1.0, 20), 2, 0.02),
    "oil": Sensor(lambda g, t: 70 + 1.5 * _wander(g, t, 4, 60), 1, 0.1),
    "pressure": Sensor(lambda g, t: 1013 + _wander(g, t, 8, 30), 2, 0.05),
    "flow": Sensor(lambda g, t: 40 + _wander(g, t, 6, 10), 2, 1.0),
    "voltage": Sensor(lambda g, t: np.full(len(t), 230.0), 1, 1.5),
    "current": Sensor(lambda g, t: 12 + _wave(t, 5, 1.0) + _wander(g, t, 1, 5), 2, 0.4),
    "humidity": Sensor(lambda g, t: 55 - _wave(t, 12) + _wander(g, t, 5, 40), 1, 0.2),
    "wind": Sensor(lambda g, t: np.exp(1.2 + _wander(g, t, 0.6, 6)) * g.gamma(20, 1 / 20, len(t)), 1, 0.3),
    "energy": Sensor(lambda g, t: 1000 + np.cumsum(g.gamma(2, 0.05, len(t))), 2, 0.0, drifts=False),
    "cycles": Sensor(lambda g, t: 500 + np.cumsum(g.poisson(1.5, len(t)).astype(float)), 0, 0.0, drifts=False),
}


def make_log(rows: int, seed: int) -> Pair:
    """A log of so many minutes, its clean version as text, and what was planted where."""
    random = np.random.default_rng(seed)
    minutes = np.arange(rows, dtype=float)
    time = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(rows), "min")
    clean, dirty = pd.DataFrame({"time": time.astype(str)}), pd.DataFrame({"time": time})
    kinds = {"time": np.full(rows, "", dtype=object)}
    for name, sensor in SENSORS.items():
        true = np.round(sensor.run(random, minutes) + random.normal(0, sensor.noise, rows), sensor.decimals)
        seen, kinds[name] = _spoil(true, sensor, random)
        clean[name], dirty[name] = true.astype(str), seen
    for name, levels in (("mode", ("idle", "run", "stop")), ("valve", (0, 50, 100))):
        dirty[name] = _states(rows, levels, random)
        clean[name], kinds[name] = dirty[name].astype(str), np.full(rows, "", dtype=object)
    planted = np.stack([kinds[name] for name in dirty], axis=1)
    wrong = ~equal(dirty.astype(str), clean)
    return Pair(dirty, clean, wrong, np.zeros(wrong.shape, dtype=bool), np.where(wrong, planted, ""))


def _states(rows: int, levels: tuple[str | int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Each level holds for about an hour."""
    changes = np.cumsum(random.random(rows) < 1 / 60)
    return np.array(levels)[random.integers(0, len(levels), changes[-1] + 1)][changes]


def _spoil(true: Floats, sensor: Sensor, random: np.random.Generator) -> tuple[Floats, NDArray[np.object_]]:
    """The signal with errors, and what each of them is."""
    seen, kind, rows = true.copy(), np.full(len(true), "", dtype=object), len(true)
    step, width = np.median(np.abs(np.diff(true))), np.std(true)
    for what in ("stuck", "shift") if sensor.drifts else ():
        for _ in range(max(1, round(rows * BLOCKS_PER_ROW))):
            length = int(random.integers(SHORTEST, LONGEST))
            start = int(random.integers(1, rows - length))
            block = slice(start, start + length)
            if (kind[start - 1 : start + length + 1] == "").all():
                moved = random.choice([-1, 1]) * max(random.uniform(12, 24) * step, random.uniform(0.5, 2) * width)
                seen[block] = true[start - 1] if what == "stuck" else true[block] + moved
                kind[block] = what
    free = np.flatnonzero(kind == "")
    spiky = random.choice(free, max(1, round(SPIKES * rows)), replace=False)
    size = np.maximum(random.uniform(12, 24, len(spiky)) * step, random.uniform(0.3, 3, len(spiky)) * width)
    seen[spiky] += random.choice([-1, 1], len(spiky)) * size
    kind[spiky] = "spike"
    return np.round(seen, sensor.decimals), kind
