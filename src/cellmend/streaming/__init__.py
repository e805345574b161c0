"""Tables larger than memory: cut into units that are judged one by one, here or on a cluster.

streams: a table as units. batches: what is done with a record batch. tasks: all units of a table, in runs that can be
resumed. learning: a model from a stream. sources: whatever holds a table, opened. limits: how much at once.
"""

from cellmend.files.origin import digest_of
from cellmend.streaming.batches import find_batch, repair_batch, score_batch, scores_schema
from cellmend.streaming.learning import chosen_rows, draw, fit_stream, read_rows
from cellmend.streaming.sources import copies_for, open_in_pieces, open_source
from cellmend.streaming.streams import Stream, Unit, open_stream, read_unit
from cellmend.streaming.tasks import Task, do_unit, run

__all__ = [
    "Stream",
    "Task",
    "Unit",
    "chosen_rows",
    "copies_for",
    "digest_of",
    "do_unit",
    "draw",
    "find_batch",
    "fit_stream",
    "open_in_pieces",
    "open_source",
    "open_stream",
    "read_rows",
    "read_unit",
    "repair_batch",
    "run",
    "score_batch",
    "scores_schema",
]
