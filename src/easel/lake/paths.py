"""Paths in the lake, and the language that names files, folders and file sets.

    /data/train.json              the latest version of a file
    /data/train.json:2            that version
    /data/                        everything below a folder, latest versions
    /data/train.json@HotpotQA:1   the version of the file that the file set refers to
    /validation/@HotpotQA         everything of the file set below a folder (latest version of the set)
    /@HotpotQA:3                  the whole file set

A literal `@` or `:` in a file's name is written `\\@` or `\\:` in this language.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from easel.errors import InvalidInput

MAX_PATH = 1024
MAX_SEGMENT = 255
ROOT = "/"

# Paths in which nothing can be wrong, which most are: whoever uploads a million files waits for this check twice.
_PLAIN = re.compile(r"(?:/[A-Za-z0-9_-](?:[A-Za-z0-9_. -]*[A-Za-z0-9_-])?)+")
_SET_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_SPECIAL = re.compile(r"[@:]")


@dataclass(frozen=True, slots=True)
class SetRef:
    """`name` or `name:version`; None is the latest."""

    name: str
    version: int | None = None

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}:{self.version}"


@dataclass(frozen=True, slots=True)
class FileRef:
    """One file, in its latest or a given version."""

    path: str
    version: int | None = None

    def __str__(self) -> str:
        return escape(self.path) + ("" if self.version is None else f":{self.version}")


@dataclass(frozen=True, slots=True)
class FolderRef:
    """Everything below `folder`, which ends in `/`."""

    folder: str

    def __str__(self) -> str:
        return escape(self.folder)


@dataclass(frozen=True, slots=True)
class FileInSet:
    """The version of one file that a file set refers to."""

    path: str
    of: SetRef

    def __str__(self) -> str:
        return f"{escape(self.path)}@{self.of}"


@dataclass(frozen=True, slots=True)
class FolderInSet:
    """What a file set has below `folder`; `/` is all of it."""

    folder: str
    of: SetRef

    def __str__(self) -> str:
        return f"{escape(self.folder)}@{self.of}"


Ref = FileRef | FolderRef | FileInSet | FolderInSet


def file_path(text: str) -> str:
    """A valid absolute path of a file, in NFC, or InvalidInput that says what is wrong with it.

    Two spellings of one name (NFC and NFD) become one path.
    """
    if len(text) <= MAX_SEGMENT and _PLAIN.fullmatch(text):
        return text
    path = unicodedata.normalize("NFC", text)
    if not path.startswith("/"):
        hint = f"; if it is a file set, write /@{text}" if _SET_NAME.fullmatch(text) else ""
        raise _bad(text, f"a path begins with '/'{hint}")
    if path.endswith("/"):
        raise _bad(text, "a file's path does not end in '/'")
    _check(text, path[1:].split("/"))
    return path


def folder_path(text: str) -> str:
    """A valid folder, which ends in `/`; the root is `/`."""
    path = unicodedata.normalize("NFC", text)
    if not path.startswith("/") or not path.endswith("/"):
        raise _bad(text, "a folder begins and ends with '/'")
    if path != ROOT:
        _check(text, path[1:-1].split("/"))
    return path


def set_name(text: str) -> str:
    if not _SET_NAME.fullmatch(text) or ".." in text:
        raise InvalidInput(
            f"{_shown(text)} is not a name for a file set: use 1 to 128 letters, digits, '.', '_' or '-', "
            "without '..' and without a '.' at the end"
        )
    return text


def parse_set(text: str) -> SetRef:
    name, colon, number = text.partition(":")
    return SetRef(set_name(name), _number(text, number) if colon else None)


def parse(text: str) -> Ref:
    """Read one reference of the language above; a set by itself (`@HotpotQA`) is all of it."""
    path, rest = _split(text)
    if not path and rest.startswith("@"):
        path = ROOT
    folder = path.endswith("/")
    if rest.startswith("@"):
        of = parse_set(rest[1:])
        return FolderInSet(folder_path(path), of) if folder else FileInSet(file_path(path), of)
    if folder:
        if rest:
            raise _bad(text, "a folder has no versions: name a file, or a file set after '@'")
        return FolderRef(folder_path(path))
    return FileRef(file_path(path), _number(text, rest[1:]) if rest else None)


def escape(path: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", path)


def above(prefix: str) -> str:
    """The smallest text that sorts after everything beginning with `prefix` (a folder: ends in `/`)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _split(text: str) -> tuple[str, str]:
    """The path without its escapes, and what follows from the first bare `@` or `:` on."""
    path: list[str] = []
    escaped = False
    for position, character in enumerate(text):
        if escaped:
            if character not in "@:":
                raise _bad(text, "a backslash only stands before '@' or ':'")
            path.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "@:":
            return "".join(path), text[position:]
        else:
            path.append(character)
    if escaped:
        raise _bad(text, "it ends in a backslash")
    return "".join(path), ""


def _number(text: str, number: str) -> int:
    if not _NUMBER.fullmatch(number):
        raise _bad(text, "after ':' stands a version number, from 1 on")
    return int(number)


def _check(text: str, segments: list[str]) -> None:
    try:
        length = len("/".join(segments).encode())
    except UnicodeEncodeError:
        raise _bad(text, "it is not valid Unicode") from None
    if length > MAX_PATH:
        raise _bad(text, f"it has {length} bytes and at most {MAX_PATH} are allowed")
    for segment in segments:
        wrong = _wrong(segment) or _wrong_when_decoded(segment)
        if wrong:
            raise _bad(text, wrong)


def _wrong(segment: str) -> str | None:
    if segment == "":
        return "it has an empty segment ('//')"
    if segment in {".", ".."}:
        return f"a segment {segment!r} is not allowed: write the path out"
    if segment[-1] in ". ":
        return "a segment ends in a dot or a space, which not every file system keeps"
    if "\\" in segment or "/" in segment:
        return "it contains a backslash or a slash inside a name"
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in segment):
        return "it contains a control character"
    if any(ord(c) & 0xFFFE == 0xFFFE for c in segment):
        return "it contains a code point that is no character"
    if len(segment.encode()) > MAX_SEGMENT:
        return f"a segment has more than {MAX_SEGMENT} bytes"
    return None


def _wrong_when_decoded(segment: str) -> str | None:
    """A percent-encoded `..` is harmless here, not in the next program: refuse it, however often encoded."""
    decoded = unquote(segment)
    while decoded != segment:
        segment = decoded
        if segment in {"", ".", ".."} or any(c in segment for c in "/\\\0"):
            return "percent-encoding hides a path separator or '..'"
        decoded = unquote(segment)
    return None


def _bad(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"{_shown(text)} is not a valid path: {why}")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:80] + "…")
