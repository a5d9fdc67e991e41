"""`easel secrets`: what jobs may know and logs may not show."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from easel.cli import output
from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say, show_table
from easel.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Secrets of the project: easel run --secret TOKEN=NAME.")


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """List the names of secrets; values are never shown."""
    with connect(project) as client:
        names = client.secrets.names()
    if as_json:
        print(json.dumps(names, indent=2))
    elif names or output.chosen.as_csv:
        show_table(["name"], [[name] for name in names])
    else:
        say("No secrets yet: easel secrets put NAME")


@app.command("put")
def put(
    name: Annotated[str, typer.Argument(help="As jobs will name it")],
    project: InProject = None,
) -> None:
    """Set a secret: asked for without echo, or read from standard input (easel secrets put NAME < file)."""
    if sys.stdin.isatty():
        value = typer.prompt(f"Value of {name}", hide_input=True)
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        raise InvalidInput("a secret cannot be empty")
    with connect(project) as client:
        client.secrets.put(name, value)
    say(f"Secret {name} is set: easel run --secret VARIABLE={name} -- …")


@app.command("rm")
def rm(name: str, project: InProject = None) -> None:
    """Forget a secret; jobs that name it fail from now on."""
    with connect(project) as client:
        client.secrets.remove(name)
    say(f"Secret {name} is gone")
