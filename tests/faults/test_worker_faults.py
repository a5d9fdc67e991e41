"""Workers elsewhere, and what goes wrong with them: cut networks, wrong clocks, dead machines, restarted servers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from easel.declare.resources import Room
from easel.errors import Conflict, Unauthenticated
from easel.flow.secrets import hashed
from easel.flow.workers.exchange import ExchangeReply, Said, exchange
from easel.flow.workers.tokens import revoke
from easel.ids import UserId
from easel.records.attempt import EndReason
from easel.records.job import JobState
from easel.run.entries import JournalEntry, StateReached
from easel.run.executors.base import AttemptGone
from easel.store import offers
from easel.testing.engine import alive, until
from easel.testing.executor import Listener, sh
from easel.testing.remote_workers import RemoteServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RemoteServer]:
    with serving(tmp_path / "home") as made:
        yield made


class Cable:
    """A network between a worker and the server that can be cut: open connections break, new ones are refused."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pairs: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.plug_in()

    def plug_in(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._pairs += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            end.close()

    def cut(self) -> None:
        assert self._listener is not None
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._pairs:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._pairs.clear()


def test_a_worker_whose_network_was_cut_comes_back_with_its_result(
    server: RemoteServer, tmp_path: Path
) -> None:
    cable = Cable(server.port)
    server.worker("box", server=f"http://127.0.0.1:{cable.port}")
    heard = Listener(server.pool())
    flag = tmp_path / "go"
    script = f"echo before; while [ ! -e {flag} ]; do sleep 0.05; done; echo after > output/x; echo after"
    heard.executor.start(sh("j", script))
    heard.until(lambda: b"before" in heard.log("j.1"))
    cable.cut()
    flag.touch()
    journal = server.home / "workers" / "box" / "run" / "attempts" / "j.1.journal"
    until(lambda: '"k":"done"' in journal.read_text())
    heard.hear()
    assert heard.last("j.1") is None
    cable.plug_in()
    heard.done("j.1")
    assert heard.log("j.1") == b"before\nafter\n"
    cable.cut()


def test_a_dead_machine_is_noticed_and_its_attempt_counted_once(server: RemoteServer) -> None:
    worker = server.worker("box")
    pool = server.pool(lost_after=2.0)
    heard = Listener(pool)
    heard.executor.start(sh("j", "sleep 1000"))
    heard.reached("j.1", "running")
    inner = int((server.home / "workers" / "box" / "run" / "worker.lock").read_text())
    for pid in (worker.pid, inner):
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    heard.until(lambda: "j.1" in heard.gone)
    assert heard.gone["j.1"] == "device box was not heard of for 2 s"
    heard.executor.forget("j.1", over=False)
    # The machine starts again: what is left of the old attempt is ended, and the next one runs.
    server.worker("box")
    heard.executor.start(sh("j", "echo again", attempt=2))
    heard.done("j.2")
    until(lambda: not any(alive(pid) for pid in _marked("j.1")))


def _marked(key: str) -> list[int]:
    from easel.run.tree import marked

    return marked(key)


def test_a_server_that_restarts_loses_nothing_of_its_workers(server: RemoteServer, tmp_path: Path) -> None:
    server.worker("box")
    heard = Listener(server.pool())
    flag = tmp_path / "go"
    heard.executor.start(sh("j", f"while [ ! -e {flag} ]; do sleep 0.05; done; echo done"))
    heard.reached("j.1", "running")
    server.stop()
    flag.touch()
    server.start()
    heard.done("j.1")
    assert heard.log("j.1") == b"done\n"


# What the exchange itself must withstand, without processes. ------------------------------------------------


def said(server: RemoteServer, number: int, session: int = 1, **more: object) -> Said:
    fields = {"capacity": Room(2.0, 2048), "clock": server.store.clock.now().timestamp(), **more}
    return Said(hashed(server.token), "box", "remote", session, number, **fields)  # type: ignore[arg-type]


def ask(server: RemoteServer, one: Said) -> ExchangeReply:
    (answer,) = exchange(server.store, [one], server.seal)
    assert isinstance(answer, ExchangeReply), answer
    return answer


def test_a_worker_with_a_wrong_clock_is_set_right(server: RemoteServer) -> None:
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    now = server.store.clock.now()
    wrong = (now - timedelta(days=3)).timestamp()
    assert len(ask(server, said(server, 1, 0, clock=wrong)).start) == 1
    entry = JournalEntry(0, wrong - 1.0, StateReached(JobState.RUNNING))
    ask(server, said(server, 2, clock=wrong, attempts={"j.1": 0}, entries=[("j.1", [entry])]))
    heard.reached("j.1", "running")
    assert abs(heard.entries["j.1"][0].at - (now.timestamp() - 1.0)) < 60


def test_a_lost_answer_is_said_again_and_a_repeated_report_counts_once(server: RemoteServer) -> None:
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    first, again = ask(server, said(server, 1, 0)).start, ask(server, said(server, 2)).start
    assert [each["offer"] for each in first] == [each["offer"] for each in again]
    entry = JournalEntry(0, 0.0, StateReached(JobState.RUNNING))
    for number in (3, 4):
        ask(server, said(server, number, attempts={"j.1": 0}, entries=[("j.1", [entry])]))
    heard.hear()
    assert sum(len(getattr(report, "entries", ())) for report in heard.reports) == 1


def test_what_a_worker_had_and_has_no_more_is_gone_but_not_by_a_stale_word(server: RemoteServer) -> None:
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    ask(server, said(server, 1, 0))
    ask(server, said(server, 3, attempts={"j.1": 0}))
    ask(server, said(server, 2))
    heard.hear()
    assert heard.gone == {}
    ask(server, said(server, 4))
    heard.until(lambda: "j.1" in heard.gone)
    assert heard.gone["j.1"] == "its device no longer knows it"


def test_an_attempt_that_nobody_knows_any_more_is_forgotten(server: RemoteServer) -> None:
    ask(server, said(server, 1, 0))
    assert ask(server, said(server, 2, attempts={"old.1": 0})).forget == {"old.1": False}


def test_an_order_that_a_leaving_worker_never_got_waits_for_another_and_costs_no_attempt(
    server: RemoteServer,
) -> None:
    heard = Listener(server.pool())
    heard.executor.start(sh("had", "true"))
    heard.executor.start(sh("under-way", "true"))
    heard.hear()
    assert len(ask(server, said(server, 1, 0)).start) == 2
    ask(server, said(server, 2, attempts={"had.1": 0}, leaving=True))
    heard.until(lambda: "had.1" in heard.gone)
    assert heard.gone == {"had.1": "its device left"}
    (given,) = ask(server, replace(said(server, 1, 0), name="other")).start
    assert given["order"]["job_id"] == "under-way"


def test_a_part_of_a_gang_that_a_leaving_worker_never_got_costs_no_attempt(server: RemoteServer) -> None:
    heard = Listener(server.pool())
    heard.executor.start(replace(sh("both", "true"), workers=2))
    heard.hear()
    first = said(server, 1, 0)
    answers = exchange(server.store, [first, replace(first, name="other")], server.seal)
    assert [len(each.start) for each in answers if isinstance(each, ExchangeReply)] == [1, 1]
    ask(server, said(server, 2, leaving=True))
    heard.until(lambda: "both.1" in heard.gone)
    (ended,) = (report for report in heard.reports if isinstance(report, AttemptGone))
    assert ended.end is EndReason.STOPPED, "the job waits for another device, and none of its tries is spent"


def test_a_word_of_a_worker_that_left_later_is_answered_and_given_nothing(server: RemoteServer) -> None:
    ask(server, said(server, 1, 0))
    ask(server, said(server, 3, leaving=True))
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    assert ask(server, said(server, 2)).start == []
    assert ask(server, said(server, 1, again=True)).start == []
    # It did not leave for good: its next word is newer.
    assert len(ask(server, said(server, 4)).start) == 1


def test_a_worker_that_is_forgotten_is_given_nothing_while_it_waits(server: RemoteServer) -> None:
    ask(server, said(server, 1, 0))
    with server.store.write() as tx:
        offers.remove_workers(tx, ["box"])
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    assert ask(server, said(server, 2, again=True)).start == []
    # One that speaks anew is there again.
    assert len(ask(server, said(server, 3)).start) == 1


def test_what_a_device_had_that_nobody_knows_any_more_is_gone(server: RemoteServer) -> None:
    heard = Listener(server.pool())
    heard.executor.start(sh("j", "true"))
    heard.hear()
    assert len(ask(server, said(server, 1, 0)).start) == 1
    with server.store.write() as tx:
        offers.remove_workers(tx, ["box"])
    heard.until(lambda: "j.1" in heard.gone)
    assert heard.gone["j.1"] == "device box is not there any more"


def test_a_second_worker_under_the_same_name_takes_over_and_the_first_is_refused(
    server: RemoteServer,
) -> None:
    assert ask(server, said(server, 1, 0)).session == 1
    assert ask(server, said(server, 1, 0)).session == 2
    (answer,) = exchange(server.store, [said(server, 2, 1)], server.seal)
    assert isinstance(answer, Conflict)


def test_a_revoked_token_is_refused_at_once(server: RemoteServer) -> None:
    ask(server, said(server, 1, 0))
    with server.store.write() as tx:
        revoke(tx, UserId("root"), server.token_id)
    (answer,) = exchange(server.store, [said(server, 2)], server.seal)
    assert isinstance(answer, Unauthenticated)
