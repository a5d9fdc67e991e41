"""Reading what user code left on the disk: regular files only, never through a link, never more than agreed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from easel.errors import InvalidInput


def read_regular(path: Path, most: int) -> bytes | None:
    """The bytes of a file; None where there is none, or what is there is a link, a pipe or a folder.

    InvalidInput where it has more than `most`: one with holes may say that it has more than any disk.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        data = file.read(most + 1) if about.st_size <= most else b""
    if about.st_size > most or len(data) > most:
        raise InvalidInput(f"{path.name} has more than {most} bytes")
    return data


def write_anew(path: Path, data: bytes) -> None:
    """Writes a file of our own where user code may have left something: that goes, and is not written through."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether it is a regular file itself, not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def folders_in(path: Path) -> Iterator[Path]:
    """The folders in a folder, by name; nothing where it is a link itself."""
    if is_folder(path):
        yield from sorted(each for each in path.iterdir() if is_folder(each))
