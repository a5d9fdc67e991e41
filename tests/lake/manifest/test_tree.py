from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easel.errors import Conflict
from easel.lake.digest import Digest, digest_of
from easel.lake.manifest.diff import diff
from easel.lake.manifest.node import Entry, NodeRef
from easel.lake.manifest.resolve import ManifestSource, Rank, union
from easel.lake.manifest.tree import build, edit, entries, entries_after, find


class Memory:
    """Nodes in a dictionary, which counts what is read and written."""

    def __init__(self) -> None:
        self.kept: dict[Digest, bytes] = {}
        self.reads = self.writes = 0

    def get(self, digests: Sequence[Digest]) -> list[bytes]:
        self.reads += len(digests)
        return [self.kept[digest] for digest in digests]

    def add(self, digest: Digest, data: bytes) -> None:
        self.writes += 1
        self.kept[digest] = data


def entry(path: str, version: int = 1) -> Entry:
    return Entry(path, version, version * 1000, len(path), digest_of(f"{path}{version}".encode()))


def numbered(count: int) -> list[Entry]:
    return [entry(f"/d{i // 1000:04}/f{i:07}") for i in range(count)]


def content(nodes: Memory, root: NodeRef) -> dict[str, Entry]:
    return {e.path: e for e in entries(nodes, root)}


paths = st.text(st.sampled_from("abc/é😀"), min_size=1, max_size=6).map(lambda t: "/" + t)
versions = st.integers(1, 3)
maps = st.dictionaries(paths, versions, max_size=30)


@given(maps)
def test_what_was_built_is_read_back_in_order(wanted: dict[str, int]) -> None:
    nodes = Memory()
    made = [entry(p, v) for p, v in sorted(wanted.items())]
    root = build(nodes, made)
    assert list(entries(nodes, root)) == made
    assert (root.files, root.bytes) == (len(made), sum(e.size for e in made))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1500), st.dictionaries(st.integers(0, 2000), st.none() | versions, max_size=40))
def test_an_edited_tree_is_the_tree_that_would_have_been_built(
    count: int, changes: dict[int, int | None]
) -> None:
    nodes = Memory()
    before = {e.path: e for e in numbered(count)}
    edits = {
        (path := f"/d{i // 1000:04}/f{i:07}"): None if version is None else entry(path, version)
        for i, version in changes.items()
    }
    root = edit(nodes, build(nodes, before.values()), edits)
    after = {p: e for p, e in sorted((before | edits).items()) if e is not None}
    assert content(nodes, root) == after
    assert root == build(nodes, after.values())


def test_one_change_to_a_large_set_touches_a_few_nodes() -> None:
    nodes = Memory()
    root = build(nodes, numbered(100_000))
    nodes.reads = nodes.writes = 0
    changed = edit(nodes, root, {"/d0050/new": entry("/d0050/new")})
    assert changed.files == 100_001
    assert nodes.reads < 12
    assert nodes.writes < 12
    nodes.reads = 0
    (change,) = diff(nodes, root, changed)
    assert (change.path, change.before) == ("/d0050/new", None)
    assert nodes.reads < 12


@settings(max_examples=60, deadline=None)
@given(maps, maps)
def test_a_difference_lists_exactly_what_differs(one: dict[str, int], two: dict[str, int]) -> None:
    nodes = Memory()
    left = {p: entry(p, v) for p, v in sorted(one.items())}
    right = {p: entry(p, v) for p, v in sorted(two.items())}
    found = list(diff(nodes, build(nodes, left.values()), build(nodes, right.values())))
    expected = [p for p in sorted(left.keys() | right.keys()) if left.get(p) != right.get(p)]
    assert [(c.path, c.before, c.after) for c in found] == [(p, left.get(p), right.get(p)) for p in expected]


def test_sets_of_very_different_size_are_compared() -> None:
    nodes = Memory()
    small, large = build(nodes, numbered(3)), build(nodes, numbered(70_000))
    assert large.level > small.level
    assert sum(1 for _ in diff(nodes, small, large)) == 69_997
    assert sum(1 for _ in diff(nodes, large, small)) == 69_997


def test_a_folder_is_read_without_reading_the_rest() -> None:
    nodes = Memory()
    root = build(nodes, numbered(50_000))
    nodes.reads = 0
    found = list(entries(nodes, root, "/d0007/"))
    assert [e.path for e in found] == [f"/d0007/f{i:07}" for i in range(7000, 8000)]
    assert nodes.reads < 20
    assert list(entries(nodes, root, "/d0007/f/")) == []
    assert list(entries(nodes, root, "/none/")) == []


def test_single_files_and_pages_are_found() -> None:
    nodes = Memory()
    made = numbered(5_000)
    root = build(nodes, made)
    assert find(nodes, root, made[4321].path) == made[4321]
    assert find(nodes, root, "/d0004/none") is None
    assert find(nodes, build(nodes, []), "/x") is None
    assert next(iter(entries_after(nodes, root, made[4320].path))) == made[4321]
    assert list(entries_after(nodes, root, made[-1].path)) == []


def test_names_chosen_so_that_no_node_ends_still_end() -> None:
    from zlib import crc32

    stubborn = [p for i in range(20_000) if crc32((p := f"/{i:06}").encode(), 0) & 0xFF][:15_000]
    nodes = Memory()
    root = build(nodes, [entry(p) for p in stubborn])
    assert max(len(data) for data in nodes.kept.values()) < 100_000
    assert content(nodes, root).keys() == set(stubborn)


def test_a_merge_joins_sets_that_agree() -> None:
    one, two = [entry("/a"), entry("/b")], [entry("/b"), entry("/c")]
    joined = union([ManifestSource("One", Rank.FILE_SET, one), ManifestSource("Two", Rank.FILE_SET, two)])
    assert [e.path for e in joined] == ["/a", "/b", "/c"]


def test_a_merge_of_sets_that_disagree_names_the_files_and_the_sets() -> None:
    sources = [
        ManifestSource("One:1", Rank.FILE_SET, [entry("/a", 1), entry("/b", 2)]),
        ManifestSource("Two:4", Rank.FILE_SET, [entry("/a", 1), entry("/b", 3)]),
    ]
    with pytest.raises(Conflict, match="/b is version 2 in One:1 and 3 in Two:4"):
        list(union(sources))


def test_a_named_file_replaces_the_one_of_a_set() -> None:
    sources = [
        ManifestSource("One:1", Rank.FILE_SET, [entry("/a", 1), entry("/b", 1)]),
        ManifestSource("/b:2", Rank.FILE, [entry("/b", 2)]),
    ]
    assert [(e.path, e.version) for e in union(sources)] == [("/a", 1), ("/b", 2)]


def test_a_file_named_in_two_versions_is_a_conflict() -> None:
    sources = [
        ManifestSource("/b:1", Rank.FILE, [entry("/b", 1)]),
        ManifestSource("/b:2", Rank.FILE, [entry("/b", 2)]),
    ]
    with pytest.raises(Conflict, match="version 1 in /b:1 and 2 in /b:2"):
        list(union(sources))
