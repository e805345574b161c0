"""Where results go: a folder that appears as a whole, for one run at a time; what cannot be written is told at once."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from cellmend.errors import FileError
from cellmend.files.places import STDIN, is_url, refuse_to_overwrite

MODEL, FINDINGS = "model.cellmend", "findings.csv"  # names of files in a folder of results
ROOM = 2**23  # bytes that a model, its findings and a report need at least
PARTIAL, LOCK = "partial", "lock"  # how hidden names end while a run is at work


@contextmanager
def result_folder(folder: Path, names: Sequence[str], *, force: bool, size: int = 0) -> Iterator[Path]:
    """A hidden folder to write files of these names into; at the end they appear in `folder`, all or none.

    A new folder is there from one moment to the next. What a killed run left is removed by the next one; `size` is
    that of the table in bytes, for which there must be room.
    """
    files = [folder / name for name in names]
    refuse_to_overwrite(files, force=force)
    check_folder(folder, size)
    with only_run(folder):
        refuse_to_overwrite(files, force=force)  # another run may have ended just now
        partial = _hidden(folder, PARTIAL)
        shutil.rmtree(partial, ignore_errors=True)
        try:  # whatever stops it, also in this moment
            partial.mkdir(parents=True)
            yield partial
            _move(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _move(partial: Path, folder: Path) -> None:
    if not folder.exists():
        partial.rename(folder)
        return
    for each in sorted(partial.iterdir()):
        each.replace(folder / each.name)


def _hidden(folder: Path, ending: str) -> Path:
    """A hidden name on the same disk: inside of a folder that is there, beside one that will be."""
    return folder.absolute() / f".{ending}" if folder.is_dir() else _beside(folder, ending)


def _beside(folder: Path, ending: str) -> Path:
    whole = folder.absolute()
    return whole.parent / f".{whole.name}.{ending}"


# ---------------------------------------------------------------- one run at a time


@contextmanager
def only_run(folder: Path, hint: str = "wait, or choose another place with -o.") -> Iterator[None]:
    """While a run writes into a folder no other may; the lock of a run that was killed counts no more."""
    path, file = _hidden(folder, LOCK), None
    try:
        with telling(folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = _locked(path)
        if file is None:
            raise FileError(f"{folder} is being written by another run. Hint: {hint}")
        _tidy_beside(folder)
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            file.close()


def _tidy_beside(folder: Path) -> None:
    """Remove what a run left beside a folder that is there, killed before it came or just when it did."""
    lock = _beside(folder, LOCK)
    with suppress(OSError):  # another's
        if folder.is_dir() and lock.exists() and (file := _locked(lock)) is not None:
            shutil.rmtree(_beside(folder, PARTIAL), ignore_errors=True)
            lock.unlink()
            file.close()


def _locked(path: Path) -> IO[bytes] | None:
    """The file at a path, locked; None if another process has it."""
    while True:
        file = path.open("ab")
        try:
            _lock(file)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        file.close()  # the run before removed it in this moment


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# ---------------------------------------------------------------- before the work


def check_outputs(paths: Sequence[Path], *, force: bool, size: int = 0) -> None:
    """Stop before the work if a file would be overwritten, has no folder to be in, or no room there."""
    files = [path for path in paths if path != Path(STDIN)]
    refuse_to_overwrite(files, force=force)
    for path in files:
        if not path.parent.is_dir():
            raise FileError(f"{path} must be in a folder that is there; {path.parent} is none.")
        if path.is_dir():
            raise FileError(f"{path} must be a file; it is a folder. Hint: name a file in it.")
        check_room(path, size)


def check_folder(folder: Path, size: int = 0) -> None:
    """Stop if a folder to write files into is a file, or has no room for files of this size."""
    if folder.is_file():
        raise FileError(f"{folder} must be a folder to write into; it is a file. Hint: choose another place with -o.")
    check_room(folder, size)


def check_room(path: Path, size: int = 0) -> None:
    """Stop if nothing can be written at a path, or if the disk has no room for a file of this size."""
    folder = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    folder = folder.parent if folder == path.absolute() and folder.is_file() else folder
    if not folder.is_dir():
        raise FileError(f"{path} must be in a folder; {folder} is a file.")
    with telling(path), tempfile.TemporaryFile(dir=folder):
        free = shutil.disk_usage(folder).free
    if free < size + ROOM:
        wanted, there = (f"{max(each // 2**20, 1):,} MB" for each in (size + ROOM, free))
        raise FileError(f"{path} needs {wanted} of room; the disk has {there} left. Hint: choose another place.")


@contextmanager
def telling(path: Path | str) -> Iterator[None]:
    """Turns what the system says of a place into a sentence with the path."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}.") from None


def reason_of(error: OSError) -> str:
    """What the system has against it, in words.

    >>> reason_of(OSError(errno.ENOSPC, "No space left on device")), reason_of(OSError("odd thing."))
    ('the disk is full', 'odd thing')
    """
    known = REASONS.get(error.errno or 0)
    return known or str(error.strerror or error).partition("\n")[0].rstrip(".")


REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "it is not allowed",
    errno.EPERM: "it is not allowed",
    errno.ENOENT: "it is not there",
    errno.ENOTDIR: "a part of its path is a file",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EMFILE: "too many files are open",
    errno.EIO: "the disk does not answer",
}


def size_of(place: str | Path) -> int:
    """Bytes of a table on this machine; 0 of others."""
    path = Path(place)
    with suppress(OSError):
        files = [] if is_url(place) else path.rglob("*") if path.is_dir() else [path]
        return sum(each.stat().st_size for each in files if each.is_file())
    return 0
