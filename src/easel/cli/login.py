"""`easel login`, `logout` and `whoami`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, say, show_one
from easel.sdk.client import Client
from easel.sdk.credentials import DEFAULT_SERVER, Credentials, credentials_file, forget, remember

login_app = typer.Typer()
logout_app = typer.Typer()
whoami_app = typer.Typer()


@login_app.command()
def login(
    server: Annotated[
        str, typer.Option(help="Address of the server", envvar="EASEL_SERVER")
    ] = DEFAULT_SERVER,
    project: Annotated[
        str | None, typer.Option("--project", "-p", help="The project to use from now on")
    ] = None,
) -> None:
    """Log in and remember it. The token is asked for, or read from standard input when that is a pipe."""
    secret = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    credentials = Credentials(server.rstrip("/"), secret.strip(), project)
    with Client(credentials.server, credentials.token, project) as client:
        me = client.whoami()
        if project:
            client.projects.get(project)
    remember(credentials, credentials_file())
    say(f"Logged in to {credentials.server} as {me.user.name}")


@logout_app.command()
def logout() -> None:
    """Forget the remembered log-in. The token stays valid: revoke it with `easel tokens revoke`."""
    forget(credentials_file())
    say("Logged out")


@whoami_app.command()
def whoami(as_json: AsJson = False) -> None:
    """Show who you are logged in as, and where."""
    with connect() as client:
        me = client.whoami()
        if not as_json:
            say(f"at {client.server}")
        show_one(me.user, as_json)
