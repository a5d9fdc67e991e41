"""`easel estimate`, `easel provision` and `easel promises`: what a command takes, the best size, what was kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.jobs import finish
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one, time_of_day
from easel.cli.profiles import numbers
from easel.declare.moment import parse_deadline, parse_duration
from easel.declare.resources import room_told
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import price as wire

estimate_app = typer.Typer()
provision_app = typer.Typer()
promises_app = typer.Typer()

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name")]
ValuesOption = Annotated[
    str, typer.Option("--values", help="The hints' values: 100,256 in order, or epoch=100,batch-size=256")
]
ConfidenceOption = Annotated[float | None, typer.Option(help="0.95: keep the limits with 95 % probability")]


def offers_in(currency: str) -> Columns[wire.Offer]:
    """The columns of offers, with what they cost in a currency."""
    return [*_SIZE, (f"cost ({currency})", lambda o: f"{o.cost:.5f}"), *_REST]


_SIZE: Columns[wire.Offer] = [
    ("vCPU", lambda o: f"{o.vcpu:g}"),
    ("MB", lambda o: f"{o.memory_mb:g}"),
    ("GPUs", lambda o: f"{o.gpus:g}" if o.gpus else None),
    ("terms", lambda o: o.terms or None),
    ("time", lambda o: spell(o.seconds)),
    ("90 % interval", lambda o: f"{spell(o.low_seconds)} – {spell(o.high_seconds)}"),
    ("starts about", lambda o: time_of_day(o.wait_seconds)),
    ("ends by", lambda o: time_of_day(o.sure_seconds)),
]
_REST: Columns[wire.Offer] = [
    ("outside the profile", lambda o: ", ".join(o.extrapolated) or None),
]


@estimate_app.command()
def estimate(
    name: NameArgument,
    values: ValuesOption,
    cpus: Annotated[str, typer.Option(help="vCPU sizes")] = "0.5,1,2,4,8",
    memory: Annotated[str, typer.Option(help="Memory sizes in MB")] = "1024",
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs")] = "0",
    confidence: ConfidenceOption = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What sizes would take and cost."""
    shapes = [(c, m, g) for g in numbers(gpus) for c in numbers(cpus) for m in numbers(memory)]
    with connect(project) as client:
        found = client.profiles.estimate(name, read_values(values), shapes, confidence)
        columns = [] if as_json else offers_in(client.currency())
    show_list(found, columns, as_json, "Nothing.")


@provision_app.command()
def provision(
    name: NameArgument,
    values: ValuesOption,
    max_time: Annotated[str | None, typer.Option(help="10m, 1h30m: the cheapest size within it")] = None,
    max_cost: Annotated[float | None, typer.Option(help="2.00: the fastest size within it")] = None,
    deadline: Annotated[str | None, typer.Option(help='"fri 18:00": waiting in the queue counts')] = None,
    confidence: ConfidenceOption = None,
    gpus: Annotated[str | None, typer.Option(help="Only these numbers of GPUs, such as 0 or 1,2")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which size")] = False,
    front: Annotated[bool, typer.Option("--front", help="Only show the sizes worth choosing among")] = False,
    picture: Annotated[Path | None, typer.Option(help="Write the picture of the grid here (PNG)")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not follow the log")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Choose the best size within the limits, submit the job on it, and follow its log."""
    wish: dict[str, Any] = {
        "max_seconds": parse_duration(max_time) if max_time else None,
        "max_cost": max_cost,
        "deadline": parse_deadline(deadline, datetime.now().astimezone()) if deadline else None,
        "confidence": confidence,
        "gpus": numbers(gpus) if gpus else None,
    }
    if not front and all(wish[limit] is None for limit in ("max_seconds", "max_cost", "deadline")):
        raise InvalidInput("within which limit? --max-time 10m, --max-cost 2.00 or --deadline 'fri 18:00'")
    with connect(project) as client:
        given = read_values(values)
        if picture is not None:
            picture.write_bytes(client.profiles.picture(name, given, **wish))
            say(f"Wrote {picture}")
        made = client.profiles.provision(name, given, submit=not (dry_run or front), **wish)
        if as_json:
            show_one(made, True)
        elif front:
            show_list(made.front, offers_in(client.currency()), False, "No size has enough memory.")
        else:
            _tell(made, client.currency())
        if not made.feasible and not front:
            raise typer.Exit(5)
        if made.job is not None and not (detach or as_json):
            say(f"Job {made.job.id} is queued. Ctrl-C stops following, not the job.")
            from easel.sdk.jobs import JobHandle

            raise typer.Exit(finish(JobHandle(client, made.job), False))


@promises_app.command()
def promises(project: InProject = None, as_json: AsJson = False) -> None:
    """How often what waiting jobs were told about their start and end came true."""
    with connect(project) as client:
        found = client.queues.promises()
    if as_json:
        show_one(found, True)
        return
    if not found.jobs:
        say("No job that had to wait has ended yet.")
        return
    say(f"Of jobs that waited {found.jobs} {'has' if found.jobs == 1 else 'have'} ended:")
    for level, share in ((80, found.kept_80), (90, found.kept_90), (95, found.kept_95)):
        say(f"  told an end at {level} %: kept for {share or 0.0:.1%}")
    say(f"  started within 30 % of the wait that was expected: {found.near_starts or 0.0:.1%}")
    if found.waited:
        say(
            f"  of the {found.waited} that waited for more than 5 s: {found.near_starts_of_waited or 0.0:.1%}"
        )


def _tell(made: wire.Provisioned, currency: str) -> None:
    if made.offer is not None:
        show_list([made.offer], offers_in(currency), False, "")
        return
    say(f"Not possible: {made.why}.")
    for way in made.nearest:
        size = room_told(way.offer.vcpu, way.offer.memory_mb, way.offer.gpus)
        size += f", {way.offer.terms}" if way.offer.terms else ""
        say(f"  {way.remedy}: {size}, {spell(way.offer.sure_seconds)}, {way.offer.sure_cost:.5f} {currency}")


def read_values(text: str) -> dict[str, float] | list[float]:
    parts = [part.strip() for part in text.split(",")]
    try:
        if all("=" in part for part in parts):
            return {name.strip(): float(value) for name, _, value in (p.partition("=") for p in parts)}
        return [float(part) for part in parts]
    except ValueError as error:
        raise InvalidInput(f"{text!r}: give numbers as 100,256 or epoch=100,batch-size=256") from error


def spell(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
