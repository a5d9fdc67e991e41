"""The loop that empties the outbox, beside the controller that acts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from easel.errors import EaselError
from easel.flow.messages.deliver import BATCH, MailServer, MessageSender, deliver, forget_old
from easel.flow.messages.keys import ChannelKeys
from easel.flow.messages.outward import networks
from easel.flow.prices import book_now
from easel.serve.lake import signing_key
from easel.serve.settings import Settings
from easel.store.engine import Store

log = logging.getLogger("easel.messages")
EVERY_S = 5.0
FORGET_EVERY = 720
"""After so many rounds, an hour, old messages are removed."""


def keys_of(settings: Settings) -> ChannelKeys:
    return ChannelKeys(signing_key(settings.folder))


def sender_of(settings: Settings, store: Store) -> MessageSender:
    """How messages leave this installation."""

    def currency() -> str:
        with store.read() as tx:
            return book_now(tx).currency

    password = settings.smtp_password.get_secret_value() if settings.smtp_password else ""
    mail = None
    if settings.smtp_host and settings.mail_from:
        mail = MailServer(
            settings.smtp_host,
            settings.smtp_port,
            settings.mail_from,
            settings.smtp_security,
            settings.smtp_user,
            password,
        )
    return MessageSender(
        keys_of(settings),
        mail,
        networks(settings.message_networks),
        settings.public_url,
        currency,
        timedelta(days=settings.message_keep_days),
    )


def keep_sending(
    store: Store,
    sender: MessageSender,
    leads: Callable[[], bool],
    stopping: threading.Event,
    every: float = EVERY_S,
) -> None:
    """Send what is due until `stopping` is set. Two that lead for a moment may send a message twice, never none."""
    rounds = 0
    while not stopping.wait(every):
        try:
            if rounds % FORGET_EVERY == 0 and leads():
                forget_old(store, sender)
            rounds += 1
            while leads() and deliver(store, sender) == BATCH and not stopping.is_set():
                pass
        except EaselError as error:
            log.warning("messages wait: %s", error)
        except Exception:
            log.exception("messages could not be sent; trying again")
