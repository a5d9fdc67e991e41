"""The history of events becomes bills: each event is read once, in the transaction that writes its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from easel.errors import Denied, InvalidInput
from easel.price.bill import Bill, PriceChange, draw_up
from easel.price.book import PriceBook, book_named
from easel.price.grid import ON_CPU, Shape
from easel.records.identity import Caller
from easel.store import billing, jobs
from easel.store.engine import AnyRow, Tx

DEFAULT_BOOK = "acai"
"""What holds until a platform admin sets another."""
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINS = frozenset({"job.downloading", "job.running"})
_ENDS = frozenset({"job.finished", "job.failed", "job.killed", "job.queued"})


def price_history(tx: Tx) -> list[PriceChange]:
    """Oldest first; the default book holds before the first that anybody set."""
    kept = [PriceChange(since, PriceBook.model_validate(book)) for since, book in billing.price_history(tx)]
    return [PriceChange(_ALWAYS, book_named(DEFAULT_BOOK)), *kept] if not _from_ever(kept) else kept


def _from_ever(kept: Sequence[PriceChange]) -> bool:
    return bool(kept) and kept[0].since <= _ALWAYS


def book_now(tx: Tx) -> PriceBook:
    return [change.book for change in price_history(tx) if change.since <= tx.now][-1]


def set_prices(tx: Tx, caller: Caller, book: PriceBook, since: datetime | None = None) -> None:
    """From now, or from a moment to come, this book holds for everybody. The past is not repriced."""
    if not caller.user.platform_admin:
        raise Denied("only a platform admin sets prices")
    start = tx.now if since is None else since
    if start < tx.now:
        raise InvalidInput("prices cannot change in the past: bills are kept as they were made")
    current = price_history(tx)[-1].book
    if current.currency != book.currency:
        raise InvalidInput(f"prices are in {current.currency} here: a book in {book.currency} cannot follow")
    billing.add_price(tx, start, book.model_dump(mode="json"), caller.user.id)
    tx.emit("prices.changed", book.name, actor=caller.user.id, body={"since": start.isoformat()})


def anything_to_bill(tx: Tx) -> bool:
    """Asked of a reader, so that a quiet ledger writes nothing."""
    return bool(billing.unbilled_events(tx, sorted(_BEGINS | _ENDS), 1))


def bill_ended(tx: Tx, limit: int = 500) -> int:
    """Draw up the bills of attempts that ended since the last call; returns how many events were read.

    A device is held from the attempt's first sign of life on it (`downloading` or `running`) until it ends or
    goes back to the queue. Waiting in the queue and for room on a device is not billed.
    """
    found = billing.unbilled_events(tx, sorted(_BEGINS | _ENDS), limit)
    if not found:
        return 0
    prices = price_history(tx)
    rows = jobs.rows(tx, {event.subject for event in found})
    before = billing.holds_since(tx, sorted(rows))
    since = dict(before)
    lines: list[dict[str, Any]] = []
    for event in found:
        row = rows.get(event.subject)
        if row is None:
            continue
        if event.kind in _BEGINS:
            since.setdefault(row.id, event.at)  # one that holds a device already goes on holding it
        elif (start := since.pop(row.id, None)) is not None:
            lines += _lines(row, event.seq, draw_bill(row.spec, start, event.at, prices))
    billing.end_holds(tx, [job for job, start in before.items() if since.get(job) != start])
    billing.begin_holds(
        tx,
        [
            {"job_id": job, "project_id": rows[job].project_id, "attempt": rows[job].attempt, "since": start}
            for job, start in since.items()
            if before.get(job) != start
        ],
    )
    billing.add_lines(tx, lines)
    billing.mark_billed(tx, found[-1].seq)
    return len(found)


def draw_bill(
    spec: Mapping[str, Any], since: datetime, until: datetime, prices: Sequence[PriceChange]
) -> Bill:
    return draw_up(shape_of(spec["resources"], prices), since, until, prices)


def shape_of(resources: Mapping[str, Any], prices: Sequence[PriceChange]) -> Shape:
    """A job's resources in the words of price books.

    Jobs ask for GPUs without a kind: they pay for the kind that all books in the history list, `gpu` before
    others; GPUs that no book lists are free.
    """
    gpus = float(resources["gpus"])
    kinds = set.intersection(*(set(change.book.gpus) for change in prices)) if gpus else set()
    kind = min(kinds, key=lambda name: (name != "gpu", name), default=ON_CPU)
    return Shape(float(resources["vcpu"]), float(resources["memory_mb"]), kind, gpus)


def _lines(row: AnyRow, seq: int, bill: Bill) -> list[dict[str, Any]]:
    app = row.spec["tags"].get("app", "")
    return [
        {
            "job_id": row.id,
            # Unique even when a job is tried again: the number of the event that ended the attempt.
            "attempt": seq,
            "line": number,
            "project_id": row.project_id,
            "user_id": row.user_id,
            "app": str(app)[:100],
            "month": line.month,
            "start": line.start,
            "seconds": line.seconds,
            "per_hour": line.per_hour,
            "micros": line.micros,
            "currency": bill.currency,
            "book": line.book,
        }
        for number, line in enumerate(bill.lines)
    ]
