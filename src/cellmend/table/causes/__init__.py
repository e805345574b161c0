"""Ways in which a cell goes wrong, each a small channel from what was meant to what stands there."""

from cellmend.table.causes.base import NEVER, Cause
from cellmend.table.causes.slips import (
    Cased,
    Doubled,
    Dropped,
    Framed,
    Inserted,
    Replaced,
    Reversed,
    Several,
    Spaced,
    Swapped,
    Throughout,
)

SLIPS: tuple[Cause, ...] = (
    Inserted(), Doubled(), Dropped(), Replaced(), Swapped(), Throughout(), Several(), Cased(), Spaced(), Framed(),
    Reversed(),
)  # fmt: skip

__all__ = ["NEVER", "SLIPS", "Cause"]
