"""One user cannot take the server from the others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvicorn
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.serve.conftest import World
from tests.serve.test_people import ok

from easel.errors import QuotaExhausted
from easel.serve.fair import FairMiddleware, Turns, UserLimits
from easel.serve.known_users import KnownUsers, address_of
from easel.serve.patience import ImpatientProtocol


def test_users_take_turns_however_many_requests_one_of_them_sends() -> None:
    served: list[str] = []

    async def request(turns: Turns, user: str) -> None:
        await turns.enter(user)
        served.append(user)
        await asyncio.sleep(0)
        turns.pause(user)
        turns.leave(user)

    async def all_of_them() -> None:
        turns = Turns(UserLimits(at_once=1, waiting=1000))
        flood = [asyncio.create_task(request(turns, "greedy")) for _ in range(500)]
        await asyncio.sleep(0)
        polite = [asyncio.create_task(request(turns, "polite")) for _ in range(3)]
        await asyncio.gather(*flood, *polite)
        assert (turns.running, turns.lines) == ({}, {})

    asyncio.run(all_of_them())
    assert len(served) == 503
    assert [place for place, user in enumerate(served) if user == "polite"][-1] < 12


def test_a_request_that_is_given_up_leaves_no_trace_in_the_queue() -> None:
    async def story() -> Turns:
        turns = Turns(UserLimits(at_once=1))
        await turns.enter("a")
        waiting = asyncio.create_task(turns.enter("b"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        given = asyncio.create_task(turns.enter("c"))
        await asyncio.sleep(0)
        turns.pause("a")
        turns.leave("a")  # c's turn, and c goes away before it notices
        given.cancel()
        await asyncio.gather(given, return_exceptions=True)
        return turns

    turns = asyncio.run(story())
    assert (turns.running, turns.lines) == ({}, {})


def begun(turns: Turns, user: str, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(turns.enter(user)) for _ in range(count)]


def test_while_others_are_there_few_requests_of_one_user_are_worked_on_at_a_time() -> None:
    seconds = 0.0

    async def story() -> None:
        nonlocal seconds
        turns = Turns(UserLimits(at_once=16), lambda: seconds)
        tasks = begun(turns, "greedy", 20)
        await asyncio.sleep(0)
        assert turns.working == {"greedy": 8}  # nobody else is there
        tasks += begun(turns, "polite", 1)
        await asyncio.sleep(0)
        assert turns.working == {"greedy": 8, "polite": 1}
        for _ in range(8):
            turns.pause("greedy")
            turns.leave("greedy")
        assert turns.working == {"greedy": 2, "polite": 1}
        turns.pause("polite")
        turns.leave("polite")
        turns.pause("greedy")  # it takes long, or its answer has begun: the next one
        assert (turns.working, turns.running) == ({"greedy": 2}, {"greedy": 3})
        seconds = 6.0
        turns.leave("greedy")
        assert turns.working == {"greedy": 8}  # the other one has left
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(story())


def test_a_long_request_and_a_begun_answer_are_not_counted_as_worked_on() -> None:
    working: list[dict[str, int]] = []
    begun_answer = {"type": "http.response.start", "status": 200, "headers": []}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        working.append(dict(middleware.turns.working))
        if scope["path"] == "/slow":
            while middleware.turns.working:
                await asyncio.sleep(0.001)
        await send(begun_answer)
        working.append(dict(middleware.turns.working))

    async def nothing(_message: Message) -> None:
        return None

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    middleware = fair(app, UserLimits(short_s=0.01))
    for path, at_first in (("/quick", 1), ("/slow", 1), ("/x/infer", 0)):
        scope = {"type": "http", "path": path, "headers": [], "client": ("10.0.0.1", 1)}
        working.clear()
        asyncio.run(middleware(scope, receive, nothing))
        assert working == [{"10.0.0.1": 1} if at_first else {}, {}]
    assert middleware.turns.running == {}


def test_more_than_may_wait_are_refused_and_streams_are_counted() -> None:
    async def story() -> None:
        turns = Turns(UserLimits(at_once=1, waiting=1, streams=2))
        await turns.enter("a")
        waiting = asyncio.create_task(turns.enter("a"))
        await asyncio.sleep(0)
        with pytest.raises(QuotaExhausted, match="waiting already"):
            await turns.enter("a")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        for _ in range(2):
            turns.open_stream("a")
        with pytest.raises(QuotaExhausted, match="live streams"):
            turns.open_stream("a")
        turns.open_stream("b")
        turns.close_stream("a")
        turns.open_stream("a")

    asyncio.run(story())


def test_all_tokens_of_a_person_are_one_user_and_made_up_ones_are_their_address(world: World) -> None:
    made = [
        ok(world.call("astro-member", "POST", "/api/v1/tokens", json={"name": f"t{number}"}), 201)
        for number in range(3)
    ]
    known = world.app.state.easel.known_users
    tokens = [world.tokens["astro-member"], *(each["secret"] for each in made)]
    me = {"id": ""}
    for token in tokens:
        me = ok(world.http.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}))["user"]
    session = world.http.post("/api/v1/session", json={"token": tokens[0]}).cookies["easel_session"]
    ok(world.http.get("/api/v1/me"))
    world.http.get("/api/v1/me", headers={"Authorization": "Bearer made-up"})
    shown = [(b"authorization", f"Bearer {token}".encode()) for token in tokens]
    assert {known.of(asked(each)) for each in shown} == {me["id"]}
    assert known.of(asked((b"cookie", f"a=b; easel_session={session}".encode()))) == me["id"]
    assert known.of(asked((b"authorization", b"Bearer made-up"))) is None
    assert address_of(asked()) == "10.0.0.1"
    # One that is no longer right is nobody's.
    assert world.call("astro-member", "DELETE", f"/api/v1/tokens/{made[0]['id']}").status_code == 204
    world.http.get("/api/v1/me", headers={"Authorization": f"Bearer {tokens[1]}"})
    assert [known.of(asked(each)) is None for each in shown] == [False, True, False, False]


def test_what_a_proxy_asks_of_everybody_makes_nobody_one_user() -> None:
    known, people = KnownUsers(), {"ana": b"easel_session=1", "eva": b"easel_session=2"}
    behind = {
        name: asked((b"authorization", b"Basic c2hhcmVk"), (b"cookie", at)) for name, at in people.items()
    }
    for name, scope in behind.items():
        assert known.of(scope) is None
        known.remember(HTTPConnection(scope), name)
    assert {name: known.of(scope) for name, scope in behind.items()} == {"ana": "ana", "eva": "eva"}


def asked(*headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "headers": list(headers), "client": ("10.0.0.1", 1)}


@pytest.mark.parametrize("kind", ["websocket", "http"])
def test_websockets_and_streams_of_a_person_are_counted_over_all_their_tokens(kind: str) -> None:
    """Also of tokens that were never seen before; those that are nobody's count for their address."""
    people = {b"Bearer 1": "ana", b"Bearer 2": "ana", b"Bearer 3": "ana", b"Bearer 4": "eva"}

    def look_up(connection: HTTPConnection) -> str | None:
        return people.get(connection.headers["authorization"].encode())

    async def story() -> list[str]:
        done = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "let in"})
            await done.wait()

        middleware = fair(app, UserLimits(streams=2), look_up)
        told: list[str] = []

        async def receive() -> Message:
            return {"type": "websocket.connect" if kind == "websocket" else "http.request"}

        async def send(message: Message) -> None:
            told.append(message["type"])

        secrets = [*people, b"Bearer x", b"Bearer y", b"Bearer z"]
        tasks = []
        for secret in secrets:
            scope = {**asked((b"authorization", secret)), "type": kind, "path": "/x/stream"}
            tasks.append(asyncio.create_task(middleware(scope, receive, send)))
            while not told or len(told) < len(tasks):
                await asyncio.sleep(0.001)
            told = told[: len(tasks)]
        done.set()
        await asyncio.gather(*tasks)
        assert middleware.turns.streams == {}
        return told

    refused = "websocket.close" if kind == "websocket" else "http.response.start"
    assert asyncio.run(story()) == [
        *["let in", "let in", refused, "let in"],  # ana's third, eva's first
        *["let in", "let in", refused],  # of the address
    ]


def fair(
    app: ASGIApp, limits: UserLimits, look_up: Callable[[HTTPConnection], str | None] = lambda _: None
) -> FairMiddleware:
    return FairMiddleware(app, limits=limits, apart=(), known=KnownUsers(), look_up=look_up)


def test_a_connection_that_sends_half_a_request_is_closed() -> None:
    class Quick(ImpatientProtocol):
        within_s = 0.2

    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("no request ever came")

    config = uvicorn.Config(app, http=Quick, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        with socket.create_connection(listener.getsockname()) as half:
            half.settimeout(20)
            half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            assert half.recv(100) == b""
        server.should_exit = True
        thread.join(20)


def test_half_a_surrogate_pair_anywhere_in_a_request_is_refused(world: World) -> None:
    body = rb'{"name": "x", "run": {"kind": "entry", "target": "m:f", "arguments": {"a": ["\ud800"]}}}'
    headers = {"content-type": "application/json"}
    answer = world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert "valid Unicode" in answer.json()["detail"]
    whole = body.replace(rb"\ud800", rb"\ud83d\ude00")
    assert world.call(
        "astro-member", "POST", "/api/v1/projects/astro/jobs", content=whole, headers=headers
    ).status_code in (200, 201)


def test_readyz_knows_a_full_disk(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert world.call(None, "GET", "/readyz").status_code == 200
    monkeypatch.setattr(
        "easel.serve.routes.operations.shutil.disk_usage", lambda _: type("Usage", (), {"free": 1})()
    )
    answer = world.call(None, "GET", "/readyz")
    assert (answer.status_code, "make room" in answer.json()["detail"]) == (503, True)


def test_only_its_owner_or_an_admin_deletes_an_app(world: World) -> None:
    path = "/api/v1/projects/astro/apps"
    program = "{input: {[Tensor[2]], []}, output: {[Tensor[2]], []}}"
    made = world.call("astro-admin", "POST", path, json={"name": "flowers", "program": program})
    assert made.status_code == 201, made.text
    assert world.call("astro-member", "DELETE", f"{path}/flowers").status_code == 403
    assert world.call("astro-admin", "DELETE", f"{path}/flowers").status_code == 204


def test_odd_ranges_days_queries_and_depths_are_refused_in_words(world: World) -> None:
    base = "/api/v1/projects/astro"
    days = {"prefix": "/", "older_than_days": 1e12}
    assert world.call("astro-admin", "POST", f"{base}/unused", json=days).status_code == 422
    query = f"a in ({','.join('1' for _ in range(900))})"
    found = world.call("astro-member", "POST", f"{base}/find", json={"kind": "file", "query": query})
    assert (found.status_code, "values" in found.text) == (422, True), found.text
    deep = world.call("astro-member", "POST", f"{base}/studies/file", json={"text": "[" * 5000})
    assert deep.status_code == 422, deep.text
