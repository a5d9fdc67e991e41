"""Which files of a folder stay here: `.gitignore` and `.easelignore`, as git reads them, and what is never code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from easel.errors import InvalidInput

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".easelignore")
"""In this order: what `.easelignore` says wins."""
ALWAYS = frozenset({".git", ".hg", ".svn"})
USUALLY = (
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "__pycache__/",
    "*.py[cod]",
    ".venv/",
    ".DS_Store",
    ".easel/",
    ".eggs/",
    "*.egg-info/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".nox/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".tox/",
    "node_modules/",
)
"""Left out unless an ignore file takes it in again: `!.env`."""


@dataclass(frozen=True)
class IgnoreFile:
    """The patterns of one file, which hold below the folder `base` (ends in `/`, empty at the top)."""

    base: str
    lines: tuple[str, ...]
    source: str = ""

    @cached_property
    def spec(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec  # a submission that changes nothing never needs it

        try:
            return GitIgnoreSpec.from_lines(self.lines)
        except ValueError as error:
            raise InvalidInput(
                f"{self.source or 'an ignore file'} has a pattern that git would refuse: {error}"
            ) from error

    def says(self, path: str) -> bool | None:
        """Returns True to leave a path out, False to take it in again, None for no opinion."""
        if not path.startswith(self.base):
            return None
        return self.spec.check_file(path[len(self.base) :]).include


@dataclass(frozen=True)
class IgnoreRules:
    """The ignore files that hold in a folder, outermost first."""

    files: tuple[IgnoreFile, ...] = field(default_factory=lambda: (IgnoreFile("", USUALLY),))

    def within(self, base: str, found: Sequence[Path]) -> IgnoreRules:
        """The rules below `base`, where these ignore files lie."""
        more = tuple(IgnoreFile(base, _lines(path), str(path)) for path in found)
        return IgnoreRules((*self.files, *more)) if more else self

    def leaves_out(self, path: str) -> bool:
        """`path` is relative to the top, with `/` at the end for a folder. The last word counts."""
        for file in reversed(self.files):
            verdict = file.says(path)
            if verdict is not None:
                return verdict
        return False


def rules_above(folder: Path, top: Path) -> IgnoreRules:
    """The rules that folders above `folder`, up to `top`, and `top`'s own `.git/info/exclude` set for it."""
    rules = [IgnoreFile("", USUALLY)]
    exclude = top / ".git" / "info" / "exclude"
    if exclude.is_file():
        rules.append(_shifted(exclude, folder.relative_to(top).parts))
    parents = [parent for parent in (top, *_between(top, folder)) if parent != folder]
    for parent in parents:
        found = [parent / name for name in IGNORE_FILES if (parent / name).is_file()]
        rules += [_shifted(file, folder.relative_to(parent).parts) for file in found]
    return IgnoreRules(tuple(rules))


@dataclass(frozen=True)
class _AboveFile(IgnoreFile):
    """An ignore file of a folder above: it sees paths from where it lies."""

    prefix: str = ""

    def says(self, path: str) -> bool | None:
        return self.spec.check_file(self.prefix + path).include


def _shifted(file: Path, parts: Sequence[str]) -> IgnoreFile:
    return _AboveFile("", _lines(file), str(file), "".join(f"{part}/" for part in parts))


def _between(top: Path, folder: Path) -> list[Path]:
    between = []
    for part in folder.relative_to(top).parts:
        top = top / part
        between.append(top)
    return between


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


def is_virtual_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()
