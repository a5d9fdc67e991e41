"""Jobs: `job = client.jobs.submit(["python", "train.py"]); job.wait(); print(job.result)`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from easel.clock import Clock, SystemClock
from easel.errors import EaselError, NotFound, TryLater
from easel.sdk.connection import ask
from easel.wire import job as wire
from easel.wire.model import BaseModel

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.sdk.code import SentCode
    from easel.wire.lake import FileSet


class JobFailed(EaselError):
    """The job ended otherwise than finished: look at its reason and at `log`, its last lines."""

    kind = "job-failed"

    def __init__(self, message: str, log: Sequence[str] = (), **details: Any) -> None:
        super().__init__("\n".join([message, *log]), **details)
        self.log = tuple(log)


TAIL = 20
"""Lines of the log that JobFailed tells."""


class JobHandle:
    """A job and how far it is. Its fields are as of the last `refresh`."""

    def __init__(self, client: Client, about: wire.Job, left_out: Sequence[str] = ()) -> None:
        self._client, self.about = client, about
        self.left_out = tuple(left_out)
        """What of the folder could not be taken along as code, and why."""

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

    @property
    def origin(self) -> wire.CodeOrigin | None:
        """Where its code came from, where a folder was sent."""
        given = self.about.spec.get("origin")
        return wire.CodeOrigin.model_validate(given) if given else None

    def copy(self) -> JobHandle:
        """The same job, refreshed on its own: for another thread."""
        return JobHandle(self._client, self.about, self.left_out)

    def refresh(self) -> JobHandle:
        self.about = self._client.connection.get(self._path, wire.Job)
        return self

    def wait(
        self, timeout: float | None = None, *, check: bool = True, clock: Clock | None = None
    ) -> JobHandle:
        """Waits until it is over. With `check`, an end other than finished is JobFailed."""
        clock = clock or SystemClock()
        started = clock.monotonic()
        pause = 0.05
        while not self.refresh().about.over:
            if timeout is not None and clock.monotonic() - started > timeout:
                raise TryLater(f"job {self.id} is still {self.state} after {timeout:g} s")
            clock.sleep(pause)
            pause = min(2.0, pause * 1.3)
        if check and self.state != "finished":
            raise JobFailed(f"job {self.id} {self.state}: {self.about.reason}", self.tail())
        return self

    def tail(self, lines: int = TAIL) -> list[str]:
        """The last lines of the log."""
        return [line.text for line in deque(self.logs(), maxlen=lines)]

    def attempts(self) -> list[wire.JobAttempt]:
        """Every attempt that is over: where it ran, how it ended, how long it held its device."""
        return self._client.connection.get(f"{self._path}/attempts", wire.JobAttempts).items

    def environment(self) -> wire.LockedEnvironment:
        """The Python and the packages that it ran with; NotFound where it ran with the device's own."""
        return self._client.connection.get(f"{self._path}/environment", wire.LockedEnvironment)

    def logs(
        self,
        *,
        follow: bool = False,
        search: str | None = None,
        after: int = 0,
        attempt: int | None = None,
    ) -> Iterator[wire.LogLine]:
        """The lines so far, or with `follow` all lines as they come until the job is over.

        `attempt` asks for an earlier attempt's lines; otherwise they are the latest one's.

        They are those of the latest attempt, unless an earlier one is asked for.
        """
        if follow:
            yield from self._follow(after)
            return
        while True:
            params = {"after": after, "limit": 5000, "search": search, "attempt": attempt}
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

    def output(self) -> FileSet | None:
        """The file set that it left, if it has one: how many files of how many bytes."""
        made = self.about.output_set
        return None if made is None else self._client.lake.file_set(made)

    def kill(self, reason: str = "") -> JobHandle:
        self.about = self._client.connection.post(
            f"{self._path}/kill", ask(wire.KillJob, reason=reason), wire.Job
        )
        return self

    def notebook(self) -> dict[str, Any]:
        """The executed copy of the job's notebook, with all outputs so far."""
        found: dict[str, Any] = self._client.connection.request("GET", f"{self._path}/notebook.ipynb").json()
        return found

    def rerun(
        self,
        input: str | None = None,  # noqa: A002 - the API's word
        *,
        from_cell: int | None = None,
    ) -> JobHandle:
        """A new job that names this one as its parent; a notebook may begin with another code cell."""
        body = ask(wire.RerunJob, input=input, from_cell=from_cell)
        return JobHandle(self._client, self._client.connection.post(f"{self._path}/rerun", body, wire.Job))


class Jobs:
    """The jobs of the client's project."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _path(self) -> str:
        return f"{self._client.root}/jobs"

    def submit(
        self,
        command: str | Sequence[str] | Callable[..., Any] | None = None,
        *,
        entry: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        notebook: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str | None = None,
        code: str | os.PathLike[str] | None = None,
        input: str | None = None,  # noqa: A002 - the API's word
        output_set: str | None = None,
        output_folder: str = "output",
        environment: wire.Environment | Mapping[str, Any] | None = None,
        resources: wire.Resources | Mapping[str, Any] | None = None,
        retry: wire.RetryRule | Mapping[str, Any] | None = None,
        time_limit_s: float | None = None,
        tags: Mapping[str, str | float] | None = None,
        description: str = "",
        workers: int = 1,
        wants: Mapping[str, str] | None = None,
        after: Sequence[str] = (),
        origin: wire.CodeOrigin | None = None,
        port: int | None = None,
        preemptible: bool = False,
        key: str | None = None,
    ) -> JobHandle:
        """Queue a command, a function of yours, `entry`: a function `module:function` of the code, or its `notebook`.

        A command is a list, or text that a shell runs. A function is sent by its source, with the folder of its
        module as code. `code` is a folder here (`"."`), a file set, a file of the lake or `git+URL@REV`.
        """
        from easel.sdk.code import is_folder, requirements_of  # here: most commands send no code
        from easel.sdk.code import send as send_code

        send: Callable[[bool], SentCode] | None = None
        if callable(command):
            from easel.sdk.function import prepare_call

            call = prepare_call(command)
            run: dict[str, Any] = {"kind": "entry", "target": call.target, "arguments": dict(arguments or {})}
            name = name or call.target.partition(":")[2]

            def send(trust: bool) -> SentCode:
                with call.folder(code) as folder:
                    kept = not call.source or code is not None
                    return send_code(self._client, folder, name=call.set_name, trust=trust, remember=kept)
        elif entry is not None:
            run = {"kind": "entry", "target": entry, "arguments": dict(arguments or {})}
        elif notebook is not None:
            run = {"kind": "notebook", "path": notebook, "parameters": dict(parameters or {})}
        elif isinstance(command, str):
            run = {"kind": "command", "argv": ["sh", "-c", command]}
        else:
            run = {"kind": "command", "argv": list(command or ())}
        if send is None and code is not None and (is_folder(code) or str(code).startswith("git+")):
            send = partial(self._send_code, code, output_folder)
        sent = send(True) if send else None
        origin = sent.origin if sent else origin
        asked = ask(wire.Environment, **_fields(environment))
        asked = asked.model_copy(update={"requirements": requirements_of(asked, sent)})
        body = ask(
            wire.SubmitJob,
            name=name or "job",
            run=run,
            code=sent.reference if sent else code,
            code_digest=(sent.digest or None) if sent else None,
            input=input,
            output_set=output_set,
            output_folder=output_folder,
            environment=asked.model_dump(),
            resources=_fields(resources),
            retry=_fields(retry),
            time_limit_s=time_limit_s,
            tags=dict(tags or {}),
            description=description,
            workers=workers,
            wants=dict(wants or {}),
            origin=origin.model_dump() if origin else None,
            after=list(after),
            port=port,
            preemptible=preemptible,
        )
        try:
            about = self._client.connection.post(self._path, body, wire.Job, key)
        except NotFound:
            if send is None or sent is None or not sent.on_trust:
                raise
            again = send(False)  # the server has not (any more) what was sent the last time
            body = body.model_copy(update={"code": again.reference, "code_digest": again.digest or None})
            about = self._client.connection.post(self._path, body, wire.Job, key)
        return JobHandle(self._client, about, sent.left_out if sent else ())

    def send_code(self, code: str | os.PathLike[str], *, output_folder: str = "output") -> SentCode:
        """Send a folder here, or `git+URL@REV`, as a version of a file set: what a job names as its code.

        The folder's own `input/` and output folder stay here: in a job they hold something else.
        """
        return self._send_code(code, output_folder, False)

    def _send_code(self, code: str | os.PathLike[str], output_folder: str, trust: bool) -> SentCode:
        from easel.sdk.code import send as send_code

        top = output_folder.removeprefix("./").strip("/")
        return send_code(self._client, code, leave_out=("input/", f"{top}/"), trust=trust)

    def with_code(self, job: wire.JobFields) -> wire.JobFields:
        """Returns a job's fields with its code sent along, where that is a folder here or `git+URL@REV`."""
        from easel.sdk.code import is_folder, requirements_of

        code = job.code
        if code is None or not (is_folder(code) or code.startswith("git+")):
            return job
        sent = self.send_code(code, output_folder=job.output_folder)
        named = {"requirements": requirements_of(job.environment, sent)}
        asked = job.environment.model_copy(update=named)
        return job.model_copy(update={"code": sent.reference, "origin": sent.origin, "environment": asked})

    def get(self, job_id: str) -> JobHandle:
        return JobHandle(self._client, self._client.connection.get(f"{self._path}/{job_id}", wire.Job))

    def compare(self, one: str, two: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything on record about two jobs by name, side by side: what they ran, on what, and what came of it."""
        return self._on_record(one), self._on_record(two)

    def _on_record(self, job_id: str) -> dict[str, Any]:
        about = self.get(job_id).about
        spec, origin = about.spec, about.spec.get("origin") or {}
        run = spec["run"]
        tags = next(self._client.lake.find("job", f"name = '{about.id}'", limit=1), None)
        found: dict[str, Any] = {
            "command": " ".join(run["argv"])
            if run["kind"] == "command"
            else run.get("target", run.get("path")),
            "arguments": run.get("arguments", run.get("parameters")),
            "code": about.code_set,
            "commit": origin.get("commit"),
            "input": about.input_set,
            "output": about.output_set,
            "state": about.state,
            "seconds": round(about.usage.wall_seconds, 3) if about.usage else None,
        }
        found |= {f"resources.{key}": value for key, value in spec["resources"].items()}
        found |= {f"environment.{key}": value for key, value in spec["environment"].items()}
        return found | (dict(tags.tags) if tags is not None else {})

    def counts(self) -> wire.JobCounts:
        """How many there are, by state."""
        return self._client.connection.get(f"{self._path}/counts", wire.JobCounts)

    def list(
        self,
        limit: int = 50,
        sort: str | None = None,
        filter: list[str] | None = None,  # noqa: A002
    ) -> Iterator[JobHandle]:
        """Newest first."""
        params = {"limit": min(limit, 200), "sort": sort, "filter": filter}
        pages = self._client.connection.pages(self._path, wire.Job, params)
        return (JobHandle(self._client, each) for each in islice(pages, limit))


def _fields(given: BaseModel | Mapping[str, Any] | None) -> dict[str, Any]:
    return given.model_dump() if isinstance(given, BaseModel) else dict(given or {})
