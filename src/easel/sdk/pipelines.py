"""Pipelines: dependent jobs submitted as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from easel.clock import Clock, SystemClock
from easel.errors import TryLater
from easel.sdk.connection import ask
from easel.sdk.jobs import JobFailed
from easel.wire import pipeline as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Pipelines:
    """The pipelines of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/pipelines"

    def submit(
        self, name: str, steps: Sequence[Mapping[str, Any]], *, reuse: bool = True, key: str | None = None
    ) -> wire.Pipeline:
        """Each step is `{"name": …, "job": {…as for jobs.submit, with "run"}, "needs": […]}`.

        A step's `code` may be a folder here or `git+URL@REV`: it is sent along.
        """
        body = ask(wire.SubmitPipeline, name=name, steps=[dict(step) for step in steps], reuse=reuse)
        sent = [step.model_copy(update={"job": self._client.jobs.with_code(step.job)}) for step in body.steps]
        body = body.model_copy(update={"steps": sent})
        return self._client.connection.post(self._path, body, wire.Pipeline, key)

    def get(self, pipeline_id: str) -> wire.Pipeline:
        return self._client.connection.get(f"{self._path}/{pipeline_id}", wire.Pipeline)

    def list(self, limit: int = 20) -> Iterator[wire.Pipeline]:
        return islice(self._client.connection.pages(self._path, wire.Pipeline, {"limit": limit}), limit)

    def rerun(
        self, pipeline_id: str, inputs: Mapping[str, str] | None = None, *, reuse: bool = True
    ) -> wire.Pipeline:
        """Run again what changed upstream, or what gets another input."""
        body = ask(wire.RerunPipeline, inputs=dict(inputs or {}), reuse=reuse)
        return self._client.connection.post(f"{self._path}/{pipeline_id}/rerun", body, wire.Pipeline)

    def wait(
        self,
        pipeline_id: str,
        timeout: float | None = None,
        *,
        check: bool = True,
        clock: Clock | None = None,
    ) -> wire.Pipeline:
        """Waits until every step is over. With `check`, a step that did not finish is JobFailed."""
        clock = clock or SystemClock()
        started, pause = clock.monotonic(), 0.1
        while (found := self.get(pipeline_id)).state == "running":
            if timeout is not None and clock.monotonic() - started > timeout:
                raise TryLater(f"pipeline {pipeline_id} is still running after {timeout:g} s")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)
        if check and found.state != "finished":
            bad = next(step for step in found.steps if step.state != "finished")
            raise JobFailed(f"step {bad.name!r} ({bad.job_id}) {bad.state}: {bad.reason}")
        return found
