"""How fast the job engine is, each figure beside a peer in the same run.

    python -m benchmarks.engine [--quick] [--only throughput,latency,queue,logs]

throughput  no-op trials through the whole life cycle (queued to output file set committed), 2 at a time, against
            Ray Tune running the same function with 2 concurrent trials, and against
            ProcessPoolExecutor(2) plus one SQLite insert a task (same synchronous setting as ours).
latency     submit to the first line of user code on an idle pool: a platform trial, a sandboxed command.
queue       submit and scheduling step with 10,000 jobs queued; memory of the controller a job.
logs        a job that prints 100 MB of lines against the same program writing to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from easel.declare.job import Command, JobSpec, Trial
from easel.declare.resources import Resources, Room
from easel.flow.jobs.submit import Submission, submit_job, submit_jobs
from easel.records.job import JobState
from easel.serve.controller import Controller
from easel.store.schema.jobs import jobs
from easel.testing.engine import EngineUnderTest, running

NOOP = JobSpec("noop", Trial("easel.testing.trials:noop"), resources=Resources(1.0, 256))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="Smaller, for the tests")
    parser.add_argument("--only", default="throughput,latency,queue,logs")
    parser.add_argument("--json", type=Path, help="Write the figures here too")
    parser.add_argument("--out", type=Path, help="Write the table here too, e.g. docs/results/engine.md")
    options = parser.parse_args()
    parts: dict[str, Callable[[bool], dict[str, Any]]] = {
        "throughput": throughput,
        "latency": latency,
        "queue": queue,
        "logs": logs,
    }
    figures: dict[str, Any] = {"machine": machine()}
    for name in options.only.split(","):
        print(f"== {name}", flush=True)
        figures[name] = parts[name](options.quick)
        print(json.dumps(figures[name], indent=2), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    if options.out:
        options.out.write_text(report(figures, options.quick))


def report(figures: dict[str, Any], quick: bool) -> str:
    """The table of docs/results/engine.md: what was measured in this run, beside its target."""
    here = figures["machine"]
    command = "python -m benchmarks.engine" + (" --quick" if quick else "")
    lines = [
        "# The engine's speed",
        "",
        f"`{command}`, {here['date']}, {here['cores']} cores, Python {here['python']}, load {here['load']:.1f} at the start, "
        f"an fsync of {here['fsync_ms']:.1f} ms.",
        "",
        "| figure | measured | target |",
        "|---|---|---|",
    ]
    if found := figures.get("throughput"):
        lines += [
            f"| {found['trials']:,} no-op trials, queued to output set committed | {found['easel_per_s']} a second | |",
            f"| … against Ray Tune, same function, 2 concurrent trials, actors reused ({found['ray_tune_trials']} trials) | "
            f"{found['ray_tune_per_s']} a second: {found['times_ray_tune']}× | at least 5× |",
            f"| … against ProcessPoolExecutor(2) and one SQLite insert a task | {found['process_pool_and_sqlite_per_s']} "
            f"a second: {found['of_process_pool']} of it | at least 1/3 |",
        ]
    if found := figures.get("latency"):
        lines += [
            f"| submit to first line, platform trial, median (90 %) | {found['trial_median_ms']} ms "
            f"({found['trial_p90_ms']}) | under 60 ms |",
            f"| submit to first line, sandboxed command, median (90 %) | {found['command_median_ms']} ms "
            f"({found['command_p90_ms']}) | under 250 ms |",
        ]
    if found := figures.get("queue"):
        lines += [
            f"| submit with {found['queued']:,} queued, median | {found['submit_median_ms']} ms | under 10 ms |",
            f"| scheduling step with {found['queued']:,} queued, median | {found['scheduling_step_median_ms']} ms | under 20 ms |",
            f"| memory of the controller a queued job | {found['controller_kb_a_job']} kB | under 1 kB |",
        ]
    if found := figures.get("logs"):
        lines += [
            f"| {found['megabytes']:g} MB of log lines as a job, against writing to a file | {found['as_a_job_s']} s against "
            f"{found['to_a_file_s']} s: {found['relative_speed']} of the speed | at least half |",
        ]
    lines += [
        "",
        "GPU memory is sampled by `nvidia-smi`: checked on an H200 (one card found; 1,634 MB for a process that held 1 GiB and a",
        "context).",
    ]
    return "\n".join(lines) + "\n"


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "fsync_ms": fsync_ms(),
    }


def fsync_ms() -> float:
    """What the disk takes to say that a page is written: every commit pays it."""
    with tempfile.NamedTemporaryFile() as file:
        times = []
        for _ in range(20):
            file.write(b"x" * 4096)
            file.flush()
            times.append(_timed(lambda: os.fsync(file.fileno())))
    return statistics.median(times) * 1e3


@contextmanager
def engine(**changes: Any) -> Iterator[tuple[EngineUnderTest, Controller]]:
    with tempfile.TemporaryDirectory(prefix="easel-bench") as folder, running(Path(folder) / "home") as made:
        yield made, made.controller(**{"capacity": Room(2.0, 8192), **changes})


def drive(made: EngineUnderTest, controller: Controller, done: Callable[[], bool]) -> None:
    made.turn_until(controller, done, 600.0)


def count(made: EngineUnderTest, state: JobState) -> int:
    with made.store.read() as tx:
        query = select(func.count()).where(jobs.c.state == state.value)
        return int(tx.execute(query).scalar_one())


# Throughput. ----------------------------------------------------------------------------------------------


def throughput(quick: bool) -> dict[str, Any]:
    number = 200 if quick else 1000
    ours = easel_rate(number)
    print(f"easel {ours:.1f}/s", flush=True)
    pool = pool_rate(number)
    print(f"pool and SQLite {pool:.1f}/s", flush=True)
    ray = ray_rate(20 if quick else number)
    return {
        "trials": number,
        "easel_per_s": round(ours, 1),
        "ray_tune_per_s": round(ray[0], 2) if ray else None,
        "ray_tune_trials": ray[1] if ray else None,
        "process_pool_and_sqlite_per_s": round(pool, 1),
        "times_ray_tune": round(ours / ray[0], 1) if ray else None,
        "of_process_pool": round(ours / pool, 2),
        "target": "at least 5 times Ray Tune; at least a third of the pool",
    }


def easel_rate(number: int) -> float:
    with engine(max_active=256, buffer=256) as (made, controller):
        made.finish(controller, *(made.trial("noop") for _ in range(4)))
        with made.store.write() as tx:
            submit_jobs(tx, made.people["ana"], [Submission(NOOP)] * number)
        started = time.perf_counter()
        drive(made, controller, lambda: count(made, JobState.FINISHED) == number + 4)
        return number / (time.perf_counter() - started)


def noop_task(number: int) -> int:
    return number


def pool_rate(number: int) -> float:
    """The least that a pool with a record of each task costs."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2) as pool:
        list(pool.map(noop_task, range(8)))
        db = sqlite3.connect(f"{folder}/tasks.sqlite", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, result INTEGER)")
        started = time.perf_counter()
        for result in pool.map(noop_task, range(number)):
            db.execute("INSERT INTO tasks (result) VALUES (?)", (result,))
        took = time.perf_counter() - started
        db.close()
    return number / took


_RAY = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
import ray
from ray import tune
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
def noop(config):
    return {}
def fit(number, seconds):
    resources = tune.with_resources(noop, {"cpu": 1})
    config = tune.TuneConfig(
        num_samples=number, max_concurrent_trials=2, reuse_actors=True, time_budget_s=seconds
    )
    run = tune.RunConfig(storage_path=sys.argv[3], verbose=0)
    started = time.perf_counter()
    found = tune.Tuner(resources, tune_config=config, run_config=run).fit()
    took = time.perf_counter() - started
    return sum(not result.error and "trial_id" in (result.metrics or {}) for result in found), took
fit(2, None)
done, took = fit(int(sys.argv[1]), float(sys.argv[2]))
print("RATE", done, took)
ray.shutdown()
"""
RAY_SECONDS = 120.0
"""Ray Tune stops here if it has not run all: its rate is then that of those it ran."""


def ray_rate(number: int) -> tuple[float, int] | None:
    """(trials a second, trials run) of Ray Tune, in a process of its own, with actors reused: its fastest way."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-c", _RAY, str(number), str(RAY_SECONDS), folder],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    found = [line.split() for line in ran.stdout.splitlines() if line.startswith("RATE ")]
    if not found:
        print("Ray Tune did not run:", ran.stderr[-500:])
        return None
    _, done, took = found[0]
    return int(done) / float(took), int(done)


# Latency. -------------------------------------------------------------------------------------------------


def latency(quick: bool) -> dict[str, Any]:
    repeats = 10 if quick else 50
    with engine() as (made, controller):
        made.finish(controller, made.trial("noop"), made.submit("true"))
        trials = [_start_of(made, controller, NOOP) for _ in range(repeats)]
        command = JobSpec("first", Command(("date", "+%s.%N")), resources=Resources(0.5, 256))
        commands = [_start_of(made, controller, command) for _ in range(repeats)]
    return {
        "trial_median_ms": round(statistics.median(trials) * 1e3, 1),
        "trial_p90_ms": round(sorted(trials)[int(repeats * 0.9)] * 1e3, 1),
        "command_median_ms": round(statistics.median(commands) * 1e3, 1),
        "command_p90_ms": round(sorted(commands)[int(repeats * 0.9)] * 1e3, 1),
        "target": "under 60 ms for a trial, under 250 ms for a sandboxed command",
    }


def _start_of(made: EngineUnderTest, controller: Controller, spec: JobSpec) -> float:
    """Seconds from before the submit to the first line of user code."""
    stop = made.store.listen(controller.wake.set)
    before = time.time()
    with made.store.write() as tx:
        job = submit_job(tx, made.people["ana"], spec)
    made.finish(controller, job)
    stop()
    done = made.job(job)
    assert done.state is JobState.FINISHED, done.reason
    if isinstance(spec.run, Trial):
        assert done.started_at is not None
        return done.started_at.timestamp() - before
    return float(made.log(job)[0]) - before


# A long queue. --------------------------------------------------------------------------------------------


def queue(quick: bool) -> dict[str, Any]:
    number = 1000 if quick else 10_000
    with engine(max_active=2, buffer=8) as (made, controller):
        caller = made.people["ana"]
        blocker = [made.submit("sleep", "1000") for _ in range(2)]
        drive(made, controller, lambda: count(made, JobState.RUNNING) == 2)
        before = _rss_mb()
        for _ in range(number // 1000):
            with made.store.write() as tx:
                submit_jobs(tx, caller, [Submission(NOOP)] * 1000)
        submits = [_timed(lambda: _submit_one(made)) for _ in range(50)]
        controller.turn()
        steps = [_timed(lambda: controller.launcher.launch("local", controller.guard)) for _ in range(50)]
        turns = [_timed(controller.turn) for _ in range(50)]
        grown = (_rss_mb() - before) * 1024 / number
        made.end_worker()
        del blocker
    return {
        "queued": number,
        "submit_median_ms": round(statistics.median(submits) * 1e3, 2),
        "scheduling_step_median_ms": round(statistics.median(steps) * 1e3, 2),
        "controller_turn_median_ms": round(statistics.median(turns) * 1e3, 2),
        "controller_kb_a_job": round(grown, 3),
        "target": "submit under 10 ms, step under 20 ms, less than 1 kB a job",
    }


def _submit_one(made: EngineUnderTest) -> None:
    with made.store.write() as tx:
        submit_job(tx, made.people["ana"], NOOP)


def _timed(do: Callable[[], Any]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


# Logs. ----------------------------------------------------------------------------------------------------

_PRINT = "import time\ns = time.time()\nfor i in range({n}): print('x' * 99)\n"
_TAIL = "import sys\nsys.stdout.flush()\nsys.stderr.write(f'TOOK {time.time() - s}\\n')\n"


def logs(quick: bool) -> dict[str, Any]:
    number = 100_000 if quick else 1_000_000
    program = _PRINT.format(n=number) + _TAIL
    with tempfile.TemporaryDirectory() as folder:
        direct = []
        for _ in range(3):
            with Path(folder, "out").open("wb") as out:
                ran = subprocess.run(
                    [sys.executable, "-c", program], stdout=out, stderr=subprocess.PIPE, check=True
                )
            direct.append(float(ran.stderr.split()[-1]))
    with engine() as (made, controller):
        kept = []
        for _ in range(3):
            job = made.submit("python", "-c", program, resources=Resources(1.0, 512))
            made.finish(controller, job)
            took = next(line for line in reversed(made.log(job)) if line.startswith("TOOK "))
            kept.append(float(took.split()[1]))
    return {
        "megabytes": number * 100 / 1e6,
        "to_a_file_s": round(min(direct), 3),
        "as_a_job_s": round(min(kept), 3),
        "relative_speed": round(min(direct) / min(kept), 2),
        "target": "no less than half the speed",
    }


if __name__ == "__main__":
    main()
