"""The life cycle: every pair of state and happening, and random histories of a small pool."""

from __future__ import annotations

import json
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from easel.declare.job import RetryRule
from easel.declare.resources import Resources, Room
from easel.records.attempt import EndReason
from easel.records.job import ACTIVE, TERMINAL, JobState, Usage
from easel.run.lifecycle import (
    Dequeued,
    Ended,
    Gone,
    Happening,
    IgnoredLate,
    KeepOutput,
    KillRequested,
    Life,
    OutputReady,
    Reached,
    StartAttempt,
    StopAttempt,
    UpstreamFailed,
    from_json,
    replay,
    step,
    to_json,
)

USED = Usage(1.5, 20.0, 2.0)


def at(state: JobState, **changes: object) -> Life:
    attempt = 0 if state is JobState.QUEUED else 1
    return replace(Life(state=state, attempt=attempt), **changes)  # type: ignore[arg-type]


def happenings(attempt: int) -> list[Happening]:
    return [
        Dequeued(),
        Reached(attempt, JobState.DOWNLOADING),
        Reached(attempt, JobState.RUNNING),
        Reached(attempt, JobState.UPLOADING, USED),
        OutputReady(attempt, USED),
        Ended(attempt, "exit code 3", 3, USED),
        Gone(attempt, "the machine went away"),
        KillRequested("no longer needed"),
        UpstreamFailed("step a failed"),
    ]


def test_the_straight_way_goes_through_every_state_and_keeps_the_output_once() -> None:
    life, seen, kept = Life(), [JobState.QUEUED], 0
    for what in (
        Dequeued(),
        Reached(1, JobState.DOWNLOADING),
        Reached(1, JobState.RUNNING),
        Reached(1, JobState.UPLOADING, USED),
        OutputReady(1, USED),
    ):
        after = step(life, what)
        life, kept = after.life, kept + sum(isinstance(i, KeepOutput) for i in after.instructions)
        seen.append(life.state)
    assert [s.value for s in seen] == [
        "queued",
        "launching",
        "downloading",
        "running",
        "uploading",
        "finished",
    ]
    assert (kept, life.exit_code, life.usage) == (1, 0, USED)


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("what", happenings(1), ids=lambda what: type(what).__name__)
def test_terminal_states_absorb_everything(state: JobState, what: Happening) -> None:
    over = at(state)
    after = step(over, what)
    assert after.life == over
    assert all(isinstance(i, IgnoredLate) for i in after.instructions)


@pytest.mark.parametrize("state", sorted(ACTIVE))
@pytest.mark.parametrize("what", happenings(1)[1:7], ids=lambda what: type(what).__name__)
def test_a_report_of_an_earlier_attempt_changes_nothing_and_is_written_down(
    state: JobState, what: Happening
) -> None:
    second = at(state, attempt=2)
    after = step(second, what)
    assert after.life == second
    assert after.instructions == (IgnoredLate(1, type(what).__name__),)


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_a_kill_at_any_active_state_stops_the_attempt_and_ends_killed_even_if_the_output_was_ready(
    state: JobState,
) -> None:
    asked = step(at(state), KillRequested("enough"))
    assert asked.instructions == (StopAttempt(1),)
    assert asked.life.state is state
    for last in (OutputReady(1, USED), Ended(1, "terminated", -15), Gone(1, "stopped")):
        ended = step(asked.life, last)
        assert (ended.life.state, ended.life.reason, ended.instructions) == (JobState.KILLED, "enough", ())


def test_a_queued_job_is_killed_at_once() -> None:
    after = step(Life(), KillRequested("enough"))
    assert (after.life.state, after.instructions) == (JobState.KILLED, ())


def test_a_failure_is_repeated_as_often_as_the_rule_says_and_a_loss_is_counted_apart() -> None:
    life = Life(retry=RetryRule(lost=1, failed=2))
    states = []
    for last in (
        Ended(1, "exit code 1", 1),
        Gone(2, "lost"),
        Ended(3, "exit code 1", 1),
        Ended(4, "exit code 1", 1),
    ):
        life = step(step(life, Dequeued()).life, last).life
        states.append(life.state)
    assert states == [JobState.QUEUED] * 3 + [JobState.FAILED]


def test_what_cannot_be_helped_by_trying_again_is_not_tried_again() -> None:
    launched = step(Life(retry=RetryRule(failed=5)), Dequeued()).life
    assert step(launched, Ended(1, "no such program", 127, final=True)).life.state is JobState.FAILED


def test_the_agent_only_moves_a_job_forward() -> None:
    running = at(JobState.RUNNING)
    assert step(running, Reached(1, JobState.DOWNLOADING)).life == running
    assert step(running, Dequeued()).life == running


@pytest.mark.parametrize("what", happenings(3), ids=lambda what: type(what).__name__)
def test_histories_survive_being_stored_as_json(what: Happening) -> None:
    assert from_json(json.loads(json.dumps(to_json(what)))) == what


class SmallPool(RuleBasedStateMachine):
    """Jobs on a device of two cores, with reports delayed, repeated and reordered at will."""

    jobs = Bundle("jobs")
    reports = Bundle("reports")

    @initialize()
    def start(self) -> None:
        self.lives: dict[int, Life] = {}
        self.histories: dict[int, list[Happening]] = {}
        self.kept: dict[int, int] = {}
        self.ended: dict[int, Life] = {}
        self.asked: dict[int, Resources] = {}
        self.room = Room(2.0, 2048)
        self.placed: dict[tuple[int, int], Resources] = {}

    @rule(
        target=jobs,
        lost=st.integers(0, 2),
        failed=st.integers(0, 2),
        vcpu=st.sampled_from([0.5, 1.0, 2.0]),
    )
    def submit(self, lost: int, failed: int, vcpu: float) -> int:
        job = len(self.lives)
        self.lives[job] = Life(retry=RetryRule(lost, failed))
        self.histories[job], self.kept[job], self.asked[job] = [], 0, Resources(vcpu, 512)
        return job

    def tell(self, job: int, what: Happening) -> None:
        before = self.lives[job]
        after = step(before, what)
        self.lives[job] = after.life
        self.histories[job].append(what)
        for instruction in after.instructions:
            if isinstance(instruction, KeepOutput):
                self.kept[job] += 1
        if after.life.state not in ACTIVE and before.state in ACTIVE:
            gone = self.placed.pop((job, before.attempt), None)
            if gone:
                self.room = self.room.plus(gone, ())
        if after.life.over:
            self.ended.setdefault(job, after.life)

    @rule(job=jobs)
    def choose(self, job: int) -> None:
        self.tell(job, Dequeued())

    @rule(target=reports, job=jobs)
    def place(self, job: int) -> object:
        life, asked = self.lives[job], self.asked[job]
        if life.state is JobState.LAUNCHING and self.room.fits(asked):
            if (job, life.attempt) in self.placed:
                return multiple()
            self.placed[job, life.attempt] = asked
            self.room = self.room.less(asked, ())
            return multiple(*((job, what) for what in happenings(life.attempt)[1:7]))
        return multiple()

    @rule(report=reports)
    def deliver(self, report: tuple[int, Happening]) -> None:
        self.tell(*report)

    @rule(report=consumes(reports))
    def deliver_for_the_last_time(self, report: tuple[int, Happening]) -> None:
        self.tell(*report)

    @rule(job=jobs)
    def kill(self, job: int) -> None:
        self.tell(job, KillRequested("enough"))

    @invariant()
    def terminal_states_absorb_and_outputs_are_kept_exactly_when_finished(self) -> None:
        for job, life in self.lives.items():
            if job in self.ended:
                assert life == self.ended[job]
            assert self.kept[job] == (1 if life.state is JobState.FINISHED else 0)

    @invariant()
    def capacity_is_never_exceeded_and_never_leaks(self) -> None:
        assert self.room.vcpu >= 0
        assert self.room.vcpu == 2.0 - sum(asked.vcpu for asked in self.placed.values())
        for job, attempt in self.placed:
            assert self.lives[job].attempt == attempt
            assert self.lives[job].state in ACTIVE

    @invariant()
    def replaying_the_history_rebuilds_the_state(self) -> None:
        for job, life in self.lives.items():
            assert replay(life.retry, self.histories[job]) == life

    @invariant()
    def attempts_never_exceed_what_the_retry_rule_allows(self) -> None:
        for life in self.lives.values():
            assert life.attempt <= 1 + life.retry.lost + life.retry.failed


TestSmallPool = SmallPool.TestCase
TestSmallPool.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_starting_is_told_once_with_the_attempt_number() -> None:
    assert step(Life(attempt=4), Dequeued()).instructions == (StartAttempt(5),)


# --- what each end of an attempt leaves behind, to the last field ---------------------------------------

BEFORE = Usage(0.5, 3.0, 1.0)
RUNNING = Life(JobState.RUNNING, 3, lost=1, failed=1, usage=BEFORE, retry=RetryRule(lost=2, failed=2))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (Reached(3, JobState.UPLOADING, USED), replace(RUNNING, state=JobState.UPLOADING, usage=USED)),
        (Reached(3, JobState.UPLOADING), replace(RUNNING, state=JobState.UPLOADING)),
        (Reached(3, JobState.RUNNING, USED), RUNNING),
        (Reached(3, JobState.FINISHED, USED), RUNNING),
        (
            Ended(3, "exit code 2", 2, USED, end=EndReason.EXIT_CODE),
            replace(
                RUNNING,
                state=JobState.QUEUED,
                failed=2,
                exit_code=2,
                end=EndReason.EXIT_CODE,
                reason="exit code 2",
                usage=USED,
            ),
        ),
        (
            Ended(3, "no such program", 127, None, final=True, end=EndReason.EXIT_CODE),
            replace(
                RUNNING,
                state=JobState.FAILED,
                exit_code=127,
                end=EndReason.EXIT_CODE,
                reason="no such program",
            ),
        ),
        (
            Gone(3, "the machine went away", EndReason.DEVICE_LOST),
            replace(
                RUNNING,
                state=JobState.QUEUED,
                lost=2,
                end=EndReason.DEVICE_LOST,
                reason="the machine went away",
            ),
        ),
        (
            Gone(3, "emptied", EndReason.STOPPED),
            replace(RUNNING, state=JobState.QUEUED, end=EndReason.STOPPED, reason="emptied"),
        ),
        (
            Ended(3, "emptied", -15, USED, end=EndReason.STOPPED),
            replace(RUNNING, state=JobState.QUEUED, end=EndReason.STOPPED, reason="emptied"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_report_changes_and_what_it_leaves(what: Happening, expected: Life) -> None:
    assert step(RUNNING, what).life == expected
    assert step(RUNNING, what).instructions == ()


def test_a_job_that_finished_forgets_why_its_earlier_attempts_did_not() -> None:
    again = replace(RUNNING, exit_code=2, end=EndReason.EXIT_CODE, reason="exit code 2")
    after = step(again, OutputReady(3, USED))
    assert after.life == replace(
        again, state=JobState.FINISHED, exit_code=0, end=None, reason=None, usage=USED
    )
    assert after.instructions == (KeepOutput(3),)


def test_the_last_loss_that_the_rule_allows_fails_the_job() -> None:
    last = replace(RUNNING, lost=2)
    assert step(last, Gone(3, "lost again", EndReason.DEVICE_LOST)).life == replace(
        last, state=JobState.FAILED, end=EndReason.DEVICE_LOST, reason="lost again"
    )


def test_the_last_failure_that_the_rule_allows_fails_the_job() -> None:
    last = replace(RUNNING, failed=2)
    assert step(last, Ended(3, "exit code 1", 1, USED, end=EndReason.EXIT_CODE)).life == replace(
        last, state=JobState.FAILED, exit_code=1, end=EndReason.EXIT_CODE, reason="exit code 1", usage=USED
    )


@pytest.mark.parametrize(
    ("last", "code", "usage"),
    [
        (OutputReady(3, USED), None, USED),
        (Ended(3, "terminated", -15, USED), -15, USED),
        (Ended(3, "terminated", -15), -15, BEFORE),
        (Gone(3, "stopped"), None, BEFORE),
        (Ended(3, "emptied", -15, end=EndReason.STOPPED), -15, BEFORE),
    ],
)
def test_a_kill_keeps_the_askers_reason_and_the_last_word_on_usage(
    last: Happening, code: int | None, usage: Usage
) -> None:
    asked = step(RUNNING, KillRequested("enough", EndReason.TIME_LIMIT)).life
    assert asked == replace(RUNNING, kill_requested=True, end=EndReason.TIME_LIMIT, reason="enough")
    assert step(asked, last).life == replace(asked, state=JobState.KILLED, exit_code=code, usage=usage)


def test_whoever_is_asked_to_die_twice_is_told_once() -> None:
    asked = step(RUNNING, KillRequested("enough")).life
    again = step(asked, KillRequested("more than enough", EndReason.TIME_LIMIT))
    assert (again.life, again.instructions) == (asked, ())


def test_a_new_attempt_begins_with_its_own_number_and_no_usage() -> None:
    waiting = replace(RUNNING, state=JobState.QUEUED)
    after = step(waiting, Dequeued())
    assert after.life == replace(waiting, state=JobState.LAUNCHING, attempt=4, usage=None)
    assert after.instructions == (StartAttempt(4),)


def test_a_job_whose_input_will_never_be_made_fails_with_that_reason_unless_it_runs() -> None:
    waiting = replace(RUNNING, state=JobState.QUEUED)
    assert step(waiting, UpstreamFailed("step a failed")).life == replace(
        waiting, state=JobState.FAILED, end=EndReason.UPSTREAM, reason="step a failed"
    )
    assert step(RUNNING, UpstreamFailed("step a failed")).life == RUNNING
