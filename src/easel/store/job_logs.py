"""Queries on what jobs said: log lines in compressed chunks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select

from easel.ids import JobId
from easel.store.engine import Tx
from easel.store.schema.jobs import job_logs


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Whole lines of one stream, as they came."""

    job_id: JobId
    attempt: int
    number: int
    first_line: int
    lines: int
    stream: str
    at: datetime
    data: bytes


@dataclass(frozen=True, slots=True)
class LogLine:
    """`number` counts from 0 over the attempt."""

    number: int
    stream: str
    at: datetime
    text: str


def add_chunks(tx: Tx, chunks: Sequence[LogChunk]) -> None:
    if chunks:
        rows = [
            {
                "job_id": chunk.job_id,
                "attempt": chunk.attempt,
                "number": chunk.number,
                "first_line": chunk.first_line,
                "lines": chunk.lines,
                "stream": chunk.stream,
                "at": chunk.at,
                "data": zlib.compress(chunk.data, 1),
            }
            for chunk in chunks
        ]
        tx.execute(insert(job_logs), rows)


def read_lines(tx: Tx, job_id: JobId, attempt: int, after: int, limit: int) -> list[LogLine]:
    """Returns at most `limit` lines from line number `after` on."""
    return list(_first(_lines(tx, job_id, attempt, after), limit))


def last_line(tx: Tx, job_id: JobId, attempt: int) -> str:
    """The last line with anything in it, of standard error where it said something; empty where all was silent."""
    for stream in ("err", "out"):
        query = (
            select(job_logs.c.data)
            .where(job_logs.c.job_id == job_id, job_logs.c.attempt == attempt, job_logs.c.stream == stream)
            .order_by(job_logs.c.number.desc())
            .limit(1)
        )
        data = tx.execute(query).scalar_one_or_none()
        if data is not None:
            lines = zlib.decompress(data).decode(errors="replace").strip().splitlines()
            if lines:
                return lines[-1].strip()
    return ""


def search_lines(tx: Tx, job_id: JobId, attempt: int, words: str, after: int, limit: int) -> list[LogLine]:
    """Returns at most `limit` lines, from `after` on, that contain `words`, in whatever case.

    Words and not a pattern: a pattern can be made to keep a server busy for hours.
    """
    wanted = words.casefold()
    found = (line for line in _lines(tx, job_id, attempt, after) if wanted in line.text.casefold())
    return list(_first(found, limit))


def _lines(tx: Tx, job_id: JobId, attempt: int, after: int) -> Iterator[LogLine]:
    position = after
    while True:
        query = (
            select(job_logs)
            .where(
                job_logs.c.job_id == job_id,
                job_logs.c.attempt == attempt,
                job_logs.c.first_line + job_logs.c.lines > position,
            )
            .order_by(job_logs.c.number)
            .limit(8)
        )
        rows = tx.execute(query).all()
        for row in rows:
            text = zlib.decompress(row.data).decode(errors="replace")
            for offset, line in enumerate(text.removesuffix("\n").split("\n")):
                number = row.first_line + offset
                if number >= position:
                    yield LogLine(number, row.stream, row.at, line)
            position = row.first_line + row.lines
        if not rows:
            return


def _first(lines: Iterator[LogLine], count: int) -> Iterator[LogLine]:
    for _ in range(count):
        line = next(lines, None)
        if line is None:
            return
        yield line
