"""`easel workers`: the credentials with which machines join the pool."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, ago, say, show_list, show_one
from easel.wire.worker import WorkerToken

app = typer.Typer(no_args_is_help=True, help="Tokens with which machines join the pool (platform admins).")


def _state(token: WorkerToken) -> str:
    if token.revoked_at:
        return "revoked"
    if token.expires_at and token.expires_at <= datetime.now(UTC):
        return "expired"
    return "active"


COLUMNS: Columns[WorkerToken] = [
    ("id", lambda t: t.id),
    ("name", lambda t: t.name),
    ("state", _state),
    ("last used", lambda t: ago(t.last_used_at)),
    ("expires", lambda t: t.expires_at),
]


@app.command("token")
def token(
    name: str,
    days: Annotated[float | None, typer.Option(min=0.001, help="Stops working after so many days")] = None,
    as_json: AsJson = False,
) -> None:
    """A token for `easel worker --server`; prints it, once. It opens nothing but the work of its workers."""
    expires = datetime.now(UTC) + timedelta(days=days) if days else None
    with connect() as client:
        made = client.worker_tokens.create(name, expires)
    if as_json:
        show_one(made, as_json)
        return
    say("The worker's token, shown only now:")
    print(made.secret)


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
