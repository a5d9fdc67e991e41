"""Past one machine, measured: `python -m benchmarks.scale PART [--quick]`, PART one of exchange, ray, memory, simulate.

exchange  200 workers (coroutines) against one server on PostgreSQL: lease, heartbeat, report
ray       no-op trials through Ray against bare `ray.get([f.remote() …])` with the same bookkeeping row a task
memory    resident memory of a controller over many jobs
simulate  10,000 devices and 5,000 tenants: how long the decision loop takes for each idle device
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from easel.declare.job import Trial
from easel.declare.resources import Resources
from easel.run.executors.base import AttemptGone, Entries
from easel.run.journal import LAST
from easel.run.order import Order
from easel.testing import postgres
from easel.testing.pool import PoolServer

TRIAL = Resources(0.5, 256)


def no_op(number: int) -> Order:
    return Order(f"job{number}", 1, "prj", Trial("easel.testing.trials:noop"), resources=TRIAL)


# 200 workers against one server. ------------------------------------------------------------------------------


class Simulated:
    """One worker as a coroutine: leases, says that it runs, heartbeats, reports the end. Each is an exchange."""

    def __init__(self, client: httpx.AsyncClient, name: str, times: list[float]) -> None:
        self._client, self._name, self._times = client, name, times
        self._session = self._number = 0
        self.done = 0

    async def say(self, attempts: dict[str, int], news: list[dict[str, Any]]) -> dict[str, Any]:
        self._number += 1
        body = {
            "device": self._name,
            "session": self._session,
            "number": self._number,
            "clock": time.time(),
            "capacity": {"vcpu": 0.5, "memory_mb": 256},
            "attempts": attempts,
            "news": news,
            "wait_s": 0.0 if attempts or news else 5.0,
        }
        began = time.perf_counter()
        response = await self._client.post("/api/v1/worker/exchange", json=body)
        response.raise_for_status()
        if attempts or news:
            self._times.append(time.perf_counter() - began)
        answer: dict[str, Any] = response.json()
        self._session = answer["session"]
        return answer

    async def live(self, until: float) -> None:
        answer = await self.say({}, [])
        while time.perf_counter() < until:
            if not answer["start"]:
                answer = await self.say({}, [])
                continue
            order = answer["start"][0]["order"]
            key = f"{order['job_id']}.{order['attempt']}"
            now = time.time()
            running = [{"n": 0, "at": now, "k": "reached", "state": "running"}]
            await self.say({key: 0}, [{"key": key, "entries": running}])
            await self.say({key: 0}, [])
            used = {"cpu_seconds": 0.0, "peak_memory_mb": 0.0, "wall_seconds": 0.0, "peak_gpu_memory_mb": 0.0}
            end = [{"n": 1, "at": now, "k": "done", "usage": used}]
            answer = await self.say({key: 0}, [{"key": key, "entries": end}])
            self.done += 1
            while key in answer["forget"] or not answer["start"]:
                answer = await self.say({}, [])
                if time.perf_counter() > until:
                    break


async def crowd(address: str, token: str, count: int, seconds: float) -> dict[str, Any]:
    times: list[float] = []
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=count)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, limits=limits, timeout=60) as client:
        workers = [Simulated(client, f"w{i}", times) for i in range(count)]
        began = time.perf_counter()
        await asyncio.gather(*(worker.live(began + seconds) for worker in workers))
        took = time.perf_counter() - began
    # A lease is an exchange of its own, and counted once a job like its first report, heartbeat and end.
    done = sum(worker.done for worker in workers)
    return {
        "workers": count,
        "jobs": done,
        "transitions_per_s": round(done * 4 / took, 1),
        "exchanges_timed": len(times),
        "p50_ms": round(float(np.percentile(times, 50)) * 1000, 1),
        "p99_ms": round(float(np.percentile(times, 99)) * 1000, 1),
    }


def exchange(quick: bool) -> dict[str, Any]:
    """The server and the controller's side run in processes of their own; this one plays the workers."""
    count, seconds = (20, 5.0) if quick else (200, 30.0)
    with tempfile.TemporaryDirectory() as folder, postgres.running() as database:
        url = database.create("scale")
        server = PoolServer(Path(folder), url)
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale", "feed", folder, url, str(seconds + 20)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        found = asyncio.run(crowd(address, server.token, count, seconds))
        child.terminate()
        child.wait()
        server.store.close()
    return found


def feed(folder: str, url: str, seconds: float) -> None:
    """A server, and a controller that always has work to offer and forgets what ended."""
    server = PoolServer(Path(folder), url)
    server.start()
    print(server.address, flush=True)
    pool = server.pool()
    pool.connect(1, {})
    until = time.perf_counter() + seconds
    number = waiting = 0
    while time.perf_counter() < until:
        while waiting < 400:
            pool.start(no_op(number))
            number += 1
            waiting += 1
        for report in pool.poll():
            if isinstance(report, AttemptGone) or (isinstance(report, Entries) and _over(report)):
                pool.forget(report.key)
                waiting -= 1
        time.sleep(0.02)


# Ray. ---------------------------------------------------------------------------------------------------------


def bare_ray(tasks: int) -> float:
    """Tasks a second of Ray alone, each with a row in SQLite when it has ended."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    remote: Any = ray.remote(num_cpus=0.5)(lambda number: {"number": number})
    ray.get([remote.remote(i) for i in range(8)])
    with tempfile.TemporaryDirectory() as folder:
        rows = sqlite3.connect(Path(folder) / "rows.sqlite", isolation_level=None)
        rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("PRAGMA synchronous=FULL")
        rows.execute("CREATE TABLE done (number INTEGER PRIMARY KEY, body TEXT)")
        began = time.perf_counter()
        for number, result in enumerate(ray.get([remote.remote(i) for i in range(tasks)])):
            rows.execute("INSERT INTO done VALUES (?, ?)", (number, json.dumps(result)))
        took = time.perf_counter() - began
        rows.close()
    ray.shutdown()
    return tasks / took


def easel_ray(tasks: int) -> float:
    from easel.run.executors.ray import RayEngine
    from easel.testing import ray as clusters
    from easel.testing.fleet import engine_server

    with clusters.running() as cluster, tempfile.TemporaryDirectory() as folder:
        engine = RayEngine(cluster.address, Path(folder) / "ray.log", cluster.variables)
        with engine_server(Path(folder) / "home", engine, warm_s=30.0) as server:
            pool = server.executor()
            pool.connect(1, {})
            _run(pool, range(8))
            began = time.perf_counter()
            _run(pool, range(8, 8 + tasks))
            return tasks / (time.perf_counter() - began)


def _over(report: Entries) -> bool:
    return any(entry["k"] in LAST for entry in report.entries)


def _run(pool: Any, numbers: range) -> None:
    for number in numbers:
        pool.start(no_op(number))
    left = len(numbers)
    while left:
        for report in pool.poll():
            if isinstance(report, Entries) and _over(report):
                pool.forget(report.key)
                left -= 1
        time.sleep(0.005)


def ray_part(quick: bool) -> dict[str, Any]:
    tasks = 50 if quick else 1000
    ours, bare = easel_ray(tasks), bare_ray(tasks)
    return {
        "tasks": tasks,
        "easel_per_s": round(ours, 1),
        "bare_per_s": round(bare, 1),
        "ratio": round(bare / ours, 2),
    }


# Memory of a controller. ----------------------------------------------------------------------------------------


def memory(quick: bool) -> dict[str, Any]:
    """Jobs through the advancing side of the pool executor, in batches; resident memory after each tenth."""
    total = 2_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        server = PoolServer(Path(folder))
        pool = server.pool()
        pool.connect(1, {})
        marks: list[float] = []
        batch = 200
        for start in range(0, total, batch):
            for number in range(start, start + batch):
                pool.start(no_op(number))
                pool.kill(f"job{number}.1")
            left = batch
            while left:
                for report in pool.poll():
                    if isinstance(report, AttemptGone):
                        pool.forget(report.key)
                        left -= 1
            if (start + batch) % (total // 10) == 0:
                marks.append(_resident_mb())
        server.store.close()
    return {"jobs": total, "resident_mb_after_each_tenth": marks, "peak_mb": _peak_mb()}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


# The decision loop. -----------------------------------------------------------------------------------------------


def simulate(quick: bool) -> dict[str, Any]:
    from easel.schedule.policies import named
    from easel.schedule.prior import Prior
    from easel.schedule.simulate import World
    from easel.schedule.simulate import simulate as run
    from easel.schedule.simulate import tenants as members_of
    from easel.schedule.state import Device
    from easel.schedule.table import Table

    devices, tenants, models = (100, 50, 8) if quick else (10_000, 5_000, 8)
    rng = np.random.default_rng(0)
    quality = np.clip(rng.normal(0.7, 0.1, (tenants, models)), 0, 1)
    cost = rng.uniform(600.0, 6000.0, (tenants, models))
    names = tuple(f"t{i}" for i in range(tenants))
    table = Table(names, tuple(f"m{k}" for k in range(models)), quality, cost)
    world = World(table, tuple(Device(f"d{i}") for i in range(devices)))
    prior = Prior(np.full(models, 0.7), 0.01 * np.eye(models) + 0.005, 1e-4)
    members = members_of(world, prior)
    began = time.perf_counter()
    found = run(world, named("easel"), members, 900.0, rng)
    took = time.perf_counter() - began
    trials = len(found.steps)
    later = [step for step in found.steps if step.began > 0]
    span = 900.0
    return {
        "devices": devices,
        "tenants": tenants,
        "trials": trials,
        "simulated_s": round(span),
        "took_s": round(took, 1),
        "ms_per_decision": round(took / trials * 1000, 3),
        "decisions_needed_per_s": round(len(later) / span, 2),
    }


PARTS = {"exchange": exchange, "ray": ray_part, "memory": memory, "simulate": simulate}


def main() -> None:
    if sys.argv[1:2] == ["feed"]:
        feed(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*PARTS])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    print(json.dumps({given.part: PARTS[given.part](given.quick), "load": os.getloadavg()}, indent=2))


if __name__ == "__main__":
    main()
