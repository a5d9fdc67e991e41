"""`easel invitations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.roles import Role
from easel.sdk.connection import Connection
from easel.sdk.credentials import DEFAULT_SERVER, Credentials, credentials_file, remember
from easel.sdk.identity import accept_invitation

if TYPE_CHECKING:
    from easel.wire.identity import Invitation

app = typer.Typer(no_args_is_help=True, help="Codes with which people join a project.")


def _state(invitation: Invitation) -> str:
    if invitation.ended_at is None:
        return "open"
    return "accepted" if invitation.user_id else "withdrawn"


COLUMNS: Columns[Invitation] = [
    ("id", lambda i: i.id),
    ("role", lambda i: i.role.value),
    ("state", _state),
    ("note", lambda i: i.note),
    ("expires", lambda i: i.expires_at),
]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """The project's invitations."""
    with connect(project) as client:
        show_list(client.invitations.list(), COLUMNS, as_json, "None: `easel invitations create`.")


@app.command("create")
def create(
    role: Annotated[Role, typer.Option(help="What they may do")] = Role.MEMBER,
    note: Annotated[str, typer.Option(help="For whom, or why; only admins see it")] = "",
    days: Annotated[float, typer.Option(min=0.01, max=90, help="It ends after so many days")] = 7,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """A code for one person; prints it, once."""
    with connect(project) as client:
        made = client.invitations.create(role, note, days)
    if as_json:
        show_one(made, as_json)
        return
    say("They run `easel invitations accept`. The code, shown only now:")
    print(made.code)


@app.command("revoke")
def revoke(invitation_id: str, project: InProject = None) -> None:
    """Withdraw an invitation that nobody accepted yet."""
    with connect(project) as client:
        client.invitations.withdraw(invitation_id)
    say(f"Withdrew {invitation_id}")


@app.command("accept")
def accept(
    name: Annotated[str | None, typer.Option(help="Your name here, if you have no account yet")] = None,
    server: Annotated[
        str, typer.Option(help="Address of the server", envvar="EASEL_SERVER")
    ] = DEFAULT_SERVER,
) -> None:
    """Join with a code, which is asked for or read from standard input: as NAME, or as who you are logged in as."""
    code = typer.prompt("Code", hide_input=True).strip()
    if name is None:
        with connect() as client:
            joined = client.invitations.join(code)
        say(f"You are in {joined.project} now, as {joined.member.role.value}")
        return
    connection = Connection(server.rstrip("/"), "none")
    try:
        made = accept_invitation(connection, code, name)
    finally:
        connection.close()
    remember(Credentials(server.rstrip("/"), made.token.secret or "", made.project), credentials_file())
    say(f"You are {made.member.name} in {made.project}, and logged in here")
