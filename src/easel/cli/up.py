"""`easel up`, and its parts: `easel serve`, `easel controller`, `easel worker`."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from easel.cli.output import say, warn
from easel.errors import InvalidInput

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
Requests = Annotated[
    bool, typer.Option("--requests", help="Write a line for each request, also to a terminal")
]


@up_app.command()
def up(
    home: Home = None,
    host: Host = None,
    port: Port = None,
    token_file: TokenFile = None,
    requests: Requests = False,
) -> None:
    """Start everything on this machine: the API and what runs behind it."""
    _show_requests(requests)
    _run(home, host, port, token_file, engine=True)


@serve_app.command()
def serve(
    home: Home = None,
    host: Host = None,
    port: Port = None,
    token_file: TokenFile = None,
    requests: Requests = False,
) -> None:
    """Start only the API server."""
    _show_requests(requests)
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


Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", help="name=value: what this machine is (gpu=A100, price_per_hour=2.5); repeatable"
    ),
]


@worker_app.command()
def worker(
    home: Home = None,
    server: Annotated[
        str | None, typer.Option(help="Join the pool of this server, over HTTPS; else that of this machine")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the worker's token; without it EASEL_TOKEN")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The device's name; without it the host's")] = None,
    label: Labels = None,
    vcpu: Annotated[
        float | None, typer.Option(min=0.5, help="vCPU that jobs may use; without it all")
    ] = None,
    memory_mb: Annotated[
        int | None, typer.Option(min=64, help="Memory that jobs may use; without it nine tenths")
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="GPUs that jobs may use; without it all")] = None,
    idle_exit: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds without work")
    ] = None,
    lasts: Annotated[
        float | None, typer.Option(min=0, help="Seconds that this machine is ours: take nothing longer")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Whose work to take: what a controller started workers for")
    ] = "remote",
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="End when the process that started it does")
    ] = False,
    home_for_once: Annotated[
        bool, typer.Option("--home-for-once", help="Remove the home at the end: nobody comes back to it")
    ] = False,
) -> None:
    """Turn this machine into a device: of the pool on this machine, or with --server of one elsewhere."""
    if server is None:
        from easel.serve import server as here
        from easel.serve.settings import load

        _set({"EASEL_HOME": home, "EASEL_WORKER_VCPU": vcpu, "EASEL_WORKER_MEMORY_MB": memory_mb})
        here.run_worker_here(load())
        return
    from easel.run.executors.local import this_machine
    from easel.run.preload import TRIAL_MODULES
    from easel.run.remote.join import Joining, join, join_placed, read_token
    from easel.run.tree import die_with

    parent = os.getppid()
    if with_parent:
        die_with(parent, signal.SIGTERM)
    token = read_token(token_file, os.environ)
    os.environ.pop("EASEL_TOKEN", None)
    logging.basicConfig(level=logging.INFO, format="easel worker: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    work = join_placed if home_for_once else join
    work(
        Joining(
            server,
            token,
            (home or Path("~/.easel-worker")).expanduser().resolve(),
            name or socket.gethostname(),
            this_machine(vcpu, memory_mb, gpus),
            _labels(label or []),
            executor,
            os.environ.get("EASEL_SANDBOX", "true").lower() not in ("false", "0", "no"),
            os.environ.get("EASEL_UNSANDBOXED") == "I understand",
            tuple(map(Path, json.loads(os.environ.get("EASEL_INTERPRETERS") or "[]"))),
            TRIAL_MODULES
            if os.environ.get("EASEL_WARM_TRIALS", "true").lower() not in ("false", "0")
            else (),
            idle_exit,
            lasts,
            parent if with_parent else None,
        )
    )


def _labels(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key or not value:
            raise InvalidInput(f"a label is name=value, not {each!r}: --label gpu=A100")
        found[key] = value
    return found


def _load_server() -> ModuleType:
    """Import it without looking for garbage meanwhile, nor ever again among what was imported.

    What a program imports stays: traversing it costs a sixth of the start, and then pauses requests.
    """
    gc.disable()
    from easel.serve import server

    gc.freeze()
    gc.enable()
    return server


def _show_requests(wanted: bool) -> None:
    _set({"EASEL_LOG_REQUESTS": "yes" if wanted else None})


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
        if os.geteuid() == 0:
            warn(
                "Easel runs as root. Jobs run as another user, but whoever finds a fault in Easel itself owns this "
                "machine: make a user for it (useradd --system easel) and start it as that one."
            )
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
    """Writes a new private file, never into one that was there: others may hold that open, or may read it."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text + "\n")
    fresh.replace(file)
