"""A folder of code: its files with their digests, read again only where they changed.

What was seen last time (size, times, inode, digest) is kept beside; a file for which none of that changed is not
opened. So a folder of thousands of files is known in a few milliseconds.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from easel.errors import InvalidInput, NotFound, TooLarge
from easel.lake.digest import digest_file
from easel.lake.ignore import ALWAYS, IGNORE_FILES, IgnoreRules, is_virtual_environment, rules_above
from easel.lake.paths import file_path

MAX_FILES = 20_000
MAX_BYTES = 100 << 20
_VERSION = 2
_SETTLED_NS = 50_000_000
"""A file that changed so shortly before it was read may change again within one tick of its clock."""

Stamp = tuple[int, int, int, int]
"""Modification time, change time, size and inode."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file of the code: where it is here, its path below the folder, and what it holds."""

    path: str
    where: str
    size: int
    digest: str
    executable: bool

    @property
    def local(self) -> Path:
        """The path on this machine; made when asked for, since few of thousands of files are opened."""
        return Path(self.where)


@dataclass(frozen=True, slots=True)
class CodeFolder:
    """`left_out` names what could not be taken along, and why; what ignore files name is not told."""

    files: tuple[CodeFile, ...]
    left_out: tuple[str, ...] = ()

    @property
    def tree(self) -> str:
        """Names the content: paths, bytes and which files are programs."""
        hasher = blake3()
        for file in self.files:
            hasher.update(f"{file.path}\0{file.digest}\0{int(file.executable)}\n".encode())
        return hasher.hexdigest()


@dataclass(slots=True)
class _Memory:
    """What the last visit saw."""

    rules: dict[str, Stamp] = field(default_factory=dict)
    files: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    out: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """Those that were gone into: no ignore file names them."""


def scan_code(
    folder: Path,
    *,
    memory: Path | None = None,
    top: Path | None = None,
    leave_out: tuple[str, ...] = (),
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> CodeFolder:
    """The code in `folder`.

    `top` is the folder of the git repository around it, whose ignore files hold too. `memory` is a file that speeds
    up the next call. `leave_out` names folders at the top that are no code (`output/`).
    """
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}")
    known = _remembered(memory)
    walk = _Walk(folder, top or folder, known, leave_out, max_files)
    found = walk.files()
    if walk.rule_stamps != known.rules:
        # An ignore file came, went or changed: nothing that was decided before counts.
        known = _Memory(files=known.files)
        walk = _Walk(folder, top or folder, known, leave_out, max_files, trust=False)
        found = walk.files()
    total = sum(about.st_size for _, _, about in found)
    if total > max_bytes:
        raise TooLarge(_too_large(folder, found, max_bytes))
    now = time.time_ns()
    files, kept = [], {}
    for path, where, about in sorted(found, key=lambda each: each[0]):
        digest, stamp = _digest(where, about, known.files.get(path))
        if now - stamp[1] > _SETTLED_NS:
            kept[path] = (stamp, digest)
        executable = bool(about.st_mode & stat.S_IXUSR)
        files.append(CodeFile(path, where, stamp[2], digest, executable))
    if memory is not None:
        fresh = _Memory(walk.rule_stamps, kept, walk.out, walk.folders)
        if fresh != known:
            _remember(memory, fresh)
    return CodeFolder(tuple(files), tuple(walk.odd))


class _Walk:
    """One pass over the folder. Decisions of the last visit stand in `known` while the ignore files are the same."""

    def __init__(
        self,
        folder: Path,
        top: Path,
        known: _Memory,
        leave_out: tuple[str, ...],
        max_files: int,
        trust: bool = True,
    ) -> None:
        self._folder, self._top, self._known, self._max_files = folder, top, known, max_files
        self._leave_out, self._trust = leave_out, trust
        self.rule_stamps: dict[str, Stamp] = dict(_above(folder, top))
        self.out: set[str] = set()
        self.folders: set[str] = set()
        self.odd: list[str] = []

    def files(self) -> list[tuple[str, str, os.stat_result]]:
        found = list(self._walk())
        spelled = Counter(path for path, _, _ in found)
        twice = next((path for path, count in spelled.items() if count > 1), None)
        if twice is not None:
            raise InvalidInput(f"two files are called {twice!a} in different spellings: rename one")
        return found

    def _walk(self) -> Iterator[tuple[str, str, os.stat_result]]:
        real = self._folder.resolve()
        count = 0
        pending: list[tuple[str, str, IgnoreRules]] = [
            (str(self._folder), "", rules_above(self._folder, self._top))
        ]
        while pending:
            folder, prefix, rules = pending.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except PermissionError:
                self.odd.append(f"{prefix} (you may not read it)")
                continue
            ignore = [e for name in IGNORE_FILES for e in entries if e.name == name and e.is_file()]
            for entry in ignore:
                self.rule_stamps[entry.path] = _stamp(entry.stat())
            rules = rules.within(prefix, [Path(entry.path) for entry in ignore])
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not self._leaves_out_folder(entry, f"{path}/", rules):
                        self.folders.add(f"{path}/")
                        pending.append((entry.path, f"{path}/", rules))
                    continue
                if self._leaves_out(path, rules) or (about := self._regular(entry, path, real)) is None:
                    continue
                count += 1
                if count > self._max_files:
                    raise TooLarge(
                        f"{self._folder} holds more than {self._max_files:,} files, too many for code: name what is "
                        "no code in .easelignore, put data into the lake (easel put) and read it with --input, or "
                        "use --no-code"
                    )
                # A path that was taken along before is a proper one.
                proper = path if path in self._known.files else file_path(f"/{path}")[1:]
                yield proper, entry.path, about

    def _leaves_out_folder(self, entry: os.DirEntry[str], path: str, rules: IgnoreRules) -> bool:
        if entry.name in ALWAYS or path in self._leave_out:
            return True
        if self._leaves_out(path, rules):
            return True
        if is_virtual_environment(Path(entry.path)):
            self.out.add(path)
            return True
        return False

    def _leaves_out(self, path: str, rules: IgnoreRules) -> bool:
        if self._trust and (path in self._known.files or path in self._known.folders):
            return False
        left = path in self._known.out if self._trust and path in self._known.out else rules.leaves_out(path)
        if left:
            self.out.add(path)
        return left

    def _regular(self, entry: os.DirEntry[str], path: str, real: Path) -> os.stat_result | None:
        """What is known about a regular file; None, with a word, for what is none."""
        if entry.name in ALWAYS:  # a worktree's or a submodule's .git is a file
            return None
        try:
            if entry.is_symlink():
                target = Path(entry.path).resolve(strict=True)
                if target.is_dir() or not target.is_relative_to(real):
                    self.odd.append(
                        f"{path} (a link that leads {'to a folder' if target.is_dir() else 'out'})"
                    )
                    return None
            about = entry.stat()
        except (OSError, RuntimeError):
            self.odd.append(f"{path} (a link that leads nowhere)")
            return None
        if not stat.S_ISREG(about.st_mode):
            kind = "a socket" if stat.S_ISSOCK(about.st_mode) else "a pipe or device"
            self.odd.append(f"{path} ({kind})")
            return None
        known = self._known.files.get(path)
        if (known is None or known[0] != _stamp(about)) and not os.access(entry.path, os.R_OK):
            self.odd.append(f"{path} (you may not read it)")
            return None
        return about


def _above(folder: Path, top: Path) -> Iterator[tuple[str, Stamp]]:
    """The ignore files of the repository above the folder."""
    candidates = [top / ".git" / "info" / "exclude"]
    parent = folder
    while parent != top and parent != parent.parent:
        parent = parent.parent
        candidates += [parent / name for name in IGNORE_FILES]
    for path in candidates:
        if path.is_file():
            yield str(path), _stamp(path.stat())


def _digest(where: str, about: os.stat_result, known: tuple[Stamp, str] | None) -> tuple[str, Stamp]:
    """The file's digest and the stamp that it has; one that keeps changing while it is read is refused."""
    stamp = _stamp(about)
    if known is not None and known[0] == stamp:
        return known[1], stamp
    local = Path(where)
    for _ in range(3):
        try:
            digest = digest_file(local).hex()
            after = _stamp(local.stat())
        except FileNotFoundError as error:
            raise InvalidInput(f"{local} went away while it was read: try again") from error
        if after == stamp:
            return digest, stamp
        stamp = after
    raise InvalidInput(f"{local} changes while it is read: leave it out in .easelignore, or try again")


def _stamp(about: os.stat_result) -> Stamp:
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)


def _too_large(folder: Path, found: list[tuple[str, str, os.stat_result]], limit: int) -> str:
    by_top: Counter[str] = Counter()
    for path, _, about in found:
        first, slash, _ = path.partition("/")
        by_top[first + slash] += about.st_size
    largest = ", ".join(f"{name} {_size(size)}" for name, size in by_top.most_common(3))
    return (
        f"{folder} holds {_size(sum(by_top.values()))}, too much for code, which may have {_size(limit)} "
        f"(largest: {largest}). Name what is no code in .easelignore, put data into the lake (easel put) and read it "
        "with --input, or use --no-code"
    )


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MB"


def _remembered(file: Path | None) -> _Memory:
    if file is None:
        return _Memory()
    try:
        data = json.loads(file.read_bytes())
        if data["version"] != _VERSION:
            return _Memory()
        return _Memory(
            {path: _as_stamp(stamp) for path, stamp in data["rules"].items()},
            {path: (_as_stamp(values), values[4]) for path, values in data["files"].items()},
            set(data["out"]),
            set(data["folders"]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return _Memory()  # it only makes things quicker


def _as_stamp(values: list[int]) -> Stamp:
    return (values[0], values[1], values[2], values[3])


def _remember(file: Path, memory: _Memory) -> None:
    data = {
        "version": _VERSION,
        "rules": memory.rules,
        "files": {path: [*stamp, digest] for path, (stamp, digest) in memory.files.items()},
        "out": sorted(memory.out),
        "folders": sorted(memory.folders),
    }
    write_private(file, json.dumps(data))


def write_private(file: Path, text: str) -> None:
    """Write a file of the caller's cache: whole or not at all. A full or read-only disk is no reason to stop."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
        partial.write_text(text)
        partial.replace(file)
    except OSError:
        return
