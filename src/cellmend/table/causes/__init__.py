"""Ways in which a cell goes wrong, each a small channel from what was meant to what stands there."""

from cellmend.table.causes import garbles, slips
from cellmend.table.causes.base import NEVER, Cause

# Model files hold their rates in this order: new ones come last.
SLIPS: tuple[Cause, ...] = (
    Cause("inserted", "with a letter too many", slips.inserted, slips.undo_inserted),
    Cause("doubled", "with a letter typed twice", slips.doubled, slips.undo_doubled),
    Cause("dropped", "with a letter left out", slips.dropped, slips.undo_dropped),
    Cause("replaced", "with another letter", slips.replaced, slips.undo_replaced),
    Cause("swapped", "with two letters exchanged", slips.swapped, slips.undo_swapped),
    Cause("throughout", "with one letter replaced throughout", slips.throughout, slips.undo_throughout),
    Cause("several", "with several letters wrong", slips.several),
    Cause("cased", "in other case", slips.cased),
    Cause("spaced", "with a space wrong", slips.spaced, slips.undo_spaced),
    Cause("framed", "with signs around it", slips.framed, slips.undo_framed),
    Cause("reversed", "backwards", slips.backwards, slips.undo_backwards),
    Cause("scrambled", "with letters typed at random", garbles.scrambled),
    Cause("truncated", "cut off", garbles.truncated),
)

# Times rarer than a slip, before anything is seen: what is left of such a text is often like another value by chance.
SELDOM = {"scrambled": 200.0, "truncated": 5.0}

__all__ = ["NEVER", "SELDOM", "SLIPS", "Cause"]
