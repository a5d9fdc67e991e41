"""Orders hold secrets of projects: in the database they lie encrypted with the installation's own key."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from easel.errors import Misconfigured
from easel.run.order import ORDER, Order


class Seal:
    """`key` is what every server and controller of an installation shares (`signing.key`)."""

    def __init__(self, key: bytes) -> None:
        derived = hashlib.sha256(b"easel-orders:" + key).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def close(self, order: Order) -> str:
        return self._fernet.encrypt(ORDER.dump_json(order)).decode()

    def open(self, sealed: str) -> Order:
        return ORDER.validate_json(self._plain(sealed))

    def read(self, sealed: str) -> dict[str, Any]:
        """The order as it travels to a worker, who checks it."""
        order: dict[str, Any] = json.loads(self._plain(sealed))
        return order

    def _plain(self, sealed: str) -> bytes:
        try:
            return self._fernet.decrypt(sealed.encode())
        except InvalidToken:
            raise Misconfigured(
                "an order was written with another key: all servers and controllers need the same signing.key"
            ) from None
