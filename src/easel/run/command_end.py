"""What the end of a command means for its attempt."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from easel.records.attempt import EndReason
from easel.records.job import Usage
from easel.run.failure import Failure

_EXECUTED = '"exit-code"'
"""The sandbox writes this into its status when the command itself has run and ended."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """What was seen of a command until it ended. `exit_code` is negative for a signal."""

    exit_code: int
    usage: Usage
    stopped_for: tuple[EndReason, str] | None = None
    """Why the agent stopped it, where it did."""
    out_of_memory: bool = False
    memory_mb: int = 0
    """The limit that was set."""
    sandbox_status: str | None = None
    """What the sandbox reported; None where the command ran without one."""
    last_line: str = ""
    """The last line on standard error."""
    failed_cell: str | None = None
    """What the failing cell of a notebook said."""


def failure_of(end: CommandEnd) -> Failure | None:
    """Returns why the attempt fails; None where its output is to be kept."""
    code, usage = end.exit_code, end.usage
    if end.stopped_for is not None:
        if end.stopped_for[0] is EndReason.IDLE:
            return None  # a session that did nothing is saved
        return Failure(*end.stopped_for, code, usage=usage)
    if code == 0:
        return None
    if end.out_of_memory:
        reason = f"the memory limit of {end.memory_mb} MB was reached"
        return Failure(EndReason.MEMORY_LIMIT, reason, code, usage=usage)
    # One that was killed from outside did not fail: the sandbox has nothing to say of it.
    if code > 0 and end.sandbox_status is not None and _EXECUTED not in end.sandbox_status:
        said = end.last_line.removeprefix("bwrap: ")
        if "execvp" in said:
            reason = f"the command cannot be started: {said}"
            return Failure(EndReason.CANNOT_START, reason, 127, final=True, usage=usage)
        return Failure(EndReason.CANNOT_START, f"the sandbox failed: {said}", code, usage=usage)
    if code > 0 and end.failed_cell is not None:
        return Failure(EndReason.EXIT_CODE, end.failed_cell, code, usage=usage)
    name = f" ({signal.Signals(-code).name})" if code < 0 and -code in list(signal.Signals) else ""
    return Failure(EndReason.EXIT_CODE, f"exit code {code}{name}", code, usage=usage)
