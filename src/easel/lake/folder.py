"""A folder on somebody's disk, read for upload."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from easel.errors import InvalidInput, NotFound
from easel.lake.ignore import ALWAYS, IGNORE_FILES, IgnoreRules, is_virtual_environment
from easel.lake.paths import file_path, folder_path


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A regular file here, and the path that it gets in the lake."""

    path: str
    local: Path
    size: int


def scan(
    source: Path, target: str, *, ignore: IgnoreRules | None = None, left_out: list[str] | None = None
) -> list[LocalFile]:
    """The files of a folder below `target` (which ends in `/`), or one file, by path.

    With `ignore`, what these rules and the ignore files in the folder name is left out, and told in `left_out`.

    A link to a file inside the folder is uploaded as that file; one that leads out of it, to a folder or
    nowhere is refused, since it would carry in what the sender did not mean. Two names that are one path
    after normalisation (NFC and NFD) are refused, since one would silently replace the other.
    """
    if source.is_dir():
        found = list(_walk(source, folder_path(target), ignore, [] if left_out is None else left_out))
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


def _walk(root: Path, target: str, ignore: IgnoreRules | None, left_out: list[str]) -> Iterator[LocalFile]:
    real = root.resolve()
    pending = [(root, target, "", ignore)]
    while pending:
        folder, prefix, inside, rules = pending.pop()
        with os.scandir(folder) as listing:
            entries = list(listing)
        if rules is not None:
            rules = rules.within(inside, [folder / n for n in IGNORE_FILES if (folder / n).is_file()])
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            path = f"{inside}{entry.name}/" if is_folder else f"{inside}{entry.name}"
            if rules is not None and _stays(entry, path, rules):
                left_out.append(path)
                continue
            if is_folder:
                pending.append((Path(entry.path), folder_path(f"{prefix}{entry.name}/"), path, rules))
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


def _stays(entry: os.DirEntry[str], path: str, rules: IgnoreRules) -> bool:
    if entry.name in ALWAYS or rules.leaves_out(path):
        return True
    return path.endswith("/") and is_virtual_environment(Path(entry.path))


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        target = link.resolve(strict=True)
    except OSError:
        return False
    return target.is_file() and target.is_relative_to(root)
