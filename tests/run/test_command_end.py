"""What the end of a command means: each way to end has one reason, and some are worth another try."""

from __future__ import annotations

import pytest

from easel.records.attempt import EndReason
from easel.records.job import Usage
from easel.run.command_end import CommandEnd, failure_of

USED = Usage(wall_seconds=2.0)
RAN = '{ "exit-code": 1 }'


def told(end: CommandEnd) -> tuple[EndReason, str, int | None, bool]:
    failure = failure_of(end)
    assert failure is not None
    assert failure.usage is USED
    return failure.end, failure.reason, failure.exit_code, failure.final


def test_a_command_that_ends_well_and_a_session_that_was_idle_are_kept() -> None:
    assert failure_of(CommandEnd(0, USED, sandbox_status="")) is None
    assert failure_of(CommandEnd(-15, USED, stopped_for=(EndReason.IDLE, "nobody was there"))) is None


def test_what_the_agent_stopped_ends_for_the_agents_reason_even_with_exit_code_0() -> None:
    end = CommandEnd(0, USED, stopped_for=(EndReason.TIME_LIMIT, "too long"), out_of_memory=True)
    assert told(end) == (EndReason.TIME_LIMIT, "too long", 0, False)


def test_memory_comes_before_what_the_kernels_kill_looks_like() -> None:
    end = CommandEnd(-9, USED, out_of_memory=True, memory_mb=64)
    assert told(end) == (EndReason.MEMORY_LIMIT, "the memory limit of 64 MB was reached", -9, False)


def test_a_missing_command_is_final_and_a_sandbox_that_failed_is_not() -> None:
    missing = CommandEnd(1, USED, sandbox_status="", last_line="bwrap: execvp nothing: No such file")
    assert told(missing) == (
        EndReason.CANNOT_START,
        "the command cannot be started: execvp nothing: No such file",
        127,
        True,
    )
    broken = CommandEnd(1, USED, sandbox_status="{}", last_line="bwrap: no room for a mount")
    assert told(broken) == (EndReason.CANNOT_START, "the sandbox failed: no room for a mount", 1, False)


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (3, RAN, "exit code 3"),
        (3, None, "exit code 3"),
        (-9, "", "exit code -9 (SIGKILL)"),
        (-200, None, "exit code -200"),
    ],
)
def test_an_exit_code_names_its_signal(code: int, status: str | None, reason: str) -> None:
    end = CommandEnd(code, USED, sandbox_status=status, last_line="bwrap: execvp")
    assert told(end) == (EndReason.EXIT_CODE, reason, code, False)


def test_a_notebook_tells_which_cell_failed_unless_it_was_killed() -> None:
    assert told(CommandEnd(1, USED, sandbox_status=RAN, failed_cell="cell 3: ValueError"))[1] == (
        "cell 3: ValueError"
    )
    assert told(CommandEnd(-9, USED, failed_cell="cell 3"))[1] == "exit code -9 (SIGKILL)"
