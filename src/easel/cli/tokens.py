"""`easel tokens`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, ago, say, show_list, show_one
from easel.wire.identity import Token

app = typer.Typer(no_args_is_help=True, help="Your tokens.")


def _state(token: Token) -> str:
    if token.revoked_at:
        return "revoked"
    if token.expires_at and token.expires_at <= datetime.now(UTC):
        return "expired"
    return "active"


COLUMNS: Columns[Token] = [
    ("id", lambda t: t.id),
    ("name", lambda t: t.name),
    ("state", _state),
    ("last used", lambda t: ago(t.last_used_at)),
    ("expires", lambda t: t.expires_at),
]


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """Your tokens, without their secrets."""
    with connect() as client:
        show_list(client.tokens.list(), COLUMNS, as_json, "No tokens.")


@app.command("create")
def create(
    name: str,
    days: Annotated[float | None, typer.Option(min=0.001, help="Stops working after so many days")] = None,
    as_json: AsJson = False,
) -> None:
    """A further token; prints it, once."""
    expires = datetime.now(UTC) + timedelta(days=days) if days else None
    with connect() as client:
        made = client.tokens.create(name, expires)
    if as_json:
        show_one(made, as_json)
        return
    say("Your new token, shown only now:")
    print(made.secret)


@app.command("revoke")
def revoke(token_id: str) -> None:
    """Stop a token from working, at once."""
    with connect() as client:
        client.tokens.revoke(token_id)
    say(f"Revoked {token_id}")
