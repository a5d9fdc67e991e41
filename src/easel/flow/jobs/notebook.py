"""Looking at a notebook that runs as a job: every cell as it stands, while it runs and for good."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.declare.job import Notebook
from easel.errors import NotFound
from easel.flow.lake.visible import need_job
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job
from easel.store import job_cells, jobs
from easel.store.engine import Tx

_HEAD = -1
_DEPTH = 20


@dataclass(frozen=True, slots=True)
class CellNow:
    """A cell of the notebook: `body` in the notebook format, with its outputs so far."""

    number: int
    state: str
    at: datetime | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotebookNow:
    """`next` counts what the attempt has said of its cells; whoever asks with it as `since` gets what came after."""

    path: str
    attempt: int
    total: int
    next: int
    over: bool
    cells: Sequence[CellNow]


def notebook_of(
    tx: Tx, caller: Caller, job_id: str, *, since: int = -1, attempt: int | None = None
) -> NotebookNow:
    """The cells that changed since then, all of them at first."""
    job = need_job(tx, caller, job_id)
    run = _run_of(job)
    which = job.attempt if attempt is None else attempt
    found = _cells(tx, job, run, which)
    rows = job_cells.of_job(tx, job.id, which)
    newest = max((row.number for row in rows), default=-1)
    changed = {row.cell for row in rows if row.number > since}
    chosen = found if since < 0 or _HEAD in changed else [c for c in found if c.number in changed]
    over = job.state in TERMINAL or which < job.attempt
    return NotebookNow(run.path, which, len(found), newest, over, chosen)


def executed_copy(tx: Tx, caller: Caller, job_id: str) -> dict[str, Any]:
    """The notebook with all outputs so far, in the notebook format."""
    job = need_job(tx, caller, job_id)
    run = _run_of(job)
    head = next((row for row in job_cells.of_job(tx, job.id, job.attempt) if row.cell == _HEAD), None)
    if head is None:
        raise NotFound(f"no cell of job {job_id} has run yet")
    return {**_read(head.data), "cells": [cell.body for cell in _cells(tx, job, run, job.attempt)]}


def _run_of(job: Job) -> Notebook:
    if not isinstance(job.spec.run, Notebook):
        raise NotFound(f"job {job.id} ran no notebook")
    return job.spec.run


def _cells(tx: Tx, job: Job, run: Notebook, attempt: int, depth: int = 0) -> list[CellNow]:
    """All cells; those that a rerun passed over are as its parent left them."""
    rows = {row.cell: row for row in job_cells.of_job(tx, job.id, attempt)}
    head = rows.pop(_HEAD, None)
    if head is None:
        return []
    cells = [CellNow(n, "waiting", None, body) for n, body in enumerate(_read(head.data)["cells"])]
    for number, row in rows.items():
        if number < len(cells):
            cells[number] = CellNow(number, row.state, row.at, _read(row.data))
    if run.first > 1 and job.parent_id is not None and depth < _DEPTH:
        parent = jobs.find(tx, job.project_id, job.parent_id)
        if isinstance(parent.spec.run, Notebook):
            before = _cells(tx, parent, parent.spec.run, parent.attempt, depth + 1)
            for old in before[: len(cells)]:
                new = cells[old.number]
                if new.state == "skipped" and new.body.get("source") == old.body.get("source"):
                    cells[old.number] = CellNow(old.number, "skipped", old.at, old.body)
    return cells


def _read(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(data))
    return found
