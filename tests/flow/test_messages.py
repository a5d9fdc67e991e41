"""Messages: written with their events, sent to a real mail server and a real receiver, never where they must not go."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller as MailServerThread

from easel.declare.job import Command, JobSpec
from easel.declare.roles import Role
from easel.errors import InvalidInput, NotFound, TryLater
from easel.flow.messages import channels, outward
from easel.flow.messages.channels import ChannelWish
from easel.flow.messages.compose import note
from easel.flow.messages.deliver import MailServer, MessageSender, deliver, forget_old
from easel.flow.messages.keys import ChannelKeys
from easel.flow.messages.timing import PAUSES_S, allowed_at, next_try
from easel.ids import JobId, TokenId, UserId
from easel.records.identity import Caller
from easel.records.message import NOTIFY_TAG, Channel, ChannelKind, Delivery, QuietHours, Topic
from easel.store import identity, jobs, outbox, people
from easel.store.engine import Store
from easel.testing.clock import FakeClock

LOOPBACK = outward.networks(["127.0.0.0/8"])
KEYS = ChannelKeys(b"k" * 32)
EVENING = datetime(2026, 3, 13, 22, 30, tzinfo=UTC)


class _Mailbox:
    def __init__(self) -> None:
        self.received: list[bytes] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.received.append(envelope.content)
        return "250 taken"


@pytest.fixture(scope="module")
def mail_thread() -> Iterator[MailServerThread]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    thread = MailServerThread(_Mailbox(), hostname="127.0.0.1", port=port)
    thread.start()
    yield thread
    thread.stop()


@dataclass
class Receiver:
    """An HTTP server that keeps what it gets and answers with the next of `answers`, else 200."""

    server: ThreadingHTTPServer
    got: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append((self.command, self.path, dict(self.headers), body))
            status = made.answers.pop(0) if made.answers else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()

        do_PUT = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    made = Receiver(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@dataclass
class Lab:
    store: Store
    ana: Caller
    clock: FakeClock

    def channel(self, way: ChannelKind, address: str, *topics: Topic, **more: Any) -> Channel:
        wish = ChannelWish(way, address, frozenset(topics or {Topic.BUDGET}), **more)
        with self.store.write() as tx:
            return channels.add(tx, self.ana, wish, KEYS, lambda url: outward.check_address(url, LOOPBACK))

    def warn(self, share: float = 0.8) -> None:
        with self.store.write() as tx:
            body = {"share": share, "spent_micros": 8_000_000, "limit_micros": 10_000_000}
            tx.emit("budget.warned", self.ana.project_id, project_id=self.ana.project_id, body=body)

    def states(self) -> list[Delivery]:
        with self.store.read() as tx:
            return [each.state for each in outbox.messages_of(tx, self.ana.user.id)]


@pytest.fixture
def lab(store: Store) -> Lab:
    clock = FakeClock(EVENING)
    store.clock = clock
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.ADMIN)
    return Lab(store, Caller(user, TokenId("tok"), project, Role.ADMIN), clock)


def sender(mail: MailServerThread | None = None) -> MessageSender:
    server = None
    if mail is not None:
        server = MailServer("127.0.0.1", mail.port, "Easel <easel@example.org>", "none")
    return MessageSender(KEYS, server, LOOPBACK, "https://easel.example.org", lambda: "CHF")


def test_a_mail_says_what_happened_in_money_and_can_be_unsubscribed_by_one_click(
    lab: Lab, mail_thread: MailServerThread
) -> None:
    made = lab.channel(ChannelKind.MAIL, "ana@example.org")
    lab.warn()
    assert deliver(lab.store, sender(mail_thread)) == 1
    raw = mail_thread.handler.received[-1]
    mail = message_from_bytes(raw)
    assert mail["Subject"] == "[Easel] 80% of the budget in astro is spent"
    assert "8.00 CHF of 10.00 CHF" in mail.get_payload()
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    token = mail["List-Unsubscribe"].strip("<>").rpartition("/")[2]
    with lab.store.write() as tx:
        assert channels.unsubscribe(tx, token, KEYS).id == made.id
    with lab.store.write() as tx, pytest.raises(NotFound, match="not one of ours"):
        channels.unsubscribe(tx, f"{made.id}.{'0' * 64}", KEYS)
    lab.warn(1.0)
    assert deliver(lab.store, sender(mail_thread)) == 0
    assert lab.states() == [Delivery.SENT]


def test_whoever_is_disabled_is_told_nothing_more_not_even_what_waited(lab: Lab, receiver: Receiver) -> None:
    lab.channel(ChannelKind.WEBHOOK, receiver.url)
    lab.warn(0.5)
    with lab.store.write() as tx:
        people.set_disabled(tx, lab.ana.user.id, disabled=True)
    lab.warn(0.8)
    deliver(lab.store, sender())
    assert (receiver.got, lab.states()) == ([], [Delivery.FAILED])


def test_the_budget_of_a_project_without_an_admin_is_told_to_the_platforms_admins(lab: Lab) -> None:
    with lab.store.write() as tx:
        root = identity.add_user(tx, "root", home=None, platform_admin=True)
    admin = Lab(lab.store, replace(lab.ana, user=root), lab.clock)
    admin.channel(ChannelKind.MAIL, "root@example.org")
    lab.warn(0.5)
    assert admin.states() == []
    with lab.store.write() as tx:
        identity.put_member(tx, lab.ana.project_id, lab.ana.user.id, Role.MEMBER)
    lab.warn(0.8)
    assert admin.states() == [Delivery.WAITING]


def test_a_job_with_the_tag_notify_is_told_of_whatever_one_subscribed_to(lab: Lab) -> None:
    lab.channel(ChannelKind.MAIL, "ana@example.org")  # about budgets alone
    with lab.store.write() as tx:
        for name, tags in (("quiet", {}), ("asked", {NOTIFY_TAG: "yes"})):
            spec = JobSpec(name, Command(("true",)), tags=tags)
            jobs.add(tx, [jobs.NewJob(JobId(f"job_{name}"), lab.ana.project_id, lab.ana.user.id, spec)])
            for kind in ("job.running", "job.failed"):
                tx.emit(kind, f"job_{name}", project_id=lab.ana.project_id, body={"reason": "exit code 1"})
    with lab.store.read() as tx:
        told = outbox.messages_of(tx, lab.ana.user.id)
    assert [(each.kind, each.subject) for each in told] == [("job.failed", "job_asked")]
    assert note(told[0], "", "EUR").title == "Job asked in astro failed"


def test_a_webhook_is_signed_and_after_a_failure_tried_again_later(lab: Lab, receiver: Receiver) -> None:
    made = lab.channel(ChannelKind.WEBHOOK, f"{receiver.url}/hook")
    lab.warn()
    receiver.answers = [503]
    assert deliver(lab.store, sender()) == 1
    assert (lab.states(), deliver(lab.store, sender())) == ([Delivery.WAITING], 0)
    lab.clock.advance(PAUSES_S[0] + 1)
    assert deliver(lab.store, sender()) == 1
    assert lab.states() == [Delivery.SENT]
    (_, path, headers, body), again = receiver.got[0], receiver.got[1]
    assert (path, again[2]["X-Easel-Delivery"]) == ("/hook", headers["X-Easel-Delivery"])
    moment, _, signed = headers["X-Easel-Signature"].partition(",v1=")
    secret = KEYS.webhook_secret(made.id).encode()
    expected = hmac.new(secret, moment.removeprefix("t=").encode() + b"." + body, hashlib.sha256)
    assert signed == expected.hexdigest()
    assert json.loads(body)["messages"][0]["kind"] == "budget.warned"


def test_slack_and_matrix_get_their_own_form_and_their_addresses_are_kept_encrypted(
    lab: Lab, receiver: Receiver
) -> None:
    room = f"{receiver.url}/_matrix/client/v3/rooms/!r:x/send/m.room.message?access_token=hunter2"
    for way, address in ((ChannelKind.SLACK, f"{receiver.url}/services/T0"), (ChannelKind.MATRIX, room)):
        assert address not in lab.channel(way, address).address
    lab.warn()
    deliver(lab.store, sender())
    slack = next(each for each in receiver.got if each[0] == "POST")
    matrix = next(each for each in receiver.got if each[0] == "PUT")
    assert "80%" in json.loads(slack[3])["text"]
    assert json.loads(matrix[3])["msgtype"] == "m.text"
    assert matrix[2]["Authorization"] == "Bearer hunter2"
    assert "hunter2" not in matrix[1]


def test_a_message_is_there_exactly_when_its_event_is(lab: Lab) -> None:
    lab.channel(ChannelKind.MAIL, "ana@example.org")
    with pytest.raises(RuntimeError):
        _emit_and_fail(lab)
    assert lab.states() == []
    lab.warn()
    with lab.store.write() as tx:
        tx.emit("job.failed", "nobody's", project_id=lab.ana.project_id)
    assert lab.states() == [Delivery.WAITING]


def _emit_and_fail(lab: Lab) -> None:
    with lab.store.write() as tx:
        tx.emit("budget.warned", lab.ana.project_id, project_id=lab.ana.project_id, body={"share": 0.5})
        tx.write_events()
        raise RuntimeError("the transaction fails")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/",
        "https://0.0.0.0/",
        "https://ana:pw@example.org/",
        "file:///etc/passwd",
        "http://93.184.216.34/",
    ],
)
def test_private_addresses_and_odd_schemes_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        outward.check_address(url, ())


def test_the_connection_goes_to_the_address_that_was_compared(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that changes its address after the check (DNS rebinding) is not asked again."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **more: Any) -> Any:
        if host == "hook.example":
            asked.append(host)
            host = "127.0.0.1"
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = f"http://hook.example:{receiver.server.server_port}/x"
    outward.send("POST", url, b"{}", {}, LOOPBACK)
    assert (len(asked), receiver.got[0][2]["Host"].partition(":")[0]) == (1, "hook.example")


def test_a_redirect_is_refused_for_good_and_a_closed_port_is_tried_again(receiver: Receiver) -> None:
    receiver.answers = [302]
    with pytest.raises(InvalidInput, match="elsewhere"):
        outward.send("POST", receiver.url, b"{}", {}, LOOPBACK)
    with pytest.raises(TryLater):
        outward.send("POST", "http://127.0.0.1:1/", b"{}", {}, LOOPBACK)


def test_quiet_hours_and_digests_hold_messages_back() -> None:
    plain = Channel(
        "c",
        UserId("u"),
        ChannelKind.MAIL,
        "a@b",
        frozenset({Topic.BUDGET}),
        "Europe/Zurich",
        None,
        None,
        False,
        EVENING,
    )
    quiet = replace(plain, quiet=QuietHours(22 * 60, 7 * 60))
    digest = replace(plain, digest_at=8 * 60)
    assert allowed_at(plain, EVENING, EVENING) == EVENING
    assert allowed_at(quiet, EVENING, EVENING) == datetime(2026, 3, 14, 6, 0, tzinfo=UTC)  # 07:00 in Zurich
    assert allowed_at(quiet, EVENING, EVENING + timedelta(hours=12)) == EVENING + timedelta(hours=12)
    assert allowed_at(digest, EVENING, EVENING) == datetime(2026, 3, 14, 7, 0, tzinfo=UTC)
    late = EVENING + timedelta(days=3)
    assert allowed_at(digest, EVENING, late) == late
    assert [next_try(n, EVENING) is None for n in (1, len(PAUSES_S), len(PAUSES_S) + 1)] == [
        False,
        False,
        True,
    ]


def test_a_digest_is_one_message_for_everything(lab: Lab, receiver: Receiver) -> None:
    lab.channel(ChannelKind.WEBHOOK, receiver.url, digest_at=8 * 60)
    lab.warn(0.5)
    lab.warn(0.8)
    deliver(lab.store, sender())
    assert (receiver.got, lab.states()) == ([], [Delivery.WAITING] * 2)
    lab.clock.advance(10 * 3600)
    deliver(lab.store, sender())
    ((_, _, _, body),) = receiver.got
    assert [each["title"][:3] for each in json.loads(body)["messages"]] == ["50%", "80%"]


def test_what_is_no_channel_is_refused_in_words(lab: Lab) -> None:
    wrong = [
        (ChannelKind.MAIL, "ana", {}),
        (ChannelKind.MAIL, "a@b.org\nBcc: x@y", {}),
        (ChannelKind.MATRIX, "https://matrix.org/room", {}),
        (ChannelKind.MAIL, "a@b.org", {"zone": "Moon/Base"}),
    ]
    for way, address, more in wrong:
        with pytest.raises(InvalidInput):
            lab.channel(way, address, **more)


def test_a_channel_follows_its_new_times_and_what_is_not_named_stays(lab: Lab, receiver: Receiver) -> None:
    way = lab.channel(ChannelKind.WEBHOOK, receiver.url, quiet=QuietHours(22 * 60, 7 * 60))
    lab.warn()
    sender = MessageSender(KEYS, None, LOOPBACK)
    deliver(lab.store, sender)
    assert (receiver.got, lab.states()) == ([], [Delivery.WAITING])
    with lab.store.write() as tx:
        changed = channels.change(tx, lab.ana, way.id, {"quiet": None, "zone": "Europe/Zurich"})
    assert (changed.quiet, changed.zone, changed.topics) == (None, "Europe/Zurich", way.topics)
    deliver(lab.store, sender)
    assert lab.states() == [Delivery.SENT]
    with lab.store.write() as tx, pytest.raises(InvalidInput, match="time zone"):
        channels.change(tx, lab.ana, way.id, {"zone": "Mars/Base"})


def test_messages_that_are_over_are_kept_for_as_long_as_the_setting_says(
    lab: Lab, receiver: Receiver
) -> None:
    lab.channel(ChannelKind.WEBHOOK, receiver.url)
    sender = MessageSender(KEYS, None, LOOPBACK, keep=timedelta(days=30))
    lab.warn()
    deliver(lab.store, sender)
    lab.clock.advance(29 * 86_400)
    lab.warn(1.0)  # and this one waits
    assert forget_old(lab.store, sender) == 0
    lab.clock.advance(2 * 86_400)
    assert (forget_old(lab.store, sender), lab.states()) == (1, [Delivery.WAITING])


def test_the_outbox_says_what_waits_and_why_without_saying_what(lab: Lab, receiver: Receiver) -> None:
    lab.channel(ChannelKind.WEBHOOK, receiver.url)
    receiver.answers = [503]
    lab.warn()
    deliver(lab.store, MessageSender(KEYS, None, LOOPBACK))
    with lab.store.read() as tx:
        found = channels.look_at_outbox(tx)
    assert (found.waiting, found.failed, found.channels) == (1, 0, 1)
    assert found.oldest_waiting == lab.clock.now()
    assert ["answered 503" in each for each in found.failures] == [True]
