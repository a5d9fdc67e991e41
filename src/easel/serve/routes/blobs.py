"""Bytes in and out, where the blob store has no addresses of its own. The signed address is the permission."""

from __future__ import annotations

from typing import Annotated

import anyio
from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from easel.errors import InvalidInput
from easel.flow.lake.upload import receive_part
from easel.lake.digest import Digest, from_hex
from easel.serve.access import State, anyone
from easel.serve.incoming import arriving
from easel.serve.router import Router

router = Router(prefix="/blobs", tags=["blobs"], dependencies=[anyone])

Expires = Annotated[int, Query(ge=0, lt=2**40)]
Signature = Annotated[str, Query(pattern="^[0-9a-f]{64}$")]
Offset = Annotated[int, Query(ge=0, lt=2**50)]
RangeHeader = Annotated[str | None, Header(alias="Range", max_length=100)]


@router.put("/stages/{stage}/{number}", status_code=204, response_class=Response)
async def put_part(
    request: Request,
    state: State,
    stage: Annotated[str, Path(pattern="^[a-z0-9_-]{1,120}$")],
    number: Annotated[int, Path(ge=1, le=10_000)],
    expires: Expires,
    signature: Signature,
) -> Response:
    """Send one part of an object; the address comes from announcing it."""
    now = state.store.clock.now().timestamp()
    state.addresses.signer.check("PUT", request.url.path, {}, expires, signature, now)
    await anyio.to_thread.run_sync(receive_part, state.lake, stage, number, arriving(request))
    return Response(status_code=204)


@router.get("/objects/{digest}", response_class=StreamingResponse, responses={206: {}, 200: {}})
def get_object(
    request: Request,
    state: State,
    digest: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
    offset: Offset,
    length: Offset,
    expires: Expires,
    signature: Signature,
    span: RangeHeader = None,
) -> Response:
    """Read the signed range of an object, or the part of it that `Range` names."""
    now = state.store.clock.now().timestamp()
    values = {"offset": offset, "length": length}
    state.addresses.signer.check("GET", request.url.path, values, expires, signature, now)
    start, end = _inside(span, offset, offset + length)
    chunks = state.lake.blobs.read(Digest(from_hex(digest)), start, end - start)
    headers = {"Content-Length": str(end - start), "Accept-Ranges": "bytes"}
    if span:
        headers["Content-Range"] = f"bytes {start}-{max(start, end - 1)}/*"
    return StreamingResponse(chunks, 206 if span else 200, headers, media_type="application/octet-stream")


def _is_number(text: str) -> bool:
    """`isdigit` alone also takes ² and digits of other scripts."""
    return text.isascii() and text.isdigit()


def _inside(span: str | None, low: int, high: int) -> tuple[int, int]:
    """`bytes=a-b` counts from the beginning of the object and must lie inside what was signed."""
    if span is None:
        return low, high
    unit, _, ends = span.partition("=")
    first, _, last = ends.partition("-")
    if unit != "bytes" or not _is_number(first) or (last and not _is_number(last)):
        raise InvalidInput(f"{span[:40]!r} is not a range: send bytes=<first>-<last>")
    start, end = int(first), int(last) + 1 if last else high
    if not low <= start <= end <= high:
        raise InvalidInput(f"the address covers bytes {low} to {high - 1}, not {span[:40]}")
    return start, end
