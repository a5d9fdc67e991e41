"""`easel queues` and `easel devices`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.counted import counted
from easel.declare.moment import parse_deadline, parse_duration
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import pool as wire

app = typer.Typer(
    no_args_is_help=True, help="Who waits, who runs; pause, resume, limit and reorder (admins)."
)
devices_app = typer.Typer(help="The pool: its devices, and those that are gone for good.")
drain_app = typer.Typer()
undrain_app = typer.Typer()
reserve_app = typer.Typer()
reservations_app = typer.Typer(no_args_is_help=True, help="Devices that are kept for a project.")

User = Annotated[str | None, typer.Option("--user", "-u", help="Whose queue; without it the whole project's")]
COLUMNS: Columns[wire.Queue] = [
    ("user", lambda q: q.user),
    ("queued", lambda q: q.queued),
    ("active", lambda q: f"{q.active} of {q.max_active}"),
    ("paused", lambda q: q.paused),
]


def device_state(device: wire.Device) -> str:
    """`connected`, `away`, `draining until …`, `drained`."""
    if not device.connected:
        return "away"
    if device.drain is None:
        return "connected"
    if not device.drain.running:
        return "drained"
    until = f" until {device.drain.by.astimezone():%a %H:%M}" if device.drain.by else ""
    return f"draining{until}: {device.drain.running} left"


def gpus_of(device: wire.Device) -> str | None:
    """What it has, how much of it jobs hold, and how busy each GPU is: `1 NVIDIA H200, 0.5 held by 2; 37% busy, …`."""
    if not device.gpus:
        return None
    told = f"{device.gpus} {device.gpu_kind or ''}".strip()
    if device.gpu_fault:
        return f"{told}: {device.gpu_fault}"
    if device.gpu_jobs:
        told += f", {device.gpus_held:g} held by {counted(device.gpu_jobs, 'job')}"
    return "; ".join([told, *(one.use for one in device.gpu_use)])


SANDBOX = {
    "True": "yes",
    "False": "NONE: jobs can do whatever the worker can",
    "refused": "none: runs no jobs",
}
DEVICES: Columns[wire.Device] = [
    ("device", lambda d: d.name),
    ("vCPU", lambda d: f"{d.vcpu:g}"),
    ("memory MB", lambda d: d.memory_mb),
    ("GPUs", lambda d: gpus_of(d)),
    ("state", lambda d: device_state(d)),
    ("sandbox", lambda d: SANDBOX.get(d.notes.get("sandbox", ""), d.notes.get("sandbox"))),
    ("limits", lambda d: d.notes.get("limits")),
]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """Each user's queue."""
    with connect(project) as client:
        show_list(client.queues.list(), COLUMNS, as_json, "Nothing waits and nothing runs.")


@app.command("pause")
def pause(user: User = None, project: InProject = None) -> None:
    """Launch no more jobs; what runs goes on."""
    with connect(project) as client:
        client.queues.change(user, paused=True)
    say("Paused")


@app.command("resume")
def resume(user: User = None, project: InProject = None) -> None:
    """Launch jobs again."""
    with connect(project) as client:
        client.queues.change(user, paused=False)
    say("Resumed")


@app.command("limit")
def limit(count: int, user: User = None, project: InProject = None) -> None:
    """How many jobs of a user launch or run at once."""
    with connect(project) as client:
        client.queues.change(user, max_active=count)
    say(f"At most {count} at once")


@app.command("first")
def first(
    jobs: list[str], user: Annotated[str, typer.Option("--user", "-u")], project: InProject = None
) -> None:
    """Put queued jobs of a user first, in this order."""
    with connect(project) as client:
        for job in client.queues.reorder(user, jobs):
            print(job)


@drain_app.command()
def drain(
    device: str,
    by: Annotated[
        str | None,
        typer.Option(
            help="Until when what runs there may go on: 'fri 18:00', 2h; without it as long as it takes"
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the others")] = "",
) -> None:
    """Give a device no more work. What still runs at the deadline is stopped, and tried again elsewhere."""
    now = datetime.now().astimezone()
    until = None if by is None else moment(by, now)
    with connect() as client:
        found = client.queues.drain(device, until, reason)
    say(f"{device}: {device_state(found)}. `easel devices` shows when it is empty")


@undrain_app.command()
def undrain(device: str) -> None:
    """Give a device work again."""
    with connect() as client:
        client.queues.undrain(device)
    say(f"{device} takes work again")


@reserve_app.command()
def reserve(
    device: str,
    end: Annotated[str, typer.Option("--to", help="Until when: 'fri 18:00', 2h from now")],
    project: Annotated[str, typer.Option("--for", help="The project that it is kept for")],
    start: Annotated[str | None, typer.Option("--from", help="From when; without it now")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a device for a project: others begin nothing there. What runs may end; what may be preempted is stopped."""
    now = datetime.now().astimezone()
    begin = now if start is None else moment(start, now)
    with connect() as client:
        made = client.queues.reserve(device, project, begin, moment(end, now))
    if as_json:
        show_one(made, True)
        return
    until = f"{made.start.astimezone():%a %d %b %H:%M} to {made.end.astimezone():%a %d %b %H:%M}"
    say(f"{device} is kept for {made.project} from {until}: {made.id}")


RESERVATIONS: Columns[wire.Reservation] = [
    ("id", lambda r: r.id),
    ("device", lambda r: r.device),
    ("project", lambda r: r.project or "another"),
    ("from", lambda r: r.start),
    ("to", lambda r: r.end),
]


@reservations_app.command("ls")
def reservations(as_json: AsJson = False) -> None:
    """Which devices are or will be kept for a project."""
    with connect() as client:
        show_list(client.queues.reservations(), RESERVATIONS, as_json, "No device is reserved.")


@reservations_app.command("cancel")
def cancel_reservation(reservation: str) -> None:
    """Give a reserved device back to everybody."""
    with connect() as client:
        client.queues.cancel_reservation(reservation)
    say("Cancelled")


def moment(text: str, now: datetime) -> datetime:
    """A deadline, or a time from now on: `2h`."""
    try:
        return now + timedelta(seconds=parse_duration(text))
    except InvalidInput:
        return parse_deadline(text, now)


@devices_app.command()
def devices(
    remove: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="Remove one that is gone for good; what ran there stays on record, should it return, it is new",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The pool: its devices, and what they are doing."""
    with connect() as client:
        if remove is not None:
            client.queues.remove_device(remove)
            say(f"{remove} is removed")
            return
        show_list(client.queues.devices(), DEVICES, as_json, "No device has connected yet.")
