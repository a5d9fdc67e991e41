"""`easel health`, `easel cordon`, `easel uncordon`: what admins ask of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, say, show_list, show_one

if TYPE_CHECKING:
    from easel.wire import operate as wire

health_app = typer.Typer()
cordon_app = typer.Typer()
uncordon_app = typer.Typer()

CHECKS: Columns[wire.HealthCheck] = [
    ("", lambda c: {"ok": "✓", "warning": "–", "failed": "✗"}[c.severity]),
    ("what", lambda c: c.name),
    ("how it is", lambda c: c.detail),
]


@health_app.command()
def health(as_json: AsJson = False) -> None:
    """What is well and what is wrong with the server, its database, disk, controller and devices. Exits 1 if it is
    not ready."""
    with connect() as client:
        found = client.operations.health()
    if as_json:
        show_one(found, True)
    else:
        show_list(found.checks, CHECKS, False, "")
    if not found.ready:
        raise typer.Exit(1)


@cordon_app.command()
def cordon(reason: Annotated[str, typer.Option(help="What `/readyz` says")] = "") -> None:
    """Let /readyz of the server you are logged in to say no, so that its proxy sends requests elsewhere.

    Name one server of several by its own address: EASEL_SERVER=http://10.0.0.5:8741 easel cordon
    """
    with connect() as client:
        client.operations.cordon(reason)
    say(f"{client.server} is cordoned; what it serves it finishes. `easel uncordon` takes it back")


@uncordon_app.command()
def uncordon() -> None:
    """Take requests again."""
    with connect() as client:
        client.operations.uncordon()
    say(f"{client.server} takes requests again")
