"""`easel users`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.counted import counted
from easel.declare.roles import Role

if TYPE_CHECKING:
    from easel.wire.identity import Member, Person

app = typer.Typer(no_args_is_help=True, help="The people of a project.")

COLUMNS: Columns[Member] = [
    ("name", lambda u: u.name),
    ("role", lambda u: u.role.value),
    ("since", lambda u: u.since),
    ("state", lambda u: "disabled" if u.disabled_at else "service" if u.service else "active"),
    ("id", lambda u: u.id),
]
RoleOption = Annotated[Role, typer.Option(help="What they may do")]


PEOPLE: Columns[Person] = [
    ("name", lambda u: u.name),
    ("projects", lambda u: ", ".join(u.projects)),
    ("kind", lambda u: "service" if u.service else "platform admin" if u.platform_admin else "person"),
    ("disabled", lambda u: u.disabled_at),
    ("id", lambda u: u.id),
]
Everywhere = Annotated[
    bool, typer.Option("--everywhere", help="NAME is an id, whichever projects they are in (platform admins)")
]


@app.command("ls")
def ls(
    everybody: Annotated[
        bool, typer.Option("--all", help="All of the installation (platform admins)")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Who works in this project."""
    with connect(project) as client:
        if everybody:
            show_list(client.users.everybody(), PEOPLE, as_json, "Nobody yet.")
            return
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


@app.command("disable")
def disable(
    name: str,
    hand_over_to: Annotated[
        str | None, typer.Option(help="The member who takes over their apps, studies and rights")
    ] = None,
    kill_running: Annotated[
        bool, typer.Option("--kill-running", help="Also end jobs that run already")
    ] = False,
    everywhere: Everywhere = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """End somebody's sessions, tokens and waiting jobs at once; what they made stays."""
    with connect(project) as client:
        if everywhere:
            made = client.users.disable_everywhere(name, kill_running=kill_running)
        else:
            made = client.users.disable(name, hand_over_to=hand_over_to, kill_running=kill_running)
    if as_json:
        show_one(made, as_json)
        return
    say(
        f"{made.user.name} is disabled: {counted(made.tokens, 'token')} revoked, {counted(made.jobs, 'job')} ended, "
        f"{counted(made.handed_over, 'thing')} handed over"
    )


@app.command("enable")
def enable(name: str, everywhere: Everywhere = False, project: InProject = None) -> None:
    """Let somebody in again; they need a new token."""
    with connect(project) as client:
        found = client.users.enable_everywhere(name) if everywhere else client.users.enable(name)
    say(f"{found.name} is enabled; `easel users token {found.name}` makes a token")


@app.command("hand-over")
def hand_over(name: str, to: str, project: InProject = None) -> None:
    """Make another member the owner of somebody's apps, studies, profiles and rights on files."""
    with connect(project) as client:
        made = client.users.hand_over(name, to)
    say(f"{to} has taken over {counted(made.things, 'thing')} from {name}")
