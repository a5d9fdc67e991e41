"""Code as a file set: the files of a folder as they were when a job was submitted.

Every version is whole, but only what changed is sent: a version is an earlier one (`base`), less what was removed,
plus the files of an upload session.
"""

from __future__ import annotations

from collections.abc import Sequence

from easel.errors import InvalidInput, NotFound
from easel.flow.lake import upload as uploads
from easel.flow.lake.file_set import Resolved, add_version, check_may_write, find_set, own_nodes
from easel.lake.access import no_set
from easel.lake.manifest import tree
from easel.lake.manifest.node import Entry, NodeRef
from easel.lake.paths import file_path, parse_set
from easel.records.identity import Caller
from easel.records.lake import FileSetVersion, UploadState
from easel.store.engine import Tx
from easel.store.lake import file_sets
from easel.store.lake.grants import rights_of
from easel.store.lake.nodes import SqlNodes
from easel.store.upsert import lock


def root_of(name: str) -> str:
    """The folder of the lake in which the files of the code set `name` lie."""
    return f"/code/{name}/"


def save_code(
    tx: Tx,
    caller: Caller,
    name: str,
    *,
    base: str | None = None,
    base_digest: str | None = None,
    upload_id: str | None = None,
    without: Sequence[str] = (),
) -> FileSetVersion:
    """The version of the set `name` with this content: the newest one where that holds it already."""
    check_may_write(tx, caller, name)
    lock(tx, f"lake {caller.project_id}")
    changes: dict[str, Entry | None] = {file_path(path): None for path in without}
    if upload_id is not None:
        session = uploads.get(tx, caller, upload_id)
        if session.state is not UploadState.COMMITTED:
            raise InvalidInput(f"the upload {upload_id} is not committed: commit it first")
        changes |= {entry.path: entry for entry in uploads.added(tx, session)}
    outside = next((path for path in changes if not path.startswith(root_of(name))), None)
    if outside is not None:
        raise InvalidInput(f"the code of {name} lies in {root_of(name)}, and {outside} does not")
    nodes = own_nodes(tx)
    root = tree.edit(nodes, _base(tx, caller, nodes, name, base, base_digest), changes)
    nodes.flush()
    newest = file_sets.find(tx, caller.project_id, name, None)
    if newest is not None and newest[1].digest == root.digest and newest[0].artifact.dropped_at is None:
        return newest[0]
    return add_version(tx, caller, name, Resolved((), root, frozenset()))


def _base(
    tx: Tx, caller: Caller, nodes: SqlNodes, name: str, base: str | None, digest: str | None
) -> NodeRef:
    if base is None:
        return tree.build(nodes, [])
    ref = parse_set(base)
    if ref.name != name:
        raise InvalidInput(f"a version of {name} cannot be based on {base}: name a version of the same set")
    found, root = find_set(tx, caller, rights_of(tx, caller), ref)
    check_holds(found, digest)
    if found.artifact.dropped_at is not None:
        raise no_set(base)
    return root


def check_holds(found: FileSetVersion, digest: str | None) -> None:
    """NotFound where a version holds something else than its caller sent: the server was set back since."""
    if digest is not None and found.root.hex() != digest:
        raise NotFound(f"{found} holds something else than what was sent under this name: send it again")
