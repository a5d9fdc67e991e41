"""`easel up` and `easel serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from easel.cli.output import say

up_app = typer.Typer()
serve_app = typer.Typer()

Home = Annotated[Path | None, typer.Option(help="Folder of database and blobs", envvar="EASEL_HOME")]
Host = Annotated[str | None, typer.Option(help="Address to listen on", envvar="EASEL_HOST")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one", envvar="EASEL_PORT")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="On the first start write the admin's token to this file (mode 600), not to the screen"
    ),
]


@up_app.command()
def up(home: Home = None, host: Host = None, port: Port = None, token_file: TokenFile = None) -> None:
    """Start everything on this machine: the API and what runs behind it."""
    _run(home, host, port, token_file)


@serve_app.command()
def serve(home: Home = None, host: Host = None, port: Port = None, token_file: TokenFile = None) -> None:
    """Start only the API server."""
    _run(home, host, port, token_file)


def _run(home: Path | None, host: str | None, port: int | None, token_file: Path | None) -> None:
    from easel.serve import server
    from easel.serve.settings import load

    # Options become variables, so that there is one way in which a setting arrives.
    for name, value in (("EASEL_HOME", home), ("EASEL_HOST", host), ("EASEL_PORT", port)):
        if value is not None:
            os.environ[name] = str(value)

    def greet(address: str, token: str | None) -> None:
        say(f"Easel is at {address}")
        if token is None:
            return
        if token_file is not None:
            _write_private(token_file, token)
            say(f"The platform admin's token is in {token_file}")
            return
        say("First start. The platform admin's token, shown only now:")
        print(token, flush=True)
        say(f"Log in with: easel login --server {address}")

    server.run(load(), greet)


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text + "\n")
