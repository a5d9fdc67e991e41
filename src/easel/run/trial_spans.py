"""The spans of a trial in a warm process, told by its worker from the trial's journal.

The process itself sends nothing: it is forked again and again, and a thread that sends would be in the way of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from easel import traces
from easel.records.job import JobState
from easel.run.entries import AttemptEnded, AttemptLost, JournalEntry, StateReached
from easel.run.order import Order

SERVICE = "easel-trial"
_STEPS = {JobState.DOWNLOADING: "download", JobState.RUNNING: "run", JobState.UPLOADING: "upload"}


def record_trial(order: Order, entries: Sequence[JournalEntry]) -> None:
    """Notes the trial's span, with its steps inside it; an error carries the reason. One that never began has none."""
    steps = [
        (_STEPS[entry.body.state], _moment(entry))
        for entry in entries
        if isinstance(entry.body, StateReached) and entry.body.state in _STEPS
    ]
    if not steps:
        return
    last = entries[-1]
    for (step, began), (_, ended) in pairwise([*steps, ("", _moment(last))]):
        traces.record(step, SERVICE, order.job_id, began, ended, attempt=order.attempt, within=traces.AGENT)
    error = last.body.reason if isinstance(last.body, AttemptEnded | AttemptLost) else None
    traces.record(
        traces.AGENT, SERVICE, order.job_id, steps[0][1], _moment(last), attempt=order.attempt, error=error
    )


def _moment(entry: JournalEntry) -> datetime:
    return datetime.fromtimestamp(entry.at, UTC)
