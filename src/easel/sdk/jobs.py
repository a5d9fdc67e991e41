"""Jobs: `job = client.jobs.submit(["python", "train.py"]); job.wait(); print(job.result)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from easel.clock import Clock, SystemClock
from easel.errors import EaselError, TryLater
from easel.sdk.connection import ask
from easel.wire import job as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


class JobFailed(EaselError):
    """The job ended otherwise than finished: look at its reason and its log."""

    kind = "job-failed"


class Job:
    """A job and how far it is. Its fields are as of the last `refresh`."""

    def __init__(self, client: Client, about: wire.Job) -> None:
        self._client, self.about = client, about

    def __getattr__(self, name: str) -> Any:
        return getattr(self.about, name)

    def __repr__(self) -> str:
        return f"<Job {self.about.id} {self.about.name!r} {self.about.state}>"

    @property
    def id(self) -> str:
        return self.about.id

    @property
    def state(self) -> str:
        return self.about.state

    @property
    def _path(self) -> str:
        return f"{self._client.root}/jobs/{self.about.id}"

    def refresh(self) -> Job:
        self.about = self._client.connection.get(self._path, wire.Job)
        return self

    def wait(self, timeout: float | None = None, *, check: bool = True, clock: Clock | None = None) -> Job:
        """Until it is over. With `check`, an end other than finished is JobFailed."""
        clock = clock or SystemClock()
        started = clock.monotonic()
        pause = 0.05
        while not self.refresh().about.over:
            if timeout is not None and clock.monotonic() - started > timeout:
                raise TryLater(f"job {self.id} is still {self.state} after {timeout:g} s")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)
        if check and self.state != "finished":
            raise JobFailed(f"job {self.id} {self.state}: {self.about.reason}")
        return self

    def logs(
        self, *, follow: bool = False, search: str | None = None, after: int = 0
    ) -> Iterator[wire.LogLine]:
        """The lines so far, or with `follow` all lines as they come until the job is over."""
        if follow:
            yield from self._follow(after)
            return
        while True:
            params = {"after": after, "limit": 5000, "search": search}
            page = self._client.connection.get(f"{self._path}/log", wire.LogPage, params)
            yield from page.lines
            if not page.lines:
                return
            after = page.next

    def _follow(self, after: int) -> Iterator[wire.LogLine]:
        for data in self._client.connection.events(f"{self._path}/log/stream", after):
            page = wire.LogPage.model_validate(data)
            yield from page.lines
            if page.over:
                return

    def metrics(self) -> dict[str, int]:
        """The names of the job's series, and how many points each has."""
        found = self._client.connection.get(f"{self._path}/metrics", wire.SeriesList)
        return {series.name: series.points for series in found.items}

    def series(self, name: str, points: int = 1000) -> list[wire.Point]:
        params = {"points": points}
        return self._client.connection.get(f"{self._path}/metrics/{name}", wire.SeriesPoints, params).points

    def kill(self, reason: str = "") -> Job:
        self.about = self._client.connection.post(
            f"{self._path}/kill", ask(wire.KillJob, reason=reason), wire.Job
        )
        return self

    def rerun(self, input: str | None = None) -> Job:  # noqa: A002 - the API's word
        """A new job that names this one as its parent."""
        body = ask(wire.RerunJob, input=input)
        return Job(self._client, self._client.connection.post(f"{self._path}/rerun", body, wire.Job))


class Jobs:
    """The jobs of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/jobs"

    def submit(
        self,
        command: Sequence[str] | None = None,
        *,
        entry: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> Job:
        """Queue a command, or a function `module:function` of the code with JSON arguments.

        Fields are those of the API: name, code, input, output_folder, output_set, environment, resources,
        retry, time_limit_s, tags, description, workers, wants.
        """
        run: dict[str, Any]
        if entry is not None:
            run = {"kind": "entry", "target": entry, "arguments": dict(arguments or {})}
        else:
            run = {"kind": "command", "argv": list(command or ())}
        body = ask(wire.SubmitJob, run=run, **fields)
        return Job(self._client, self._client.connection.post(self._path, body, wire.Job, key))

    def get(self, job_id: str) -> Job:
        return Job(self._client, self._client.connection.get(f"{self._path}/{job_id}", wire.Job))

    def counts(self) -> wire.JobCounts:
        """How many there are, by state."""
        return self._client.connection.get(f"{self._path}/counts", wire.JobCounts)

    def list(
        self,
        limit: int = 50,
        sort: str | None = None,
        filter: list[str] | None = None,  # noqa: A002
    ) -> Iterator[Job]:
        """Newest first."""
        params = {"limit": min(limit, 200), "sort": sort, "filter": filter}
        pages = self._client.connection.pages(self._path, wire.Job, params)
        return (Job(self._client, each) for each in islice(pages, limit))
