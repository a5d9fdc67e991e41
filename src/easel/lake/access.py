"""Who may read and write what inside a project: pure decisions over grants.

A grant names a pattern: a folder (`/data/`) or file, or a file set's name (`Hotpot*` for several). The
longest pattern that covers a name decides, and there only those named may do what they were granted.
What no pattern covers is open to every member; admins may everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from easel.errors import Denied, InvalidInput, NotFound
from easel.lake.paths import file_path, folder_path, set_name

EVERYONE = "everyone"


class Scope(StrEnum):
    PATH = "path"
    FILE_SET = "fileset"


@dataclass(frozen=True, slots=True)
class Grant:
    """`principal` is `user:<id>`, `group:<name>` or `everyone`."""

    scope: Scope
    pattern: str
    principal: str
    may_read: bool
    may_write: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """What one caller may do with the names that a pattern covers."""

    stem: str
    exact: bool
    may_read: bool
    may_write: bool

    def covers(self, name: str) -> bool:
        return name == self.stem if self.exact else name.startswith(self.stem)


@dataclass(frozen=True, slots=True)
class Rights:
    """One caller's rules, longest first. `own` is the caller, from whom their own jobs are never hidden."""

    paths: tuple[Rule, ...] = ()
    sets: tuple[Rule, ...] = ()
    own: str = ""

    def reads_path(self, path: str) -> bool:
        return all(rule.may_read for rule in _deciding(self.paths, path))

    def writes_path(self, path: str) -> bool:
        return all(rule.may_read and rule.may_write for rule in _deciding(self.paths, path))

    def reads_set(self, name: str) -> bool:
        return all(rule.may_read for rule in _deciding(self.sets, name))

    def writes_set(self, name: str) -> bool:
        return all(rule.may_read and rule.may_write for rule in _deciding(self.sets, name))

    def need_write(self, path: str) -> None:
        if not self.writes_path(path):
            raise Denied(f"you may not write {path}: ask an admin of this project for a grant")

    def need_write_set(self, name: str) -> None:
        if not self.writes_set(name):
            raise Denied(f"you may not write the file set {name}: ask an admin of this project for a grant")

    def need_read(self, path: str) -> None:
        """What may not be read does not exist."""
        if not self.reads_path(path):
            raise no_file(path)

    def need_read_set(self, name: str) -> None:
        if not self.reads_set(name):
            raise no_set(name)


EVERYTHING = Rights()


def rights(grants: Iterable[Grant], principals: frozenset[str]) -> Rights:
    """What somebody who is all of `principals` may do; `everyone` is always among them."""
    mine = principals | {EVERYONE}
    found: dict[tuple[Scope, str], list[Grant]] = {}
    for grant in grants:
        found.setdefault((grant.scope, grant.pattern), []).append(grant)
    rules: dict[Scope, list[Rule]] = {scope: [] for scope in Scope}
    for (scope, pattern), here in found.items():
        own = [grant for grant in here if grant.principal in mine]
        stem, exact = split(scope, pattern)
        may_read, may_write = any(g.may_read for g in own), any(g.may_write for g in own)
        rules[scope].append(Rule(stem, exact, may_read, may_write))
    # An exact name is more precise than an equally long stem.
    order = {scope: tuple(sorted(r, key=lambda x: (-len(x.stem), not x.exact))) for scope, r in rules.items()}
    return Rights(order[Scope.PATH], order[Scope.FILE_SET])


def split(scope: Scope, pattern: str) -> tuple[str, bool]:
    """The stem of a valid pattern, and whether only that very name is meant."""
    if scope is Scope.PATH:
        return (folder_path(pattern), False) if pattern.endswith("/") else (file_path(pattern), True)
    if pattern == "*":
        return "", False
    if pattern.endswith("*"):
        stem = pattern[:-1]
        set_name(stem + "x")
        return stem, False
    return set_name(pattern), True


def principal(text: str) -> str:
    kind, _, name = text.partition(":")
    if text == EVERYONE or (kind in {"user", "group"} and 0 < len(name) <= 64):
        return text
    raise InvalidInput(f"{text[:80]!r} is nobody: use 'user:<name>', 'group:<name>' or 'everyone'")


def no_file(path: str) -> NotFound:
    return NotFound(f"there is no file {path}: `easel ls` shows what there is")


def no_set(name: str) -> NotFound:
    return NotFound(f"there is no file set {name}: `easel filesets ls` shows what there is")


def _deciding(rules: tuple[Rule, ...], name: str) -> list[Rule]:
    return [next(rule for rule in rules if rule.covers(name))] if any(r.covers(name) for r in rules) else []
