"""Who did what: no route escapes the audit, and nobody changes it afterwards."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DBAPIError
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from tests.serve.conftest import World
from tests.serve.test_people import ASTRO, ok, submit

from easel.flow.audit.log import AuditLog, merged
from easel.flow.audit.syslog import SyslogSender
from easel.flow.audit.verify import verify
from easel.flow.authenticate import Level
from easel.records.audit import AuditEntry, AuditOutcome
from easel.serve.app import api_routes, declared_level, socket_routes
from easel.serve.audit import NOT_AUDITED, SOCKET
from easel.serve.socket_middleware import SocketMiddleware
from easel.store import audit
from easel.store.engine import Store
from easel.store.noting import RequestNote, noted
from easel.store.schema.audit import audit as table


def entries(world: World, *filters: str) -> list[dict[str, Any]]:
    query = {"filter": list(filters), "limit": 200}
    return list(ok(world.call("root", "GET", "/api/v1/audit", params=query))["items"])


def test_no_route_escapes_the_audit(world: World, sqlite_store: Store) -> None:
    """Every route is called once, by somebody who may, and once by nobody; a stream by nobody only: it has no end."""
    state = world.app.state.easel
    missing = []
    for route in api_routes(world.app):
        path = route.path.replace("{project}", "astro").replace("{", "").replace("}", "")
        for method in sorted(route.methods or ()):
            callers = [None] if route.path.endswith("/stream") else [None, "root"]
            for who in callers:
                with sqlite_store.read() as tx:
                    before = audit.head(tx).seq
                world.call(who, method, path)
                state.audit.flush()
                with sqlite_store.read() as tx:
                    new = [each.entry for each in audit.entries_after(tx, before)]
                found = [each for each in new if (each.method, each.route) == (method, route.path)]
                if (not found) != (route.path in NOT_AUDITED):
                    missing.append(f"{method} {route.path} as {who}")
                refused = declared_level(route) not in (Level.ANYONE, None) and who is None
                if found and refused and found[0].outcome is not AuditOutcome.REFUSED:
                    missing.append(f"{method} {route.path}: {found[0].outcome} for nobody")
                of_people = declared_level(route) not in (Level.ANYONE, Level.WORKER, None)
                if found and who and of_people and found[0].actor is None:
                    missing.append(f"{method} {route.path}: does not say who")
    assert missing == []
    assert verify(sqlite_store).whole


def test_no_websocket_escapes_the_audit(world: World, sqlite_store: Store) -> None:
    state = world.app.state.easel
    routes = socket_routes()
    assert len(routes) >= 3
    state.audit.flush()
    for route in routes:
        path = route.path.replace("{project}", "astro").replace("{key}", f"job_{26 * '0'}.1")
        path = path.replace("{", "").replace("}", "")
        for who in (None, "root"):
            with sqlite_store.read() as tx:
                before = audit.head(tx).seq
            headers = {} if who is None else {"Authorization": f"Bearer {world.tokens[who]}"}
            with suppress(WebSocketDisconnect), world.http.websocket_connect(path, headers=headers) as socket:
                socket.receive()
            state.audit.flush()
            with sqlite_store.read() as tx:
                (found,) = [each.entry for each in audit.entries_after(tx, before)]
            assert (found.method, found.route) == (SOCKET, route.path)
            if who is None:
                assert (found.outcome, found.status, found.actor) == (AuditOutcome.REFUSED, 401, None)
            elif "worker" not in route.path:  # there is no such job, and root asked for it
                assert (found.outcome is AuditOutcome.ALLOWED, found.status) == (False, 404)
                assert found.actor is not None


def test_a_terminal_is_in_the_audit_while_it_is_open(world: World, sqlite_store: Store) -> None:
    """The entry does not wait for its end, and what its beginning changed is in it, not left over."""
    state = world.app.state.easel
    state.audit.flush()
    middleware = SocketMiddleware(_terminal(sqlite_store), audit=state.audit, now=sqlite_store.clock.now)
    with sqlite_store.read() as tx:
        before = audit.head(tx).seq

    async def open_it() -> None:
        async def send(message: Any) -> None:
            assert message["type"] == "websocket.accept"

        async def receive() -> Any:
            state.audit.flush()
            with sqlite_store.read() as tx:
                (entry,) = [each.entry for each in audit.entries_after(tx, before)]
            assert (entry.status, entry.outcome) == (101, AuditOutcome.ALLOWED)
            return {"type": "websocket.disconnect"}

        scope = {"type": "websocket", "path": "/shell", "headers": [], "client": ("10.0.0.1", 1)}
        await middleware({**scope, "route": socket_routes()[0]}, receive, send)

    asyncio.run(open_it())
    with sqlite_store.read() as tx:
        assert audit.orphans(tx, tx.now + timedelta(hours=1)) == []


def _terminal(store: Store) -> ASGIApp:
    """Writes down that somebody came, lets them in, and writes down that they left."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        with store.write() as tx:
            tx.emit("job.entered", "job_1")
        await send({"type": "websocket.accept"})
        await receive()
        with store.write() as tx:
            tx.emit("job.left", "job_1")

    return app


def test_an_entry_says_who_did_what_from_where_with_which_token(world: World) -> None:
    me = ok(world.call("astro-member", "GET", "/api/v1/me"))
    job = submit(world, "astro-member")
    project = ok(world.call("root", "GET", ASTRO))["id"]
    found = entries(world, "method:eq:POST", "actor_name:eq:astro-member")[0]
    assert found["actor"] == me["user"]["id"]
    assert found["token"] == me["token_id"]
    assert (found["address"], found["project_id"]) == ("testclient", project)
    assert (found["route"], found["status"], found["outcome"]) == (
        "/api/v1/projects/{project}/jobs",
        201,
        "allowed",
    )
    ok(world.call("astro-member", "GET", f"{ASTRO}/jobs/{job}"))
    assert entries(world, f"path:eq:{ASTRO}/jobs/{job}")[0]["actor_name"] == "astro-member"


def test_what_was_refused_names_who_was_refused(world: World) -> None:
    world.call("bio-admin", "GET", ASTRO)
    world.call("astro-member", "POST", f"{ASTRO}/users", json={"name": "x"})
    world.http.get("/api/v1/me", headers={"Authorization": "Bearer easel_wrong"})
    refused = entries(world, "outcome:eq:refused")
    told = [(each["actor_name"], each["method"], each["status"]) for each in refused]
    assert told == [(None, "GET", 401), ("astro-member", "POST", 403), ("bio-admin", "GET", 404)]


def test_a_projects_admin_sees_the_audit_of_the_project_only(world: World) -> None:
    ok(world.call("bio-member", "GET", "/api/v1/projects/bio"))
    submit(world, "astro-member")
    items = ok(world.call("astro-admin", "GET", f"{ASTRO}/audit"))["items"]
    assert {each["actor_name"] for each in items} <= {"astro-member", "astro-admin", "root", "admin"}
    assert world.call("astro-admin", "GET", "/api/v1/audit").status_code == 403
    assert world.call("astro-member", "GET", f"{ASTRO}/audit").status_code == 403
    assert world.call("bio-admin", "GET", f"{ASTRO}/audit").status_code == 404


def test_a_change_is_in_the_audit_although_the_server_died_before_it_answered(sqlite_store: Store) -> None:
    note = RequestNote("key-1", "10.0.0.1", "POST", "/api/v1/x", "/api/v1/x", actor="usr_1")
    marker = noted.set(note)
    try:
        with sqlite_store.write() as tx:
            tx.emit("thing.changed", "x")
        assert note.kept
    finally:
        noted.reset(marker)
    sqlite_store.clock = _Later(sqlite_store.clock.now() + timedelta(minutes=5))  # the next server
    AuditLog(sqlite_store).flush()
    with sqlite_store.read() as tx:
        found = audit.entries_after(tx, 0)
    assert [(each.entry.actor, each.entry.outcome) for each in found] == [("usr_1", AuditOutcome.UNANSWERED)]
    AuditLog(sqlite_store).flush()
    with sqlite_store.read() as tx:
        assert audit.head(tx).seq == 1  # once


def test_a_change_that_was_rolled_back_leaves_no_entry_that_says_it_happened(world: World) -> None:
    same = {"name": "astro-member"}
    assert world.call("astro-admin", "POST", f"{ASTRO}/users", json=same).status_code == 409
    assert entries(world, "method:eq:POST", "actor_name:eq:astro-admin")[0]["outcome"] == "failed"


class _Later:
    def __init__(self, now: Any) -> None:
        self._now = now

    def now(self) -> Any:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


def chain(store: Store, count: int = 5) -> AuditLog:
    log = AuditLog(store)
    for number in range(count):
        log._take(entry(store, number), None)
    log.flush()
    return log


def entry(store: Store, number: int, method: str = "POST") -> AuditEntry:
    now = store.clock.now()
    return AuditEntry(
        now,
        "usr_1",
        "ana",
        "tok_1",
        None,
        "::1",
        method,
        "/x",
        f"/x/{number}",
        200,
        AuditOutcome.ALLOWED,
        f"r{number}",
    )


def test_the_database_refuses_to_change_or_remove_entries(store: Store) -> None:
    chain(store)
    for statement in (update(table).values(actor="usr_2"), delete(table).where(table.c.seq == 2)):
        with pytest.raises(DBAPIError, match="only grows"), store.write() as tx:
            tx.execute(statement)
    assert verify(store).whole


@pytest.mark.parametrize(
    ("attack", "broken_at"),
    [
        ("UPDATE audit SET actor_name = 'eve' WHERE seq = 3", 3),
        ("DELETE FROM audit WHERE seq = 3", 3),
        ("DELETE FROM audit WHERE seq = 5", 5),
        ("UPDATE audit SET seq = 9 WHERE seq = 5", 5),
    ],
)
def test_whoever_gets_around_the_triggers_is_found_out(
    sqlite_store: Store, attack: str, broken_at: int
) -> None:
    chain(sqlite_store)
    with sqlite_store.write() as tx:
        tx.execute(text("DROP TRIGGER audit_no_update"))
        tx.execute(text("DROP TRIGGER audit_no_delete"))
        tx.execute(text(attack))
    assert verify(sqlite_store).broken_at == broken_at


def test_a_chain_written_anew_does_not_fit_a_hash_noted_elsewhere(sqlite_store: Store) -> None:
    chain(sqlite_store)
    found = verify(sqlite_store)
    assert verify(sqlite_store, (found.last, found.hash)).whole
    assert verify(sqlite_store, (found.last, "0" * 64)).broken_at == found.last


def test_what_is_too_old_is_removed_and_the_rest_still_fits(store: Store) -> None:
    chain(store)
    later = store.clock.now() + timedelta(days=10)
    store.clock = _Later(later)
    log = AuditLog(store, keep=timedelta(days=5))
    log._take(entry(store, 9), None)
    log.flush()
    assert log.trim() == 5
    found = verify(store)
    assert found.whole
    assert (found.first, found.entries) == (6, 2)
    with store.read() as tx:
        assert [each.entry.route for each in audit.walk(tx)] == ["/x", "audit.trimmed"]


def test_equal_reads_are_one_entry_and_changes_never_are(sqlite_store: Store) -> None:
    reads = [entry(sqlite_store, 1, "GET") for _ in range(3)]
    changes = [entry(sqlite_store, 1) for _ in range(2)]
    found = merged([(each, None) for each in (*reads, *changes)])
    assert [(each.method, each.count) for each in found] == [("GET", 3), ("POST", 1), ("POST", 1)]


def test_an_export_is_json_lines_that_anybody_can_check(world: World, tmp_path: Any) -> None:
    import typer

    from easel.cli.audit import _verify_file

    submit(world, "astro-member")
    lines = world.call("root", "GET", "/api/v1/audit/export").text.splitlines()
    assert json.loads(lines[0])["seq"] == 1
    file = tmp_path / "audit.jsonl"
    file.write_text("\n".join(lines) + "\n")
    _verify_file(file)
    file.write_text("\n".join(lines).replace("astro-member", "bio-member") + "\n")
    with pytest.raises(typer.Exit):
        _verify_file(file)
    assert ok(world.call("root", "GET", "/api/v1/audit/verify"))["whole"] is True


def test_entries_reach_syslog_and_what_it_missed_follows(sqlite_store: Store) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        chain(sqlite_store, 1)  # before syslog was set up
        log = AuditLog(sqlite_store, sender=SyslogSender(f"udp://127.0.0.1:{port}"))
        log._take(entry(sqlite_store, 2), None)
        log.flush()
        messages = [server.recv(8192).decode() for _ in range(2)]
    assert messages[0].startswith("<109>1 ")
    assert [json.loads(each[each.index("{") :])["seq"] for each in messages] == [1, 2]


def test_syslog_over_tcp_counts_octets_and_a_closed_server_loses_nothing(sqlite_store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        log = AuditLog(sqlite_store, sender=SyslogSender(f"tcp://127.0.0.1:{port}"))
        received: list[bytes] = []

        def accept() -> None:
            connection, _ = server.accept()
            with connection:
                while chunk := connection.recv(65536):
                    received.append(chunk)

        reader = threading.Thread(target=accept)
        reader.start()
        log._take(entry(sqlite_store, 1), None)
        log.flush()
        reader.join(10)
    data = b"".join(received)
    length, _, rest = data.partition(b" ")
    assert int(length) == len(rest)
    log._take(entry(sqlite_store, 2), None)
    log.flush()  # nobody listens: a warning, and the entry waits
    with sqlite_store.read() as tx:
        assert (audit.head(tx).seq, audit.head(tx).sent_seq) == (2, 1)
