"""`easel service-accounts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.issued import show_new
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.plain import Ago
from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.errors import NotFound

if TYPE_CHECKING:
    from easel.wire.identity import ServiceAccount, Token

app = typer.Typer(no_args_is_help=True, help="Programs with tokens of their own.")


def _live(account: ServiceAccount) -> list[Token]:
    return [token for token in account.tokens if token.revoked_at is None]


COLUMNS: Columns[ServiceAccount] = [
    ("name", lambda a: a.name),
    ("role", lambda a: a.role.value),
    ("state", lambda a: "disabled" if a.disabled_at else "active"),
    ("tokens", lambda a: len(_live(a))),
    ("last used", lambda a: Ago(max((t.last_used_at for t in a.tokens if t.last_used_at), default=None))),
    ("id", lambda a: a.id),
]
TOKENS: Columns[Token] = [
    ("id", lambda t: t.id),
    ("name", lambda t: t.name),
    ("may", lambda t: ", ".join(t.scope.verbs) if t.scope else "everything"),
    ("last used", lambda t: Ago(t.last_used_at)),
    ("expires", lambda t: t.expires_at),
    ("revoked", lambda t: t.revoked_at),
]


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """The project's service accounts."""
    with connect(project) as client:
        empty = "None: `easel service-accounts create NAME`."
        show_list(client.service_accounts.list(), COLUMNS, as_json, empty)


@app.command("show")
def show(name: str, project: InProject = None, as_json: AsJson = False) -> None:
    """The tokens of one: scope, expiry and last use."""
    with connect(project) as client:
        found = next((each for each in client.service_accounts.list() if name in (each.name, each.id)), None)
    if found is None:
        raise NotFound(f"no service account {name!r}: `easel service-accounts ls` lists them")
    show_list(found.tokens, TOKENS, as_json, f"No tokens: `easel service-accounts token {name} LABEL`.")


@app.command("create")
def create(
    name: str,
    role: Annotated[Role, typer.Option(help="The most that its tokens may do")] = Role.MEMBER,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """A program that works in this project; give it a token next."""
    with connect(project) as client:
        made = client.service_accounts.create(name, role)
    say(f"Created {made.name}: `easel service-accounts token {made.name} LABEL` makes a token")
    if as_json:
        show_one(made, as_json)


@app.command("token")
def token(
    name: str,
    label: Annotated[str, typer.Argument(help="What it is for")],
    verb: Annotated[
        list[Verb] | None, typer.Option("--verb", help="What it may do; repeat for more. None: read")
    ] = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="A project in which it works; none: this one")
    ] = None,
    days: Annotated[float, typer.Option(min=0.01, max=366, help="Stops working after so many days")] = 90,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """A token for a program; prints it, once."""
    with connect(project) as client:
        made = client.service_accounts.create_token(
            name, label, verbs=verb or [Verb.READ], projects=only_in or (), days=days
        )
    show_new(made, as_json, f"A token of {name}, shown only now:")


@app.command("rotate")
def rotate(
    name: str,
    token_id: str,
    overlap_hours: Annotated[
        float, typer.Option(min=0, max=720, help="How long the old one still works")
    ] = 24,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """A new token like an old one, which works on for some hours; prints it, once."""
    with connect(project) as client:
        made = client.service_accounts.rotate(name, token_id, overlap_hours)
    show_new(made, as_json, f"The new token of {name}, shown only now:")


@app.command("revoke")
def revoke(name: str, token_id: str, project: InProject = None) -> None:
    """Stop a token from working, at once."""
    with connect(project) as client:
        client.service_accounts.revoke(name, token_id)
    say(f"Revoked {token_id}")
