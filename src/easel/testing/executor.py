"""The conformance suite of executors: subclass it, provide `make`, and pytest runs it.

`make(name)` opens an executor of 2 vCPU and 2048 MB; a second call with the same name talks to the same devices.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from easel.declare.job import Command, Trial
from easel.declare.resources import Resources
from easel.run.entries import (
    AttemptDone,
    AttemptEnded,
    AttemptLost,
    EntryBody,
    JournalEntry,
    Kept,
    LoggedLines,
    MetricPoints,
    ResultTold,
    StateReached,
)
from easel.run.executors.base import AttemptGone, Away, Beat, Connected, Entries, Executor, Report
from easel.run.order import LogLimits, Order
from easel.run.tree import marked

Make = Callable[[str], Executor]
PATIENCE_S = 250.0
_fences = itertools.count(1)


class Listener:
    """Remembers all that an executor says."""

    def __init__(self, executor: Executor, fence: int | None = None) -> None:
        self.executor = executor
        self.fence = next(_fences) if fence is None else fence
        self.reports: list[Report] = []
        self.entries: dict[str, dict[int, JournalEntry]] = {}
        self.gone: dict[str, str] = {}
        executor.connect(self.fence, {})

    def hear(self) -> None:
        for report in self.executor.poll():
            self.reports.append(report)
            if isinstance(report, Entries):
                self.entries.setdefault(report.key, {}).update(
                    (entry.number, entry) for entry in report.entries
                )
            elif isinstance(report, AttemptGone):
                self.gone[report.key] = report.reason

    def until(self, done: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < limit, f"it did not come to pass; heard {self.reports[-5:]}"
            self.hear()
            time.sleep(0.005)

    def connected(self) -> Connected:
        self.until(lambda: any(isinstance(report, Connected | Away) for report in self.reports))
        report = next(r for r in self.reports if isinstance(r, Connected | Away))
        assert isinstance(report, Connected), report
        return report

    def kinds(self, key: str) -> list[str]:
        """States that it reached, and the types of its other entries, in order."""
        bodies = self.bodies(key)
        return [
            body.state.value if isinstance(body, StateReached) else type(body).__name__ for body in bodies
        ]

    def bodies(self, key: str) -> list[EntryBody]:
        """What the entries of its journal say, in order."""
        return [entry.body for _, entry in sorted(self.entries.get(key, {}).items())]

    def last(self, key: str) -> AttemptDone | AttemptEnded | AttemptLost | None:
        ends = (b for b in self.bodies(key) if isinstance(b, AttemptDone | AttemptEnded | AttemptLost))
        return next(ends, None)

    def lost(self, key: str) -> str | None:
        """Why nothing of it is left, whoever says so."""
        last = self.last(key)
        return last.reason if isinstance(last, AttemptLost) else self.gone.get(key)

    def ended(self, key: str) -> AttemptDone | AttemptEnded:
        """How it ended by itself."""
        self.over(key)
        last = self.last(key)
        assert isinstance(last, AttemptDone | AttemptEnded), f"{key} is gone: {self.lost(key)}"
        return last

    def done(self, key: str) -> AttemptDone:
        last = self.ended(key)
        assert isinstance(last, AttemptDone), last
        return last

    def failed(self, key: str) -> AttemptEnded:
        last = self.ended(key)
        assert isinstance(last, AttemptEnded), last
        return last

    def over(self, key: str) -> None:
        self.until(lambda: self.last(key) is not None or key in self.gone)

    def reached(self, key: str, state: str) -> None:
        self.until(lambda: state in self.kinds(key))

    def moment(self, key: str, *, last: bool) -> float:
        """Returns when its first or its last entry was written, by the clock of its machine."""
        return next(e.at for e in self.entries[key].values() if (e.last if last else e.number == 0))

    def place(self, key: str, *, last: bool) -> float:
        """Returns which of all reports brought its first or its last entry: clocks of several workers differ."""
        return next(
            n
            for n, report in enumerate(self.reports)
            if isinstance(report, Entries)
            and report.key == key
            and any(e.last if last else e.number == 0 for e in report.entries)
        )

    def log(self, key: str) -> bytes:
        return b"".join(body.data or b"" for body in self.bodies(key) if isinstance(body, LoggedLines))


def clean(executor: Executor) -> None:
    """End and forget everything, so that another test may use the same devices and names."""
    while True:
        heard = Listener(executor)
        left = heard.connected().attempts
        if not left:
            return
        for key in left:
            executor.forget(key)


OWN = f"j{os.getpid()}"
"""A job of this process's own: its processes are looked for on the whole machine, where other tests have theirs."""


def order(job: str, *argv: str, attempt: int = 1, **more: Any) -> Order:
    defaults: dict[str, Any] = {"resources": Resources(0.5, 256), "grace_s": 0.3}
    return Order(job, attempt, "prj", Command(argv or ("true",)), **{**defaults, **more})


def sh(job: str, script: str, **more: Any) -> Order:
    return order(job, "sh", "-c", script, **more)


class ExecutorSuite:
    """Every sentence of `run/executors/base.py`, and what jobs do to whoever runs them."""

    capacity_is_told = True
    """Not by an engine, whose workers come when there is work: its machines are asked instead."""

    def test_it_tells_its_capacity(self, make: Make) -> None:
        if not self.capacity_is_told:
            heard = Listener(make("a"))
            heard.executor.start(sh("j", "echo here", resources=Resources(2.0, 2048)))
            heard.done("j.1")
            return
        capacity = Listener(make("a")).connected().capacity
        assert (capacity.vcpu, capacity.memory_mb) == (2.0, 2048)

    def test_a_command_goes_through_all_states_and_says_what_it_used(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "echo one; echo two >&2; echo out > output/file.txt"))
        done = heard.done("j.1")
        states = [kind for kind in heard.kinds("j.1") if kind in ("downloading", "running", "uploading")]
        assert states == ["downloading", "running", "uploading"]
        assert sorted(heard.log("j.1").split()) == [b"one", b"two"]
        assert done.usage.wall_seconds > 0
        output = next(body for body in heard.bodies("j.1") if isinstance(body, Kept))
        assert [file.path for file in output.files] == ["/file.txt"]

    def test_its_entries_are_numbered_without_gaps_and_its_last_is_the_end(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "for i in 1 2 3; do echo $i; sleep 0.3; done"))
        heard.ended("j.1")
        assert sorted(heard.entries["j.1"]) == list(range(len(heard.entries["j.1"])))
        assert heard.entries["j.1"][len(heard.entries["j.1"]) - 1].last

    def test_a_journal_is_said_again_from_where_it_is_asked_for(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "echo one; echo two"))
        heard.ended("j.1")
        whole = heard.entries.pop("j.1")
        heard.executor.resend("j.1", 2)
        heard.ended("j.1")
        assert heard.entries["j.1"] == {number: e for number, e in whole.items() if number >= 2}

    def test_starting_twice_starts_once(self, make: Make, tmp_path: Path) -> None:
        heard = Listener(make("a"))
        twice = sh("j", "echo ran")
        heard.executor.start(twice)
        heard.executor.start(twice)
        heard.ended("j.1")
        assert heard.log("j.1") == b"ran\n"

    def test_attempts_wait_until_their_resources_fit_in_order_of_arrival(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("big", "sleep 1000", resources=Resources(2.0, 256)))
        heard.reached("big.1", "running")
        for job in ("b", "c"):
            heard.executor.start(sh(job, f"echo {job}", resources=Resources(2.0, 256)))
        heard.executor.kill("big.1")
        heard.ended("c.1")
        moment = heard.moment if self.capacity_is_told else heard.place
        assert moment("b.1", last=False) <= moment("c.1", last=False)
        assert moment("b.1", last=True) <= moment("c.1", last=False)

    def test_capacity_comes_back_however_an_attempt_ends(self, make: Make) -> None:
        heard = Listener(make("a"))
        whole = Resources(2.0, 2048)
        endings = [
            sh("ok", "true", resources=whole),
            sh("bad", "exit 3", resources=whole),
            order("none", "no-such-program", resources=whole),
            sh("dead", "kill -9 $$", resources=whole),
            sh("late", "sleep 1000", resources=whole, time_limit_s=0.2),
        ]
        for each in endings:
            heard.executor.start(each)
        heard.executor.start(sh("last", "echo here", resources=whole))
        heard.ended("last.1")
        reasons = {job: heard.failed(f"{job}.1").reason for job in ("bad", "none", "dead", "late")}
        assert reasons["bad"] == "exit code 3"
        assert "no-such-program" in str(reasons["none"])
        assert reasons["dead"] == "exit code -9 (SIGKILL)"
        assert reasons["late"] == "the time limit of 0.2 s was reached"

    def test_a_killed_attempt_ends_with_everybody_who_ignored_forked_or_hid(self, make: Make) -> None:
        heard = Listener(make("a"))
        forever = "while :; do sleep 1; done"
        stubborn = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; {forever}' &) ; echo up; {forever}"
        heard.executor.start(sh(OWN, stubborn))
        heard.until(lambda: b"up" in heard.log(f"{OWN}.1"))
        heard.executor.kill(f"{OWN}.1")
        assert heard.failed(f"{OWN}.1").reason == "stopped"
        assert marked(f"{OWN}.1") == []

    def test_what_a_finished_command_left_running_is_ended(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh(OWN, "setsid sleep 1000 & echo started"))
        heard.done(f"{OWN}.1")
        assert marked(f"{OWN}.1") == []

    def test_a_waiting_attempt_is_killed_without_ever_starting(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("big", "sleep 1000", resources=Resources(2.0, 256)))
        heard.reached("big.1", "running")
        heard.executor.start(sh("j", "echo never"))
        heard.executor.kill("j.1")
        heard.over("j.1")
        assert heard.gone["j.1"] == "stopped before it began"
        assert heard.log("j.1") == b""

    def test_killing_what_nobody_knows_says_that_it_is_gone(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.connected()
        heard.executor.kill("stranger.1")
        heard.until(lambda: "stranger.1" in heard.gone)

    def test_the_memory_limit_holds(self, make: Make) -> None:
        heard = Listener(make("a"))
        fill = 'python -c "x = bytearray(600 << 20); print(len(x))"'
        heard.executor.start(sh("j", fill, resources=Resources(0.5, 128)))
        assert heard.failed("j.1").reason == "the memory limit of 128 MB was reached"

    def test_a_line_without_end_and_bytes_that_are_no_text_do_no_harm(self, make: Make) -> None:
        heard = Listener(make("a"))
        script = "printf '\\377\\376 raw\\n'; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo after"
        heard.executor.start(sh("j", script, resources=Resources(1.0, 256)))
        heard.done("j.1")
        lines = heard.log("j.1").split(b"\n")
        assert lines[0] == b"\xff\xfe raw"
        assert lines[1].endswith(b"more bytes of this line were left out]")
        assert len(lines[1]) < 70_000
        assert lines[2] == b"after"

    def test_a_log_beyond_its_limit_keeps_head_and_tail(self, make: Make) -> None:
        heard = Listener(make("a"))
        limits = LogLimits(head_bytes=10_000, tail_bytes=2_000)
        heard.executor.start(sh("j", "seq 1 200000", log=limits))
        heard.ended("j.1")
        lines = heard.log("j.1").split(b"\n")
        assert lines[0] == b"1"
        assert lines[-2] == b"200000"
        assert any(b"were left out here" in line for line in lines)

    def test_the_environment_holds_no_secret_of_the_platform(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "env", variables={"MINE": "yes"}, secrets={"KEY": "hidden"}))
        heard.ended("j.1")
        names = {line.partition(b"=")[0] for line in heard.log("j.1").splitlines()}
        assert {b"MINE", b"KEY", b"PATH"} <= names
        assert not [name for name in names if b"TOKEN" in name or b"DATABASE" in name]

    def test_reports_come_again_after_a_connection_was_lost_until_they_are_forgotten(
        self, make: Make
    ) -> None:
        first = Listener(make("a"))
        first.executor.start(sh("j", "echo once"))
        first.ended("j.1")
        first.executor.close(stop=False)
        second = Listener(make("a"))
        assert second.connected().attempts == {"j.1"}
        second.ended("j.1")
        assert second.log("j.1") == b"once\n"
        second.executor.forget("j.1")
        second.executor.close(stop=False)
        third = Listener(make("a"))
        assert third.connected().attempts == frozenset()

    def test_who_knows_a_part_is_told_only_the_rest(self, make: Make) -> None:
        first = Listener(make("a"))
        first.executor.start(sh("j", "echo once"))
        first.ended("j.1")
        first.executor.close(stop=False)
        executor = make("a")
        second = Listener(executor)
        executor.connect(second.fence, {"j.1": 3})
        second.entries.clear()
        second.ended("j.1")
        assert min(second.entries["j.1"]) >= 3 or 0 in second.entries["j.1"]

    def test_a_controller_with_an_older_fence_is_refused(self, make: Make) -> None:
        newest = Listener(make("a"))
        newest.connected()
        late = Listener(make("a"), fence=newest.fence - 1)
        late.until(lambda: any(isinstance(report, Away) for report in late.reports))
        assert not any(isinstance(report, Connected) for report in late.reports)

    def test_heartbeats_name_what_lives(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh(OWN, "sleep 1000"))
        heard.until(lambda: any(isinstance(r, Beat) and f"{OWN}.1" in r.alive for r in heard.reports))
        heard.executor.kill(f"{OWN}.1", force=True)
        heard.over(f"{OWN}.1")
        assert marked(f"{OWN}.1") == []

    def test_a_trial_runs_in_a_warm_process_and_another_one_may_reuse_it(self, make: Make) -> None:
        heard = Listener(make("a"))
        for job in ("a", "b"):
            run = Trial("easel.testing.trials:count", {"steps": 3})
            heard.executor.start(Order(job, 1, "prj", run, resources=Resources(0.5, 512)))
            heard.done(f"{job}.1")
        said = [body for j in "ab" for body in heard.bodies(f"{j}.1") if isinstance(body, ResultTold)]
        assert [result.value["score"] for result in said] == [0.5, 0.5]
        metrics = next(body for body in heard.bodies("a.1") if isinstance(body, MetricPoints))
        assert metrics.points == [("loss", 0, 1.0), ("loss", 1, 0.5), ("loss", 2, 1 / 3)]

    def test_a_trial_that_fails_dies_or_lasts_too_long_ends_and_the_next_one_runs(self, make: Make) -> None:
        heard = Listener(make("a"))

        def trial(job: str, function: str, **more: Any) -> None:
            run = Trial(f"easel.testing.trials:{function}", more.pop("arguments", {}))
            heard.executor.start(Order(job, 1, "prj", run, resources=Resources(0.5, 512), **more))

        trial("raises", "raise_error")
        trial("dies", "die")
        trial("long", "wait", arguments={"until": "/nowhere"}, time_limit_s=0.3)
        trial("unknown", "no_such_trial")
        assert heard.failed("raises.1").reason == "RuntimeError: the loss is not a number"
        assert b"Traceback" in heard.log("raises.1")
        heard.over("dies.1")
        assert heard.lost("dies.1") == "its process died"
        assert heard.failed("long.1").reason == "the time limit of 0.3 s was reached"
        assert heard.failed("unknown.1").final
        trial("after", "noop")
        heard.done("after.1")
