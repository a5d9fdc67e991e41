"""What must run again to bring a dropped file set back: a pure walk over the provenance graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from easel.errors import Conflict


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """What is known about a file set: the job that made it, if one did, what that job read, and whether the
    bytes are gone."""

    label: str
    dropped: bool
    job: int | None
    reads: Sequence[int]


def jobs_to_replay(target: int, look: Callable[[int], ReplaySource]) -> list[int]:
    """The jobs that must run, each after those that make what it reads. Conflict where bytes are lost for good."""
    order: list[int] = []
    done: set[int] = set()
    # Depth first without recursion: a chain of jobs may be longer than Python's stack.
    stack: list[tuple[int, bool]] = [(target, False)]
    while stack:
        node, ready = stack.pop()
        source = look(node)
        if not source.dropped or node in done:
            continue
        if source.job is None:
            raise Conflict(f"{source.label} was not made by a job, so it cannot be regenerated")
        if ready:
            done.add(node)
            if source.job not in order:
                order.append(source.job)
            continue
        stack.append((node, True))
        stack += [(read, False) for read in source.reads]
    return order
