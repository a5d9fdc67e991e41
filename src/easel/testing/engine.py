"""The engine for tests: its controller in this process, with a real worker, real agents and a real lake."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from easel.declare.job import Command, JobSpec, Trial
from easel.declare.resources import Resources, Room
from easel.declare.roles import Role
from easel.flow.jobs.submit import submit_job
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import Lake
from easel.ids import TokenId
from easel.lake.blobs.address import open_blobs
from easel.records.attempt import AttemptKey
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job
from easel.run.entries import ProcessBorn
from easel.run.journal import read
from easel.run.tree import marked
from easel.serve.controller import Controller, Pace
from easel.serve.hosting import EngineOptions, build_controller
from easel.store import identity, jobs
from easel.store.engine import Store
from easel.store.events import events_after
from easel.store.job_logs import read_lines
from easel.store.migrate import migrate
from easel.testing.databases import new_sqlite

SMALL = Resources(0.5, 256)
PATIENCE_S = 150.0
"""How long tests wait for what must come: far longer than it takes, also beside others on a busy machine."""


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def until(done: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for something that another process does; ask less often the longer it takes, since asking costs it time."""
    limit, pause = time.monotonic() + seconds, 0.01
    while not done():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(pause)
        pause = min(0.1, 1.2 * pause)


def options(home: Path, **changes: Any) -> EngineOptions:
    base: dict[str, Any] = {
        "capacity": Room(2.0, 4096),
        "preload": ("easel.testing.trials",),
        "executor": "alone",
        "pace": Pace(poll=0.02, reconnect=0.05),
    }
    return EngineOptions(home, **{"depot": str(home / "blobs"), **base, **changes})


@dataclass
class EngineUnderTest:
    """One home. `turn_until` runs the controller's loop in the test's own thread: no sleeps, no races."""

    home: Path
    store: Store
    lake: Lake
    people: dict[str, Caller] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options of every controller."""
    controllers: list[Controller] = field(default_factory=list)

    def controller(self, **changes: Any) -> Controller:
        made = build_controller(self.lake, options(self.home, **{**self.defaults, **changes}))
        self.controllers.append(made)
        return made

    def caller(self, name: str = "ana", project: str = "astro", role: Role = Role.MEMBER) -> Caller:
        if name not in self.people:
            with self.store.write() as tx:
                try:
                    home = next(
                        p for p in self.people.values() if p.project and p.project.name == project
                    ).project
                except StopIteration:
                    home = identity.add_project(tx, project, "")
                assert home is not None
                user = identity.add_user(tx, name, home=home.id)
                identity.put_member(tx, home.id, user.id, role)
                self.people[name] = Caller(user, TokenId("tok"), home, role)
        return self.people[name]

    def submit(self, *argv: str, who: str = "ana", **fields: Any) -> Job:
        spec: dict[str, Any] = {"name": "test", "resources": SMALL, **fields}
        spec.setdefault("run", Command(argv) if argv else None)
        with self.store.write() as tx:
            caller = self.people.get(who)
            assert caller is not None
            return submit_job(tx, caller, JobSpec(**spec))

    def trial(self, function: str, who: str = "ana", **fields: Any) -> Job:
        arguments = fields.pop("arguments", {})
        run = Trial(f"easel.testing.trials:{function}", arguments)
        return self.submit(who=who, **{"run": run, **fields})

    def job(self, job: Job) -> Job:
        with self.store.read() as tx:
            return jobs.find(tx, job.project_id, job.id)

    def turn_until(
        self, controller: Controller, done: Callable[[], bool], seconds: float = PATIENCE_S
    ) -> None:
        limit = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < limit, "it did not come to pass"
            if not controller.turn():
                controller.wake.wait(0.02)
            controller.wake.clear()

    def finish(self, controller: Controller, *submitted: Job, seconds: float = PATIENCE_S) -> list[Job]:
        """Turns the controller until these jobs are over; `seconds` is the patience with each in turn."""
        for job in submitted:
            self.turn_until(controller, lambda one=job: self.job(one).state in TERMINAL, seconds)  # type: ignore[misc]
        return [self.job(job) for job in submitted]

    @property
    def worker_pid(self) -> int | None:
        try:
            pid = int((self.home / "run" / "worker.lock").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if alive(pid) else None

    def end_worker(self) -> None:
        """SIGTERM, and wait."""
        pid = self.worker_pid
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not alive(pid))

    def agent_pid(self, job: Job) -> int:
        """The process that performs the job's latest attempt."""
        journal = self.home / "run" / "attempts" / f"{AttemptKey(job.id, self.job(job).attempt)}.journal"
        entries, _ = read(journal, 0, 1 << 24)
        return next(entry.body.pid for entry in entries if isinstance(entry.body, ProcessBorn))

    def processes(self, job: Job) -> list[int]:
        """Everything on this machine that was started for the job."""
        return [pid for attempt in range(1, 10) for pid in marked(str(AttemptKey(job.id, attempt)))]

    def upload(self, files: dict[str, bytes], name: str, who: str = "ana") -> str:
        """Put files in the lake as a set; returns `name:version`."""
        source = self.home / "upload"
        for path, data in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(data)
        caller = self.people[who]
        session = ingest_folder(self.lake, caller, source, "/data/")
        with self.store.write() as tx:
            upload.commit(tx, caller, session.id)
        shutil.rmtree(source)
        return str(create_file_set(self.store, caller, name, [f"/data/{path}" for path in files]))

    def events(self, job: Job) -> list[str]:
        """The kinds of the job's events, in order."""
        with self.store.read() as tx:
            return [
                event.kind
                for event in events_after(tx, job.project_id, 0, 100_000)
                if event.subject == job.id
            ]

    def log(self, job: Job) -> list[str]:
        now = self.job(job)
        with self.store.read() as tx:
            return [line.text for line in read_lines(tx, job.id, now.attempt, 0, 10_000_000)]


@contextmanager
def running(
    home: Path,
    database_url: str | None = None,
    depot: str | None = None,
    credentials: Mapping[str, str] | None = None,
) -> Iterator[EngineUnderTest]:
    """An empty engine in `home`; whatever was started is ended, and nothing may be left.

    Bytes lie in a folder of `home`, or where `depot` says, which `credentials` open.
    """
    address, variables = depot or str(home / "blobs"), credentials or {}
    home.mkdir(exist_ok=True, mode=0o700)
    store = Store(database_url or new_sqlite(home / "easel.sqlite"))
    migrate(store, backup=lambda _revision: None)
    made = EngineUnderTest(home, store, Lake(store, open_blobs(address, variables)))
    made.defaults = {"depot": address, "credentials": variables}
    made.caller()
    try:
        yield made
    finally:
        made.end_worker()
        for controller in made.controllers:
            controller.executor.close(stop=False)
            worker = getattr(controller.executor, "worker", None)
            if worker is not None:
                worker.wait()
        store.close()
