"""Manifests as probabilistic B-trees: where a node ends depends on the paths in it, not on how it came to be.

So the same entries make the same tree, two versions of a set share every node in which they agree, and
changing k of n entries writes O(k log n) nodes. (Noms and Dolt call this a prolly tree.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

from easel.lake.manifest.node import Entry, NodeRef, Nodes, children_of, entries_of, inner, leaf

_ENDS = 0xFF  # a node ends after an entry in 256
_LONGEST = 1024  # names could be chosen so that no node ever ended
_AHEAD = 32  # nodes asked for at once when reading in order


class _TreeBuilder:
    """Takes entries, or whole subtrees where nothing is open below them, in the order of their paths."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._entries: list[Entry] = []
        self._open: list[list[NodeRef]] = []  # [k]: what the open node of level k + 1 holds so far

    def entry(self, entry: Entry) -> None:
        self._entries.append(entry)
        if _ends(entry.path, 0) or len(self._entries) >= _LONGEST:
            self._close_leaf()

    def subtree(self, ref: NodeRef) -> None:
        while len(self._open) <= ref.level:
            self._open.append([])
        children = self._open[ref.level]
        children.append(ref)
        if _ends(ref.first, ref.level + 1) or len(children) >= _LONGEST:
            self._close_inner(ref.level + 1)

    def takes_subtree(self, level: int) -> bool:
        return not self._entries and not any(self._open[:level])

    def finish(self) -> NodeRef:
        if self._entries or not self._open:
            self._close_leaf()
        level = 1
        while level <= len(self._open):
            children = self._open[level - 1]
            if level == len(self._open) and len(children) == 1:
                return self._lowest(children[0])
            if children:
                self._close_inner(level)
            level += 1
        raise AssertionError("a level always closes into the one above")

    def _close_leaf(self) -> None:
        entries, self._entries = self._entries, []
        digest, data = leaf(entries)
        self._nodes.add(digest, data)
        first = entries[0].path if entries else ""
        self.subtree(NodeRef(first, digest, 0, len(entries), sum(e.size for e in entries)))

    def _close_inner(self, level: int) -> None:
        children, self._open[level - 1] = self._open[level - 1], []
        digest, data = inner(level, children)
        self._nodes.add(digest, data)
        files, size = sum(c.files for c in children), sum(c.bytes for c in children)
        self.subtree(NodeRef(children[0].first, digest, level, files, size))

    def _lowest(self, ref: NodeRef) -> NodeRef:
        """A chain of only children says nothing: its end is the root, however the tree was made."""
        while ref.level > 0:
            children = children_of(self._nodes.get([ref.digest])[0])
            if len(children) > 1:
                return ref
            ref = children[0]
        return ref


def build(nodes: Nodes, entries: Iterable[Entry]) -> NodeRef:
    """The tree of entries that come in the order of their paths, each path once."""
    builder = _TreeBuilder(nodes)
    for entry in entries:
        builder.entry(entry)
    return builder.finish()


def edit(nodes: Nodes, root: NodeRef, changes: Mapping[str, Entry | None]) -> NodeRef:
    """The tree with `changes` made: an entry is put at its path, None takes the path out."""
    builder = _TreeBuilder(nodes)
    paths = sorted(changes)

    def walk(ref: NodeRef, start: int, end: str | None) -> int:
        """Handle `ref` and the changes from `start` to those before `end`; returns the first one after."""
        stop = len(paths) if end is None else bisect_left(paths, end, start)
        if start == stop and builder.takes_subtree(ref.level):
            if ref.files:
                builder.subtree(ref)
            return stop
        (data,) = nodes.get([ref.digest])
        if ref.level == 0:
            _merge(builder, entries_of(data), changes, paths[start:stop])
            return stop
        children = children_of(data)
        for child, following in zip(children, [*children[1:], None], strict=True):
            start = walk(child, start, following.first if following else end)
        return stop

    walk(root, 0, None)
    return builder.finish()


def entries(nodes: Nodes, root: NodeRef, folder: str = "/") -> Iterator[Entry]:
    """Entries below `folder` (it ends in `/`), in the order of their paths; only their nodes are read."""
    low, high = folder, folder[:-1] + "0"  # '0' follows '/'
    for found in leaves(nodes, root, low, high):
        if low <= found[0].path and found[-1].path < high:
            yield from found
        else:
            yield from (entry for entry in found if low <= entry.path < high)


def entries_after(nodes: Nodes, root: NodeRef, path: str) -> Iterator[Entry]:
    """Entries whose paths sort after `path`: for reading page by page."""
    for found in leaves(nodes, root, path, None):
        yield from (entry for entry in found if entry.path > path)


def find(nodes: Nodes, root: NodeRef, path: str) -> Entry | None:
    for found in leaves(nodes, root, path, path + "\0"):
        for entry in found:
            if entry.path == path:
                return entry
    return None


def leaves(nodes: Nodes, root: NodeRef, low: str, high: str | None) -> Iterator[list[Entry]]:
    """The non-empty leaves that may hold paths in `[low, high)`."""
    if root.files == 0:
        return
    (data,) = nodes.get([root.digest])
    if root.level == 0:
        yield entries_of(data)
        return
    yield from _below(nodes, children_of(data), low, high)


def _below(nodes: Nodes, children: list[NodeRef], low: str, high: str | None) -> Iterator[list[Entry]]:
    starts = [child.first for child in children]
    begin = max(0, bisect_left(starts, low + "\0") - 1)
    end = len(children) if high is None else bisect_left(starts, high)
    wanted = children[begin:end]
    for batch in (wanted[i : i + _AHEAD] for i in range(0, len(wanted), _AHEAD)):
        for child, data in zip(batch, nodes.get([c.digest for c in batch]), strict=True):
            if child.level == 0:
                yield entries_of(data)
            else:
                yield from _below(nodes, children_of(data), low, high)


def _ends(path: str, level: int) -> bool:
    return crc32(path.encode(), level) & _ENDS == 0


def _merge(
    builder: _TreeBuilder, old: list[Entry], changes: Mapping[str, Entry | None], paths: list[str]
) -> None:
    merged: dict[str, Entry | None] = {entry.path: entry for entry in old}
    merged.update((path, changes[path]) for path in paths)
    for _, entry in sorted(merged.items()):
        if entry is not None:
            builder.entry(entry)
