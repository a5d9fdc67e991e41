"""From a result that arrives to the next trial submitted: processor time of the live controller's own code.

A store is seeded with apps, examples and past trials; then results come in one by one, each is settled and the next
trial is started, on SQLite and, where its programs are installed, on PostgreSQL. The figures are processor seconds of
this process (on PostgreSQL the server's are its own), the start of a controller on that store, and the peak memory of
a fresh process that does nothing but that.

    python -m benchmarks.live_decide --apps 1000 --trials 100000 --results 60
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import insert

from easel.declare.parse import parse_program
from easel.declare.roles import Role
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import Lake
from easel.ids import AppId, JobId, TokenId
from easel.lake.blobs.address import open_blobs
from easel.match.candidate import Candidate
from easel.match.propose import propose_candidates
from easel.match.summary import DataSummary
from easel.records.identity import Caller
from easel.store import identity
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.store.schema.apps import app_examples, app_trials, apps
from easel.store.schema.jobs import job_queues
from easel.store.schema.tenants import pool_turns, trial_history
from easel.store.schema.tenants import tenants as tenant_rows
from easel.testing.pool import PoolUnderTest
from easel.testing.postgres import find_binaries, running

PROGRAM = "{input: {[Tensor[8]], []}, output: {[Tensor[3]], []}}"
EXAMPLES = 12
OWNERS = 50
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def examples_set(lake: Lake, folder: Path, caller: Caller) -> str:
    """A file set in the lake, as every app reads one."""
    (folder / "upload").mkdir(exist_ok=True)
    (folder / "upload" / "pairs.jsonl").write_text('{"input": [1], "output": "a"}\n')
    session = ingest_folder(lake, caller, folder / "upload", "/data/")
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
    return str(create_file_set(lake.store, caller, "examples", ["/data/pairs.jsonl"]))


def seed(lake: Lake, folder: Path, apps_wanted: int, trials: int) -> None:
    """Apps of some fifty people, each with as many past trials as the others."""
    store = lake.store
    rng = np.random.default_rng(0)
    summary = DataSummary(examples=EXAMPLES, cells=8, classes=3)
    candidates = propose_candidates(parse_program(PROGRAM), summary)
    each = min(trials // apps_wanted, len(candidates) - 2)
    generations = max(1, trials // (apps_wanted * each))
    with store.write() as tx:
        project = identity.add_project(tx, "lab", "")
        people = [identity.add_user(tx, f"user{k}", home=project.id) for k in range(OWNERS)]
        for person in people:
            identity.put_member(tx, project.id, person.id, Role.MEMBER)
    examples = examples_set(lake, folder, Caller(people[0], TokenId("tok"), project, Role.MEMBER))
    with store.write() as tx:
        ids = [AppId(f"app_{k:06d}") for k in range(apps_wanted)]
        tx.execute(
            insert(apps),
            [
                {
                    "id": app_id,
                    "project_id": project.id,
                    "user_id": people[k % OWNERS].id,
                    "name": f"app{k}",
                    "program": PROGRAM,
                    "created_at": BEGAN + timedelta(seconds=k),
                    "summary": asdict(summary),
                    "examples_set": examples,
                    "examples_key": f"{k:032x}",
                    "rates_inside": False,
                    "vector_size": 0,
                }
                for k, app_id in enumerate(ids)
            ],
        )
        tx.execute(
            insert(app_examples),
            [
                {
                    "app_id": app_id,
                    "digest": uuid4().hex,
                    "stratum": str(n % 3),
                    "fold": n % 5,
                    "on": True,
                    "fed_at": BEGAN,
                }
                for app_id in ids
                for n in range(EXAMPLES)
            ],
        )
        turn = 0
        for generation in range(generations):
            # Of all but the newest generation only what was learned is left: the apps were fed anew since.
            rows: list[dict[str, Any]] = []
            past: list[dict[str, Any]] = []
            for app_id in ids:
                easy = rng.normal(0.0, 0.1)
                order = rng.permutation(len(candidates))[:each]
                for k in order:
                    turn += 1
                    one = candidates[int(k)]
                    quality = float(np.clip(one.promise + easy + rng.normal(0.0, 0.05), 0.0, 1.0))
                    seconds = float(one.cost_s * rng.lognormal(0.0, 0.3))
                    past.append(
                        {
                            "app_id": app_id,
                            "metric": "accuracy",
                            "candidate": one.name,
                            "family": one.family,
                            "promise": one.promise,
                            "guess_s": one.cost_s,
                            "quality": quality,
                            "seconds": seconds,
                            "peak_mb": 300.0,
                            "examples": EXAMPLES,
                        }
                    )
                    rows.append(
                        {
                            "app_id": app_id,
                            "job_id": JobId(f"job_{turn:08d}"),
                            "name": one.name,
                            "score": 0.01,
                            "candidate": one.to_json(),
                            "decision": {"reasons": {"acquisition": 0.01}},
                            "started_at": BEGAN + timedelta(seconds=turn),
                            "ended_at": BEGAN + timedelta(seconds=turn + 1),
                            "examples": EXAMPLES if generation == generations - 1 else 1,
                            "ended": True,
                            "quality": quality,
                            "seconds": seconds,
                            "spent_micros": 10,
                            "shared": 1,
                            "model_set": f"model:{turn}",
                        }
                    )
            tx.execute(insert(trial_history), past)
            tx.execute(insert(app_trials), rows)
        tx.execute(insert(app_trials), [ensemble(app_id, each, turn + k) for k, app_id in enumerate(ids, 1)])
        queues = [
            {"project_id": project.id, "user_id": one.id, "paused": False, "served": turn} for one in people
        ]
        tx.execute(insert(job_queues), queues)
        tx.execute(
            insert(tenant_rows),
            [
                {"id": app_id, "project_id": project.id, "served_at": turn - len(ids) + k}
                for k, app_id in enumerate(ids)
            ],
        )
        tx.execute(insert(pool_turns), [{"id": 1, "turn": turn, "as_of": turn}])


def ensemble(app_id: AppId, members: int, turn: int) -> dict[str, Any]:
    """Return the row of the ensemble that an app with so many models has had: the next is due at twice as many."""
    made = Candidate("ensemble", (("of", members),), cost_s=2.0, promise=0.9)
    return {
        "app_id": app_id,
        "job_id": JobId(f"job_{turn:08d}"),
        "name": made.name,
        "score": 0.0,
        "candidate": made.to_json(),
        "decision": {"reasons": {"acquisition": 0.0}},
        "started_at": BEGAN + timedelta(seconds=turn),
        "ended_at": BEGAN + timedelta(seconds=turn + 1),
        "examples": EXAMPLES,
        "ended": True,
        "quality": 0.5,
        "seconds": 2.0,
        "spent_micros": 10,
        "shared": 1,
        "model_set": f"model:{turn}",
        "luck": 0.01,
    }


def measure(lake: Lake, results: int) -> dict[str, float]:
    """Start a controller, then let results come one by one, the next as soon as the last was answered."""
    pool = PoolUnderTest(lake)
    pool.device("machine", vcpu=4.0, memory_mb=64_000)
    began, began_wall = time.process_time(), time.perf_counter()
    with lake.store.read() as tx:
        pool.keeper.follow(tx)
    start_s, start_wall_s = time.process_time() - began, time.perf_counter() - began_wall
    pool.keeper.turn()
    rng = np.random.default_rng(1)
    taken: list[float] = []
    waited: list[float] = []
    for _ in range(results):
        running = list(pool.keeper.flights)
        pool.end(running[int(rng.integers(len(running)))], float(rng.uniform(0.4, 0.95)), seconds=1.0)
        before, wall = time.process_time(), time.perf_counter()
        started = pool.keeper.turn()
        taken.append(time.process_time() - before)
        waited.append(time.perf_counter() - wall)
        assert started == 1, started
    return {
        "start_cpu_s": start_s,
        "start_wall_s": start_wall_s,
        "decide_median_ms": 1e3 * float(np.median(taken)),
        "decide_90_ms": 1e3 * float(np.quantile(taken, 0.9)),
        "decide_wall_median_ms": 1e3 * float(np.median(waited)),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }


def run(url: str, folder: Path, wanted: argparse.Namespace, *, only_measure: bool) -> dict[str, float]:
    store = Store(url)
    lake = Lake(store, open_blobs(str(folder / "blobs"), {}))
    try:
        if not only_measure:
            migrate(store, backup=lambda _revision: None)
            seed(lake, folder, wanted.apps, wanted.trials)
            return {}
        return measure(lake, wanted.results)
    finally:
        store.close()


def fresh(url: str, folder: Path, wanted: argparse.Namespace) -> dict[str, float]:
    """In a process of its own, so that its memory is that of the controller alone."""
    command = [sys.executable, "-m", "benchmarks.live_decide", "--measure", url, str(folder)]
    command += ["--results", str(wanted.results)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--apps", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--results", type=int, default=60)
    parser.add_argument("--no-postgres", action="store_true")
    parser.add_argument("--measure", nargs=2, metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.measure:
        print(json.dumps(run(wanted.measure[0], Path(wanted.measure[1]), wanted, only_measure=True)))
        return
    with tempfile.TemporaryDirectory() as here:
        folder = Path(here)
        url = f"sqlite:///{folder}/easel.sqlite"
        run(url, folder, wanted, only_measure=False)
        print(json.dumps({"database": "SQLite", **fresh(url, folder, wanted)}), flush=True)
        if wanted.no_postgres or find_binaries() is None:
            print(
                "PostgreSQL was left out: its programs are not installed, or --no-postgres", file=sys.stderr
            )
            return
        with running() as server:
            url = server.create("live_decide")
            run(url, folder, wanted, only_measure=False)
            print(json.dumps({"database": "PostgreSQL", **fresh(url, folder, wanted)}), flush=True)


if __name__ == "__main__":
    main()
