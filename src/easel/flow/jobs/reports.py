"""What executors say of attempts, in the words of the life cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.records.job import JobState, Usage
from easel.run.executors.base import MemberSaid
from easel.run.journal import Entry
from easel.run.lifecycle import Ended, Happening, OutputReady, Reached


@dataclass(frozen=True, slots=True)
class Told:
    """What an executor says of the attempt `key`: lines of its journal, of a further member's, or that it is gone."""

    key: str
    entries: Sequence[Entry] = ()
    gone: str | None = None
    member: MemberSaid | None = None

    @property
    def job_id(self) -> str:
        return self.key.rpartition(".")[0]

    @property
    def attempt(self) -> int:
        return int(self.key.rpartition(".")[2])


def signed(lines: bytes, rank: int) -> bytes:
    """Whole lines of a member, each with its number before it: `[3] loss 0.1`."""
    mark = f"[{rank}] ".encode()
    return b"".join(mark + line + b"\n" for line in lines.removesuffix(b"\n").split(b"\n"))


def metric_row(
    job_id: str, attempt: int, at: datetime, name: str, number: int, value: float | str
) -> dict[str, Any]:
    finite = not isinstance(value, str)
    return {
        "job_id": job_id,
        "attempt": attempt,
        "name": name,
        "step": number,
        "value": value if finite else None,
        "text": None if finite else value,
        "at": at,
    }


def happening(attempt: int, entry: Entry) -> Happening | None:
    used = entry.get("usage")
    usage = Usage(**used) if used else None
    match entry["k"]:
        case "reached":
            return Reached(attempt, JobState(entry["state"]), usage)
        case "done":
            return OutputReady(attempt, usage or Usage())
        case "ended":
            return Ended(attempt, entry["reason"], entry["code"], usage, entry["final"])
    return None
