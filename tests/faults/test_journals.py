"""What a worker tells to whom: nothing to one who has not said how much it knows, everything to one who has."""

from __future__ import annotations

import json
import socket
from datetime import datetime, timedelta
from pathlib import Path

from easel.clock import SystemClock
from easel.declare.resources import Room
from easel.flow.secrets import hashed
from easel.flow.workers.exchange import ExchangeReply, Said, exchange
from easel.records.attempt import EndReason
from easel.records.job import JobState
from easel.run.control_socket import address
from easel.run.entries import AttemptLost, JournalEntry, LoggedLines, StateReached
from easel.run.journal import read
from easel.store.engine import Store
from easel.testing.engine import EngineUnderTest, until
from easel.testing.executor import Listener, sh
from easel.testing.remote_workers import serving

SCRIPT = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; echo '[EASEL_METRIC] loss=1'"


def dial(home: Path) -> socket.socket:
    """One who connects and has said nothing yet, as a controller that is killed at that moment."""
    name, _ = address(home / "run")
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(name)
    return peer


def test_a_peer_that_has_not_said_hello_is_told_nothing(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", SCRIPT)
    engine.turn_until(controller, lambda: engine.log(job) == ["one"])
    peer = dial(engine.home)
    work = engine.home / "run" / "attempts" / f"{job.id}.1" / "work"
    (work / "go").touch()
    journal = engine.home / "run" / "attempts" / f"{job.id}.1.journal"
    until(lambda: any(entry.last for entry in read(journal, 0)[0]))
    # The worker has taken several turns since: it answers the next hello, and has said nothing before it.
    peer.sendall(json.dumps({"op": "hello", "fence": 10**6, "seen": {}}).encode() + b"\n")
    first = json.loads(peer.makefile("rb").readline())
    assert first["op"] == "state"
    peer.close()


def test_controllers_that_die_between_connect_and_hello_cost_no_line(engine: EngineUnderTest) -> None:
    first = engine.controller()
    job = engine.submit("sh", "-c", SCRIPT)
    engine.turn_until(first, lambda: engine.log(job) == ["one"])
    (engine.home / "run" / "attempts" / f"{job.id}.1" / "work" / "go").touch()
    journal = engine.home / "run" / "attempts" / f"{job.id}.1.journal"
    for _ in range(5):
        dial(engine.home).close()
    until(lambda: any(entry.last for entry in read(journal, 0)[0]))
    dial(engine.home).close()
    (done,) = engine.finish(first, job)
    assert done.state is JobState.FINISHED
    assert engine.log(job) == ["one", "two", "[EASEL_METRIC] loss=1"]
    assert done.started_at is not None


def test_a_trial_that_ends_while_nobody_listens_is_neither_lost_nor_run_again(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller()
    job = engine.trial("noop")
    engine.turn_until(controller, lambda: engine.job(job).state is not JobState.QUEUED)
    controller.executor.close(stop=False)
    journal = engine.home / "run" / "attempts" / f"{job.id}.1.journal"
    until(lambda: journal.exists() and any(entry.last for entry in read(journal, 0)[0]))
    controller.connected = False
    (done,) = engine.finish(controller, job)
    assert (done.state, done.attempt) == (JobState.FINISHED, 1)


def test_a_dead_agents_half_written_line_is_dropped_and_its_end_follows_its_last_whole_entry(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", "echo one; sleep 1000")
    engine.turn_until(controller, lambda: engine.log(job) == ["one"])
    engine.end_worker()
    journal = engine.home / "run" / "attempts" / f"{job.id}.1.journal"
    entries, _ = read(journal, 0)
    assert not entries[-1].last
    with journal.open("ab") as file:
        file.write(b'{"n":99,"at":1.0,"k":"lo')
    again = Listener(engine.controller().executor, fence=10**6)
    again.until(lambda: again.lost(f"{job.id}.1") is not None)
    whole, _ = read(journal, 0)
    assert whole[:-1] == entries
    assert isinstance(whole[-1].body, AttemptLost)
    assert whole[-1].body.end is EndReason.WORKER_DIED
    # Nothing is known of it after its last entry: that is until when it is billed.
    assert (whole[-1].number, whole[-1].at) == (entries[-1].number + 1, entries[-1].at)


def test_a_folder_that_a_killed_worker_was_about_to_remove_is_removed_by_the_next(
    engine: EngineUnderTest,
) -> None:
    left = engine.home / "run" / "attempts" / "job_x.1"
    (left / "work").mkdir(parents=True)
    controller = engine.controller()
    (done,) = engine.finish(controller, engine.submit("true"))
    assert done.state is JobState.FINISHED
    assert not left.exists()


# Workers elsewhere. -----------------------------------------------------------------------------------------


def test_the_server_refuses_a_gap_says_from_where_and_times_entries_by_one_clock(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        heard = Listener(server.pool())
        heard.executor.start(sh("j", "true"))
        heard.hear()
        clock = server.store.clock.now().timestamp()
        entries = [
            JournalEntry(0, clock, StateReached(JobState.RUNNING), 100.0),
            JournalEntry(1, clock + 5, LoggedLines("out", 1, data=b"one\n"), 105.0),
            # Its machine's clock was set forward by an hour here.
            JournalEntry(2, clock + 3610, LoggedLines("out", 1, data=b"two\n"), 110.0),
        ]

        def say(number: int, *said: JournalEntry, ahead: float = 0.0, session: int = 1) -> ExchangeReply:
            mine = {"j.1": 0} if session else {}
            news = [("j.1", list(said))] if said else []
            one = Said(
                *(hashed(server.token), "box", "remote", session, number, clock + ahead, Room(2.0, 2048)),
                attempts=mine,
                entries=news,
                monotonic=110.0,
            )
            (answer,) = exchange(server.store, [one], server.seal)
            assert isinstance(answer, ExchangeReply), answer
            return answer

        say(1, session=0)
        assert say(2, entries[1]).resend == {"j.1": 0}
        assert say(3, *entries, ahead=3600.0).resend == {}
        assert say(4, entries[2]).resend == {}
        heard.until(lambda: heard.log("j.1") == b"one\ntwo\n")
        times = [entry.at for _, entry in sorted(heard.entries["j.1"].items())]
        assert [round(at - times[0], 3) for at in times] == [0.0, 5.0, 10.0]


def test_a_worker_elsewhere_says_again_what_its_server_misses(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        heard = Listener(server.pool())
        server.worker("box")
        heard.executor.start(sh("j", "echo one; until [ -e go ]; do sleep 0.02; done; echo two"))
        heard.until(lambda: b"one" in heard.log("j.1"))
        inner = server.home / "workers" / "box"
        for _ in range(5):
            dial(inner).close()  # somebody takes the relay's place at the socket and dies
        (inner / "run" / "attempts" / "j.1" / "work" / "go").touch()
        heard.done("j.1")
        assert heard.log("j.1") == b"one\ntwo\n"
        assert sorted(heard.entries["j.1"]) == list(range(len(heard.entries["j.1"])))


def test_a_second_server_whose_clock_is_an_hour_off_moves_no_entry_and_no_bill(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        heard = Listener(server.pool())
        heard.executor.start(sh("j", "true"))
        heard.hear()
        other = Store(f"sqlite:///{server.home}/easel.sqlite", clock=HourAhead())
        entries = [
            JournalEntry(number, 0.0, LoggedLines("out", 1, data=b"line\n"), 100.0 + number)
            for number in range(4)
        ]
        for number, (store, now) in enumerate([(server.store, 101.0), (other, 103.0)] * 2):
            clock = store.clock.now().timestamp()
            said = Said(
                *(hashed(server.token), "box", "remote", min(number, 1), number + 1, clock),
                Room(2.0, 2048),
                attempts={"j.1": 0} if number else {},
                entries=[("j.1", entries[: number + 1])] if number else [],
                monotonic=now,
            )
            (answer,) = exchange(store, [said], server.seal)
            assert isinstance(answer, ExchangeReply), answer
        heard.until(lambda: len(heard.entries.get("j.1", {})) == 4)
        times = [entry.at for _, entry in sorted(heard.entries["j.1"].items())]
        assert [round(at - times[0], 3) for at in times] == [0.0, 1.0, 2.0, 3.0]
        other.close()


class HourAhead(SystemClock):
    """The clock of a machine that nobody has set right."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)
