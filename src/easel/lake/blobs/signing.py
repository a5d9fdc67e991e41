"""Addresses that carry their own permission: what may be done, until when, and a signature over both."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from easel.errors import Denied


@dataclass(frozen=True, slots=True)
class Signer:
    """Whoever holds the key signs and checks. Times are whole seconds since 1970."""

    key: bytes

    def sign(self, method: str, path: str, values: Mapping[str, int], expires: int) -> str:
        """The address: `path` with its values, the time and the signature as query."""
        query = {**values, "expires": expires}
        return f"{path}?{urlencode({**query, 'signature': self._signature(method, path, query)})}"

    def check(
        self, method: str, path: str, values: Mapping[str, int], expires: int, signature: str, now: float
    ) -> None:
        expected = self._signature(method, path, {**values, "expires": expires})
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            raise Denied("the address is not one of ours: ask for a new one")
        if now > expires:
            raise Denied("the address is no longer valid: ask for a new one")

    def _signature(self, method: str, path: str, query: Mapping[str, int]) -> str:
        text = "\n".join([method, path, *(f"{name}={value}" for name, value in sorted(query.items()))])
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()
