"""Where tables lie: paths, folders and URLs; and how a file is written, whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

from cellmend.errors import FileError, did_you_mean

STDIN = "-"  # as the name of a table; as the name of an output it is standard output


def is_url(place: str | Path) -> bool:
    """Is it on another filesystem than this machine's?

    >>> is_url("s3://tables/orders"), is_url("orders.csv")
    (True, False)
    """
    return "://" in str(place)


def names_folder(place: str) -> bool:
    """Does an output name a folder? The names of files end in their kind.

    >>> names_folder("scores"), names_folder("scores.csv"), names_folder("-")
    (True, False, False)
    """
    return place != STDIN and not Path(place).suffix


def absolute(place: str) -> str:
    """The same place for a worker that runs in another folder.

    >>> absolute("s3://tables/orders"), absolute("orders") == str(Path.cwd() / "orders")
    ('s3://tables/orders', True)
    """
    return place if is_url(place) else str(Path(place).absolute())


def filesystem(place: str | Path) -> tuple[FileSystem, str]:
    """The filesystem of a path or URL, and the path on it; URLs as pyarrow knows them, or else fsspec."""
    url = str(place)
    if not is_url(url):
        return LocalFileSystem(), Path(os.path.abspath(url)).as_posix()  # noqa: PTH100 - "a/../b" is "b" here
    try:
        system, path = FileSystem.from_uri(url)
    except pa.ArrowInvalid:
        system, path = _by_fsspec(url)
    except OSError as error:  # no Java for HDFS, or no network
        said = first_line(error)
        raise FileError(f"{url} must be on a filesystem that can be reached; it is not ({said}).") from None
    return system, path.rstrip("/")


def _by_fsspec(url: str) -> tuple[FileSystem, str]:
    """Where a path lies that pyarrow alone does not know."""
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise FileError(
            f"{url} must begin with s3://, gs://, abfs://, hdfs:// or another that fsspec knows; "
            f"this one cannot be used ({first_line(error)}). Hint: pip install what fsspec needs for it."
        ) from None
    return PyFileSystem(FSSpecHandler(system)), path


def find(place: str | Path) -> tuple[FileSystem, str, FileInfo]:
    """The filesystem of a table, its path there and what is at it; refuses a place with nothing at it."""
    system, path = filesystem(place)
    found = system.get_file_info(path)
    if found.type == FileType.NotFound:
        folder, _, name = path.rpartition("/")
        near = [] if is_url(place) else [each.base_name for each in listed(system, folder)]
        raise FileError(f"{place} must be a file or a folder with a table; there is none.{did_you_mean(name, near)}")
    if found.type == FileType.Unknown:
        raise FileError(
            f"{place} must be a file or a folder with a table; it is a pipe or a device. "
            "Hint: give - in its place, and what it holds on standard input."
        )
    return system, path, found


def listed(system: FileSystem, folder: str) -> list[FileInfo]:
    """What is in a folder; nothing if there is no such folder."""
    return list(system.get_file_info(FileSelector(folder, allow_not_found=True)))


def files_below(system: FileSystem, folder: str, endings: tuple[str, ...]) -> list[FileInfo]:
    """The files in and below a folder with these endings, without those hidden by a dot or _ in a name, sorted."""
    found = [
        each
        for each in system.get_file_info(FileSelector(folder, recursive=True))
        if each.type == FileType.File
        and each.path.endswith(endings)
        and not any(part.startswith((".", "_")) for part in each.path.removeprefix(folder).split("/"))
    ]
    return sorted(found, key=lambda each: each.path)


@contextmanager
def readable(path: str, kind: str) -> Iterator[None]:
    """While a file is read: turns what the readers say of a broken one into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        name = path.rpartition("/")[2]
        why = first_line(error).rpartition(": ")[2]  # before it Arrow says where it was, and the path again
        raise FileError(f"{name} must be a {kind} file; it cannot be read as one ({why}).") from None


def first_line(error: Exception) -> str:
    """The first line of what an error says, to be put into a sentence, without the number of the error.

    >>> first_line(OSError("Failed to open it. Detail: [errno 13] Permission denied"))
    'Failed to open it. Detail: Permission denied'
    """
    return re.sub(r"\[errno \d+\] ", "", str(error).partition("\n")[0], flags=re.IGNORECASE).rstrip(".")


# ---------------------------------------------------------------- writing, whole or not at all


@contextmanager
def _hidden_until_whole(system: FileSystem, path: str) -> Iterator[str]:
    """A hidden name beside `path` to write under. It becomes `path` at the end, and is removed if that fails.

    A process that is killed leaves at most the hidden file, which the next that writes there removes.
    """
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{os.getpid()}-{threading.get_ident()}"
    if isinstance(system, LocalFileSystem):
        _tidy(Path(folder), name)
    try:
        yield temporary
        if isinstance(system, LocalFileSystem):
            with Path(temporary).open("rb+") as file:
                os.fsync(file.fileno())
        system.move(temporary, path)
    except BaseException:
        if system.get_file_info(temporary).type == FileType.File:
            system.delete_file(temporary)
        raise


def _tidy(folder: Path, name: str) -> None:
    """Remove what processes that are no more left half-written of a file."""
    for each in folder.glob(f".{glob.escape(name)}.*-*"):
        process = each.name.rpartition(".")[2].partition("-")[0]
        if process.isdigit() and os.name == "posix" and not _lives(int(process)):
            each.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # that of another user
        return True
    return True


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` at the end: the file is whole or not there."""
    with _hidden_until_whole(LocalFileSystem(), path.absolute().as_posix()) as temporary:
        yield Path(temporary)


@contextmanager
def whole_stream(system: FileSystem, path: str) -> Iterator[Any]:
    """A stream to write to, on any filesystem; the file is whole or not there."""
    with _hidden_until_whole(system, path) as temporary, system.open_output_stream(temporary) as stream:
        yield stream


def refuse_to_overwrite(paths: Iterable[Path], *, force: bool) -> None:
    """Stop before the work if one of these files is there already."""
    for path in paths:
        if path.exists() and not force:
            raise FileError(f"{path} is there already. Hint: choose another place with -o, or add --force.")
