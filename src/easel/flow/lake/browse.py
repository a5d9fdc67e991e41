"""Files as people see them: listings, versions, moves, delete marks, and where their bytes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.flow.lake.file_set import find_file, find_set, own_nodes
from easel.lake.access import Rights, no_file
from easel.lake.manifest import tree
from easel.lake.manifest.node import Entry
from easel.lake.paths import FileInSet, FileRef, FolderInSet, FolderRef, Ref, file_path, folder_path, parse
from easel.records.identity import Caller
from easel.records.lake import Artifact, Folder, Kind, Location
from easel.store.engine import Tx
from easel.store.lake import artifacts, blob_index
from easel.store.lake.artifacts import end_of
from easel.store.lake.grants import rights_of
from easel.store.upsert import lock

MAX_LIMIT = 5000


@dataclass(frozen=True, slots=True)
class Listing:
    """`next_cursor` is a path: the listing goes on after it."""

    items: Sequence[Entry | Folder]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Readable:
    """A file version and where its bytes are."""

    entry: Entry
    place: Location


def list_files(
    tx: Tx,
    caller: Caller,
    reference: str,
    *,
    recursive: bool,
    limit: int = 500,
    after: str = "",
    whole: bool = False,
) -> Listing:
    """What is in a folder of the lake (`/data/`) or of a file set (`/data/@HotpotQA:1`).

    What may not be read is left out; with `whole` a set that holds such files is Denied instead.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}, not {limit}")
    rights, ref = rights_of(tx, caller), parse(reference)
    match ref:
        case FolderRef(folder):
            found = _current(tx, caller, rights, folder, recursive, after, limit + 1)
        case FolderInSet():
            found = _in_set(tx, caller, rights, ref, recursive, after, limit + 1)
            _need_all(tx, caller, rights, ref, whole)
        case _:
            return Listing([_one(tx, caller, rights, ref)], None)
    last = found[limit - 1] if len(found) > limit else None
    cursor = None if last is None else last.path if isinstance(last, Entry) else last.path + "\U0010ffff"
    return Listing(found[:limit], cursor)


def _current(
    tx: Tx, caller: Caller, rights: Rights, folder: str, recursive: bool, after: str, limit: int
) -> list[Entry | Folder]:
    items: Sequence[Artifact | Folder]
    if recursive:
        items = artifacts.list_tree(tx, caller.project_id, folder, rights, after, limit)
    else:
        items = artifacts.list_folder(tx, caller.project_id, folder, rights, after, limit)
    return [item if isinstance(item, Folder) else artifacts.entry(item) for item in items]


def _in_set(
    tx: Tx, caller: Caller, rights: Rights, ref: FolderInSet, recursive: bool, after: str, limit: int
) -> list[Entry | Folder]:
    _, root = find_set(tx, caller, rights, ref.of)
    nodes, found = own_nodes(tx), list[Entry | Folder]()
    position = max(after, ref.folder)
    while len(found) < limit:
        following = next(tree.entries_after(nodes, root, position), None) if not recursive else None
        if recursive:
            for entry in tree.entries_after(nodes, root, position):
                if not entry.path.startswith(ref.folder) or len(found) == limit:
                    break
                if rights.reads_path(entry.path):
                    found.append(entry)
            break
        if following is None or not following.path.startswith(ref.folder):
            break
        name = following.path[len(ref.folder) :]
        if "/" in name:
            folder = Folder(ref.folder + name.partition("/")[0] + "/")
            found.append(folder)
            position = end_of(folder)
        else:
            if rights.reads_path(following.path):
                found.append(following)
            position = following.path
    return found


def _need_all(tx: Tx, caller: Caller, rights: Rights, ref: FolderInSet, whole: bool) -> None:
    if not whole or not rights.paths:
        return
    made, root = find_set(tx, caller, rights, ref.of)
    if not all(rights.reads_path(e.path) for e in tree.entries(own_nodes(tx), root, ref.folder)):
        raise Denied(f"{made} holds files that you may not read: ask an admin of this project for a grant")


def _one(tx: Tx, caller: Caller, rights: Rights, ref: Ref) -> Entry:
    match ref:
        case FileRef(path, version):
            return artifacts.entry(find_file(tx, caller, rights, path, version))
        case FileInSet(path, of):
            made, root = find_set(tx, caller, rights, of)
            entry = tree.find(own_nodes(tx), root, path)
            if entry is None or not rights.reads_path(path):
                raise no_file(f"{path} in the file set {made}")
            return entry
    raise InvalidInput(f"{ref} names a folder: name one file")


def open_file(tx: Tx, caller: Caller, reference: str) -> Readable:
    """One file and where its bytes are."""
    entry = _one(tx, caller, rights_of(tx, caller), parse(reference))
    return Readable(entry, locate(tx, [entry])[entry.digest])


def locate(tx: Tx, entries: Sequence[Entry]) -> dict[bytes, Location]:
    places = blob_index.locate(tx, list({entry.digest for entry in entries}))
    for entry in entries:
        if entry.digest not in places:
            raise Conflict(
                f"the bytes of {entry.path}:{entry.version} were given up: upload the file again, or replay "
                "what made it (`easel filesets replay`)"
            )
    return places


def versions(tx: Tx, caller: Caller, path: str) -> list[Artifact]:
    """All versions of a file, newest first, also of one that is deleted."""
    rights_of(tx, caller).need_read(file_path(path))
    found = artifacts.versions_of(tx, caller.project_id, Kind.FILE, file_path(path))
    if not found:
        raise no_file(path)
    return found


def move(tx: Tx, caller: Caller, source: str, target: str) -> int:
    """Move a file, or a folder with all below it, without sending a byte; returns how many files.

    Versions are immutable: at the new path the latest content becomes the next version, and the old path is
    marked deleted. File sets keep what they refer to.
    """
    lock(tx, f"lake {caller.project_id}")
    rights = rights_of(tx, caller)
    pairs = _moves(tx, caller, rights, source, target)
    taken = {artifact.name for artifact, _ in pairs}
    for artifact, path in pairs:
        rights.need_write(artifact.name)
        rights.need_write(path)
        clash = artifacts.a_file_below(tx, caller.project_id, path)
        if path in taken or (clash and clash not in taken):
            raise Conflict(f"{path} would be moved onto itself or onto a folder: choose another place")
    artifacts.mark_deleted(tx, caller.project_id, sorted(taken))
    for artifact, path in pairs:
        parents = [path[:i] for i, c in enumerate(path) if c == "/" and i > 0]
        if clash := artifacts.a_file_among(tx, caller.project_id, parents):
            raise Conflict(f"{clash} is a file, so {path} cannot be below it: choose another place")
        version = artifacts.next_version(tx, caller.project_id, path)
        new = replace(artifact, name=path, version=version, creator=caller.user.id, created_at=tx.now)
        artifacts.add_version(tx, new)
    body = {"to": target, "files": len(pairs)}
    tx.emit("files.moved", source[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
    return len(pairs)


def _moves(tx: Tx, caller: Caller, rights: Rights, source: str, target: str) -> list[tuple[Artifact, str]]:
    if not source.endswith("/"):
        found = find_file(tx, caller, rights, file_path(source), None)
        name = source.rpartition("/")[2]
        return [(found, file_path(target + name if target.endswith("/") else target))]
    old, new = folder_path(source), folder_path(target)
    below = artifacts.list_tree(tx, caller.project_id, old, rights, "", 100_000)
    if not below:
        raise NotFound(f"there are no files in {source}")
    return [(artifact, file_path(new + artifact.name[len(old) :])) for artifact in below]


def delete(tx: Tx, caller: Caller, reference: str) -> int:
    """Mark a file, or all below a folder, deleted; returns how many. Versions stay readable by number."""
    lock(tx, f"lake {caller.project_id}")
    rights, ref = rights_of(tx, caller), parse(reference)
    match ref:
        case FileRef(path, None):
            rights.need_read(path)
            paths = [path]
        case FolderRef(folder):
            below = artifacts.list_tree(tx, caller.project_id, folder, rights, "", 1_000_000)
            paths = [artifact.name for artifact in below]
        case _:
            raise InvalidInput("versions are immutable: delete a path such as /data/x or /data/")
    for path in paths:
        rights.need_write(path)
    count = artifacts.mark_deleted(tx, caller.project_id, paths)
    if count == 0:
        raise no_file(reference)
    body = {"files": count}
    tx.emit("files.deleted", reference[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
    return count
