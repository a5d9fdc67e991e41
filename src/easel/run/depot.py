"""Where an agent gets a job's files from and leaves what the job made."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from easel.errors import InvalidInput
from easel.records.job import StoredFile
from easel.run.journal import Entry

MAX_OUTPUT_FILES = 1_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """What a job left.

    Bytes that are few travel in the report (`inline`, by digest) and are stored together with other jobs' by
    whoever commits: one write to disk for many small outputs.
    """

    files: Sequence[StoredFile]
    inline: Mapping[str, bytes] = field(default_factory=dict)


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
            yield "/" + path.relative_to(folder).as_posix(), path


def output_entry(kept: Kept) -> Entry:
    return {
        "k": "output",
        "files": [[f.path, f.digest, f.size, f.object, f.offset] for f in kept.files],
        "inline": {digest: b64encode(data).decode() for digest, data in kept.inline.items()},
    }


def read_output(entry: Entry) -> Kept:
    files = [StoredFile(*file) for file in entry["files"]]
    return Kept(files, {digest: b64decode(text) for digest, text in entry["inline"].items()})
