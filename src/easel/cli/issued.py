"""What the tokens of people and of machines have in common on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.output import Columns, say, show_one
from easel.cli.plain import Ago
from easel.declare.verbs import Verb

if TYPE_CHECKING:
    from easel.wire.identity import IssuedToken, Token
    from easel.wire.worker import IssuedWorkerToken, WorkerToken

Verbs = Annotated[
    list[Verb] | None, typer.Option("--verb", help="All that it may do; repeat for more. None: everything")
]
Days = Annotated[float | None, typer.Option(min=0.001, help="Stops working after so many days")]


def _state(token: Token | WorkerToken) -> str:
    if token.revoked_at:
        return "revoked"
    if token.expires_at and token.expires_at <= datetime.now(UTC):
        return "expired"
    return "active"


COLUMNS: Columns[Token | WorkerToken] = [
    ("id", lambda t: t.id),
    ("name", lambda t: t.name),
    ("state", _state),
    ("last used", lambda t: Ago(t.last_used_at)),
    ("expires", lambda t: t.expires_at),
]


def expiry(days: float | None) -> datetime | None:
    return datetime.now(UTC) + timedelta(days=days) if days else None


def show_new(made: IssuedToken | IssuedWorkerToken, as_json: bool, saying: str) -> None:
    """The secret alone on standard output, so that it can be piped into a file."""
    if as_json:
        show_one(made, as_json)
        return
    say(saying)
    print(made.secret)
