"""`easel tokens`."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.issued import COLUMNS, Days, Verbs, expiry, show_new
from easel.cli.output import AsJson, say, show_list

app = typer.Typer(no_args_is_help=True, help="Your tokens.")


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """Your tokens, without their secrets."""
    with connect() as client:
        show_list(client.tokens.list(), COLUMNS, as_json, "No tokens.")


@app.command("create")
def create(
    name: str,
    days: Days = None,
    verb: Verbs = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="A project in which it works; repeat for more")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A further token; prints it, once."""
    with connect() as client:
        made = client.tokens.create(name, expiry(days), verbs=verb or (), projects=only_in or ())
    show_new(made, as_json, "Your new token, shown only now:")


@app.command("revoke")
def revoke(token_id: str) -> None:
    """Stop a token from working, at once."""
    with connect() as client:
        client.tokens.revoke(token_id)
    say(f"Revoked {token_id}")
