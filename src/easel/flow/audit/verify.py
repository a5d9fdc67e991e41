"""Check that no entry of the audit was changed, removed or put in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from easel.records.audit import ChainedEntry, link
from easel.store import audit
from easel.store.engine import Store


@dataclass(frozen=True, slots=True)
class Verdict:
    """`broken_at` is the number of the first entry that does not fit, `why` says in words what is wrong."""

    entries: int
    first: int
    last: int
    hash: str
    broken_at: int | None = None
    why: str = ""

    @property
    def whole(self) -> bool:
        return self.broken_at is None


def check(entries: Iterable[ChainedEntry], after: int, before: str) -> Verdict:
    """Pure: follow the chain from the entry after number `after`, whose hash is `before`."""
    count, seq, last = 0, after, before
    for each in entries:
        if each.seq != seq + 1:
            why = f"entry {seq + 1} is missing: the next one is {each.seq}"
            return Verdict(count, after + 1, seq, last, seq + 1, why)
        if link(last, each.seq, each.entry) != each.hash:
            return Verdict(
                count, after + 1, seq, last, each.seq, "its hash does not fit its content and the one before"
            )
        count, seq, last = count + 1, each.seq, each.hash
    return Verdict(count, after + 1, seq, last)


def verify(store: Store, witness: tuple[int, str] | None = None) -> Verdict:
    """Check the whole chain, its end, and that a `witness` noted elsewhere (number, hash) is still in it."""
    with store.snapshot() as tx:
        head = audit.head(tx)
        seen: list[ChainedEntry] = []

        def watched() -> Iterable[ChainedEntry]:
            for each in audit.walk(tx):
                if witness is not None and each.seq == witness[0]:
                    seen.append(each)
                yield each

        found = check(watched(), head.trimmed_seq, head.trimmed_hash)
    if not found.whole:
        return found
    if (found.last, found.hash) != (head.seq, head.hash):
        why = f"the chain ends at {found.last}, but {head.seq} entries were written: its end was cut off"
        return Verdict(found.entries, found.first, found.last, found.hash, found.last + 1, why)
    if witness is not None and witness[0] > head.trimmed_seq and [each.hash for each in seen] != [witness[1]]:
        why = f"entry {witness[0]} has another hash than the one noted elsewhere: the chain was written anew"
        return Verdict(found.entries, found.first, found.last, found.hash, witness[0], why)
    return found
