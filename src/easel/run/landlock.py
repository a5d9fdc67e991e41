"""Walls that a process puts up around itself: Landlock rules on files and ports, for code that was forked, not started.

The kernel (5.19 or newer, with Landlock among its security modules) refuses whatever no rule allows, to root too, and
to all children. What is open already stays open.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every processor
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_AT_FIRST, _REFER, _TRUNCATE, _DEVICE_CALLS = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CALLS
_TCP = 0b11  # to listen and to connect
_SCOPES = 0b11  # abstract sockets and signals of others
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _ALL_AT_FIRST | _REFER | _TRUNCATE
DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _DEVICE_CALLS
SETTINGS = READ | _WRITE_FILE | _TRUNCATE
_LEAST = 2
"""The first version that lets files be renamed from one folder to another."""


def version() -> int:
    """What this kernel knows of Landlock; 0 where it has none."""
    return max(0, int(_LIBC.syscall(_CREATE, None, 0, _VERSION)))


def available() -> bool:
    return version() >= _LEAST


def restrict(rules: Iterable[tuple[Path, int]]) -> None:
    """Restricts this process to what a rule allows for what lies at its path or below; no TCP at all.

    Paths that are not there are left out. Call it while there is one thread.
    """
    known = version()
    files = _ALL_AT_FIRST | _REFER
    files |= _TRUNCATE if known >= 3 else 0
    files |= _DEVICE_CALLS if known >= 5 else 0
    about = [files, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0]
    fields = 1 if known < 4 else 2 if known < 6 else 3
    ruleset = _call(_CREATE, struct.pack(f"={fields}Q", *about[:fields]), 8 * fields, 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & files)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        _call(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def without(folder: Path, hidden: Path) -> Iterator[Path]:
    """`folder`, or, where `hidden` lies in it, all in it but that: a rule cannot take away what another gave."""
    folder, hidden = folder.resolve(), hidden.resolve()
    if folder == hidden or folder.is_relative_to(hidden):
        return
    if not hidden.is_relative_to(folder):
        yield folder
        return
    for child in sorted(folder.iterdir()):
        yield from without(child, hidden)


def _call(number: int, *arguments: object) -> int:
    found = int(_LIBC.syscall(number, *arguments))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} (Landlock)")
    return found
