"""Upload sessions."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated

from fastapi import Path, Query, Request, Response

from easel.flow.lake import upload
from easel.lake.blobs.packs import close_up
from easel.lake.blobs.store import Incoming
from easel.lake.blobs.store import PackMember as PackMember
from easel.lake.digest import Digest, from_hex
from easel.records import lake as records
from easel.serve.access import Member, State
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import lake as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/uploads", tags=["uploads"])

UploadId = Annotated[str, Path(max_length=40)]
Hash = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]


@router.post("", response_model=wire.Upload, status_code=201)
def start_upload(caller: Member, create: Create, body: wire.StartUpload) -> Response:
    """Open a session: files added to it become visible together, when it is committed."""
    return create(caller, body, lambda tx: _shown(tx, upload.start(tx, caller)))


@router.get("", response_model=Page[wire.Upload])
def pending_uploads(state: State, caller: Member) -> Page[wire.Upload]:
    """Your sessions that are still open, the newest first: to resume or abort them."""
    with state.store.read() as tx:
        return Page(items=[_shown(tx, each) for each in upload.pending(tx, caller)])


@router.get("/{upload_id}", response_model=wire.Upload)
def show_upload(state: State, caller: Member, upload_id: UploadId) -> wire.Upload:
    """How far a session is."""
    with state.store.read() as tx:
        return _shown(tx, upload.get(tx, caller, upload_id))


@router.post("/{upload_id}/files", response_model=wire.WantedHashes)
def add_files(state: State, caller: Member, upload_id: UploadId, body: wire.AddFiles) -> wire.WantedHashes:
    """Add files by path, size and hash; the answer lists the hashes whose bytes must be sent."""
    items = [records.UploadItem(f.path, f.size, from_hex(f.hash)) for f in body.files]
    damaged = upload.damaged_of(state.lake, caller, items)
    with state.store.write() as tx:
        wanted = upload.add_files(tx, caller, upload_id, items, damaged)
    return wire.WantedHashes(wanted=[digest.hex() for digest in wanted])


@router.get("/{upload_id}/wanted", response_model=Page[wire.Wanted])
def wanted(
    state: State,
    caller: Member,
    upload_id: UploadId,
    limit: Annotated[int, Query(ge=1, le=5000)] = 2000,
    cursor: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
) -> Page[wire.Wanted]:
    """Bytes that a resumed session still has to send."""
    with state.store.write() as tx:
        after = from_hex(cursor) if cursor else b""
        found = upload.wanted(tx, caller, upload_id, after, limit)
    items = [wire.Wanted(hash=digest.hex(), size=size) for digest, size in found]
    return Page(items=items, next_cursor=items[-1].hash if len(items) == limit else None)


@router.post("/{upload_id}/objects", response_model=wire.Transfers)
def announce(
    state: State, caller: Member, request: Request, upload_id: UploadId, body: wire.Announce
) -> wire.Transfers:
    """Say how the bytes will come; the answer lists the parts that are missing and where to PUT them."""
    found = upload.announce(state.lake, caller, upload_id, [_incoming(o) for o in body.objects])
    return wire.Transfers(
        transfers=[
            wire.Transfer(
                hash=each.incoming.digest.hex(),
                parts=[
                    wire.Part(
                        number=number,
                        offset=(number - 1) * each.stage.part_size,
                        size=each.stage.part_length(number),
                        url=state.addresses.put(each.stage, number),
                    )
                    for number in each.missing
                ],
            )
            for each in found
        ],
        handover=state.handover if _is_here(request) else "",
    )


def _is_here(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


@router.post("/{upload_id}/objects/{digest}/finish", status_code=204, response_class=Response)
def finish_object(state: State, caller: Member, upload_id: UploadId, digest: Hash) -> None:
    """All parts are sent: check them and store the object. Repeating is harmless."""
    upload.finish_object(state.lake, caller, upload_id, Digest(from_hex(digest)))


@router.post("/{upload_id}/commit", response_model=wire.Upload)
def commit(state: State, caller: Member, upload_id: UploadId) -> wire.Upload:
    """Give every file its next version, all at once. Repeating changes nothing."""
    with state.store.write() as tx:
        return _shown(tx, upload.commit(tx, caller, upload_id))


@router.get("/{upload_id}/versions", response_model=Page[wire.FileItem])
def committed_versions(
    state: State,
    caller: Member,
    upload_id: UploadId,
    limit: Annotated[int, Query(ge=1, le=5000)] = 2000,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> Page[wire.FileItem]:
    """The versions that a committed session made, by path."""
    with state.store.read() as tx:
        found = upload.committed_page(tx, caller, upload_id, cursor or "", limit)
    items = [wire.FileItem(path=e.path, version=e.version, size=e.size, hash=e.digest.hex()) for e in found]
    return Page(items=items, next_cursor=items[-1].path if len(items) == limit else None)


@router.delete("/{upload_id}", response_model=wire.Upload)
def abort(state: State, caller: Member, upload_id: UploadId) -> wire.Upload:
    """End a session without a trace. Repeating changes nothing."""
    upload.abort(state.lake, caller, upload_id)
    return show_upload(state, caller, upload_id)


def _incoming(new: wire.NewObject) -> Incoming:
    members: Sequence[PackMember] = [PackMember(from_hex(m.hash), 0, m.size) for m in new.members]
    return Incoming(from_hex(new.hash), new.size, close_up(members))


def _shown(tx: Tx, found: records.Upload) -> wire.Upload:
    files, size, held = upload.progress(tx, found)
    return wire.Upload(
        id=found.id,
        state=found.state.value,
        created_at=found.created_at,
        ended_at=found.ended_at,
        files=files,
        bytes=size,
        held_bytes=held,
    )
