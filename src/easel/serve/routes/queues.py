"""Queues, devices and secrets: what admins tend."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from easel.errors import NotFound
from easel.flow import pool, pool_history
from easel.flow.jobs import control
from easel.flow.jobs import shares as sharing
from easel.flow.jobs.promises import score_promises
from easel.flow.operate import drain as drains
from easel.flow.operate import reserve as reserving
from easel.records.device import Device, Reservation
from easel.serve.access import Member, PlatformAdmin, ProjectAdmin, SignedIn, State
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import pool as wire
from easel.wire.price import PromisesKept

router = Router(prefix="/api/v1", tags=["jobs"])

DeviceName = Annotated[str, Path(max_length=100, examples=["local"])]
SecretName = Annotated[str, Path(max_length=64, examples=["wandb-key"])]


@router.get("/projects/{project}/queues", response_model=wire.QueueList)
def list_queues(state: State, caller: Member) -> wire.QueueList:
    """Who waits and who runs, by user."""
    with state.store.read() as tx:
        found = control.queues(tx, caller, state.settings.max_active_jobs)
    return wire.QueueList(items=[wire.Queue.model_validate(queue) for queue in found])


@router.patch("/projects/{project}/queues", response_model=wire.QueueList)
def change_queue(state: State, caller: ProjectAdmin, body: wire.ChangeQueue) -> wire.QueueList:
    """Pause, resume, or limit how many jobs of a user are launching or running."""
    with state.store.write() as tx:
        control.set_queue(tx, caller, body.user, max_active=body.max_active, paused=body.paused)
    return list_queues(state, caller)


@router.post("/projects/{project}/queues/order", response_model=wire.JobIds)
def reorder_queue(state: State, caller: ProjectAdmin, body: wire.ReorderQueue) -> wire.JobIds:
    """Put these queued jobs of a user first, in this order."""
    with state.store.write() as tx:
        return wire.JobIds(items=list(control.reorder(tx, caller, body.user, body.first)))


@router.get("/devices", response_model=wire.DeviceList)
def list_devices(state: State, caller: SignedIn) -> wire.DeviceList:
    """The pool."""
    with state.store.read() as tx:
        found = control.devices_now(tx)
        running = drains.running_on(tx) if any(device.drain for device in found) else {}
        holders = pool.gpu_holders(tx) if any(device.capacity.gpus for device in found) else {}
    items = [_device(device, running.get(device.name, 0), holders.get(device.name)) for device in found]
    return wire.DeviceList(items=items)


@router.put("/devices/{device:path}/drain", response_model=wire.Device)
def drain_device(
    state: State, caller: PlatformAdmin, device: DeviceName, body: wire.DrainDevice
) -> wire.Device:
    """Give a device no more work; what it has goes on until the deadline, then it is stopped and tried elsewhere."""
    with state.store.write() as tx:
        found = drains.drain(tx, caller, device, body.by, body.reason)
        return _device(found, drains.running_on(tx).get(device, 0))


@router.delete("/devices/{device:path}/drain", response_model=wire.Device)
def undrain_device(state: State, caller: PlatformAdmin, device: DeviceName) -> wire.Device:
    """Give a device work again."""
    with state.store.write() as tx:
        return _device(drains.undrain(tx, caller, device), 0)


@router.delete("/devices/{device:path}", status_code=204)
def remove_device(state: State, caller: PlatformAdmin, device: DeviceName) -> Response:
    """Remove a device that is gone for good, and its reservations. Should its worker return, it is a new device."""
    with state.store.write() as tx:
        drains.remove(tx, caller, device)
    return Response(status_code=204)


@router.get("/reservations", response_model=wire.ReservationList)
def list_reservations(state: State, caller: SignedIn) -> wire.ReservationList:
    """Which devices are or will be kept for a project."""
    with state.store.read() as tx:
        return wire.ReservationList(items=[_reservation(one) for one in reserving.to_come(tx, caller)])


@router.post("/devices/{device:path}/reservations", response_model=wire.Reservation, status_code=201)
def reserve_device(
    caller: PlatformAdmin, create: Create, device: DeviceName, body: wire.ReserveDevice
) -> Response:
    """Keep a device for a project: others begin nothing there, and those of their jobs that may be preempted stop."""

    def make(tx: Tx) -> wire.Reservation:
        return _reservation(reserving.reserve(tx, caller, device, body.project, body.start, body.end))

    return create(caller, body, make)


@router.delete("/reservations/{reservation}", status_code=204)
def cancel_reservation(
    state: State,
    caller: PlatformAdmin,
    reservation: Annotated[str, Path(max_length=60, examples=["rsv_01jc"])],
) -> Response:
    """Give a reserved device back to everybody."""
    with state.store.write() as tx:
        reserving.cancel(tx, caller, reservation)
    return Response(status_code=204)


@router.get("/shares", response_model=wire.PoolShares)
def kept_shares(state: State, caller: SignedIn) -> wire.PoolShares:
    """What of the pool is kept for apps."""
    with state.store.read() as tx:
        return wire.PoolShares(apps=sharing.kept_for_apps(tx))


@router.put("/shares", response_model=wire.PoolShares)
def keep_shares(state: State, caller: PlatformAdmin, body: wire.KeepShares) -> wire.PoolShares:
    """Keep a least share of the pool's cores for trials of apps; others use it while no app wants it."""
    with state.store.write() as tx:
        sharing.keep_for_apps(tx, caller, body.apps)
    return wire.PoolShares(apps=body.apps)


@router.get("/projects/{project}/shares", response_model=wire.ShareList)
def list_shares(state: State, caller: Member) -> wire.ShareList:
    """What the project and its users have used of the pool, with their weights and priorities."""
    half_life_s = state.settings.share_half_life_days * 86_400.0
    with state.store.read() as tx:
        found = sharing.shares_of(tx, caller, half_life_s)
    items = [
        wire.Share(user=one.user, core_hours=one.usage / 3600.0, weight=one.weight, priority=one.priority)
        for one in found
    ]
    return wire.ShareList(items=items)


@router.patch("/projects/{project}/shares", response_model=wire.ShareList)
def set_share(state: State, caller: ProjectAdmin, body: wire.SetShare) -> wire.ShareList:
    """Weigh a user against the others of the project, or, as a platform admin, the project against others."""
    with state.store.write() as tx:
        sharing.set_share_of(tx, caller, body.user, body.weight, body.priority)
    return list_shares(state, caller)


def _reservation(one: Reservation) -> wire.Reservation:
    return wire.Reservation(
        id=one.id, device=one.device, project=one.project or None, start=one.start, end=one.end
    )


def _device(device: Device, running: int, holders: pool.Amounts | None = None) -> wire.Device:
    drain, held = device.drain, holders or pool.Amounts()
    return wire.Device(
        name=device.name,
        executor=device.executor,
        vcpu=device.capacity.vcpu,
        memory_mb=device.capacity.memory_mb,
        gpus=len(device.capacity.gpus),
        gpu_kind=(device.labels.get("gpu") or device.notes.get("gpu")) if device.capacity.gpus else None,
        gpu_memory_mb=int(device.notes.get("gpu_mb", "0")) or None,
        gpu_use=[
            wire.DeviceGpu(number=number, use=device.notes[f"gpu {number}"])
            for number in range(len(device.capacity.gpus))
            if f"gpu {number}" in device.notes
        ],
        gpu_fault=device.notes.get("gpu fault"),
        gpus_held=held.gpus,
        gpu_jobs=held.jobs,
        notes=dict(device.notes),
        connected=device.connected,
        seen_at=device.seen_at,
        drain=None
        if drain is None
        else wire.DeviceDrain(since=drain.since, by=drain.by, reason=drain.reason, running=running),
    )


@router.get("/projects/{project}/pool", response_model=wire.PoolUse)
def show_pool(state: State, caller: Member) -> wire.PoolUse:
    """Who holds the devices now: this project, and all others together."""
    with state.store.read() as tx:
        found = pool.use_now(tx, caller)
    items = [
        wire.DeviceUse(
            device=name,
            mine=wire.Amounts.model_validate(use.mine),
            others=wire.Amounts.model_validate(use.others),
        )
        for name, use in sorted(found.devices.items())
    ]
    return wire.PoolUse(items=items, waiting=found.waiting_mine, waiting_others=found.waiting_others)


Hours = Annotated[float, Query(gt=0, le=pool_history.MOST_HOURS, description="How far back to look")]


@router.get("/projects/{project}/pool/history", response_model=wire.PoolHistory)
def pool_use_of_project(state: State, caller: Member, hours: Hours = 24.0) -> wire.PoolHistory:
    """How much of the pool this project held over time, and all others together."""
    with state.store.read() as tx:
        return _history(pool_history.use_over_time(tx, caller, hours))


@router.get("/pool/history", response_model=wire.PoolHistory)
def pool_use_by_project(state: State, caller: PlatformAdmin, hours: Hours = 24.0) -> wire.PoolHistory:
    """How much of the pool each project held over time."""
    with state.store.read() as tx:
        return _history(pool_history.use_over_time(tx, None, hours))


def _history(found: pool_history.PoolHistory) -> wire.PoolHistory:
    return wire.PoolHistory(
        since=found.since,
        step_s=found.step.total_seconds(),
        vcpu=found.vcpu,
        gpus=found.gpus,
        held=[wire.HeldOverTime.model_validate(one) for one in found.held],
        complete=found.complete,
    )


@router.get("/projects/{project}/promises", response_model=PromisesKept)
def promises_kept(state: State, caller: Member) -> PromisesKept:
    """How often what waiting jobs of the project were told about their start and end came true."""
    with state.store.read() as tx:
        found = score_promises(tx, caller)
    shares = {f"kept_{level * 100:.0f}": share if found.jobs else None for level, share in found.kept.items()}
    return PromisesKept(
        jobs=found.jobs,
        near_starts=found.near_starts,
        waited=found.waited,
        near_starts_of_waited=found.near_starts_of_waited,
        **shares,
    )


@router.get("/projects/{project}/secrets", response_model=wire.SecretNames)
def secret_names(state: State, caller: Member) -> wire.SecretNames:
    """The names of the project's secrets; their values are never shown."""
    return wire.SecretNames(items=state.secrets.names(caller.project_id))


@router.put("/projects/{project}/secrets/{name}", response_model=wire.SecretNames)
def put_secret(
    state: State, caller: ProjectAdmin, name: SecretName, body: wire.PutSecret
) -> wire.SecretNames:
    """Set a secret, which jobs of the project may name in their environment."""
    state.secrets.write(caller.project_id, name, body.value)
    with state.store.write() as tx:
        tx.emit("secret.changed", name, project_id=caller.project_id, actor=caller.user.id)
    return secret_names(state, caller)


@router.delete("/projects/{project}/secrets/{name}", status_code=204)
def remove_secret(state: State, caller: ProjectAdmin, name: SecretName) -> Response:
    """Remove a secret. Jobs that name it fail from now on."""
    if not state.secrets.remove(caller.project_id, name):
        raise NotFound(f"there is no secret {name!r} in this project")
    with state.store.write() as tx:
        tx.emit("secret.removed", name, project_id=caller.project_id, actor=caller.user.id)
    return Response(status_code=204)
