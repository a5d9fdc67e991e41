"""Whether jobs start when they are expected to and end by when they were promised to.

    python -m benchmarks.promises [--live] [--jobs 210] [--seed 0] [--json PATH] [--keep PATH]

Simulated: batches of jobs of mixed lengths on small pools. Each kind of job was seen a few times before, the machine is
somewhat faster or slower than it was then, and the queue is forecast as the service does; then it is played out once.
Live: `easel up` on an empty folder with two cores; jobs of 0.1 to 2 s are queued one after the other so
that 4 to 20 wait. From the first 70 the service learns, the others are counted. The service promises and scores by itself;
this program only reads `easel promises`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from easel.declare.resources import Resources, Room
from easel.flow.jobs.expected import DRIFT_SD, UNKNOWN, spread_of
from easel.flow.jobs.promises import PromiseOutcome, PromiseScore, score
from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line
from easel.run.calibrate import LEVELS
from easel.run.forecast import ForecastDevice, QueueNow, Spread, WaitingJob, expected_starts
from easel.sdk.client import Client
from easel.store.engine import Store
from easel.store.promises import came_true
from easel.testing.server import running

KINDS = (0.1, 0.3, 0.6, 1.0, 2.0)
"""Middle seconds of the live jobs; each takes between 0.7 and 1.4 times that."""
SLEEP = "import random, sys, time; time.sleep(float(sys.argv[1]) * 2 ** random.uniform(-0.5, 0.5))"


def simulated(batches: int, seed: int = 0) -> PromiseScore:
    """The score over `batches` queues of about 25 jobs."""
    rng = np.random.default_rng(seed)
    found: list[PromiseOutcome] = []
    for _ in range(batches):
        kinds = rng.lognormal(3.0, 1.0, size=4)
        spreads = rng.uniform(0.05, 0.5, size=4)
        seen = [
            rng.lognormal(np.log(m), s, size=int(rng.integers(3, 20)))
            for m, s in zip(kinds, spreads, strict=True)
        ]
        which = rng.integers(4, size=int(rng.integers(10, 40)))
        owners = [(ProjectId("p"), UserId(f"u{rng.integers(3)}")) for _ in which]
        devices = [
            ForecastDevice(f"d{i}", Room(float(rng.integers(1, 4)), 8192))
            for i in range(int(rng.integers(1, 3)))
        ]
        drift = float(np.exp(rng.normal() * DRIFT_SD))
        known = [spread_of(each.tolist(), str(k)) or UNKNOWN for k, each in enumerate(seen)]
        true = [Spread(m * drift, s) for m, s in zip(kinds, spreads, strict=True)]
        lines = {owner: Line(owner, (), 0, 100) for owner in set(owners)}

        def queue(of: Sequence[Spread], drift_sd: float) -> QueueNow:
            jobs = [
                WaitingJob(JobId(f"j{i}"), owner, Resources(1.0, 512), of[k])
                for i, (k, owner) in enumerate(zip(which, owners, strict=True))  # noqa: B023 - used at once
            ]
            return QueueNow(devices, [], jobs, lines, drift=drift_sd)  # noqa: B023 - used at once

        promised = expected_starts(queue(known, DRIFT_SD), rng)
        truth = expected_starts(queue(true, 0.0), rng, plays=1)
        for job, told in promised.items():
            ends = {name: told.end_at(level) for name, level in LEVELS.items()}
            real = truth[job]
            found.append(PromiseOutcome(told.start_at(0.5), ends, float(real.start[0]), float(real.end[0])))
    return score(found)


def live(jobs: int, seed: int = 0, keep: Path | None = None) -> dict[str, Any]:
    """What a server says of its own promises; `keep` gets each of them, to try other corrections on."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as home, running(Path(home), worker_vcpu="2") as server:
        root = server.client()
        root.projects.create("bench")
        client = root.in_project("bench")
        keep_busy(client, 70, rng)
        before = client.queues.promises()
        keep_busy(client, jobs, rng)
        wait(client)
        if keep is not None:
            store = Store(f"sqlite:///{server.environment['EASEL_HOME']}/easel.sqlite")
            with store.read() as tx:
                rows = [row._asdict() for row in came_true(tx, None, jobs + 100)]
            keep.write_text(json.dumps(rows, default=str), encoding="utf-8")
        return without(client.queues.promises().model_dump(), before.model_dump())


def without(all_of_them: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """The shares of those that came after the first, from which the service had learned."""
    jobs, waited = (all_of_them[name] - first[name] for name in ("jobs", "waited"))
    found: dict[str, Any] = {"jobs": jobs, "waited": waited}
    for name, share in all_of_them.items():
        if name not in found:
            count = "waited" if name == "near_starts_of_waited" else "jobs"
            total = all_of_them[count] * (share or 0.0) - first[count] * (first[name] or 0.0)
            found[name] = round(total / max(found[count], 1), 4)
    return found | {"learned from": first["jobs"]}


def keep_busy(client: Client, jobs: int, rng: np.random.Generator) -> None:
    """Queues jobs one by one, so that 4 to 20 wait: promises are then made at as many moments as there are jobs."""
    target, left = 4, jobs
    while left:
        missing = target - sum(queue.queued for queue in client.queues.list())
        for _ in range(min(missing, left)):
            submit(client, int(rng.integers(len(KINDS))))
            left -= 1
        target = int(np.clip(target + rng.integers(-3, 4), 4, 20))
        time.sleep(0.5)


def submit(client: Client, kind: int) -> None:
    command = ["python", "-c", SLEEP, str(KINDS[kind])]
    client.jobs.submit(command, name=f"sleep-{KINDS[kind]:g}", resources={"vcpu": 1.0, "memory_mb": 256})


def wait(client: Client, limit: float = 180.0) -> None:
    began = time.perf_counter()
    while sum(queue.queued + queue.active for queue in client.queues.list()):
        if time.perf_counter() - began > limit:
            raise SystemExit(f"the jobs are not over after {limit:g} s")
        time.sleep(0.2)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--live", action="store_true")
    arguments.add_argument("--jobs", type=int, default=210)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--keep", type=Path, help="write every promise of the live run here")
    options = arguments.parse_args()
    began = time.perf_counter()
    if options.live:
        found = live(options.jobs, options.seed, options.keep)
    else:
        scored = simulated(max(options.jobs // 5, 1))
        found = {
            "jobs": scored.jobs,
            **{f"kept_{level * 100:.0f}": share for level, share in scored.kept.items()},
            "near_starts": scored.near_starts,
            "waited": scored.waited,
            "near_starts_of_waited": scored.near_starts_of_waited,
        }
    found |= {"load": round(os.getloadavg()[0], 1), "seconds": round(time.perf_counter() - began, 1)}
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
