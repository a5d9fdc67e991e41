"""Many workers, as coroutines, against one server and one controller on PostgreSQL: lease, heartbeat, report.

Everything but the workers is real and in processes of its own: PostgreSQL, `easel serve`, `easel controller`. Jobs are
submitted ahead; each is leased, said to run, heartbeated and finished, and its states, events and output rows are written
as always. Two forms: at full speed (how much goes through), and at a given pace (how long an exchange takes then).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from sqlalchemy import func, select

from easel.declare.job import JobSpec, Trial
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.flow.workers.tokens import issue
from easel.ids import TokenId
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.store import identity, offers
from easel.store.engine import Store
from easel.store.schema.jobs import jobs
from easel.testing import postgres
from easel.testing.engine import until
from easel.testing.server import ServerProcess

NOOP = JobSpec("noop", Trial("easel.testing.trials:noop"), resources=Resources(0.5, 256))
TRANSITIONS = 4
"""Of each job: leased, running, a heartbeat, finished."""


@dataclass(slots=True)
class Line:
    """One connection that is kept, on plain streams: a client's library would cost more than what is measured."""

    address: str
    token: str
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Any:
        url = urlsplit(self.address)
        if self._streams is None:
            self._streams = await asyncio.open_connection(url.hostname, url.port)
        reader, writer = self._streams
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        length = next(
            int(line.partition(b":")[2])
            for line in answer.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        content = await reader.readexactly(length)
        if status != 200:
            raise RuntimeError(f"{status}: {content[:500]!r}")
        return json.loads(content)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


@dataclass(slots=True)
class Tally:
    """What all workers saw: seconds of each exchange that had something to say or brought something."""

    times: list[float] = field(default_factory=list)
    jobs: int = 0


class Simulated:
    """One worker. `pause` is how long it waits between what it has to say of a job."""

    def __init__(self, line: Line, name: str, tally: Tally, pause: float) -> None:
        self._line, self._name, self._tally, self._pause = line, name, tally, pause
        self._session = self._number = 0

    async def say(self, attempts: dict[str, int], *news: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        body = {
            "device": self._name,
            "session": self._session,
            "number": self._number,
            "clock": time.time(),
            "capacity": {"vcpu": 0.5, "memory_mb": 256},
            "attempts": attempts,
            "news": news,
            "wait_s": 0.0 if attempts else 5.0,
        }
        began = time.perf_counter()
        answer: dict[str, Any] = await self._line.post("/api/v1/worker/exchange", json.dumps(body).encode())
        if attempts:  # one that waits for work is answered when there is some
            self._tally.times.append(time.perf_counter() - began)
        self._session = answer["session"]
        return answer

    async def live(self, delay: float, until: float) -> None:
        await asyncio.sleep(delay)
        answer = await self.say({})
        while time.perf_counter() < until:
            if not answer["start"]:
                answer = await self.say({})
                continue
            order = answer["start"][0]["order"]
            answer = await self._perform(f"{order['job_id']}.{order['attempt']}")
            self._tally.jobs += 1
        self._line.close()

    async def _perform(self, key: str) -> dict[str, Any]:
        life = whole_life()
        await asyncio.sleep(self._pause)
        await self.say({key: 0}, {"key": key, "entries": life[:2]})
        await asyncio.sleep(self._pause)
        await self.say({key: 0})
        await asyncio.sleep(2 * self._pause)
        return await self.say({key: 0}, {"key": key, "entries": life[2:]})


def whole_life() -> list[dict[str, Any]]:
    """What the journal of a trial that does nothing says; the first two lines when it runs, the rest at its end."""
    now = time.time()
    used = {"cpu_seconds": 0.0, "peak_memory_mb": 0.0, "wall_seconds": 0.0, "peak_gpu_memory_mb": 0.0}
    said: list[dict[str, Any]] = [
        {"k": "reached", "state": "downloading"},
        {"k": "reached", "state": "running"},
        {"k": "reached", "state": "uploading", "usage": used},
        {"k": "output", "files": [], "inline": {}},
        {"k": "result", "v": {}},
        {"k": "done", "usage": used},
    ]
    return [{"n": number, "at": now, **entry} for number, entry in enumerate(said)]


async def crowd(address: str, token: str, count: int, seconds: float, pause: float) -> dict[str, Any]:
    tally = Tally()
    workers = [Simulated(Line(address, token), f"w{i}", tally, pause) for i in range(count)]
    began = time.perf_counter()
    until = began + seconds
    # Machines do not act in step: they start over one round.
    starts = np.linspace(0.0, max(4 * pause, 1.0), count)
    await asyncio.gather(*(worker.live(float(at), until) for worker, at in zip(workers, starts, strict=True)))
    took = time.perf_counter() - began
    return {
        "workers": count,
        "seconds": round(took, 1),
        "jobs": tally.jobs,
        "transitions_per_s": round(tally.jobs * TRANSITIONS / took, 1),
        "exchanges_timed": len(tally.times),
        "p50_ms": round(float(np.percentile(tally.times, 50)) * 1000, 1),
        "p99_ms": round(float(np.percentile(tally.times, 99)) * 1000, 1),
    }


@contextmanager
def controller(server: ServerProcess, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`easel controller` beside a server, on the same home and database."""
    with (server.folder / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "easel.cli.main", "controller"],
            env={**server.environment, **more},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


class Used:
    """How much of a core each part used since it was made; the workers are this process."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = {**pids, "workers": os.getpid()}
        self._at, self._before = time.perf_counter(), self._seconds()

    def cores(self) -> dict[str, float]:
        took, now = time.perf_counter() - self._at, self._seconds()
        return {name: round((now[name] - self._before[name]) / took, 2) for name in now}

    def _seconds(self) -> dict[str, float]:
        return {name: _with_children(pid, name == "database") for name, pid in self._pids.items()}


def _with_children(pid: int, children: bool) -> float:
    process = psutil.Process(pid)
    own = process.cpu_times()
    below = process.children() if children else []
    return float(own.user + own.system) + sum(_with_children(each.pid, False) for each in below)


def submit(store: Store, number: int) -> str:
    """Jobs of one person; returns the token with which workers join."""
    with store.write() as tx:
        project = identity.add_project(tx, "scale", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.MEMBER)
        token = issue(tx, None, "crowd").secret
    caller = Caller(user, TokenId("tok"), project, Role.MEMBER)
    for first in range(0, number, 1000):
        with store.write() as tx:
            submit_jobs(tx, caller, [Submission(NOOP)] * min(1000, number - first))
    return token


def measure(folder: Path, count: int, seconds: float, per_s: float | None) -> dict[str, Any]:
    """`per_s` transitions a second are asked of the server; None is as many as it can."""
    pause = 0.0 if per_s is None else count / per_s
    wanted = int(seconds * (per_s or 1200.0) / TRANSITIONS) + 2 * count
    with postgres.running() as database:
        url = database.create("scale")
        most = str(2 * count)
        server = ServerProcess(folder, url, command="serve", executor="remote", max_active_jobs=most)
        server.start()
        store = Store(url)
        try:
            token = submit(store, wanted)
            with controller(server) as acting:
                until(lambda: _offered(store) > 0, 120)
                used = Used({"server": server.pid, "controller": acting.pid, "database": database.pid})
                found = asyncio.run(crowd(server.address, token, count, seconds, pause))
                found["asked_per_s"] = per_s
                found["cores"] = used.cores()
                found["finished"] = _settled(store)
        finally:
            store.close()
            server.stop()
    return found


def _offered(store: Store) -> int:
    with store.read() as tx:
        return offers.count_waiting(tx, "remote")


def _settled(store: Store) -> int:
    """How many jobs are finished in the database once the controller has caught up."""
    query = select(func.count()).select_from(jobs).where(jobs.c.state == JobState.FINISHED.value)
    last, limit = -1, time.monotonic() + 60
    while time.monotonic() < limit:
        with store.read() as tx:
            now = int(tx.execute(query).scalar_one())
        if now == last:
            break
        last = now
        time.sleep(1.0)
    return last


def exchange(quick: bool, folder: Path) -> dict[str, Any]:
    count, seconds = (20, 5.0) if quick else (200, 40.0)
    forms: dict[str, float | None] = {"paced": 60.0 if quick else 600.0, "full_speed": None}
    found: dict[str, Any] = {}
    for name, per_s in forms.items():
        (folder / name).mkdir()
        found[name] = measure(folder / name, count, seconds, per_s)
    return found
