"""The tenants of a pool by name: a mapping that never changes, and whose successor costs one entry.

The newest of a line of mappings owns the dictionary. One that was succeeded keeps only what it had in place of the
successor's new entry (Baker's persistent arrays), and is copied out if it is read again. From the same entries one that
looked at an earlier mapping learns what has changed since.
"""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Generic, TypeVar

Member = TypeVar("Member")


class Members(Mapping[str, Member], Generic[Member]):
    """Takes `rows` over: nobody else may change them.

    `boards` is what policies worked out about this very mapping: handed on to the successor, and to no other. `number`
    counts the successions.
    """

    __slots__ = ("_later", "_rows", "boards", "number")

    def __init__(
        self, rows: dict[str, Member], boards: dict[Hashable, Any] | None = None, number: int = 0
    ) -> None:
        self._rows: dict[str, Member] | None = rows
        self._later: tuple[Members[Member], str, Member] | None = None
        self.boards: dict[Hashable, Any] = {} if boards is None else boards
        self.number = number

    def succeeded(self, name: str, member: Member) -> Members[Member]:
        """The same with `member` in the place of the one of that name."""
        rows = self._own()
        if self._later is not None:
            return Members({**rows, name: member})
        before, rows[name] = rows[name], member
        after = Members(rows, self.boards, self.number + 1)
        self._rows, self.boards, self._later = None, {}, (after, name, before)
        return after

    def since(self, earlier: Members[Member]) -> list[str] | None:
        """The names whose members are others than in `earlier`, one for each change; None if it is not of this line."""
        names: list[str] = []
        at = earlier
        while at is not self:
            if at._later is None:
                return None
            at, name, _ = at._later
            names.append(name)
        return names

    def _own(self) -> dict[str, Member]:
        if self._rows is None:
            undo = []
            at: Members[Member] = self
            while at._rows is None:
                assert at._later is not None
                at, name, before = at._later
                undo.append((name, before))
            self._rows = {**at._rows, **dict(reversed(undo))}
        return self._rows

    def __getitem__(self, name: str) -> Member:
        return self._own()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def __len__(self) -> int:
        return len(self._own())

    def values(self) -> ValuesView[Member]:
        return self._own().values()

    def items(self) -> ItemsView[str, Member]:
        return self._own().items()
