"""`easel messages`: be told by mail, webhook, Slack or Matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, say, show_list, show_one
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import message as wire

app = typer.Typer(no_args_is_help=True, help="Be told of what happens: by mail, webhook, Slack or Matrix.")

TOPICS = "job-ended, job-failed, app-improved, app-done, study-finished, budget, device-lost, backup-failed"
CHANNELS: Columns[wire.Channel] = [
    ("id", lambda c: c.id),
    ("way", lambda c: c.way),
    ("address", lambda c: c.address),
    ("about", lambda c: ", ".join(c.topics)),
    ("quiet", lambda c: f"{c.quiet_from}-{c.quiet_until} {c.zone}" if c.quiet_from else None),
    ("digest", lambda c: c.digest_at),
    ("stopped", lambda c: c.stopped),
]
MESSAGES: Columns[wire.Message] = [
    ("at", lambda m: m.at),
    ("message", lambda m: m.title),
    ("state", lambda m: m.state),
    ("tries", lambda m: m.attempts),
    ("trouble", lambda m: m.error),
]


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """The ways by which you are told."""
    with connect() as client:
        show_list(
            client.messages.channels(), CHANNELS, as_json, "None: easel messages add mail ana@example.org"
        )


@app.command("add")
def add(
    way: Annotated[str, typer.Argument(help="mail, webhook, slack or matrix")],
    address: Annotated[str, typer.Argument(help="A mail address, or where to send")],
    about: Annotated[
        list[str] | None,
        typer.Option(help=f"{TOPICS}; repeatable"),
    ] = None,
    quiet: Annotated[str | None, typer.Option(help="Send nothing then: 22:00-07:00")] = None,
    digest: Annotated[
        str | None, typer.Option(help="All of a day as one message at this time: 08:00")
    ] = None,
    zone: Annotated[str, typer.Option(help="The time zone of these times: Europe/Zurich")] = "UTC",
    as_json: AsJson = False,
) -> None:
    """A new way. Without --about: failed jobs, finished studies, budgets."""
    topics = about or ["job-failed", "study-finished", "budget"]
    with connect() as client:
        made = client.messages.add(
            way, address, topics, zone=zone, quiet=_hours(quiet) if quiet else None, digest_at=digest
        )
    show_one(made, as_json)


def _hours(text: str) -> tuple[str, str]:
    start, dash, end = text.partition("-")
    if not dash:
        raise InvalidInput(f"quiet hours are written 22:00-07:00, not {text!r}")
    return start.strip(), end.strip()


@app.command("test")
def test(channel: str) -> None:
    """Send a message by it, to see that it arrives."""
    with connect() as client:
        client.messages.test(channel)
    say("On its way; `easel messages log` says what became of it")


@app.command("set")
def change(
    channel: str,
    about: Annotated[list[str] | None, typer.Option(help=f"{TOPICS}; repeatable")] = None,
    quiet: Annotated[str | None, typer.Option(help="Send nothing then: 22:00-07:00, or none")] = None,
    digest: Annotated[str | None, typer.Option(help="All of a day as one message: 08:00, or none")] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of these times: Europe/Zurich")] = None,
    as_json: AsJson = False,
) -> None:
    """Change what is sent by it, and when. What is not given stays."""
    wanted: dict[str, Any] = {}
    if about:
        wanted["topics"] = about
    if zone:
        wanted["zone"] = zone
    if quiet:
        wanted["quiet"] = None if quiet == "none" else _hours(quiet)
    if digest:
        wanted["digest_at"] = None if digest == "none" else digest
    if not wanted:
        raise InvalidInput("say what to change: --about, --quiet, --digest or --zone")
    with connect() as client:
        show_one(client.messages.change(channel, **wanted), as_json)


@app.command("stop")
def stop(channel: str) -> None:
    """Send nothing by it until `easel messages resume`."""
    with connect() as client:
        client.messages.change(channel, stopped=True)
    say(f"Stopped {channel}")


@app.command("resume")
def resume(channel: str) -> None:
    """Send by it again."""
    with connect() as client:
        client.messages.change(channel, stopped=False)
    say(f"{channel} sends again")


@app.command("rm")
def rm(channel: str) -> None:
    """Remove it."""
    with connect() as client:
        client.messages.remove(channel)
    say(f"Removed {channel}")


@app.command("log")
def log(as_json: AsJson = False) -> None:
    """Your newest messages, and what became of them."""
    with connect() as client:
        show_list(client.messages.list(), MESSAGES, as_json, "Nothing was sent yet.")
