"""Secrets about channels, all made from the installation's key: nothing to store, nothing to leak from a backup."""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken

from easel.errors import Misconfigured, NotFound


class ChannelKeys:
    """`key` is what every server and controller of an installation shares (`signing.key`)."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        derived = hashlib.sha256(b"easel-messages:" + key).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def webhook_secret(self, channel_id: str) -> str:
        """Returns the secret with which the receiver checks that a message is ours."""
        return self._made("webhook", channel_id)

    def unsubscribe_token(self, channel_id: str) -> str:
        return f"{channel_id}.{self._made('unsubscribe', channel_id)}"

    def channel_of(self, token: str) -> str:
        """The channel that a link to unsubscribe is about."""
        channel_id = token.partition(".")[0]
        if not hmac.compare_digest(self.unsubscribe_token(channel_id).encode(), token.encode()):
            raise NotFound("this link is not one of ours: use the whole one from the mail")
        return channel_id

    def seal(self, address: str) -> str:
        return self._fernet.encrypt(address.encode()).decode()

    def open(self, sealed: str) -> str:
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            raise Misconfigured(
                "an address was written with another signing.key: set the channel anew"
            ) from None

    def _made(self, use: str, channel_id: str) -> str:
        return hmac.new(self._key, f"easel-{use}:{channel_id}".encode(), hashlib.sha256).hexdigest()
