"""What changed between two manifests, reading only the nodes in which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from easel.lake.manifest.node import Entry, NodeRef, Nodes, children_of, entries_of


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None for an added path, `after` for a removed one."""

    path: str
    before: Entry | None
    after: Entry | None


def diff(nodes: Nodes, before: NodeRef, after: NodeRef) -> Iterator[Change]:
    """Changes in the order of their paths.

    A path stands in exactly one leaf of a tree. So a node that both trees have, at whatever place, holds
    nothing that differs, and level by level the common ones are left out.
    """
    left, right = [before], [after]
    level = max(before.level, after.level)
    while level > 0:
        left, right = _apart(left, right)
        left, right = _expand(nodes, left, level), _expand(nodes, right, level)
        level -= 1
    left, right = _apart(left, right)
    old, new = _entries(nodes, left), _entries(nodes, right)
    for path in sorted(old.keys() | new.keys()):
        one, two = old.get(path), new.get(path)
        if one != two:
            yield Change(path, one, two)


def _apart(left: list[NodeRef], right: list[NodeRef]) -> tuple[list[NodeRef], list[NodeRef]]:
    common = {ref.digest for ref in left} & {ref.digest for ref in right}
    return (
        [ref for ref in left if ref.digest not in common],
        [ref for ref in right if ref.digest not in common],
    )


def _expand(nodes: Nodes, refs: list[NodeRef], level: int) -> list[NodeRef]:
    """Replace the nodes of `level` by their children; lower ones wait."""
    high = [ref for ref in refs if ref.level == level]
    children = iter([children_of(data) for data in nodes.get([ref.digest for ref in high])])
    return [child for ref in refs for child in (next(children) if ref.level == level else [ref])]


def _entries(nodes: Nodes, refs: list[NodeRef]) -> dict[str, Entry]:
    found = nodes.get([ref.digest for ref in refs])
    return {entry.path: entry for data in found for entry in entries_of(data)}
