"""Where an agent gets a job's files from and leaves what the job made."""

from __future__ import annotations

import os
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from easel.errors import InvalidInput
from easel.lake.digest import digest_of
from easel.lake.paths import MAX_SEGMENT, file_path
from easel.records.job import StoredFile
from easel.run.entries import Kept

_PLAIN = frozenset(string.ascii_letters + string.digits + " ._-+=,()[]{}!#$&'~^")

MAX_OUTPUT_FILES = 1_000_000


class Depot(Protocol):
    """The bytes of the lake as an agent sees them. Safe to open in every process."""

    def fetch(self, files: Sequence[StoredFile], folder: Path, key: str, *, read_only: bool) -> None:
        """Lay files of the attempt `key` out under `folder`.

        With `read_only` nobody can write to them, so links will do.
        """

    def keep(self, folder: Path, key: str, extra: Mapping[str, bytes] | None = None) -> Kept:
        """Put every file under `folder`, and `extra` by path, in the store, durably, and list them.

        `key` names the attempt. A folder that is not there is empty.
        """


def outputs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Regular files under a job's output folder, as (path in the set, file), in order.

    Links are not followed: a job could point them at what it may not read.
    """
    count = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root) / name
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MAX_OUTPUT_FILES:
                raise InvalidInput(f"the job left more than {MAX_OUTPUT_FILES} files: pack them")
            yield "/" + _storable(path.relative_to(folder).as_posix()), path


def _storable(name: str) -> str:
    """A name that the lake takes. What it does not take is written as =XX, rather than lose the work of a job."""
    try:
        file_path(f"/{name}")
    except InvalidInput:
        return "/".join(map(_storable_segment, name.split("/")))
    return name


def _storable_segment(segment: str) -> str:
    raw = os.fsencode(segment)
    plain = "".join(chr(b) if chr(b) in _PLAIN else f"={b:02X}" for b in raw)
    # A dot at the end is not kept everywhere either.
    plain = f"{plain[:-1]}={ord(plain[-1]):02X}" if plain[-1] in ". " else plain
    if len(plain) <= MAX_SEGMENT:
        return plain
    return f"{plain[:100].rstrip('=. ')}-{digest_of(raw).hex()[:16]}"
