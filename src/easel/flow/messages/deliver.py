"""Delivering what is due: each channel's messages at once, at least once, with pauses after tries that failed."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.utils import make_msgid
from urllib.parse import urlsplit

from easel.errors import EaselError, InvalidInput, Misconfigured, TryLater
from easel.flow.messages import compose, outward
from easel.flow.messages.keys import ChannelKeys
from easel.flow.messages.timing import allowed_at, next_try
from easel.records.message import Channel, ChannelKind, Delivery, QueuedMessage
from easel.store import outbox
from easel.store.engine import Store

log = logging.getLogger("easel.messages")
BATCH = 200


@dataclass(frozen=True, slots=True)
class MailServer:
    """`security` is `starttls`, `tls` or `none`."""

    host: str
    port: int
    sender: str
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)

    def send(self, message: EmailMessage) -> None:
        try:
            if self.security == "tls":
                context = ssl.create_default_context()
                server: smtplib.SMTP = smtplib.SMTP_SSL(
                    self.host, self.port, timeout=outward.TIMEOUT_S, context=context
                )
            else:
                server = smtplib.SMTP(self.host, self.port, timeout=outward.TIMEOUT_S)
            with server:
                if self.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self.user:
                    server.login(self.user, self.password)
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            raise InvalidInput(f"the mail server refuses {message['To']}") from error
        except (OSError, smtplib.SMTPException) as error:
            raise TryLater(f"the mail server {self.host} does not take mail: {error}") from error


@dataclass(frozen=True, slots=True)
class MessageSender:
    """Everything that deliveries need."""

    keys: ChannelKeys
    mail: MailServer | None
    networks: tuple[outward.Network, ...] = ()
    public_url: str = ""
    currency: Callable[[], str] = lambda: "USD"
    keep: timedelta = timedelta(days=90)
    """How long messages are kept that were sent or given up."""


def forget_old(store: Store, sender: MessageSender) -> int:
    """Removes messages that are over and older than is kept; returns how many."""
    with store.write() as tx:
        return outbox.forget_sent(tx, tx.now - sender.keep)


def deliver(store: Store, sender: MessageSender) -> int:
    """Send what is due; returns how many messages were dealt with."""
    with store.read() as tx:
        waiting = outbox.due(tx, BATCH)
        channels = {each.channel_id: outbox.find_channel(tx, each.channel_id) for each in waiting}
        gone = outbox.without_reader(tx, channels)
        now = tx.now
    by_channel: dict[str, list[QueuedMessage]] = {}
    for message in waiting:
        by_channel.setdefault(message.channel_id, []).append(message)
    for channel_id, messages in by_channel.items():
        channel = channels[channel_id]
        if channel is None or channel.stopped:
            _settle(store, messages, Delivery.FAILED, "unsubscribed")
            continue
        if channel_id in gone:
            _settle(store, messages, Delivery.FAILED, "the person is disabled")
            continue
        later = [each for each in messages if allowed_at(channel, each.at, now) > now]
        for each in later:
            with store.write() as tx:
                outbox.settle(
                    tx,
                    [each.id],
                    Delivery.WAITING,
                    due_at=allowed_at(channel, each.at, now),
                    attempts=each.attempts,
                    error=each.error,
                )
        ready = [each for each in messages if each not in later]
        if ready:
            _send(store, sender, channel, ready)
    return len(waiting)


def _send(store: Store, sender: MessageSender, channel: Channel, messages: Sequence[QueuedMessage]) -> None:
    """All of a channel that is due goes as one message: after an outage, and in a digest, that is one and not fifty."""
    notes = [compose.note(each, sender.public_url, sender.currency()) for each in messages]
    try:
        _transmit(sender, channel, messages, notes, int(store.clock.now().timestamp()))
    except EaselError as error:
        final = isinstance(error, InvalidInput)
        log.warning("a message by %s %s could not be sent: %s", channel.way, channel.id, error.message)
        _settle(store, messages, Delivery.FAILED if final else Delivery.WAITING, error.message)
    else:
        _settle(store, messages, Delivery.SENT, None)


def _transmit(
    sender: MessageSender,
    channel: Channel,
    messages: Sequence[QueuedMessage],
    notes: Sequence[compose.Note],
    now: int,
) -> None:
    if channel.way is ChannelKind.MAIL:
        if sender.mail is None:
            raise Misconfigured("no mail server is set: an admin sets smtp_host and mail_from")
        base = sender.public_url.rstrip("/")
        token = sender.keys.unsubscribe_token(channel.id)
        unsubscribe = f"{base}/unsubscribe/{token}" if base else ""
        message_id = make_msgid(idstring=messages[-1].id, domain=urlsplit(base).hostname or "easel")
        sender.mail.send(compose.mail(sender.mail.sender, channel.address, notes, unsubscribe, message_id))
        return
    headers = {"Content-Type": "application/json", "User-Agent": "easel", "X-Easel-Delivery": messages[-1].id}
    match channel.way:
        case ChannelKind.WEBHOOK:
            body = compose.webhook(messages, notes)
            secret = sender.keys.webhook_secret(channel.id)
            headers["X-Easel-Signature"] = compose.signature(secret, now, body)
            outward.send("POST", channel.address, body, headers, sender.networks)
        case ChannelKind.SLACK:
            body = compose.slack(notes)
            outward.send("POST", sender.keys.open(channel.address), body, headers, sender.networks)
        case ChannelKind.MATRIX:
            room, _, token = sender.keys.open(channel.address).partition("?access_token=")
            headers["Authorization"] = f"Bearer {token}"
            address = f"{room}/easel-{messages[-1].id}"
            outward.send("PUT", address, compose.matrix(notes), headers, sender.networks)


def _settle(store: Store, messages: Sequence[QueuedMessage], state: Delivery, error: str | None) -> None:
    with store.write() as tx:
        for each in messages:
            attempts = each.attempts + 1
            again = next_try(attempts, tx.now) if state is Delivery.WAITING else tx.now
            outbox.settle(
                tx,
                [each.id],
                state if again is not None else Delivery.FAILED,
                due_at=again or tx.now,
                attempts=attempts,
                error=error,
            )
