"""Search: what fulfils a query, with its tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.errors import InvalidInput
from easel.ids import UserId
from easel.lake.query.language import parse_query
from easel.records.identity import Caller
from easel.records.lake import Artifact, Kind, TagValue
from easel.store.engine import Tx
from easel.store.lake import artifacts, tags
from easel.store.lake.artifacts import creators_named
from easel.store.lake.grants import rights_of
from easel.store.lake.search import Search, search

MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Found:
    items: Sequence[tuple[Artifact, Mapping[str, TagValue]]]
    next_cursor: str | None


def makers_of(tx: Tx, found: Sequence[Artifact]) -> dict[int, str]:
    """Returns the names of the jobs that made these, by artifact id. All are of one project."""
    makers = {each.made_by for each in found if each.made_by}
    if not makers:
        return {}
    return {key: job.name for key, job in artifacts.by_id(tx, found[0].project_id, sorted(makers)).items()}


def find(
    tx: Tx,
    caller: Caller,
    kind: Kind,
    query: str,
    *,
    sort: str = "-create_time",
    limit: int = 50,
    cursor: str | None = None,
) -> Found:
    """E.g. `job.creator = john and job.create_time = today and job.model = BERT and precision > 0.5`.

    The largest of a key is the first by `-key`, the smallest the first by `key`.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}, not {limit}")
    request = Search(kind, parse_query(query, tx.now), sort or "-create_time", limit, cursor)

    def find_users(name: str) -> list[UserId]:
        return creators_named(tx, caller.project_id, name)

    items, following = search(tx, caller.project_id, rights_of(tx, caller), request, find_users)
    values = tags.tags_of(tx, [item.id for item in items])
    return Found([(item, values[item.id]) for item in items], following)
