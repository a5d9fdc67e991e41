"""What executors say of attempts, in the words of the life cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.records.attempt import AttemptKey, EndReason
from easel.run.entries import AttemptDone, AttemptEnded, AttemptLost, EntryBody, JournalEntry, StateReached
from easel.run.executors.base import MemberEnded, MemberSaid
from easel.run.lifecycle import Ended, Gone, Happening, OutputReady, Reached
from easel.store.stored_job import StoredJob


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """What an executor says of an attempt: entries of its journal, of a further member's, or that it is gone."""

    key: AttemptKey
    entries: Sequence[JournalEntry] = ()
    gone: tuple[EndReason, str] | None = None
    member: MemberSaid | None = None
    member_end: MemberEnded | None = None

    @property
    def job_id(self) -> str:
        return self.key.job_id

    @property
    def attempt(self) -> int:
        return self.key.attempt


def signed(lines: bytes, rank: int) -> bytes:
    """Whole lines of a member, each with its number before it: `[3] loss 0.1`."""
    mark = f"[{rank}] ".encode()
    return b"".join(mark + line + b"\n" for line in lines.removesuffix(b"\n").split(b"\n"))


def metric_row(
    job: StoredJob, attempt: int, at: datetime, name: str, number: int, value: float | str
) -> dict[str, Any]:
    finite = not isinstance(value, str)
    return {
        "project_id": job.project_id,
        "artifact_id": job.artifact_id,
        "job_id": job.id,
        "attempt": attempt,
        "name": name,
        "step": number,
        "value": value if finite else None,
        "text": None if finite else value,
        "at": at,
    }


def happening(attempt: int, body: EntryBody, rank: int = 0) -> Happening | None:
    """What an entry means for the job, if anything. The bad end of a member is that of the whole attempt."""
    member = f"worker {rank}: " if rank else ""
    match body:
        case StateReached(state, usage):
            return Reached(attempt, state, usage)
        case AttemptDone(usage):
            return OutputReady(attempt, usage)
        case AttemptEnded(end, reason, exit_code, final, usage):
            return Ended(attempt, member + reason, exit_code, usage, final, end)
        case AttemptLost(end, reason):
            return Gone(attempt, member + reason, end)
    return None
