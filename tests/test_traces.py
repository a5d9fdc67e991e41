"""Traces: one trace holds what server, controller, worker and agent did for a job."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from easel import traces
from easel.errors import Misconfigured
from easel.testing.server import running

NOON = datetime(2026, 3, 13, 12, tzinfo=UTC)


def spans_of(lines: list[bytes]) -> list[dict[str, Any]]:
    """Returns every span with the name of its service and its plain attributes."""
    found = []
    for line in lines:
        for group in json.loads(line)["resourceSpans"]:
            service = group["resource"]["attributes"][0]["value"]["stringValue"]
            for span in group["scopeSpans"][0]["spans"]:
                told = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
                found.append({**span, "service": service, "told": told})
    return found


def test_one_trace_leads_from_the_request_through_controller_and_worker_to_the_agent(tmp_path: Path) -> None:
    place = tmp_path / "traces.jsonl"
    with running(tmp_path, traces=f"file://{place}") as server:
        client = server.client()
        client.projects.create("astro")
        astro = server.client(project="astro")
        good = astro.jobs.submit(["python3", "-c", "print(6 * 7)"]).wait()
        bad = astro.jobs.submit(["python3", "-c", "raise SystemExit(3)"]).wait(check=False)
        server.stop()
        server.end_worker()
    assert (good.state, bad.state) == ("finished", "failed")
    spans = spans_of(place.read_bytes().splitlines())
    mine = [span for span in spans if span["told"]["easel.job"] == good.id]
    assert {span["traceId"] for span in mine} == {f"{traces.trace_of(good.id):032x}"}
    named = {span["name"]: span for span in mine}
    way = ["submit", "launch", "attempt", "agent"]
    assert [named[each]["service"] for each in way] == [
        "easel-server",
        "easel-controller",
        "easel-worker",
        "easel-agent",
    ]
    assert "parentSpanId" not in named["submit"]
    for above, below in pairwise(way):
        assert named[below]["parentSpanId"] == named[above]["spanId"]
    for step in ("download", "run", "upload"):
        assert named[step]["parentSpanId"] == named["agent"]["spanId"]
    assert named["submit"]["told"]["http.route"].endswith("/jobs")
    assert len(named["submit"]["told"]["easel.request_id"]) == 16
    failed = next(s for s in spans if s["told"]["easel.job"] == bad.id and s["name"] == "agent")
    assert (failed["status"]["code"], failed["traceId"] == named["agent"]["traceId"]) == (2, False)


def test_a_collector_gets_spans_by_http_and_one_that_is_away_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[tuple[str, str | None, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers.get("x-team"), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=astro%20lab")
        monkeypatch.setenv(traces.VARIABLE, f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(traces, "_made", [])
        traces.record("launch", "easel-controller", "job_1", NOON, NOON + timedelta(seconds=2), attempt=1)
        traces.flush()
        server.shutdown()
    ((path, team, body),) = got
    (span,) = spans_of([body])
    assert (path, team) == ("/v1/traces", "astro lab")
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 2_000_000_000
    assert span["parentSpanId"] == f"{traces.span_of('job_1', 'submit'):016x}"
    traces.record("launch", "easel-controller", "job_2", NOON, NOON, attempt=1)
    traces.flush()  # nobody listens any more: a warning in the log, and nothing else


def test_without_the_setting_nothing_is_noted_and_a_wrong_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(traces.VARIABLE, raising=False)
    monkeypatch.setattr(traces, "_made", [])
    traces.record("submit", "easel-server", "job_1", NOON, NOON)
    assert (traces._made, os.environ.get(traces.VARIABLE)) == ([], None)
    traces.check()
    monkeypatch.setenv(traces.VARIABLE, "collector:4318")
    with pytest.raises(Misconfigured, match="http://collector:4318"):
        traces.check()
