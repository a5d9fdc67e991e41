"""File sets: created from references, looked at, compared, deleted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from easel.errors import Conflict, Denied, InvalidInput, NotFound, TooLarge
from easel.lake.access import Rights, no_file, no_set
from easel.lake.manifest import tree
from easel.lake.manifest.diff import Change, diff
from easel.lake.manifest.node import Entry, NodeRef, Nodes
from easel.lake.manifest.resolve import ManifestSource, Rank, union
from easel.lake.paths import (
    FileInSet,
    FileRef,
    FolderInSet,
    FolderRef,
    Ref,
    SetRef,
    parse,
    parse_set,
    set_name,
)
from easel.records.identity import Caller
from easel.records.lake import Artifact, FileSetVersion, Kind
from easel.store.engine import Store, Tx
from easel.store.lake import artifacts, file_sets, lineage
from easel.store.lake.grants import rights_of
from easel.store.lake.nodes import SqlNodes
from easel.store.upsert import lock

MAX_SOURCES = 20_000


@dataclass(frozen=True, slots=True)
class Resolved:
    """References with their versions filled in, the manifest that they make, and the sets they came from."""

    pinned: tuple[str, ...]
    root: NodeRef
    depends_on: frozenset[int]


@dataclass(slots=True)
class _Gathered:
    sources: list[ManifestSource] = field(default_factory=list)
    singles: dict[str, tuple[Entry, str]] = field(default_factory=dict)
    pinned: list[str] = field(default_factory=list)
    depends_on: set[int] = field(default_factory=set)
    whole_sets: list[tuple[NodeRef, str]] = field(default_factory=list)


def create_file_set(store: Store, caller: Caller, name: str, references: Sequence[str]) -> FileSetVersion:
    """The next version of the set `name`, made of what the references name now.

    The manifest is built beside other people's work; only the last step, which takes the version number,
    is one transaction.
    """
    resolved = resolve_beside(store, caller, name, references)
    with store.write() as tx:
        return add_version(tx, caller, name, resolved)


def resolve_beside(store: Store, caller: Caller, name: str, references: Sequence[str]) -> Resolved:
    """Returns what the references name now, its manifest written beside other people's transactions."""
    with store.read() as tx:
        check_may_write(tx, caller, name)
        return resolve(tx, SqlNodes(tx, store.write), rights_of(tx, caller), caller, references)


def list_file_sets(
    tx: Tx, caller: Caller, prefix: str, after: str, limit: int, *, automatic: bool = True
) -> list[FileSetVersion]:
    """Returns the latest version of each set that the caller may read, by name from `after` on."""
    rights = rights_of(tx, caller)
    return file_sets.list_sets(tx, caller.project_id, rights, prefix, after, limit, automatic=automatic)


def list_versions(tx: Tx, caller: Caller, name: str) -> list[FileSetVersion]:
    """Returns all versions of a set, the newest first."""
    rights_of(tx, caller).need_read_set(set_name(name))
    return file_sets.list_versions(tx, caller.project_id, name)


def create_in(
    tx: Tx,
    caller: Caller,
    name: str,
    references: Sequence[str],
    *,
    made_by: int | None = None,
) -> FileSetVersion:
    """The same inside a transaction that does more: for small sets, or where all must happen at once."""
    check_may_write(tx, caller, name)
    resolved = resolve(tx, own_nodes(tx), rights_of(tx, caller), caller, references)
    return add_version(tx, caller, name, resolved, made_by=made_by)


def create_of(
    tx: Tx, caller: Caller, name: str, entries: Iterator[Entry], *, made_by: int | None
) -> FileSetVersion:
    """A set of exactly these entries, by path: the output of a job."""
    check_may_write(tx, caller, name)
    nodes = own_nodes(tx)
    root = tree.build(nodes, entries)
    nodes.flush()
    return add_version(tx, caller, name, Resolved((), root, frozenset()), made_by=made_by)


def own_nodes(tx: Tx) -> SqlNodes:
    return SqlNodes(tx, lambda: nullcontext(tx))


def check_may_write(tx: Tx, caller: Caller, name: str) -> None:
    rights_of(tx, caller).need_write_set(set_name(name))


def add_version(
    tx: Tx, caller: Caller, name: str, resolved: Resolved, *, made_by: int | None = None
) -> FileSetVersion:
    """Take the next version number, and record where the content came from."""
    lock(tx, f"lake {caller.project_id}")
    new = Artifact(
        0,
        caller.project_id,
        Kind.FILE_SET,
        name,
        0,
        caller.user.id,
        tx.now,
        0,
        None,
        made_by,
        None,
    )
    made = file_sets.add(tx, new, resolved.root, resolved.pinned)
    lineage.add_edges(tx, caller.project_id, resolved.depends_on, made.artifact.id, None)
    if made_by is not None:
        inputs = lineage.reads_of(tx, made_by)
        lineage.add_edges(tx, caller.project_id, inputs, made.artifact.id, made_by)
    body = {"name": name, "version": made.artifact.version, "files": made.files, "bytes": made.artifact.size}
    tx.emit("fileset.created", str(made), project_id=caller.project_id, actor=caller.user.id, body=body)
    return made


def resolve(tx: Tx, nodes: SqlNodes, rights: Rights, caller: Caller, references: Sequence[str]) -> Resolved:
    """What the references name now. One whole set plus single files costs as much as the files alone."""
    if not references:
        raise InvalidInput("a file set is made from references such as '/data/' or '/@HotpotQA': name some")
    if len(references) > MAX_SOURCES:
        raise TooLarge(f"{len(references)} references: name at most {MAX_SOURCES}, or name folders")
    gathered = _Gathered()
    for text in references:
        _gather(tx, nodes, rights, caller, parse(text), gathered)
    if len(gathered.whole_sets) == 1 and not gathered.sources:
        root = tree.edit(nodes, gathered.whole_sets[0][0], {p: e for p, (e, _) in gathered.singles.items()})
    else:
        root = tree.build(nodes, union(_all_sources(nodes, gathered)))
    nodes.flush()
    return Resolved(tuple(gathered.pinned), root, frozenset(gathered.depends_on))


def _all_sources(nodes: Nodes, gathered: _Gathered) -> list[ManifestSource]:
    singles = [entry for _, (entry, _) in sorted(gathered.singles.items())]
    whole = [
        ManifestSource(label, Rank.FILE_SET, tree.entries(nodes, root)) for root, label in gathered.whole_sets
    ]
    named = [ManifestSource("the files that were named", Rank.FILE, singles)] if singles else []
    return [*whole, *gathered.sources, *named]


def _gather(tx: Tx, nodes: Nodes, rights: Rights, caller: Caller, ref: Ref, into: _Gathered) -> None:
    match ref:
        case FileRef(path, version):
            found = find_file(tx, caller, rights, path, version)
            _single(into, artifacts.entry(found), FileRef(path, found.version))
        case FolderRef(folder):
            stream = artifacts.stream_entries(tx, caller.project_id, folder, rights)
            into.sources.append(ManifestSource(str(ref), Rank.FOLDER, _some(stream, str(ref))))
            into.pinned.append(str(ref))
        case FileInSet(path, of):
            made, root = find_set(tx, caller, rights, of)
            entry = tree.find(nodes, root, path)
            if entry is None or not rights.reads_path(path):
                raise no_file(f"{path} in the file set {made}")
            into.depends_on.add(made.artifact.id)
            _single(into, entry, FileInSet(path, _pin(made)))
        case FolderInSet(folder, of):
            made, root = find_set(tx, caller, rights, of)
            into.depends_on.add(made.artifact.id)
            label = str(FolderInSet(folder, _pin(made)))
            into.pinned.append(label)
            if folder == "/" and not rights.paths:
                into.whole_sets.append((root, label))
            else:
                part = _readable(tree.entries(nodes, root, folder), rights, made)
                into.sources.append(ManifestSource(label, Rank.FILE_SET, _some(part, label)))


def _single(into: _Gathered, entry: Entry, pinned: FileRef | FileInSet) -> None:
    known = into.singles.setdefault(entry.path, (entry, str(pinned)))
    if known[0].version != entry.version:
        raise Conflict(
            f"a file set cannot hold two versions of one file: {entry.path} is version {known[0].version} "
            f"in {known[1]} and {entry.version} in {pinned}. Name one of them."
        )
    into.pinned.append(str(pinned))


def _some(entries: Iterator[Entry], label: str) -> Iterator[Entry]:
    """A folder that names nothing is a mistake, not an empty set."""
    first = next(entries, None)
    if first is None:
        raise NotFound(f"there are no files in {label}: `easel ls` shows what there is")
    return itertools.chain([first], entries)


def _readable(entries: Iterator[Entry], rights: Rights, of: FileSetVersion) -> Iterator[Entry]:
    if not rights.paths:
        yield from entries
        return
    for entry in entries:
        if not rights.reads_path(entry.path):
            raise Denied(f"{of} holds files that you may not read: ask an admin of this project for a grant")
        yield entry


def _pin(made: FileSetVersion) -> SetRef:
    return SetRef(made.artifact.name, made.artifact.version)


def find_file(tx: Tx, caller: Caller, rights: Rights, path: str, version: int | None) -> Artifact:
    """A file version that the caller may read and whose bytes are there."""
    rights.need_read(path)
    if version is None:
        found = artifacts.find_latest_file(tx, caller.project_id, path)
    else:
        found = artifacts.find_version(tx, caller.project_id, Kind.FILE, path, version)
    if found is None:
        raise no_file(str(FileRef(path, version)))
    if found.dropped_at is not None:
        raise Conflict(
            f"the bytes of {FileRef(path, found.version)} were given up on {found.dropped_at:%Y-%m-%d}: "
            "upload the file again, or replay what made it (`easel filesets replay`)"
        )
    return found


def find_set(tx: Tx, caller: Caller, rights: Rights, of: SetRef) -> tuple[FileSetVersion, NodeRef]:
    rights.need_read_set(of.name)
    found = file_sets.find(tx, caller.project_id, of.name, of.version)
    if found is None:
        raise no_set(str(of))
    return found


def get_file_set(tx: Tx, caller: Caller, reference: str) -> FileSetVersion:
    return find_set(tx, caller, rights_of(tx, caller), parse_set(reference))[0]


def entries_of(tx: Tx, caller: Caller, reference: str, folder: str = "/", after: str = "") -> Iterator[Entry]:
    """The content of a set by path; files that may not be read are an error, not a gap."""
    rights = rights_of(tx, caller)
    made, root = find_set(tx, caller, rights, parse_set(reference))
    nodes = own_nodes(tx)
    found = tree.entries_after(nodes, root, after) if after else tree.entries(nodes, root, folder)
    inside = (e for e in found if e.path.startswith(folder)) if after else found
    return _readable(inside, rights, made)


def compare(tx: Tx, caller: Caller, before: str, after: str) -> Iterator[Change]:
    """What changed from one set to another, by path; only the caller's own paths."""
    rights = rights_of(tx, caller)
    old, new = (find_set(tx, caller, rights, parse_set(text))[1] for text in (before, after))
    return (change for change in diff(own_nodes(tx), old, new) if rights.reads_path(change.path))


def delete_file_set(tx: Tx, caller: Caller, name: str) -> None:
    """Hide a set. Its versions stay readable by number, so that what was made from them can be traced."""
    rights = rights_of(tx, caller)
    rights.need_read_set(set_name(name))
    rights.need_write_set(name)
    if not file_sets.mark_deleted(tx, caller.project_id, name):
        raise no_set(name)
    tx.emit("fileset.deleted", name, project_id=caller.project_id, actor=caller.user.id, body={})
