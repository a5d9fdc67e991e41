"""`easel workers`: the credentials with which machines join the pool."""

from __future__ import annotations

import typer

from easel.cli.connect import connect
from easel.cli.issued import COLUMNS, Days, expiry, show_new
from easel.cli.output import AsJson, say, show_list

app = typer.Typer(no_args_is_help=True, help="Tokens with which machines join the pool (platform admins).")


@app.command("token")
def token(
    name: str,
    days: Days = None,
    as_json: AsJson = False,
) -> None:
    """A token for `easel worker --server`; prints it, once. It opens nothing but the work of its workers."""
    with connect() as client:
        made = client.worker_tokens.create(name, expiry(days))
    show_new(made, as_json, "The worker's token, shown only now:")


@app.command("tokens")
def tokens(as_json: AsJson = False) -> None:
    """All of them, without their secrets."""
    with connect() as client:
        show_list(client.worker_tokens.list(), COLUMNS, as_json, "No machine may join yet.")


@app.command("revoke")
def revoke(token_id: str) -> None:
    """Refuse its workers from now on; what they had is tried again elsewhere."""
    with connect() as client:
        client.worker_tokens.revoke(token_id)
    say(f"Revoked {token_id}")
