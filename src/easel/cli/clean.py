"""`easel gc` and `easel grants`."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.wire.lake import Grant, Group

gc_app = typer.Typer()
grants_app = typer.Typer(no_args_is_help=True, help="Who may read and write which paths and file sets.")

GRANTS: Columns[Grant] = [
    ("pattern", lambda g: g.pattern),
    ("who", lambda g: g.principal),
    ("read", lambda g: g.read),
    ("write", lambda g: g.write),
]
GROUPS: Columns[Group] = [("name", lambda g: g.name), ("members", lambda g: ", ".join(g.members))]

Whom = Annotated[str, typer.Argument(help="user:<name>, group:<name> or everyone")]
Pattern = Annotated[str, typer.Argument(help="/secret/ · /data/x.json · Hotpot*")]


@gc_app.command("gc")
def gc(
    unused: Annotated[
        bool, typer.Option("--unused", help="Files that no job used and no file set holds (project admins)")
    ] = False,
    prefix: Annotated[str, typer.Option(help="With --unused: only below this folder")] = "/",
    older_than: Annotated[float, typer.Option(min=0, help="With --unused: at least so many days old")] = 30.0,
    yes: Annotated[bool, typer.Option("--yes", help="With --unused: do it, rather than tell")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Remove what nobody needs: abandoned uploads and unnamed bytes (platform admins), or unused files."""
    with connect(project) as client:
        if not unused:
            show_one(client.lake.gc(), as_json)
            return
        show_one(client.lake.unused(prefix, older_than, really=yes), as_json)
    if not yes:
        say("Nothing was given up: --yes gives them up, and their bytes go with the next `easel gc`.")


@grants_app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """All grants; what no pattern covers is open to every member."""
    with connect(project) as client:
        show_list(client.lake.grants(), GRANTS, as_json, "Everything is open to every member.")


@grants_app.command("set")
def set_grant(
    whom: Whom,
    pattern: Pattern,
    read: Annotated[bool, typer.Option("--read/--no-read")] = True,
    write: Annotated[bool, typer.Option("--write/--no-write")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody read or write; others then may not, unless granted too."""
    with connect(project) as client:
        show_one(client.lake.grant(whom, pattern, read=read, write=write), as_json)


@grants_app.command("rm")
def rm(whom: Whom, pattern: Pattern, project: InProject = None) -> None:
    """Take a grant back."""
    with connect(project) as client:
        client.lake.revoke(whom, pattern)
    say(f"{whom} has no grant of its own on {pattern} any more")


@grants_app.command("group")
def group(
    name: Annotated[str | None, typer.Argument(help="Without a name: all groups")] = None,
    members: Annotated[
        list[str] | None, typer.Argument(help="The names of its members; none removes it")
    ] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Show groups, or say who is in one."""
    with connect(project) as client:
        if name is None:
            show_list(client.lake.groups(), GROUPS, as_json, "There are no groups.")
        else:
            show_one(client.lake.set_group(name, members or []), as_json)
