"""`easel login`, `logout` and `whoami`."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, say, show_one
from easel.clock import SystemClock
from easel.errors import NotFound, TryLater
from easel.sdk.credentials import DEFAULT_SERVER, Credentials, credentials_file, forget, remember

if TYPE_CHECKING:
    from easel.sdk.sign_on import Shown

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
    with_code: Annotated[
        bool | None,
        typer.Option("--code/--token", help="Show a code for any browser, or ask for a token"),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open a browser of this machine, which comes back by itself")
    ] = False,
) -> None:
    """Log in and remember it. The token is asked for, or read from standard input when that is a pipe.

    Where people sign on elsewhere, a browser is opened and comes back by itself (--browser); over SSH a code is shown
    to type into a browser that is logged in anywhere (--code).
    """
    from easel.sdk.client import Client

    server = server.rstrip("/")
    if with_code is None and not browser:
        with_code = sys.stdin.isatty() and _signs_on(server)
        browser = with_code and _has_browser()
    if with_code or browser:
        secret = _without_token(server, browser=browser)
    else:
        secret = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    credentials = Credentials(server.rstrip("/"), secret.strip(), project)
    with Client(credentials.server, credentials.token, project) as client:
        try:
            me = client.whoami()
        except TryLater as error:
            where = "easel login --server ADDRESS names another; `easel up` prints its own"
            raise TryLater(f"{error.message} ({where})") from None
        if project:
            client.projects.get(project)
    remember(credentials, credentials_file())
    say(f"Logged in to {credentials.server} as {me.user.name}")


def _signs_on(server: str) -> bool:
    """Whether people of this server sign on elsewhere; an older server knows of no such thing."""
    import httpx

    from easel.sdk.sign_on import open_http, sign_on_ways

    with open_http(server) as http:
        try:
            return bool(sign_on_ways(http).items)
        except NotFound:
            return False
        except httpx.TransportError as error:
            raise TryLater(
                f"no answer from {server} ({type(error).__name__}): is the address right?"
            ) from error


def _without_token(server: str, *, browser: bool) -> str:
    """The token from a browser: one of this machine where `browser` says so, else any one by a code."""
    import webbrowser

    import httpx

    from easel.sdk.sign_on import device_login, loopback_login, open_http

    def show(shown: Shown) -> None:
        say(f"Open {shown.page} in any browser, and type in this code: {shown.code}")

    def open_browser(address: str) -> bool:
        say(f"Allow this log-in in your browser. If none has opened: {address}")
        return webbrowser.open(address)

    client = f"easel on {platform.node()}"
    try:
        with open_http(server) as http:
            secret = loopback_login(http, client, open_browser, SystemClock()) if browser else None
            return secret or device_login(http, client, show, SystemClock())
    except httpx.TransportError as error:
        raise TryLater(f"no answer from {server} ({type(error).__name__}): is the address right?") from error


def _has_browser() -> bool:
    """Whether a browser that opens here is in front of the person."""
    return not os.environ.get("SSH_CONNECTION") and bool(
        sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


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
