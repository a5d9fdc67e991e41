"""Files and versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from easel.declare.verbs import Verb
from easel.flow.lake import archive, browse, download
from easel.flow.members import names_of
from easel.lake.manifest.node import Entry
from easel.records.lake import Folder
from easel.serve.access import Member, State, acts
from easel.serve.router import Router
from easel.serve.saving import saved_as
from easel.wire import lake as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/files", tags=["files"])

Ref = Annotated[
    str,
    Query(
        min_length=1,
        max_length=4096,
        description="/data/ · /data/train.json:2 · /data/@HotpotQA:1",
        examples=["/data/"],
    ),
]


@router.get("", response_model=Page[wire.FileItem])
def files(
    state: State,
    caller: Member,
    ref: Ref = "/",
    recursive: bool = False,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> Page[wire.FileItem]:
    """What is in a folder, of the lake or of a file set."""
    with state.store.read() as tx:
        found = browse.list_files(tx, caller, ref, recursive=recursive, limit=limit, after=cursor or "")
    return Page(items=[file_item(item) for item in found.items], next_cursor=found.next_cursor)


@router.get("/content", response_class=StreamingResponse)
def file_content(state: State, caller: Member, ref: Ref) -> Response:
    """The bytes of one file version, to be saved."""
    with state.store.read() as tx:
        found = archive.one_file(tx, caller, ref)
    headers = {"Content-Length": str(found.place.size), **saved_as(found.entry.path.rsplit("/", 1)[-1])}
    chunks = archive.bytes_of(state.lake.blobs, found)
    return StreamingResponse(chunks, headers=headers, media_type="application/octet-stream")


@router.get("/zip", response_class=StreamingResponse)
def files_as_zip(state: State, caller: Member, ref: Ref) -> Response:
    """Everything that a reference names, a folder or a file set, as one zip."""
    now = state.store.clock.now()
    chunks = archive.zip_of(state.store.read, state.lake.blobs, caller, ref, now)
    name = ref.strip("/").removeprefix("@").replace("/", "-") or "lake"
    return StreamingResponse(chunks, headers=saved_as(f"{name}.zip"), media_type="application/zip")


@router.get("/versions", response_model=Page[wire.FileVersion])
def file_versions(state: State, caller: Member, path: Ref) -> Page[wire.FileVersion]:
    """All versions of a file, the newest first; also of a deleted one."""
    with state.store.read() as tx:
        found = browse.versions(tx, caller, path)
        names = names_of(tx, [each.creator for each in found])
    items = [
        wire.FileVersion(
            path=each.name,
            version=each.version,
            size=each.size,
            hash=(each.digest or b"").hex(),
            creator=names[each.creator],
            created_at=each.created_at,
            dropped_at=each.dropped_at,
        )
        for each in found
    ]
    return Page(items=items)


@router.post("/fetch", response_model=wire.Fetched)
@acts(Verb.READ)
def fetch_files(state: State, caller: Member, body: wire.Fetch) -> wire.Fetched:
    """Addresses for the bytes of files, a page of them; nearby small files share one address."""
    with state.store.read() as tx:
        found = download.plan(tx, caller, body.ref, body.limit, body.cursor or "")
    ranges = [
        wire.Range(
            url=state.addresses.get(span.object, span.start, span.length),
            start=span.start,
            length=span.length,
            blobs=[wire.ObjectRange(hash=b.digest.hex(), offset=b.offset, size=b.size) for b in span.blobs],
        )
        for span in found.spans
    ]
    items = [file_item(entry) for entry in found.entries]
    return wire.Fetched(files=items, ranges=ranges, next_cursor=found.next_cursor)


@router.post("/move", response_model=wire.Count)
def move_files(state: State, caller: Member, body: wire.Move) -> wire.Count:
    """Move a file or a folder; no byte is sent."""
    with state.store.write() as tx:
        return wire.Count(files=browse.move(tx, caller, body.source, body.target))


@router.delete("", response_model=wire.Count)
def delete_files(state: State, caller: Member, ref: Ref) -> wire.Count:
    """Mark a file or all below a folder deleted; versions stay readable by number."""
    with state.store.write() as tx:
        return wire.Count(files=browse.delete(tx, caller, ref))


def file_item(item: Entry | Folder) -> wire.FileItem:
    if isinstance(item, Folder):
        return wire.FileItem(path=item.path)
    return wire.FileItem(path=item.path, version=item.version, size=item.size, hash=item.digest.hex())
