"""The first start creates the platform admin."""

from __future__ import annotations

from easel.flow.secrets import hashed, new_token
from easel.store import identity
from easel.store.engine import Store


def create_platform_admin(store: Store, name: str = "admin") -> str | None:
    """The admin's token, to be shown once; None when there are users already."""
    secret = new_token()
    with store.write() as tx:
        if identity.any_user(tx):
            return None
        admin = identity.add_user(tx, name, home=None, platform_admin=True)
        identity.add_token(tx, admin.id, "first start", hashed(secret), expires_at=None)
        tx.emit("user.created", admin.id, actor=admin.id, body={"name": name, "platform_admin": True})
    return secret
