"""The client's connection against a real HTTP server that answers from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from easel.errors import EaselError, InvalidInput, Misconfigured, NotFound, QuotaExhausted, TryLater
from easel.sdk.connection import Connection
from easel.sdk.websocket import WebSocket
from easel.testing.clock import FakeClock
from easel.testing.tls import own_certificate


class Thing(BaseModel):
    name: str


@dataclass
class Script:
    """What the server answers, in order, and what it was asked."""

    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def say(self, status: int, body: Any = None, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, named, body if isinstance(body, bytes) else json.dumps(body).encode()))

    def refuse(self, status: int, kind: str, detail: str, **headers: str) -> None:
        self.say(status, {"kind": kind, "detail": detail}, **headers)


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            made.asked.append((self.command, self.path, dict(self.headers)))
            status, headers, body = made.answers.pop(0)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def connection(script: Script, clock: FakeClock) -> Iterator[Connection]:
    made = Connection(script.address, "a-token", attempts=3, clock=clock)
    yield made
    made.close()


def test_an_answer_is_read_into_its_model_and_the_token_goes_along(
    script: Script, connection: Connection
) -> None:
    script.say(200, {"name": "fern"})
    assert connection.get("/things/1", Thing, {"limit": 3, "cursor": None}) == Thing(name="fern")
    [(method, path, headers)] = script.asked
    assert (method, path, headers["Authorization"]) == ("GET", "/things/1?limit=3", "Bearer a-token")


def test_a_spent_budget_is_told_at_once(script: Script, connection: Connection, clock: FakeClock) -> None:
    script.refuse(429, "quota-exhausted", "the month budget is spent")
    before = clock.monotonic()
    with pytest.raises(QuotaExhausted, match="budget is spent"):
        connection.post("/jobs", {}, Thing)
    assert len(script.asked) == 1
    assert clock.monotonic() == before


def test_a_limit_that_waiting_lifts_is_waited_for(
    script: Script, connection: Connection, clock: FakeClock
) -> None:
    script.refuse(429, "quota-exhausted", "your requests are waiting already", Retry_After="7")
    script.say(200, {"name": "fern"})
    before = clock.monotonic()
    assert connection.get("/things/1", Thing).name == "fern"
    assert clock.monotonic() - before >= 7


def test_a_pause_that_is_no_plain_number_is_our_own(
    script: Script, connection: Connection, clock: FakeClock
) -> None:
    """`isdigit` takes ², of which `float` makes nothing."""
    script.refuse(503, "try-later", "soon", Retry_After="\u00b2")
    script.say(200, {"name": "fern"})
    assert connection.get("/things/1", Thing).name == "fern"


def test_a_create_that_is_sent_again_keeps_its_key(script: Script, connection: Connection) -> None:
    script.say(503, {"kind": "try-later", "detail": "stopping"})
    script.say(502, b"<html>a proxy</html>")
    script.say(201, {"name": "fern"})
    assert connection.post("/things", {"name": "fern"}, Thing).name == "fern"
    keys = {headers["Idempotency-Key"] for _, _, headers in script.asked}
    assert len(script.asked) == 3
    assert len(keys) == 1


def test_a_server_that_stays_away_is_said_so(script: Script, connection: Connection) -> None:
    for _ in range(3):
        script.refuse(503, "try-later", "the database is away")
    with pytest.raises(TryLater, match="database is away"):
        connection.get("/things/1", Thing)
    assert len(script.asked) == 3


def test_no_server_at_all_is_named_with_its_address(clock: FakeClock) -> None:
    nobody = Connection("http://127.0.0.1:9", "a-token", attempts=2, clock=clock)
    with pytest.raises(TryLater, match=r"no answer from http://127.0.0.1:9"):
        nobody.get("/things/1", Thing)
    nobody.close()


def test_pages_are_read_to_the_last(script: Script, connection: Connection) -> None:
    script.say(200, {"items": [{"name": "a"}, {"name": "b"}], "next_cursor": "two"})
    script.say(200, {"items": [{"name": "c"}], "next_cursor": None})
    assert [thing.name for thing in connection.pages("/things", Thing)] == ["a", "b", "c"]
    assert [path for _, path, _ in script.asked] == ["/things?limit=200", "/things?limit=200&cursor=two"]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (404, "not-found", NotFound),
        (422, "invalid-program", InvalidInput),
        (400, "something-new", EaselError),
    ],
)
def test_the_servers_errors_keep_their_class_and_words(
    script: Script, connection: Connection, status: int, kind: str, expected: type[EaselError]
) -> None:
    script.refuse(status, kind, "in words")
    with pytest.raises(expected, match="in words"):
        connection.get("/things/1", Thing)
    assert len(script.asked) == 1


def test_an_answer_that_is_not_easels_is_said_so(script: Script, connection: Connection) -> None:
    script.say(404, b"<html>another server</html>")
    with pytest.raises(EaselError, match="is this address an Easel server"):
        connection.get("/things/1", Thing)


def test_a_path_that_would_lead_elsewhere_is_never_sent(script: Script, connection: Connection) -> None:
    with pytest.raises(InvalidInput, match="lead elsewhere"):
        connection.delete("/things/../users/1")
    assert script.asked == []


def test_a_stream_goes_on_where_it_broke_off(script: Script, connection: Connection) -> None:
    script.say(200, b'id: 4\ndata: {"line": 4}\n\n', Content_Type="text/event-stream")
    script.say(200, b': still here\n\nid: 5\ndata: {"line":\ndata: 5}\n\n', Content_Type="text/event-stream")
    stream = connection.events("/events", after=3)
    assert [next(stream), next(stream)] == [{"line": 4}, {"line": 5}]
    assert [headers["Last-Event-ID"] for _, _, headers in script.asked] == ["3", "4"]


def test_a_certificate_that_nobody_signed_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: FakeClock
) -> None:
    own = own_certificate(tmp_path)
    monkeypatch.delenv("EASEL_CA_FILE", raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as made:
        made.socket = own.server.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        address = f"https://127.0.0.1:{made.server_port}"
        with pytest.raises(Misconfigured, match="EASEL_CA_FILE"):
            Connection(address, "a-token", clock=clock).get("/thing", Thing)
        with pytest.raises(Misconfigured, match="EASEL_CA_FILE"):
            WebSocket(f"{address}/terminal", {})
        made.shutdown()
    assert clock.monotonic() == 0
