"""Attempts: the name of one, and why one ended."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from easel.errors import InvalidInput

_KEY = re.compile(r"(?P<job>.+)\.(?P<attempt>[0-9]+)(?:-(?P<rank>[0-9]+))?")


class AttemptKey(NamedTuple):
    """Names one attempt at a job, or one member of it where several devices run it: `job.attempt-rank`."""

    job_id: str
    attempt: int
    rank: int = 0

    def __str__(self) -> str:
        return f"{self.job_id}.{self.attempt}-{self.rank}" if self.rank else f"{self.job_id}.{self.attempt}"

    @property
    def gang(self) -> AttemptKey:
        """The whole attempt, whose journal is that of its first member."""
        return self._replace(rank=0)

    @classmethod
    def parse(cls, text: str) -> AttemptKey:
        found = _KEY.fullmatch(text)
        if found is None:
            raise InvalidInput(f"{text[:60]!r} names no attempt: use JOB.ATTEMPT or JOB.ATTEMPT-RANK")
        return cls(found["job"], int(found["attempt"]), int(found["rank"] or 0))


class EndReason(StrEnum):
    """Why an attempt, or a job that had none, ended. Code compares these; a sentence beside it is for people."""

    EXIT_CODE = "exit-code"
    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"
    DISK_LIMIT = "disk-limit"
    RAISED = "raised"
    CANNOT_START = "cannot-start"
    REFUSED = "refused"
    FILES = "files"
    UPSTREAM = "upstream"
    # Somebody asked for it.
    STOPPED = "stopped"
    KILLED = "killed"
    IDLE = "idle"
    BY_STUDY = "by-study"
    BY_BUDGET = "by-budget"
    # The platform lost it.
    AGENT_DIED = "agent-died"
    PROCESS_DIED = "process-died"
    WORKER_DIED = "worker-died"
    DEVICE_LOST = "device-lost"
    UNKNOWN_THERE = "unknown-there"
    NOT_UNDERSTOOD = "not-understood"
    OTHER = "other"
    """What older releases wrote, and said only in words."""
