"""`easel open`: the page of something, in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated
from urllib.parse import quote

import typer

from easel.cli.connect import connect
from easel.cli.output import InProject, say
from easel.errors import InvalidInput

open_app = typer.Typer()
PAGES = {"job": "jobs", "app": "apps", "study": "studies"}


@open_app.command()
def open_page(
    what: Annotated[
        str | None, typer.Argument(help="The name of an app or a study, or a job; the project if left out")
    ] = None,
    address_only: Annotated[bool, typer.Option("--print", help="Only print the address")] = False,
    project: InProject = None,
) -> None:
    """Open the page of a job, an app, a study or the project, and print its address."""
    with connect(project) as client:
        if client.project is None:
            raise InvalidInput("say which project: -p NAME, or easel login --project NAME")
        address = f"{client.server}/p/{quote(client.project, safe='')}"
        if what is not None:
            found = client.why(what)
            address += f"/{PAGES[found.kind]}/{quote(found.name, safe='')}"
    print(address)
    if not address_only and not webbrowser.open(address):
        say("No browser was found here: open the address yourself")
