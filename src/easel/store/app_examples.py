"""Queries on the examples of apps and on what was switched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from easel.declare.page import Filter, PageRequest
from easel.errors import NotFound
from easel.ids import AppId, UserId
from easel.records.app import ExampleCounts, FedExample
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, conditions, fetch
from easel.store.schema.apps import app_examples, app_refinements, apps

_CHUNK = 500
EXAMPLES = Collection(
    {
        "seq": app_examples.c.seq,
        "digest": app_examples.c.digest,
        "class": app_examples.c.stratum,
        "fold": app_examples.c.fold,
        "on": app_examples.c.on,
        "fed_at": app_examples.c.fed_at,
        "answer": app_examples.c.answer,
        "preview": app_examples.c.preview,
    },
    "seq",
    "seq",
)


@dataclass(frozen=True, slots=True)
class NewExample:
    """A row to be: `shard`, `start` and `length` say where the lake holds its line."""

    digest: str
    stratum: str
    fold: int
    preview: str
    answer: str
    shard: str
    start: int
    length: int
    near: str | None = None


def known(tx: Tx, app_id: AppId, digests: Sequence[str]) -> set[str]:
    """Which of these were fed before."""
    found: set[str] = set()
    for start in range(0, len(digests), _CHUNK):
        some = digests[start : start + _CHUNK]
        query = select(app_examples.c.digest).where(
            app_examples.c.app_id == app_id, app_examples.c.digest.in_(some)
        )
        found |= {row.digest for row in tx.execute(query)}
    return found


def folds_near(tx: Tx, app_id: AppId, keys: Sequence[str]) -> dict[str, list[int]]:
    """The folds of examples that are nearly the same, by their key, oldest first."""
    found: dict[str, list[int]] = {}
    for start in range(0, len(keys), _CHUNK):
        query = (
            select(app_examples.c.near, app_examples.c.fold)
            .where(app_examples.c.app_id == app_id, app_examples.c.near.in_(keys[start : start + _CHUNK]))
            .order_by(app_examples.c.seq)
        )
        for row in tx.execute(query):
            found.setdefault(row.near, []).append(row.fold)
    return found


def fold_counts(tx: Tx, app_id: AppId) -> Counter[tuple[str, int]]:
    """How many examples of each stratum are in each fold."""
    query = (
        select(app_examples.c.stratum, app_examples.c.fold, func.count())
        .where(app_examples.c.app_id == app_id)
        .group_by(app_examples.c.stratum, app_examples.c.fold)
    )
    return Counter({(stratum, fold): count for stratum, fold, count in tx.execute(query)})


def counts(tx: Tx, app_ids: Sequence[AppId]) -> dict[AppId, ExampleCounts]:
    """Returns the counts of examples by app; one that was fed nothing has none."""
    on: dict[AppId, dict[str, int]] = {app_id: {} for app_id in app_ids}
    off: Counter[AppId] = Counter()
    query = (
        select(app_examples.c.app_id, app_examples.c.stratum, app_examples.c.on, func.count())
        .where(app_examples.c.app_id.in_(app_ids))
        .group_by(app_examples.c.app_id, app_examples.c.stratum, app_examples.c.on)
    )
    for app_id, stratum, is_on, count in tx.execute(query):
        if is_on:
            on[app_id][stratum] = count
        else:
            off[app_id] += count
    return {app_id: ExampleCounts(on[app_id], off[app_id]) for app_id in app_ids}


def counts_of_all(tx: Tx) -> dict[AppId, ExampleCounts]:
    """Returns the counts of every app of every project that was fed anything."""
    on: dict[AppId, dict[str, int]] = {}
    off: Counter[AppId] = Counter()
    query = select(app_examples.c.app_id, app_examples.c.stratum, app_examples.c.on, func.count()).group_by(
        app_examples.c.app_id, app_examples.c.stratum, app_examples.c.on
    )
    for app_id, stratum, is_on, count in tx.execute(query):
        if is_on:
            on.setdefault(app_id, {})[stratum] = count
        else:
            off[app_id] += count
    return {app_id: ExampleCounts(on.get(app_id, {}), off[app_id]) for app_id in {*on, *off}}


_COUNT_ON = select(func.count()).where(
    app_examples.c.app_id == bindparam("of_app"), app_examples.c.on.is_(True)
)


def count_on(tx: Tx, app_id: AppId) -> int:
    return int(tx.execute(_COUNT_ON, {"of_app": app_id}).scalar_one())


def count(tx: Tx, app_id: AppId) -> int:
    return int(tx.execute(select(func.count()).where(app_examples.c.app_id == app_id)).scalar_one())


def add(
    tx: Tx, app_id: AppId, new: Sequence[NewExample], examples_set: str, summary: Mapping[str, Any]
) -> None:
    """Rows, and the file-set version that holds them with all earlier ones."""
    values = [
        {
            "app_id": app_id,
            "digest": one.digest,
            "stratum": one.stratum,
            "fold": one.fold,
            "on": True,
            "fed_at": tx.now,
            "preview": one.preview,
            "answer": one.answer,
            "shard": one.shard,
            "start": one.start,
            "length": one.length,
            "near": one.near,
        }
        for one in new
    ]
    first = count(tx, app_id) == 0
    tx.execute(insert(app_examples), values)
    tx.execute(
        update(apps).where(apps.c.id == app_id).values(examples_set=examples_set, summary=dict(summary))
    )
    _add_to_key(tx, app_id, [one.digest for one in new], 1, first=first)


_KEY = select(apps.c.examples_key).where(apps.c.id == bindparam("of_app"))
_MODULUS = 1 << 128


def _add_to_key(tx: Tx, app_id: AppId, digests: Sequence[str], sign: int, *, first: bool = False) -> None:
    """The key is the sum of the digests that are on, whatever the order in which they came."""
    before = tx.execute(_KEY, {"of_app": app_id}).scalar()
    if before is None and not first:
        on = (app_examples.c.app_id == app_id, app_examples.c.on.is_(True))
        total = sum(int(row.digest, 16) for row in tx.execute(select(app_examples.c.digest).where(*on)))
    else:
        total = int(before or "0", 16) + sign * sum(int(digest, 16) for digest in digests)
    tx.execute(update(apps).where(apps.c.id == app_id).values(examples_key=f"{total % _MODULUS:032x}"))


def page(tx: Tx, app_id: AppId, request: PageRequest) -> Page[FedExample]:
    """Oldest first, unless asked otherwise."""
    return fetch(tx, select(app_examples).where(app_examples.c.app_id == app_id), EXAMPLES, request).map(
        _example
    )


def newest_shards(tx: Tx, app_id: AppId, within: timedelta) -> list[str]:
    """The files of the lake that the newest feed made: those fed within this time before the newest example."""
    own = app_examples.c.app_id == app_id
    last = tx.execute(select(func.max(app_examples.c.fed_at)).where(own)).scalar()
    if last is None:
        return []
    query = select(app_examples.c.shard).where(own, app_examples.c.fed_at >= last - within).distinct()
    return sorted(row.shard for row in tx.execute(query) if row.shard is not None)


def find(tx: Tx, app_id: AppId, digest: str) -> FedExample:
    row = tx.execute(
        select(app_examples).where(app_examples.c.app_id == app_id, app_examples.c.digest == digest)
    ).first()
    if row is None:
        raise NotFound(f"the app has no example {digest[:40]!r}")
    return _example(row)


def some(tx: Tx, app_id: AppId, digests: Sequence[str]) -> dict[str, FedExample]:
    """Returns the examples that exist, by digest."""
    found: dict[str, FedExample] = {}
    for start in range(0, len(digests), _CHUNK):
        part = digests[start : start + _CHUNK]
        query = select(app_examples).where(app_examples.c.app_id == app_id, app_examples.c.digest.in_(part))
        found |= {row.digest: _example(row) for row in tx.execute(query)}
    return found


def strata(tx: Tx, app_id: AppId, digests: Sequence[str]) -> dict[str, str]:
    """Returns the stratum, where there are classes the class, of these examples."""
    found: dict[str, str] = {}
    for start in range(0, len(digests), _CHUNK):
        query = select(app_examples.c.digest, app_examples.c.stratum).where(
            app_examples.c.app_id == app_id, app_examples.c.digest.in_(digests[start : start + _CHUNK])
        )
        found |= {row.digest: row.stratum for row in tx.execute(query)}
    return found


def matching(tx: Tx, app_id: AppId, filters: Sequence[Filter]) -> list[str]:
    """The digests of all examples that pass the filters, oldest first."""
    query = select(app_examples.c.digest).where(
        app_examples.c.app_id == app_id, *conditions(EXAMPLES, filters)
    )
    return [row.digest for row in tx.execute(query.order_by(app_examples.c.seq))]


_OFF = (
    select(app_examples.c.digest)
    .where(app_examples.c.app_id == bindparam("of_app"), app_examples.c.on.is_(False))
    .order_by(app_examples.c.seq)
)


def off(tx: Tx, app_id: AppId) -> list[str]:
    return [row.digest for row in tx.execute(_OFF, {"of_app": app_id})]


def switch(tx: Tx, app_id: AppId, digests: Sequence[str], on: bool) -> list[str]:
    """Switches examples; returns those that really changed."""
    changed: list[str] = []
    for start in range(0, len(digests), _CHUNK):
        part = digests[start : start + _CHUNK]
        here = (app_examples.c.app_id == app_id, app_examples.c.digest.in_(part), app_examples.c.on != on)
        changed += [row.digest for row in tx.execute(select(app_examples.c.digest).where(*here))]
        tx.execute(update(app_examples).where(*here).values(on=on))
    if changed:
        _add_to_key(tx, app_id, changed, 1 if on else -1)
    return changed


def note_refinement(tx: Tx, app_id: AppId, actor: UserId, digests: Sequence[str], on: bool) -> None:
    tx.execute(
        insert(app_refinements).values(
            app_id=app_id, actor=actor, on=on, digests=list(digests), undone=False, at=tx.now
        )
    )


def take_last_refinement(tx: Tx, app_id: AppId) -> tuple[list[str], bool] | None:
    """The newest one that was not undone, marked as undone."""
    row = tx.execute(
        select(app_refinements)
        .where(app_refinements.c.app_id == app_id, app_refinements.c.undone.is_(False))
        .order_by(app_refinements.c.seq.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    tx.execute(update(app_refinements).where(app_refinements.c.seq == row.seq).values(undone=True))
    return list(row.digests), bool(row.on)


def _example(row: AnyRow) -> FedExample:
    return FedExample(
        row.digest,
        row.stratum,
        row.fold,
        row.on,
        row.fed_at,
        row.preview,
        row.answer,
        row.shard,
        row.start,
        row.length,
    )
