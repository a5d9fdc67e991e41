"""Everybody's best offer, kept from decision to decision: after one result one tenant is scored again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from easel.schedule.members import Members
from easel.schedule.state import PoolState, Tenant


@dataclass(frozen=True, slots=True, eq=False)
class BestCandidate:
    """The best candidate of one tenant."""

    tenant: Tenant
    index: int
    score: float


OneOffer = TypeVar("OneOffer", bound=BestCandidate)
Make: TypeAlias = Callable[[Tenant, PoolState], OneOffer | None]


class Board(Generic[OneOffer]):
    """The offers of all tenants in the pool's order, and what is weighed of them as arrays `(N,)`.

    A tenant without an offer has the score −∞ and counts as not `there`.
    """

    def __init__(self, members: Members[Tenant]) -> None:
        self.offers: list[OneOffer | None] = [None] * len(members)
        self.scores = np.full(len(members), -np.inf)
        self.served_at = np.zeros(len(members), dtype=int)
        self.there = np.zeros(len(members), dtype=bool)
        self.count = 0
        self.at = members
        self._place = {name: place for place, name in enumerate(members)}
        self._fleeting = set[str]()

    def present(self) -> list[OneOffer]:
        return [offer for offer in self.offers if offer is not None]

    def look(self, names: Iterable[str], state: PoolState, key: _Key, make: Make[OneOffer]) -> None:
        """Ask again those of `names`, and those whose answer depends on the moment."""
        self.at = state.members
        for name in {*names, *self._fleeting}:
            tenant = self.at[name]
            offer, place = _offer(tenant, state, key, make), self._place[name]
            self.count += (offer is not None) - bool(self.there[place])
            self.offers[place], self.there[place] = offer, offer is not None
            self.scores[place] = -np.inf if offer is None else offer.score
            self.served_at[place] = tenant.served_at
            if _fleeting(tenant):
                self._fleeting.add(name)


def board_of(state: PoolState, parts: Hashable, make: Make[OneOffer]) -> Board[OneOffer]:
    """Each tenant's best candidate by `make`, where it has one.

    `parts` name all that `make` reads of the pool besides the tenant and the moment.
    """
    key, members = _Key(parts), state.members
    boards = members.boards
    board: Board[OneOffer] | None = boards.pop(key, None)
    changed: Iterable[str] | None = None if board is None else members.since(board.at)
    if board is None or changed is None:
        board, changed = Board(members), members
    board.look(changed, state, key, make)
    boards[key] = board
    longest_unused = next(iter(boards))
    if members.number - boards[longest_unused].at.number > len(members):
        # it would keep all that has happened since, and to look at everybody is no dearer
        del boards[longest_unused]
    return board


def _offer(tenant: Tenant, state: PoolState, key: _Key, make: Make[OneOffer]) -> OneOffer | None:
    """Remembered on the tenant, too, which may be in several pools; not where it depends on the moment."""
    if key in tenant.memo:
        found: OneOffer | None = tenant.memo[key]
        return found
    offer = make(tenant, state)
    if not _fleeting(tenant):
        tenant.memo[key] = offer
    return offer


def _fleeting(tenant: Tenant) -> bool:
    return tenant.deadline < np.inf or tenant.budget < np.inf


class _Key:
    """A key whose hash is reckoned once: it is looked up in every tenant."""

    __slots__ = ("parts", "value")

    def __init__(self, parts: Hashable) -> None:
        self.parts, self.value = parts, hash(parts)

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts
