"""Which bytes a worker may read and write: those of the attempts that it has, while it has them."""

from __future__ import annotations

from collections.abc import Sequence

from easel.errors import NotFound
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import refusal
from easel.store import offers, worker_tokens
from easel.store.engine import Store
from easel.store.offered import OfferedWork


def check_sources(
    store: Store, seal: Seal, secret_hash: str, key: str, wanted: Sequence[tuple[str, int, int]]
) -> None:
    """Every one of `wanted` (object, offset, size) must be a file of the attempt's code or input."""
    order = seal.open(_mine(store, secret_hash, key).sealed)
    allowed = {(file.object, file.offset, file.size) for file in (*order.code, *order.input)}
    if not set(wanted) <= allowed:
        raise NotFound(f"attempt {key} does not read these bytes")


def check_stage(store: Store, secret_hash: str, key: str, stage_id: str) -> None:
    """Stages are named after their attempt: nobody else's can be touched."""
    _mine(store, secret_hash, key)
    if not stage_id.startswith(key.lower().replace(".", "-") + "-"):
        raise NotFound(f"attempt {key} has no stage {stage_id[:60]!r}")


def check_attempt(store: Store, secret_hash: str, key: str) -> None:
    """The attempt must be one that this worker has."""
    _mine(store, secret_hash, key)


def _mine(store: Store, secret_hash: str, key: str) -> OfferedWork:
    with store.read() as tx:
        token = worker_tokens.valid(tx, [secret_hash]).get(secret_hash)
        if token is None:
            raise refusal(worker_tokens.is_personal(tx, secret_hash))
        row = offers.find_of_token(tx, key, token)
    if row is None:
        raise NotFound(f"this worker has no attempt {key}: it was given to somebody else, or has ended")
    return row
