"""Many small blobs travel and rest as one object: one request, one fsync, one name in the bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from easel.lake.blobs.store import PackMember
from easel.lake.digest import Digest

SMALL = 256 * 2**10
"""Blobs below this are packed."""
PACK = 32 * 2**20
"""A pack ends before it would grow beyond this."""


def plan_packs(blobs: Iterable[tuple[Digest, int]], limit: int = PACK) -> Iterator[tuple[PackMember, ...]]:
    """Cut `(digest, size)` into packs, in order: the same list gives the same packs."""
    members: list[PackMember] = []
    end = 0
    for digest, size in blobs:
        if members and end + size > limit:
            yield tuple(members)
            members, end = [], 0
        members.append(PackMember(digest, end, size))
        end += size
    if members:
        yield tuple(members)


def close_up(members: Iterable[PackMember]) -> tuple[PackMember, ...]:
    """The same members side by side from byte 0, as after leaving others out."""
    end, moved = 0, []
    for member in members:
        moved.append(PackMember(member.digest, end, member.size))
        end += member.size
    return tuple(moved)
