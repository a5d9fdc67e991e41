"""What is read from log lines, and what is kept of logs without end."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from easel.metrics import log_metric, log_progress, log_tag
from easel.records.job import JobState, Usage
from easel.run.entries import (
    AttemptDone,
    LoggedLines,
    MetricPoints,
    OrderTaken,
    StateReached,
    UsageSoFar,
)
from easel.run.journal import Journal, begin, read
from easel.run.log_writer import FLUSH_S, SOON_S, FlushPace, LogWriter
from easel.run.loglines import Fact, Metric, ProgressLine, TagLine, parse
from easel.run.order import LogLimits
from easel.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("[EASEL_TAG] job model:BERT", [TagLine("job", "model", "BERT")]),
        ("[ACAI_TAG] HotpotQA model:BERT", [TagLine("HotpotQA", "model", "BERT")]),
        ("[EASEL_TAG_NUM] fileset precision:0.75", [TagLine("fileset", "precision", 0.75)]),
        ("[ACAI_TAG_NUM] fileset precision: 1e-3 ", [TagLine("fileset", "precision", 0.001)]),
        ("[EASEL_TAG_NUM] fileset precision:high", []),
        ("[EASEL_TAG] job url:http://a:80/b", [TagLine("job", "url", "http://a:80/b")]),
        ("[EASEL_TAG] job", []),
        ("12:00 INFO [EASEL_PROGRESS] 0.4", [ProgressLine(0.4)]),
        ("[EASEL_PROGRESS] 40%", [ProgressLine(0.4)]),
        ("[EASEL_PROGRESS] 7", [ProgressLine(1.0)]),
        ("[EASEL_PROGRESS] half", []),
        ("[EASEL_METRIC] loss=0.1 step=3", [Metric("loss", 0.1, 3)]),
        ("[EASEL_METRIC] loss=0.1 acc=0.9", [Metric("loss", 0.1, None), Metric("acc", 0.9, None)]),
        ("[EASEL_METRIC] loss=inf step=1", [Metric("loss", float("inf"), 1)]),
        ("[EASEL_METRIC] nothing here", []),
        ("loss=0.1", []),
    ],
)
def test_a_line_says_what_it_says(line: str, facts: list[Fact]) -> None:
    assert parse(line) == facts


@given(st.text(max_size=300))
def test_no_line_is_an_error(text: str) -> None:
    for mark in ("", "[EASEL_TAG] ", "[EASEL_METRIC] ", "[EASEL_PROGRESS] "):
        parse(mark + text)


def test_what_the_python_calls_print_is_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    log_metric("train/loss", 0.25, step=4)
    log_progress(0.5)
    log_tag("model", "BERT")
    log_tag("precision", 0.5, of="fileset")
    said = [fact for line in capsys.readouterr().out.splitlines() for fact in parse(line)]
    assert said == [
        Metric("train/loss", 0.25, 4),
        ProgressLine(0.5),
        TagLine("job", "model", "BERT"),
        TagLine("fileset", "precision", 0.5),
    ]


class Kept:
    """A keeper on a folder, and what a reader of the journal sees."""

    def __init__(self, folder: Path, limits: LogLimits, secrets: Sequence[str] = ()) -> None:
        self.log, self.path = folder / "a.log", folder / "a.journal"
        for file in (self.log, self.path):
            file.unlink(missing_ok=True)
        begin(self.path, {})
        self.journal = Journal(self.path, FakeClock())
        self.keeper = LogWriter(self.log, self.journal, limits, secrets)

    def chunks(self) -> list[tuple[str, bytes, int]]:
        data = self.log.read_bytes() if self.log.exists() else b""
        entries, _ = read(self.path, 0, 1 << 26)
        said = [entry.body for entry in entries if isinstance(entry.body, LoggedLines)]
        return [(e.stream, data[e.offset : e.offset + e.size], e.lines) for e in said]

    def metrics(self) -> list[tuple[str, int, float | str]]:
        bodies = [entry.body for entry in read(self.path, 0)[0]]
        return [point for body in bodies if isinstance(body, MetricPoints) for point in body.points]

    def text(self, stream: str | None = None) -> bytes:
        return b"".join(data for name, data, _ in self.chunks() if stream in (None, name))


NOT_REDRAWN = st.binary(max_size=40).map(lambda data: data.replace(b"\r", b"."))
"""What lines with carriage returns become is said in test_redrawn.py."""


@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["out", "err"]), NOT_REDRAWN), max_size=30))
def test_within_the_limits_every_byte_of_each_stream_is_kept_in_whole_lines(
    tmp_path: Path, pieces: list[tuple[str, bytes]]
) -> None:
    kept = Kept(tmp_path, LogLimits())
    for number, (stream, data) in enumerate(pieces):
        kept.keeper.feed(stream, data)
        if number % 3 == 0:
            kept.keeper.flush()
    kept.keeper.close()
    for stream in ("out", "err"):
        sent = b"".join(data for name, data in pieces if name == stream)
        assert kept.text(stream) in (sent, sent + b"\n")
    for _, data, lines in kept.chunks():
        assert data.endswith(b"\n")
        assert data.count(b"\n") == lines


@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=40))
def test_no_line_and_no_log_exceeds_its_limit_by_more_than_the_notes(
    tmp_path: Path, pieces: list[bytes]
) -> None:
    limits = LogLimits(head_bytes=500, tail_bytes=300, line_bytes=50)
    kept = Kept(tmp_path, limits)
    for data in pieces:
        kept.keeper.feed("out", data)
    kept.keeper.close()
    text = kept.text()
    assert all(len(line) <= 50 + 80 for line in text.split(b"\n"))
    assert len(text) <= 500 + 300 + 3 * 400


def test_the_first_and_the_last_lines_stay_and_the_gap_is_told(tmp_path: Path) -> None:
    kept = Kept(tmp_path, LogLimits(head_bytes=100, tail_bytes=100))
    for number in range(1000):
        kept.keeper.feed("out", f"line {number}\n".encode())
    kept.keeper.close()
    lines = kept.text().split(b"\n")
    assert lines[0] == b"line 0"
    assert lines[-2] == b"line 999"
    assert kept.text("platform").startswith(b"[easel] ")


def test_metrics_beyond_the_kept_lines_are_kept_and_numbered(tmp_path: Path) -> None:
    kept = Kept(tmp_path, LogLimits(head_bytes=10, tail_bytes=10))
    for value in (3, 2, "nan"):
        kept.keeper.feed("out", f"[EASEL_METRIC] loss={value}\n".encode())
    kept.keeper.close()
    assert kept.metrics() == [("loss", 0, 3.0), ("loss", 1, 2.0), ("loss", 2, "nan")]


def test_half_an_entry_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    begin(path, {"job": 1})
    journal = Journal(path, FakeClock())
    journal.append(StateReached(JobState.RUNNING))
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"n":1,"k":"do')
    entries, offset = read(path, 0)
    assert [type(entry.body) for entry in entries] == [OrderTaken, StateReached]
    with path.open("ab") as file:
        file.write(b'ne"}\n')
    assert [type(entry.body) for entry in read(path, offset)[0]] == [AttemptDone]


def test_a_pipe_that_nobody_reads_does_not_stop_the_journal(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    journal = Journal(tmp_path / "a.journal", FakeClock(), writing)
    journal.append(UsageSoFar(Usage()))
    journal.append(UsageSoFar(Usage()))
    journal.close()
    os.close(writing)
    assert len(read(tmp_path / "a.journal", 0)[0]) == 2


def test_secrets_are_masked_even_across_two_writes_and_in_base64(tmp_path: Path) -> None:
    kept = Kept(tmp_path, LogLimits(), ["hunter2-token", "-----KEY\nabcdefgh\n"])
    kept.keeper.feed("out", b"token=hunter2-")
    kept.keeper.feed("out", b"token; key line abcdefgh\n")
    kept.keeper.feed("err", base64.b64encode(b"hunter2-token") + b"\n")
    kept.keeper.close()
    assert kept.text("out") == b"token=***; key line ***\n"
    assert b"aHVudGVy" not in kept.text("err")


def due(pace: FlushPace) -> float | None:
    """Returns when the next flush is due."""
    return pace.due


def test_the_first_line_after_silence_is_told_soon_and_a_stream_of_lines_in_bundles() -> None:
    pace = FlushPace()
    assert not pace.is_time(10.0, waiting=True)
    assert due(pace) == 10.0 + SOON_S
    assert pace.is_time(10.0 + SOON_S, waiting=True)
    assert not pace.is_time(10.1, waiting=True)
    assert due(pace) == pytest.approx(10.0 + SOON_S + FLUSH_S)
    assert not pace.is_time(10.11, waiting=False)
    assert due(pace) is None, "nothing waits: nothing is due"
    assert not pace.is_time(20.0, waiting=True)
    assert pace.is_time(20.0 + SOON_S, waiting=True)
