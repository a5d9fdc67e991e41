"""Whether everybody gets their share: long-run shares against weights, and a newcomer behind a queue of 300 jobs.

    python -m benchmarks.shares [--live [--length 2 | --long-run [--seconds 120]]] [--json PATH]

Simulated: the live queue's own choice (`run.queue.choose`) on four cores, jobs of mixed lengths, everybody always waiting.
Live: `easel up` with two cores; one project queues 300 jobs, then others submit their first. With `--long-run` instead: three
projects of weights 1, 2 and 5 whose jobs of 0.3 to 0.9 s always wait; what each used in `--seconds`, by the journals, over the
share of its weight.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import sqlite3
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line, Owner
from easel.run.queue import choose
from easel.testing.server import running

CORES = 4
NEWCOMERS = 5


def long_run(weights: dict[str, float], jobs: int, seed: int = 0) -> dict[str, float]:
    """Each project's share of what was used, over the share of its weight."""
    rng = np.random.default_rng(seed)
    owners: dict[str, Owner] = {name: (ProjectId(name), UserId("u")) for name in weights}
    used = dict.fromkeys(weights, 0.0)
    lengths = {name: float(rng.uniform(5.0, 60.0)) for name in weights}
    ends: list[tuple[float, str]] = []
    active = dict.fromkeys(weights, 0)
    now, turn, expected = 0.0, 0, float(np.mean(list(lengths.values())))
    for _ in range(jobs):
        while len(ends) < CORES:
            lines = [
                Line(owner, (JobId(name),), active[name], 8, usage=used[name] + active[name] * expected)
                for name, owner in owners.items()
            ]
            weighed = [replace(line, project_weight=weights[line.owner[0]]) for line in lines]
            name = str(choose(weighed, 1, turn).jobs[0])
            turn += 1
            seconds = float(rng.lognormal(np.log(lengths[name]), 0.3))
            heapq.heappush(ends, (now + seconds, name))
            active[name] += 1
            used[name] += seconds
        now, name = heapq.heappop(ends)
        active[name] -= 1
    total, weight = sum(used.values()), sum(weights.values())
    return {name: round(used[name] / total / (weights[name] / weight), 4) for name in weights}


def newcomer(queued: int, seed: int = 0) -> float:
    """Jobs' lengths that a newcomer waits for behind somebody who queued so many; all jobs are of one length."""
    many, new = (ProjectId("many"), UserId("u")), (ProjectId("new"), UserId("u"))
    rng = np.random.default_rng(seed)
    ends = sorted(float(rng.uniform(0.0, 1.0)) for _ in range(CORES))
    waiting, used, now = queued - CORES, float(CORES), 0.0
    while True:
        now = heapq.heappop(ends)
        heads = tuple(JobId(f"m{k}") for k in range(min(waiting, 8)))
        lines = [Line(many, heads, CORES - 1, 8, usage=used), Line(new, (JobId("first"),), 0, 8)]
        if choose(lines, 1, 0).jobs[0] == "first":
            return now
        waiting, used = waiting - 1, used + 1.0
        heapq.heappush(ends, now + 1.0)


def live(length_s: float) -> dict[str, Any]:
    """Seconds from submitting until newcomers' first jobs run, behind 300 queued jobs, and on an idle pool."""
    with tempfile.TemporaryDirectory() as home, running(Path(home), worker_vcpu="2") as server:
        root = server.client()
        names = ["many", "idle", *(f"new{k}" for k in range(NEWCOMERS))]
        for name in names:
            root.projects.create(name)
        many, idle, *new = (root.in_project(name) for name in names)
        command, size = ["sleep", str(length_s)], {"vcpu": 1.0, "memory_mb": 256}
        for _ in range(5):
            many.jobs.submit(command, name="sleep", resources=size).wait()
        alone = _first(idle, command, size)
        for _ in range(300):
            many.jobs.submit(command, name="sleep", resources=size)
        waits = [_first(client, command, size) for client in new]
        return {"idle pool": round(alone, 2), "behind 300": [round(wait, 2) for wait in waits]}


WEIGHTS, LENGTHS = (1.0, 2.0, 5.0), (0.9, 0.5, 0.3)
AHEAD = 24
"""So many jobs of each project wait at least."""


def live_long_run(seconds: float) -> dict[str, Any]:
    """Each project's used core-seconds, over the share of its weight, once everybody's queue was full."""
    with tempfile.TemporaryDirectory() as home, running(Path(home), worker_vcpu="2") as server:
        root = server.client()
        clients = []
        for name, weight in zip("abc", WEIGHTS, strict=True):
            root.projects.create(name)
            clients.append(root.in_project(name))
            clients[-1].queues.set_share(weight=weight)
        began = time.time()
        while time.time() - began < seconds:
            for client, length in zip(clients, LENGTHS, strict=True):
                waiting = sum(queue.queued for queue in client.queues.list())
                for _ in range(max(AHEAD - waiting, 0)):
                    size = {"vcpu": 1.0, "memory_mb": 256}
                    client.jobs.submit(["sleep", str(length)], name="sleep", resources=size)
            time.sleep(0.2)
        database = Path(home) / "home" / "easel.sqlite"
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
            used = dict(
                db.execute(
                    "select p.name, sum(a.seconds) from job_attempts a join jobs j on j.id = a.job_id"
                    " join projects p on p.id = j.project_id group by p.name"
                ).fetchall()
            )
    total = sum(used[name] for name in "abc")
    over = {
        name: round(used[name] / total / (weight / sum(WEIGHTS)), 4)
        for name, weight in zip("abc", WEIGHTS, strict=True)
    }
    return {
        "core-seconds": {name: round(used[name], 1) for name in "abc"},
        "used over weight": over,
        "furthest from its weight": round(max(abs(one - 1.0) for one in over.values()), 4),
    }


def _first(client: Any, command: list[str], size: dict[str, float]) -> float:
    job = client.jobs.submit(command, name="sleep", resources=size)
    job.wait()
    ended = client.jobs.get(job.id)
    return float((ended.started_at - ended.submitted_at).total_seconds())


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--live", action="store_true")
    arguments.add_argument("--long-run", action="store_true")
    arguments.add_argument("--seconds", type=float, default=120.0, help="Of the live long run")
    arguments.add_argument("--length", type=float, default=2.0, help="Of the live jobs, in seconds")
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    began = time.perf_counter()
    found: dict[str, Any] = {}
    if options.live and options.long_run:
        found["live, weights 1 : 2 : 5"] = live_long_run(options.seconds)
    elif options.live:
        found[f"seconds until a first job runs, jobs of {options.length:g} s"] = live(options.length)
    else:
        equal = long_run({"a": 1.0, "b": 1.0, "c": 1.0}, 2000)
        uneven = long_run({"a": 1.0, "b": 2.0, "c": 5.0}, 2000)
        found["used over weight, equal weights"] = equal
        found["used over weight, 1 : 2 : 5"] = uneven
        found["furthest from its weight"] = round(
            max(abs(v - 1.0) for v in (*equal.values(), *uneven.values())), 4
        )
        found["newcomer's wait behind 300, in jobs' lengths"] = [round(newcomer(300, k), 3) for k in range(5)]
    found |= {"load": round(os.getloadavg()[0], 1), "seconds": round(time.perf_counter() - began, 1)}
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
