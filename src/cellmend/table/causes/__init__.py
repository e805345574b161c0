"""Ways in which a cell goes wrong, each a small channel from what was meant to what stands there."""

from cellmend.table.causes.base import NEVER, Cause
from cellmend.table.causes.garbles import Scrambled, Truncated
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

# Model files hold their rates in this order: new ones come last.
SLIPS: tuple[Cause, ...] = (
    Inserted(), Doubled(), Dropped(), Replaced(), Swapped(), Throughout(), Several(), Cased(), Spaced(), Framed(),
    Reversed(), Scrambled(), Truncated(),
)  # fmt: skip

# Times rarer than a slip, before anything is seen: what is left of such a text is often like another value by chance.
SELDOM = {"scrambled": 200.0, "truncated": 5.0}

__all__ = ["NEVER", "SELDOM", "SLIPS", "Cause"]
