"""What jobs leave becomes file sets: bytes first, then rows, in the transaction that says finished."""

from __future__ import annotations

from collections.abc import Sequence

from easel.flow.lake.file_set import create_of
from easel.flow.lake.upload import Lake
from easel.ids import ProjectId, UserId
from easel.lake.blobs.packs import plan_packs
from easel.lake.blobs.store import Incoming, PackMember, put
from easel.lake.digest import Digest, digest_of, from_hex
from easel.lake.manifest.node import Entry
from easel.lake.paths import file_path
from easel.records.identity import Caller
from easel.records.job import StoredFile
from easel.records.lake import Artifact, FileSetVersion, Kind
from easel.run.entries import Kept
from easel.store.engine import Tx
from easel.store.job_catalogue import NewOutput
from easel.store.lake import artifacts, blob_index
from easel.store.lake.grants import rights_of
from easel.store.stored_job import StoredJob


def land(lake: Lake, kept: Sequence[Kept], name: str) -> list[Incoming]:
    """Write the bytes that came inside reports: of all these jobs in one object, durable before any row.

    What is about to be relied on is claimed first, so that the collector cannot take it away before the rows that
    name it are written. `name` is never used twice.
    """
    contents = {from_hex(digest): data for each in kept for digest, data in each.inline.items()}
    if not contents:
        return []
    with lake.store.write() as tx:
        known = blob_index.keep_known(tx, list(contents))
        fresh = [(digest, len(data)) for digest, data in contents.items() if digest not in known]
        packs: list[tuple[Incoming, bytes]] = []
        for members in plan_packs(fresh):
            data = b"".join(contents[member.digest] for member in members)
            packs.append((Incoming(digest_of(data), len(data), members), data))
            blob_index.claim(tx, packs[-1][0])
    for number, (incoming, data) in enumerate(packs):
        put(lake.blobs, f"{name}-{number}", data, incoming.members)
    return [incoming for incoming, _ in packs]


def record_objects(tx: Tx, objects: Sequence[Incoming]) -> None:
    for incoming in objects:
        blob_index.claim(tx, incoming)
        blob_index.arrived(tx, incoming)


def keep_output(
    tx: Tx, caller: Caller, artifact: int, name: str, files: Sequence[StoredFile]
) -> FileSetVersion:
    """The next version of the file set `name`, with these files under `/name/`, made by the job `artifact`."""
    paths = {file_path(f"/{name}{file.path}"): file for file in files}
    rights = rights_of(tx, caller)
    for path in paths:
        rights.need_write(path)
    record_objects(tx, whole_objects(files))
    entries = [_add_file(tx, caller, artifact, path, file) for path, file in sorted(paths.items())]
    return create_of(tx, caller, name, iter(entries), made_by=artifact)


def new_output(row: StoredJob, files: Sequence[StoredFile]) -> NewOutput:
    """A set of the job's own, named after it."""
    name = f"{row.id}-output"
    named = sorted((file_path(f"/{name}{file.path}"), file.size, from_hex(file.digest)) for file in files)
    return NewOutput(ProjectId(row.project_id), UserId(row.user_id), row.artifact_id, name, named)


def whole_objects(files: Sequence[StoredFile]) -> list[Incoming]:
    """The objects that the agent put: packs with their members, or one blob alone."""
    by_object: dict[str, dict[int, PackMember]] = {}
    for file in files:
        if file.object:
            member = PackMember(from_hex(file.digest), file.offset, file.size)
            by_object.setdefault(file.object, {})[file.offset] = member
    found: list[Incoming] = []
    for name, members in by_object.items():
        ordered = tuple(members[offset] for offset in sorted(members))
        size = ordered[-1].offset + ordered[-1].size
        alone = len(ordered) == 1 and ordered[0].digest.hex() == name
        found.append(Incoming(from_hex(name), size, () if alone else ordered))
    return found


def _add_file(tx: Tx, caller: Caller, artifact: int, path: str, file: StoredFile) -> Entry:
    digest: Digest = from_hex(file.digest)
    version = artifacts.next_version(tx, caller.project_id, path)
    new = Artifact(
        0,
        caller.project_id,
        Kind.FILE,
        path,
        version,
        caller.user.id,
        tx.now,
        file.size,
        digest,
        artifact,
        None,
    )
    return Entry(path, version, artifacts.add_version(tx, new), file.size, digest)
