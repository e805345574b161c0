"""What is packed: unpacked within bounds, since a few megabytes can hold all that a machine has room for."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO, Any

from cellmend.errors import FileError

LEAST_BOUND = 2**26  # bytes that anything may unpack to
MOST_PACKED = 100  # times the size of a file; tables of text pack to a tenth
READ_AT_ONCE = 2**20


def read_bounded(stream: IO[bytes] | Any, packed_size: int, name: str) -> bytes:
    """All that a stream unpacks to, if it is not absurdly much."""
    bound, parts, size = max(LEAST_BOUND, MOST_PACKED * packed_size), list[bytes](), 0
    while piece := stream.read(READ_AT_ONCE):
        parts.append(piece)
        size += len(piece)
        if size > bound:
            raise FileError(
                f"{name} must unpack to at most {MOST_PACKED} times its size; it is more than {bound // 2**20} MB. "
                "Hint: unpack it, and look at what it holds."
            )
    return b"".join(parts)


def only_table(content: bytes, name: str, endings: tuple[str, ...]) -> tuple[bytes, str]:
    """The one table in a .zip file, and its name."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            tables = [each for each in packed.infolist() if _is_table(each, endings)]
            if len(tables) != 1:
                held = ", ".join(each.filename for each in tables[:3]) if tables else "none"
                raise FileError(f"{name} must hold one table; it holds {held}. Hint: unpack it.")
            with packed.open(tables[0]) as file:
                inside = read_bounded(file, tables[0].compress_size, name)
            return inside, PurePosixPath(tables[0].filename).name
    # Broken, of a rare kind, or with a password:
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, NotImplementedError, RuntimeError):
        raise FileError(f"{name} must be a .zip file that can be unpacked; it is not. Hint: unpack it.") from None


def _is_table(each: zipfile.ZipInfo, endings: tuple[str, ...]) -> bool:
    parts = PurePosixPath(each.filename).parts
    hidden = any(part.startswith((".", "__")) for part in parts)
    return not each.is_dir() and not hidden and each.filename.lower().endswith(endings)
