"""What holding a device costs, now and at any moment in the past: the history of price books."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from easel.errors import Denied, InvalidInput
from easel.price.bill import Bill, PriceChange, draw_up
from easel.price.book import ON_DEMAND, TERMS, PriceBook, Spot, Terms, book_named
from easel.price.grid import ON_CPU, ResourceShape
from easel.records.identity import Caller
from easel.schedule.interruptions import NEVER, Interruptions
from easel.store import billing
from easel.store.engine import Tx
from easel.tenancy.places import PRICE, PlaceTerms, number_in

DEFAULT_BOOK = "acai"
"""What holds until a platform admin sets another."""
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)


def price_history(tx: Tx) -> list[PriceChange]:
    """Oldest first; the default book holds before the first that anybody set."""
    kept = [PriceChange(since, PriceBook.model_validate(book)) for since, book in billing.price_history(tx)]
    return [PriceChange(_ALWAYS, book_named(DEFAULT_BOOK)), *kept] if not _from_ever(kept) else kept


def _from_ever(kept: Sequence[PriceChange]) -> bool:
    return bool(kept) and kept[0].since <= _ALWAYS


def book_now(tx: Tx) -> PriceBook:
    return [change.book for change in price_history(tx) if change.since <= tx.now][-1]


def places_by_terms(tx: Tx) -> dict[str, PlaceTerms]:
    """What devices under each of the book's terms cost, against 1 for those under its own, and how often they go."""
    book = book_now(tx)
    own = book.terms.factor or 1.0
    found = {label: book.under(label).terms for label in (ON_DEMAND, *book.terms_of)}
    return {label: PlaceTerms(terms.factor / own, _interruptions(terms)) for label, terms in found.items()}


def _interruptions(terms: Terms) -> Interruptions:
    if not isinstance(terms, Spot):
        return NEVER
    every = terms.checkpoint_every_s or math.inf
    return Interruptions(terms.interruptions_per_hour, terms.restart_s, every)


def set_prices(tx: Tx, caller: Caller, book: PriceBook, since: datetime | None = None) -> None:
    """Lets this book hold for everybody, from now or from a moment to come. The past is not repriced."""
    if not caller.user.platform_admin:
        raise Denied("only a platform admin sets prices")
    start = tx.now if since is None else since
    if start < tx.now:
        raise InvalidInput("prices cannot change in the past: bills are kept as they were made")
    current = price_history(tx)[-1].book
    if current.currency != book.currency:
        raise InvalidInput(f"prices are in {current.currency} here: a book in {book.currency} cannot follow")
    unsaid = (
        None if book.terms_of else {"terms_of"}
    )  # servers of releases that know no such terms read it too
    billing.add_price(tx, start, book.model_dump(mode="json", exclude=unsaid), caller.user.id)
    tx.emit("prices.changed", book.name, actor=caller.user.id, body={"since": start.isoformat()})


def draw_bill(
    spec: Mapping[str, Any], since: datetime, until: datetime, prices: Sequence[PriceChange]
) -> Bill:
    """The bill of a job with this `spec`, all members of a distributed one together.

    One that asked for devices with terms of their own (`terms=spot`) pays by those, and one that asked for devices
    with a price of their own (`price=3`) so many times as much; others pay by the book, wherever they ran.
    """
    wants = spec.get("wants") or {}
    label = wants.get(TERMS, "")
    if label:
        prices = [replace(change, book=change.book.under(label)) for change in prices]
    one = shape_of(spec["resources"], prices)
    members = spec.get("workers", 1)
    whole = replace(one, cpus=one.cpus * members, memory_mb=one.memory_mb * members, gpus=one.gpus * members)
    return draw_up(whole, since, until, prices, number_in(wants, PRICE))


def shape_of(resources: Mapping[str, Any], prices: Sequence[PriceChange]) -> ResourceShape:
    """A job's resources in the words of price books.

    Jobs ask for GPUs without a kind: they pay for the kind that all books in the history list, `gpu` before
    others; GPUs that no book lists are free.
    """
    gpus = float(resources["gpus"])
    kinds = set.intersection(*(set(change.book.gpus) for change in prices)) if gpus else set()
    kind = min(kinds, key=lambda name: (name != "gpu", name), default=ON_CPU)
    return ResourceShape(float(resources["vcpu"]), float(resources["memory_mb"]), kind, gpus)
