"""What ends an attempt before its work is done: a failure with its reason, or the order to stop."""

from __future__ import annotations

import contextlib
import os
import signal

from easel.records.attempt import EndReason
from easel.records.job import Usage


class Failure(Exception):
    """The attempt ends here, for this reason. `final` when trying again cannot help."""

    def __init__(
        self,
        end: EndReason,
        reason: str,
        exit_code: int | None = None,
        final: bool = False,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(reason)
        self.end, self.reason, self.exit_code = end, reason, exit_code
        self.final, self.usage = final, usage


class StopSignal:
    """SIGTERM to the agent means: end the job, then yourself."""

    def __init__(self) -> None:
        self.asked = False
        self.read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGTERM, self._on)

    def _on(self, *_: object) -> None:
        self.asked = True
        with contextlib.suppress(OSError):
            os.write(self._write_fd, b"!")

    def check(self) -> None:
        if self.asked:
            raise Failure(EndReason.STOPPED, "stopped")
