"""A trial in a warm process has spans as other attempts have them, though its process sends nothing itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.executors.test_local import local
from tests.test_traces import spans_of

from easel import traces
from easel.declare.job import Trial
from easel.declare.resources import Resources
from easel.run.order import Order
from easel.testing.executor import Listener


def test_a_trial_in_a_warm_process_has_a_span_with_its_steps_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "traces.jsonl"
    monkeypatch.setenv(traces.VARIABLE, f"file://{place}")
    for make in local(tmp_path / "home", sandbox=False):
        heard = Listener(make("a"))
        for job, name in (("good", "noop"), ("bad", "raise_error")):
            run = Trial(f"easel.testing.trials:{name}", {})
            heard.executor.start(Order(job, 1, "prj", run, resources=Resources(0.5, 512)))
        heard.done("good.1")
        reason = heard.failed("bad.1").reason
    spans = spans_of(place.read_bytes().splitlines())
    good = {span["name"]: span for span in spans if span["told"]["easel.job"] == "good"}
    assert (good["attempt"]["service"], good["agent"]["service"]) == ("easel-worker", "easel-trial")
    assert good["agent"]["parentSpanId"] == good["attempt"]["spanId"]
    assert {step: good[step]["parentSpanId"] for step in ("download", "run", "upload")} == dict.fromkeys(
        ("download", "run", "upload"), good["agent"]["spanId"]
    )
    times = [int(good[step]["startTimeUnixNano"]) for step in ("agent", "download", "run", "upload")]
    assert times == sorted(times)
    failed = next(span for span in spans if span["told"]["easel.job"] == "bad" and span["name"] == "agent")
    assert failed["status"] == {"code": 2, "message": reason}
