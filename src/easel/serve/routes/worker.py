"""What workers call: one exchange for everything they say and are told, and the bytes of what they run."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import anyio
from fastapi import Path, Query, Request, Response, WebSocket

from easel.declare.resources import Room
from easel.errors import EaselError, QuotaExhausted, TooLarge, Unauthenticated
from easel.flow.secrets import hashed
from easel.flow.workers import bytes as pool_bytes
from easel.flow.workers.exchange import Said
from easel.lake.blobs.store import Incoming, PackMember, Stage
from easel.lake.digest import from_hex
from easel.records.attempt import EndReason
from easel.run.entries import decode_entry
from easel.serve.access import State, WorkerHash, address_of
from easel.serve.audit import note_refusal, note_worker
from easel.serve.incoming import arriving
from easel.serve.lake import VALID_SECONDS
from easel.serve.problems import status_of
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.wire import worker as wire

PREFIX = "/api/v1/worker"
MAX_EXCHANGE_BYTES = 16 * 2**20

router = Router(prefix=PREFIX, tags=["workers"])
Key = Annotated[str, Path(max_length=60, pattern=r"^[A-Za-z0-9_-]+\.[0-9]+(-[0-9]+)?$")]


@router.post("/exchange", response_model=wire.Orders)
async def exchange(request: Request, state: State, secret: WorkerHash, body: wire.Exchange) -> Response:
    """Say what is new, and be told what to do; waits up to `wait_s` for something to do."""
    if int(request.headers.get("content-length") or 0) > MAX_EXCHANGE_BYTES:
        raise TooLarge(f"an exchange has more than {MAX_EXCHANGE_BYTES} bytes: send the reports in pieces")
    said = Said(
        secret_hash=secret,
        name=body.device,
        executor=body.executor,
        session=body.session,
        number=body.number,
        clock=body.clock,
        capacity=Room(body.capacity.vcpu, body.capacity.memory_mb, (1.0,) * body.capacity.gpus),
        labels=body.labels,
        notes=body.notes,
        address=body.address,
        attempts=body.attempts,
        entries=[
            (each.key, [decode_entry(entry) for entry in each.entries]) for each in body.news if each.entries
        ],
        gone={each.key: (_end(each.end), each.gone) for each in body.news if each.gone is not None},
        monotonic=body.monotonic,
        ahead=body.ahead,
        remaining_s=body.remaining_s,
        leaving=body.leaving,
        gave_way=None if body.gave_way is None else frozenset(body.gave_way),
    )
    answer = await state.batcher.request(said, 0.0 if body.leaving else body.wait_s)
    given = [wire.Given(**each) for each in answer.start]
    orders = wire.Orders(
        session=answer.session,
        start=given,
        kill=answer.kill,
        give_way=answer.give_way,
        forget=answer.forget,
        resend=answer.resend,
        visits=state.visits.take(body.device),
    )
    return Response(orders.model_dump_json(), media_type="application/json")


def _end(said: str | None) -> EndReason:
    """Workers of other releases may say it only in words."""
    try:
        return EndReason(said or EndReason.OTHER)
    except ValueError:
        return EndReason.OTHER


@router.websocket("/attempts/{key}/visits/{visit}")
async def carry_visit(worker: WebSocket, key: Key, visit: Annotated[str, Path(max_length=40)]) -> None:
    """The way to a job on a worker, opened by it when its orders say that somebody wants in."""
    state: AppState = worker.app.state.easel
    scheme, _, token = worker.headers.get("authorization", "").partition(" ")
    try:
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("this is for workers: `easel worker --server URL --token-file FILE`")
        note_worker(hashed(token.strip()))
        await anyio.to_thread.run_sync(pool_bytes.check_attempt, state.store, hashed(token.strip()), key)
    except EaselError as error:
        note_refusal(status_of(error))
        if isinstance(error, Unauthenticated):
            with suppress(QuotaExhausted):
                state.failed_logins.note(address_of(worker.scope))
        await worker.close(1008)
        return
    await worker.accept()
    await state.visits.carry(worker, visit, key)


@router.post("/attempts/{key}/sources", response_model=wire.ObjectAddresses)
def sources(state: State, secret: WorkerHash, key: Key, body: wire.ObjectSources) -> wire.ObjectAddresses:
    """Where to read files of an attempt's code and input; only of attempts that this worker has."""
    wanted = [(item.object, item.offset, item.size) for item in body.items]
    pool_bytes.check_sources(state.store, state.batcher.seal, secret, key, wanted)
    return wire.ObjectAddresses(
        items=[state.addresses.get(from_hex(name), offset, size) for name, offset, size in wanted]
    )


@router.post("/attempts/{key}/stages", response_model=wire.OpenedStage)
def open_stage(state: State, secret: WorkerHash, key: Key, body: wire.OpenStage) -> wire.OpenedStage:
    """Begin to send an object of the attempt's output."""
    pool_bytes.check_stage(state.store, secret, key, body.id)
    stage = state.lake.blobs.begin(body.id, body.size)
    return wire.OpenedStage(
        id=stage.id,
        size=stage.size,
        part_size=stage.part_size,
        handle=stage.handle,
        addresses=[
            state.lake.blobs.part_url(stage, number, VALID_SECONDS)
            or f"{PREFIX}/attempts/{key}/stages/{stage.id}/{number}?size={stage.size}&part_size={stage.part_size}"
            for number in range(1, stage.part_count + 1)
        ],
    )


@router.put("/attempts/{key}/stages/{stage_id}/{number}", status_code=204, response_class=Response)
async def put_stage_part(
    request: Request,
    state: State,
    secret: WorkerHash,
    key: Key,
    stage_id: Annotated[str, Path(pattern="^[a-z0-9_-]{1,120}$")],
    number: Annotated[int, Path(ge=1, le=10_000)],
    size: Annotated[int, Query(ge=0, lt=2**50)],
    part_size: Annotated[int, Query(ge=1, lt=2**50)],
) -> Response:
    """Send one part, where the blob store has no addresses of its own."""
    await anyio.to_thread.run_sync(pool_bytes.check_stage, state.store, secret, key, stage_id)
    stage = Stage(stage_id, size, part_size)
    await anyio.to_thread.run_sync(state.lake.blobs.put_part, stage, number, arriving(request))
    return Response(status_code=204)


@router.post("/attempts/{key}/finish", response_model=wire.Done)
def finish_stage(state: State, secret: WorkerHash, key: Key, body: wire.FinishStage) -> wire.Done:
    """Check what arrived and store it under its name."""
    pool_bytes.check_stage(state.store, secret, key, body.stage.id)
    stage = Stage(body.stage.id, body.stage.size, body.stage.part_size, body.stage.handle)
    members = tuple(PackMember(from_hex(each.digest), each.offset, each.size) for each in body.members)
    incoming = Incoming(from_hex(body.digest), body.size, members)
    if state.lake.blobs.size(incoming.digest) is None or state.lake.blobs.parts(stage):
        state.lake.blobs.check(stage, incoming)
        state.lake.blobs.promote(stage, incoming.digest)
    return wire.Done()
