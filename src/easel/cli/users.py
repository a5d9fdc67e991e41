"""`easel users`."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.roles import Role
from easel.wire.identity import Member

app = typer.Typer(no_args_is_help=True, help="The people of a project.")

COLUMNS: Columns[Member] = [
    ("name", lambda u: u.name),
    ("role", lambda u: u.role.value),
    ("since", lambda u: u.since),
    ("id", lambda u: u.id),
]
RoleOption = Annotated[Role, typer.Option(help="What they may do")]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """Who works in this project."""
    with connect(project) as client:
        show_list(client.users.list(), COLUMNS, as_json, "Nobody yet: `easel users add NAME`.")


@app.command("add")
def add(
    name: str, role: RoleOption = Role.MEMBER, project: InProject = None, as_json: AsJson = False
) -> None:
    """A new person; prints their first token, once."""
    with connect(project) as client:
        made = client.users.create(name, role)
    if as_json:
        show_one(made, as_json)
        return
    say(f"Created {made.name} ({made.role.value}). Their token, shown only now:")
    print(made.token.secret)


@app.command("admit")
def admit(
    user_id: str, role: RoleOption = Role.MEMBER, project: InProject = None, as_json: AsJson = False
) -> None:
    """Let somebody from another project in (platform admins)."""
    with connect(project) as client:
        show_one(client.users.admit(user_id, role), as_json)


@app.command("role")
def set_role(name: str, role: Role, project: InProject = None, as_json: AsJson = False) -> None:
    """Make somebody admin or member."""
    with connect(project) as client:
        show_one(client.users.set_role(name, role), as_json)


@app.command("token")
def token(
    name: str,
    label: Annotated[str, typer.Option(help="What it is for")] = "from admin",
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """A further token for somebody, e.g. when theirs is lost."""
    with connect(project) as client:
        made = client.users.create_token(name, label)
    if as_json:
        show_one(made, as_json)
        return
    say(f"A token for {name}, shown only now:")
    print(made.secret)


@app.command("rm")
def remove(name: str, project: InProject = None) -> None:
    """Let somebody go from this project; what they made stays."""
    with connect(project) as client:
        client.users.remove(name)
    say(f"{name} has left")
