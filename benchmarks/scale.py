"""Past one machine, measured: `python -m benchmarks.scale PART [--quick]`, PART one of these:

exchange  200 workers (coroutines) against one server on PostgreSQL: lease, heartbeat, report
ray       no-op trials through Ray against bare `ray.get([f.remote() …])` with the same bookkeeping row a task
memory    resident memory of a controller over many jobs
simulate  10,000 devices and 5,000 tenants: how long the decision loop takes for each idle device
takeover  the active controller killed again and again: how long until the other one acts
slurm     a short job when Slurm must be asked for a worker, and when one is warm
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select

from benchmarks.scale_exchange import exchange, whole_life
from benchmarks.scale_takeover import takeover
from easel.declare.job import JobSpec, Trial
from easel.declare.resources import Resources, Room
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.flow.secrets import hashed
from easel.flow.workers.exchange import ExchangeReply, Said
from easel.flow.workers.exchange import exchange as exchange_once
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import issue
from easel.records.job import JobState
from easel.run.entries import JournalEntry, decode_entry
from easel.run.executors.base import Entries
from easel.run.order import Order
from easel.serve.lake import signing_key
from easel.store.schema.jobs import jobs
from easel.testing.engine import EngineUnderTest, running

TRIAL = Resources(0.5, 256)
NOOP = JobSpec("noop", Trial("easel.testing.trials:noop"), resources=TRIAL)


def no_op(number: int) -> Order:
    return Order(f"job{number}", 1, "prj", Trial("easel.testing.trials:noop"), resources=TRIAL)


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
    return any(entry.last for entry in report.entries)


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
    """Jobs through their whole life in one process: submitted, launched, leased and reported on, finished.

    A controller and what a server does for workers, without HTTP; resident memory after each tenth.
    """
    total = 2_000 if quick else 100_000
    batch, marks, cores = (200 if quick else 500), list[float](), [time.process_time()]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as made:
        controller = made.controller(executor="remote", max_active=2 * batch, buffer=batch)
        device = LargeDevice(made)
        for start in range(0, total, batch):
            with made.store.write() as tx:
                submit_jobs(tx, made.people["ana"], [Submission(NOOP)] * batch)
            while device.done < start + batch:
                controller.turn()
                device.turn()
            if (start + batch) % (total // 10) == 0:
                marks.append(_resident_mb())
                cores.append(time.process_time())
        while controller.turn():
            device.turn()
        with made.store.read() as tx:
            query = select(func.count()).select_from(jobs).where(jobs.c.state == JobState.FINISHED.value)
            finished = int(tx.execute(query).scalar_one())
    took = time.perf_counter() - began
    return {
        "jobs": finished,
        "took_s": round(took, 1),
        "resident_mb_after_each_tenth": marks,
        "ms_of_a_core_a_job_in_each_tenth": (np.diff(cores) / total * 1e4).round(2).tolist(),
        "peak_mb": _peak_mb(),
    }


class LargeDevice:
    """One worker with room for everything, which finishes whatever it is given at once."""

    def __init__(self, made: EngineUnderTest) -> None:
        self._store, self._seal = made.store, Seal(signing_key(made.home))
        with self._store.write() as tx:
            self._secret = hashed(issue(tx, None, "large").secret)
        self._attempts: dict[str, int] = {}
        self._news: list[tuple[str, list[JournalEntry]]] = []
        self._session = self._number = 0
        self.done = 0

    def turn(self) -> None:
        self._number += 1
        said = Said(
            self._secret,
            "large",
            "remote",
            self._session,
            self._number,
            time.time(),
            Room(10_000.0, 10**7),
            attempts=dict(self._attempts),
            entries=self._news,
        )
        (answer,) = exchange_once(self._store, [said], self._seal)
        if not isinstance(answer, ExchangeReply):
            raise answer
        self.done += len(self._news)
        self._session, self._news = answer.session, []
        for key in answer.forget:
            self._attempts.pop(key, None)
        for given in answer.start:
            key = f"{given['order']['job_id']}.{given['order']['attempt']}"
            self._attempts[key] = 0
            self._news.append((key, [decode_entry(entry) for entry in whole_life()]))


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
    from easel.schedule.state import PoolDevice
    from easel.schedule.table import ScoreTable

    devices, tenants, models = (100, 50, 16) if quick else (10_000, 5_000, 16)
    span = 4 * 3600.0
    rng = np.random.default_rng(0)
    quality = np.clip(rng.normal(0.7, 0.1, (tenants, models)), 0, 1)
    cost = rng.uniform(600.0, 6000.0, (tenants, models))
    names = tuple(f"t{i}" for i in range(tenants))
    table = ScoreTable(names, tuple(f"m{k}" for k in range(models)), quality, cost)
    world = World(table, tuple(PoolDevice(f"d{i}") for i in range(devices)))
    prior = Prior(np.full(models, 0.7), 0.01 * np.eye(models) + 0.005, 1e-4)
    members = members_of(world, prior)
    began = time.process_time()  # one thread decides; what else the machine does is not its time
    found = run(world, named("easel"), members, span, rng)
    took = time.process_time() - began
    trials = len(found.steps)
    later = [step for step in found.steps if step.began > 0]
    mean_s = float(np.mean([step.ended - step.began for step in found.steps]))
    one = took / trials
    return {
        "devices": devices,
        "tenants": tenants,
        "candidates_each": models,
        "trials": trials,
        "simulated_s": round(span),
        "mean_trial_s": round(mean_s),
        "took_s": round(took, 1),
        "ms_per_decision": round(one * 1000, 3),
        "decisions_possible_per_s": round(1 / one),
        "decisions_needed_per_s": round(len(later) / span, 2),
        "share_of_a_core": round(len(later) / span * one, 4),
        "share_of_a_core_if_trials_took_a_minute": round(devices / 60.0 * one, 3),
    }


def exchange_part(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return exchange(quick, Path(folder))


def takeover_part(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return takeover(quick, Path(folder))


# Slurm. -----------------------------------------------------------------------------------------------------------


def slurm_part(quick: bool) -> dict[str, Any]:
    """Seconds from an order to its end, for one that finds no worker and for those that come after it."""
    from easel.run.executors.slurm import SlurmEngine, SlurmOptions
    from easel.testing import slurm as clusters
    from easel.testing.fleet import engine_server

    with clusters.running() as cluster, tempfile.TemporaryDirectory() as folder:
        engine = SlurmEngine(SlurmOptions(Path(folder) / "slurm"), cluster.variables)
        with engine_server(Path(folder) / "home", engine, warm_s=30.0) as server:
            pool = server.executor()
            pool.connect(1, {})
            times: list[float] = []
            for number in range(4 if quick else 21):
                began = time.perf_counter()
                _run(pool, range(number, number + 1))
                times.append(time.perf_counter() - began)
    return {"first_s": round(times[0], 2), "warm_median_s": round(float(np.median(times[1:])), 3)}


PARTS = {
    "exchange": exchange_part,
    "ray": ray_part,
    "memory": memory,
    "simulate": simulate,
    "takeover": takeover_part,
    "slurm": slurm_part,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*PARTS])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    print(json.dumps({given.part: PARTS[given.part](given.quick), "load": os.getloadavg()}, indent=2))


if __name__ == "__main__":
    main()
