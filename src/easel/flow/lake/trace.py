"""Provenance: the whole graph, one step, or everything that something was made from or that was made of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from easel.errors import InvalidInput
from easel.flow.lake.file_set import find_set
from easel.lake.paths import parse_set
from easel.records.identity import Caller
from easel.records.lake import Edge, Graph
from easel.store.engine import Tx
from easel.store.lake import artifacts, lineage
from easel.store.lake.grants import rights_of
from easel.store.lake.lineage import TraceDirection as TraceDirection

MAX_LIMIT = 5000


def trace(
    tx: Tx,
    caller: Caller,
    reference: str,
    direction: TraceDirection,
    *,
    one_step: bool = False,
    limit: int = 1000,
    cursor: str | None = None,
) -> Graph:
    """Follows a file set (`name` or `name:version`) backward or forward; pages hold nodes in the order of age."""
    rights = rights_of(tx, caller)
    start = find_set(tx, caller, rights, parse_set(reference))[0].artifact.id
    if one_step:
        edges = lineage.neighbours(tx, caller.project_id, start, direction, rights)
        return _graph(tx, caller, {start, *_ends(edges)}, edges, None)
    size, after = _page(limit, cursor)
    reached = lineage.reach(tx, start, direction, rights)
    inside = {start, *reached}
    rest = reached[bisect_right(reached, after) :]
    page = rest[:size]
    # An edge belongs to the page of its farther end, so every edge is told once.
    found = lineage.edges_touching(tx, caller.project_id, page, direction)
    edges = [edge for edge in found if edge.source in inside and edge.target in inside]
    return _graph(tx, caller, {start, *page, *_ends(edges)}, edges, page[-1] if len(rest) > size else None)


def whole_graph(tx: Tx, caller: Caller, *, limit: int = 1000, cursor: str | None = None) -> Graph:
    """Every edge of the project, page by page, with the sets at its ends."""
    size, after = _page(limit, cursor)
    rights = rights_of(tx, caller)
    edges = lineage.page_of_edges(tx, caller.project_id, rights, after, size + 1)
    last = edges[size - 1].id if len(edges) > size else None
    return _graph(tx, caller, _ends(edges[:size]), edges[:size], last)


def _graph(
    tx: Tx,
    caller: Caller,
    nodes: set[int],
    edges: list[Edge],
    last: int | None,
) -> Graph:
    found = artifacts.by_id(tx, caller.project_id, sorted(nodes))
    makers = {edge.job for edge in edges if edge.job} | {n.made_by for n in found.values() if n.made_by}
    jobs = artifacts.by_id(tx, caller.project_id, sorted(m for m in makers if m))
    return Graph({**found, **jobs}, edges, str(last) if last is not None else None)


def _ends(edges: Iterable[Edge]) -> set[int]:
    return {end for edge in edges for end in (edge.source, edge.target)}


def _page(limit: int, cursor: str | None) -> tuple[int, int]:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}, not {limit}")
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidInput("the cursor is damaged: start again without one")
    return limit, int(cursor or 0)
