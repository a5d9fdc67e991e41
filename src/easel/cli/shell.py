"""`easel shell JOB`, `easel attach JOB`, `easel cp JOB:path .`: coming in to a running job."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.jobs import JobArgument, finish
from easel.cli.output import InProject, say
from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.sdk.visits import Terminal, copy_out, open_terminal

shell_app = typer.Typer()
attach_app = typer.Typer()
cp_app = typer.Typer()


@shell_app.command(context_settings={"ignore_unknown_options": True})
def shell(
    job: JobArgument,
    command: Annotated[
        list[str] | None, typer.Argument(help="Another program than a shell, after --")
    ] = None,
    project: InProject = None,
) -> None:
    """Open a terminal in a running job: its files, its packages, its limits. Exits as the program does."""
    with connect(project) as client:
        size = shutil.get_terminal_size((80, 24))
        terminal = open_terminal(client, job, command or (), rows=size.lines, columns=size.columns)
        raise typer.Exit(_talk(terminal))


@attach_app.command()
def attach(job: JobArgument, project: InProject = None) -> None:
    """Follow a job that runs: what it prints from its beginning until its end; exits as the job does."""
    with connect(project) as client:
        say("Ctrl-C stops following, not the job. A terminal in it: easel shell " + job)
        raise typer.Exit(finish(client.jobs.get(job), as_json=False))


@cp_app.command()
def cp(
    source: Annotated[str, typer.Argument(metavar="JOB:PATH", help="A file or folder of a running job")],
    target: Annotated[Path, typer.Argument(help="Where to put it")] = Path(),
    project: InProject = None,
) -> None:
    """Copy files out of a job that runs. Of one that is over: easel get /@ITS-OUTPUT."""
    job, colon, path = source.partition(":")
    if not colon or not path:
        raise InvalidInput("what shall be copied? easel cp JOB:output/model.pt .")
    with connect(project) as client:
        made = copy_out(client, job, path, target)
    say(f"Copied {counted(len(made), 'file')}")


def _talk(terminal: Terminal) -> int:
    """Keys in, pictures out, until the program ends; the own terminal is as before then."""
    raw = _raw() if sys.stdin.isatty() else None
    previous = None
    if raw is not None:

        def resized(*_: object) -> None:
            size = shutil.get_terminal_size((80, 24))
            terminal.resize(size.lines, size.columns)

        previous = signal.signal(signal.SIGWINCH, resized)
    threading.Thread(target=_type, args=(terminal,), daemon=True).start()
    try:
        while (shown := terminal.read()) is not None:
            sys.stdout.buffer.write(shown)
            sys.stdout.buffer.flush()
    finally:
        terminal.close()
        if raw is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, raw)
            signal.signal(signal.SIGWINCH, previous)
    if terminal.code is None:
        say("The connection to the job was lost.")
        return 1
    return terminal.code


def _raw() -> Any:
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    return before


def _type(terminal: Terminal) -> None:
    try:
        while data := os.read(sys.stdin.fileno(), 4096):
            terminal.write(data)
        terminal.write(b"\x04")  # the end of what is typed, as a terminal says it
    except OSError:
        return
