"""A folder on somebody's disk, read for upload."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from easel.errors import InvalidInput, NotFound
from easel.lake.paths import file_path, folder_path


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A regular file here, and the path that it gets in the lake."""

    path: str
    local: Path
    size: int


def scan(source: Path, target: str) -> list[LocalFile]:
    """The files of a folder below `target` (which ends in `/`), or one file, by path.

    A link to a file inside the folder is uploaded as that file; one that leads out of it, to a folder or
    nowhere is refused, since it would carry in what the sender did not mean. Two names that are one path
    after normalisation (NFC and NFD) are refused, since one would silently replace the other.
    """
    if source.is_dir():
        found = list(_walk(source, folder_path(target)))
    elif source.is_file():
        path = target + source.name if target.endswith("/") else target
        found = [LocalFile(file_path(path), source, source.stat().st_size)]
    else:
        raise NotFound(f"there is no file or folder {source}")
    found.sort(key=lambda file: file.path)
    for one, two in pairwise(found):
        if one.path == two.path:
            raise InvalidInput(
                f"{str(one.local)!a} and {str(two.local)!a} are the same name in different "
                "spellings: rename one"
            )
    return found


def _walk(root: Path, target: str) -> Iterator[LocalFile]:
    real = root.resolve()
    pending = [(root, target)]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as listing:
            entries = list(listing)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append((Path(entry.path), folder_path(f"{prefix}{entry.name}/")))
                continue
            if entry.is_symlink() and not _leads_inside(Path(entry.path), real):
                raise InvalidInput(
                    f"{entry.path!a} is a link that leads out of the folder, to a folder or nowhere: "
                    "replace it by what it should hold"
                )
            about = entry.stat()
            if not stat.S_ISREG(about.st_mode):
                raise InvalidInput(f"{entry.path!a} is not a regular file: leave it out")
            yield LocalFile(file_path(prefix + entry.name), Path(entry.path), about.st_size)


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        target = link.resolve(strict=True)
    except OSError:
        return False
    return target.is_file() and target.is_relative_to(root)
