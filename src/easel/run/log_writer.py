"""Keeping a bounded log of an unbounded stream: its first and last bytes, and of each line its beginning.

Chunks are cut at line ends, so that a reader never sees half a line; a line longer than the limit is cut and
says so. A bar that redraws itself with carriage returns becomes a line for every tenth of its way. Between head and
tail a gap tells how much was left out. Facts are parsed from all lines.
"""

from __future__ import annotations

import base64
import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from easel.run.entries import EntryBody, LoggedLines, MetricPoints, ProgressMade, TagsSet
from easel.run.journal import Journal
from easel.run.loglines import Fact, Metric, ProgressLine, TagLine, has_directive, parse
from easel.run.order import LogLimits
from easel.run.redrawn import Redrawn

STREAMS = ("out", "err", "platform")
FLUSH_BYTES = 256 * 1024
FLUSH_S = 0.2
SOON_S = 0.02
MAX_METRICS_AT_ONCE = 2000
MASK = b"***"
_LEAST_SECRET = 4
"""Shorter ones are no secrets, and masking them would make a log unreadable."""


def forms_of(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """The forms in which secrets show up in logs: as they are, each line of them, and in base64; longest first."""
    found: set[bytes] = set()
    for secret in secrets:
        for part in {secret.strip(), *(line.strip() for line in secret.splitlines())}:
            if len(part) >= _LEAST_SECRET:
                found |= {part.encode(), base64.b64encode(part.encode()).rstrip(b"=")}
    return tuple(sorted(found, key=len, reverse=True))


class FlushPace:
    """When lines that wait are told: what comes after silence after SOON_S, the rest at most every FLUSH_S."""

    def __init__(self) -> None:
        self.due: float | None = None
        self._last = float("-inf")

    def is_time(self, now: float, waiting: bool) -> bool:
        """Whether to flush now; then it is taken as done."""
        if not waiting:
            self.due = None
            return False
        if self.due is None:
            self.due = max(now + SOON_S, self._last + FLUSH_S)
        if now < self.due:
            return False
        self._last, self.due = now, None
        return True


class LogWriter:
    """Feed it bytes; call `flush` now and then and `close` at the end. Single-threaded."""

    def __init__(self, path: Path, journal: Journal, limits: LogLimits, secrets: Iterable[str] = ()) -> None:
        self._path, self._journal, self._limits = path, journal, limits
        self._fd: int | None = None
        self._offset = 0
        self._partial = dict.fromkeys(STREAMS, b"")
        self._cutting = dict.fromkeys(STREAMS, 0)
        self._ready: list[tuple[str, bytes]] = []
        self._ready_bytes = 0
        self._tail: deque[tuple[str, bytes]] = deque()
        self._tail_bytes = 0
        self._left_out = 0
        self._facts: list[Fact] = []
        self._steps: dict[str, int] = {}
        self._closed = False
        self._secrets = forms_of(secrets)
        self._redrawn = {stream: Redrawn() for stream in STREAMS}

    def feed(self, stream: str, data: bytes) -> None:
        data = self._partial[stream] + data
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        if b"\r" in data:
            data = self._redrawn[stream].settle(data)
        cut = data.rfind(b"\n") + 1
        lines, rest = data[:cut], data[cut:]
        if self._cutting[stream] or self._has_long_line(lines):
            lines = self._shorten(stream, lines)
        if len(rest) > self._limits.line_bytes:
            if not self._cutting[stream]:
                lines += rest[: self._limits.line_bytes]
                self._cutting[stream] = 1
                rest = rest[self._limits.line_bytes :]
            self._cutting[stream] += len(rest)
            rest = b""
        self._partial[stream] = rest
        if lines:
            self._take(stream, lines)

    def _has_long_line(self, lines: bytes) -> bool:
        if len(lines) <= self._limits.line_bytes:
            return False
        start = 0
        while len(lines) - start > self._limits.line_bytes:
            # One look a window: a line break in each window of the limit means that no line is longer.
            end = lines.rfind(b"\n", start, start + self._limits.line_bytes + 1)
            if end < 0:
                return True
            start = end + 1
        return False

    def _shorten(self, stream: str, lines: bytes) -> bytes:
        kept: list[bytes] = []
        for line in lines.splitlines(keepends=True):
            if self._cutting[stream]:
                kept.append(_cut_note(self._cutting[stream] - 1 + len(line) - 1))
                self._cutting[stream] = 0
            elif len(line) > self._limits.line_bytes + 1:
                kept += [line[: self._limits.line_bytes], _cut_note(len(line) - 1 - self._limits.line_bytes)]
            else:
                kept.append(line)
        return b"".join(kept)

    def _take(self, stream: str, lines: bytes) -> None:
        if has_directive(lines):
            self._listen(lines)
        if self._offset + self._ready_bytes < self._limits.head_bytes:
            self._ready.append((stream, lines))
            self._ready_bytes += len(lines)
            if self._ready_bytes >= FLUSH_BYTES:
                self.flush()
            return
        self._tail.append((stream, lines))
        self._tail_bytes += len(lines)
        while self._tail_bytes - len(self._tail[0][1]) >= self._limits.tail_bytes:
            _, dropped = self._tail.popleft()
            self._tail_bytes -= len(dropped)
            self._left_out += len(dropped)

    def _listen(self, lines: bytes) -> None:
        for line in lines.splitlines():
            if has_directive(line):
                self._facts += parse(line.decode(errors="replace"))
        if len(self._facts) >= MAX_METRICS_AT_ONCE:
            self.flush()

    def tell(self, *facts: Fact) -> None:
        """Facts that did not come as a line."""
        self._facts += facts

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def waiting(self) -> bool:
        return bool(self._ready or self._facts)

    def flush(self) -> None:
        entries: list[EntryBody] = [*self._flush_lines(), *self._flush_facts()]
        if entries:
            self._journal.append(*entries)

    def _flush_lines(self) -> list[LoggedLines]:
        entries: list[LoggedLines] = []
        for stream, data in _merged(self._ready):
            if not self._store(data):
                self._left_out += len(data)
                continue
            entries.append(LoggedLines(stream, data.count(b"\n"), self._offset, len(data)))
            self._offset += len(data)
        self._ready, self._ready_bytes = [], 0
        return entries

    def _store(self, data: bytes) -> bool:
        if self._fd is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
        while True:
            try:
                written = os.write(self._fd, data)
            except OSError:
                written = -1
            if written == len(data):
                return True
            if written > 0:  # a full disk takes half: undo, or offsets would no longer agree
                os.truncate(self._fd, self._offset)
            if not self._journal.make_room():
                return False

    def _flush_facts(self) -> list[EntryBody]:
        facts, self._facts = self._facts, []
        entries: list[EntryBody] = []
        metrics = [self._numbered(fact) for fact in facts if isinstance(fact, Metric)]
        if metrics:
            entries.append(MetricPoints(metrics))
        tags = [(fact.of, fact.key, fact.value) for fact in facts if isinstance(fact, TagLine)]
        if tags:
            entries.append(TagsSet(tags))
        progress = [fact.fraction for fact in facts if isinstance(fact, ProgressLine)]
        if progress:
            entries.append(ProgressMade(progress[-1]))
        return entries

    def _numbered(self, metric: Metric) -> tuple[str, int, float | str]:
        step = self._steps.get(metric.name, -1) + 1 if metric.step is None else metric.step
        self._steps[metric.name] = step
        # JSON has no NaN or infinity: they travel as text.
        finite = metric.value == metric.value and abs(metric.value) != float("inf")
        return metric.name, step, metric.value if finite else repr(metric.value)

    def close(self) -> None:
        """Take what is left: half lines, and the tail behind its gap. A second time does nothing."""
        if self._closed:
            return
        self._closed = True
        for stream in STREAMS:
            rest, cut = self._partial[stream], self._cutting[stream]
            if cut:
                self._take(stream, _cut_note(cut - 1))
            elif rest:
                self._take(stream, rest + b"\n")
            self._partial[stream], self._cutting[stream] = b"", 0
        self.flush()
        if self._left_out:
            note = f"[easel] {self._left_out} bytes of the log were left out here: it exceeds the limit\n"
            self._ready.append(("platform", note.encode()))
        self._ready += self._tail
        self._tail.clear()
        self.flush()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _cut_note(count: int) -> bytes:
    return f" [easel: {count} more bytes of this line were left out]\n".encode()


def _merged(chunks: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Neighbours of one stream as one chunk."""
    merged: list[tuple[str, list[bytes]]] = []
    for stream, data in chunks:
        if merged and merged[-1][0] == stream:
            merged[-1][1].append(data)
        else:
            merged.append((stream, [data]))
    return [(stream, b"".join(parts)) for stream, parts in merged]
