"""`easel up`, and its parts: `easel serve`, `easel controller`, `easel worker`."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from easel.cli.output import say

up_app = typer.Typer()
serve_app = typer.Typer()
controller_app = typer.Typer()
worker_app = typer.Typer()

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
    _run(home, host, port, token_file, engine=True)


@serve_app.command()
def serve(home: Home = None, host: Host = None, port: Port = None, token_file: TokenFile = None) -> None:
    """Start only the API server."""
    _run(home, host, port, token_file, engine=False)


@controller_app.command()
def controller(
    home: Home = None,
    own_worker: Annotated[
        bool, typer.Option("--own-worker", help="Start a worker here, rather than wait for `easel worker`")
    ] = False,
) -> None:
    """Start only the controller: the loop that launches and watches jobs. Others stand by."""
    server = _load_server()
    from easel.serve.settings import load

    _set({"EASEL_HOME": home})
    server.run_controller(load(), spawn_worker=own_worker)


@worker_app.command()
def worker(home: Home = None) -> None:
    """Start only this machine's worker, which holds its devices and runs jobs on them."""
    from easel.serve import server
    from easel.serve.settings import load

    _set({"EASEL_HOME": home})
    server.run_worker_here(load())


def _load_server() -> ModuleType:
    """Import it without looking for garbage meanwhile, nor ever again among what was imported.

    What a program imports stays: traversing it costs a sixth of the start, and then pauses requests.
    """
    gc.disable()
    from easel.serve import server

    gc.freeze()
    gc.enable()
    return server


def _set(given: Mapping[str, object]) -> None:
    """Options become variables, so that there is one way in which a setting arrives."""
    for name, value in given.items():
        if value is not None:
            os.environ[name] = str(value)


def _run(
    home: Path | None, host: str | None, port: int | None, token_file: Path | None, *, engine: bool
) -> None:
    server = _load_server()
    from easel.serve.settings import load

    _set({"EASEL_HOME": home, "EASEL_HOST": host, "EASEL_PORT": port})

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

    server.run(load(), greet, engine=engine)


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text + "\n")
