"""Easel against MLflow's own server: the same requests, the same data, one PostgreSQL, one machine, one run.

    python benchmarks/mlflow.py --mlflow PYTHON [--quick] [--keep FOLDER] [--only PART,PART] [--alone] [--out FILE]

`PYTHON` is an interpreter whose environment has `mlflow` and `psycopg2-binary`. Parts are batch, crowd, history and
searches. Filling two databases takes minutes: with `--keep` they stay in FOLDER, and the next measurement finds them. With
`--alone` MLflow's own server is not started, and only crowd and history are measured: MLflow's take minutes each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
from sqlalchemy import create_engine, text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.store.engine import Store
from easel.store.job_series import Series, outline
from easel.testing.ending import end_orderly_when_told
from easel.testing.postgres import Postgres
from easel.testing.postgres import running as running_postgres
from easel.testing.server import running as running_easel

EXPERIMENT = "1"
_SETTLED_S = 25
"""MLflow's server answers while the processes of its job runner are still loading, which slows both down."""
SEARCHES: dict[str, dict[str, Any]] = {
    "newest": {},
    "metric over": {"filter": "metrics.m0 > 0.9"},
    "metric and param": {"filter": "metrics.m0 > 0.9 and params.p1 = '3'"},
    "rare: two metrics": {"filter": "metrics.m0 > 0.999 and metrics.m1 < 0.01"},
    "tag like": {"filter": "tags.kind LIKE 'b%'"},
    "best by metric": {"order_by": ["metrics.m0 DESC"]},
    "best of a param": {"filter": "params.p2 = '7'", "order_by": ["metrics.m1 ASC"]},
}

# Both get the same hundred thousand runs, each with 5 metrics, 5 params and 2 tags, by one statement a table.
OURS = """
INSERT INTO artifacts (project_id, kind, name, version, creator, created_at, size)
SELECT CAST(:project AS varchar), 'job', 'job_' || lpad(i::text, 26, '0'), 1, CAST(:owner AS varchar), 1000000 + i, 0 FROM generate_series(1, CAST(:n AS integer)) i;
INSERT INTO jobs (id, project_id, user_id, name, kind, spec, state, revision, rank, blocked, attempt, lost, failed,
  applied, kill_requested, log_lines, log_bytes, artifact_id, submitted_at, started_at, ended_at, experiment)
SELECT a.name, CAST(:project AS varchar), CAST(:owner AS varchar), 'run-' || a.id, 'free',
  json_build_object('name', 'run', 'run', json_build_object('kind', 'free', 'user', 'ann')),
  'finished', 0, 0, 0, 1, 0, 0, 0, false, 0, 0, a.id, a.created_at * 1000, a.created_at * 1000, a.created_at * 1000, 1
FROM artifacts a WHERE a.project_id = CAST(:project AS varchar) AND a.name LIKE 'job_0000%';
INSERT INTO job_series (job_id, attempt, name, closed, open, project_id, artifact_id, last_step, last_at, last, low, high)
SELECT a.name, 1, 'm' || k, 0, 1, a.project_id, a.id, 0, 1000,
  ((substr(a.name, 5)::bigint * (7919 + k * 101)) % 100000) / 100000.0, 0, 1
FROM artifacts a, generate_series(0, 4) k WHERE a.project_id = CAST(:project AS varchar) AND a.name LIKE 'job_0000%';
INSERT INTO tags (artifact_id, key, project_id, kind, text)
SELECT a.id, 'param.p' || k, CAST(:project AS varchar), 'job', ((substr(a.name, 5)::bigint / (k + 1)) % 10)::text
FROM artifacts a, generate_series(0, 4) k WHERE a.project_id = CAST(:project AS varchar) AND a.name LIKE 'job_0000%';
INSERT INTO tags (artifact_id, key, project_id, kind, text)
SELECT a.id, 'kind', CAST(:project AS varchar), 'job', (ARRAY['apple', 'banana', 'cherry'])[(substr(a.name, 5)::bigint % 3)::int + 1]
FROM artifacts a WHERE a.project_id = CAST(:project AS varchar) AND a.name LIKE 'job_0000%';
INSERT INTO tags (artifact_id, key, project_id, kind, text)
SELECT a.id, 'mlflow.runName', CAST(:project AS varchar), 'job', 'run-' || a.id
FROM artifacts a WHERE a.project_id = CAST(:project AS varchar) AND a.name LIKE 'job_0000%'
"""
THEIRS = """
INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time,
  source_version, lifecycle_stage, artifact_uri, experiment_id)
SELECT lpad(i::text, 32, '0'), 'run-' || i, 'LOCAL', '', '', 'ann', 'FINISHED', 1000000 + i, 1000000 + i, '',
  'active', 'mlflow-artifacts:/1/x', 1 FROM generate_series(1, CAST(:n AS integer)) i;
INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid)
SELECT 'm' || k, ((i::bigint * (7919 + k * 101)) % 100000) / 100000.0, 1, 0, false, lpad(i::text, 32, '0')
FROM generate_series(1, CAST(:n AS integer)) i, generate_series(0, 4) k;
INSERT INTO params (key, value, run_uuid)
SELECT 'p' || k, ((i / (k + 1)) % 10)::text, lpad(i::text, 32, '0')
FROM generate_series(1, CAST(:n AS integer)) i, generate_series(0, 4) k;
INSERT INTO tags (key, value, run_uuid)
SELECT 'kind', (ARRAY['apple', 'banana', 'cherry'])[(i % 3) + 1], lpad(i::text, 32, '0')
FROM generate_series(1, CAST(:n AS integer)) i;
INSERT INTO tags (key, value, run_uuid)
SELECT 'mlflow.runName', 'run-' || i, lpad(i::text, 32, '0') FROM generate_series(1, CAST(:n AS integer)) i
"""
OUR_POINTS = """
INSERT INTO job_metrics (job_id, attempt, name, step, value, at)
SELECT CAST(:run AS varchar), 1, 'long', i, sin(i / 1000.0), i * 1000 FROM generate_series(1, CAST(:n AS integer)) i;
INSERT INTO job_series (job_id, attempt, name, closed, open, project_id, artifact_id, last_step, last_at, last, low, high)
SELECT CAST(:run AS varchar), 1, 'long', 0, 0, project_id, artifact_id, CAST(:n AS bigint), 0, 0, -1, 1 FROM jobs WHERE id = CAST(:run AS varchar)
"""
THEIR_POINTS = """
INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan)
SELECT 'long', sin(i / 1000.0), i, CAST(:run AS varchar), i, false FROM generate_series(1, CAST(:n AS integer)) i
"""


@dataclass
class Peer:
    name: str
    http: httpx.Client
    database: str

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.post(f"/api/2.0/mlflow/{path}", json=body)
        answer.raise_for_status()
        found: dict[str, Any] = orjson.loads(answer.content)
        return found

    def new_run(self) -> str:
        made = self.call("runs/create", {"experiment_id": EXPERIMENT, "start_time": 1})
        return str(made["run"]["info"]["run_id"])

    def fill(self, statements: str, **values: Any) -> None:
        engine = create_engine(self.database.replace("postgresql:", "postgresql+psycopg:", 1))
        with engine.begin() as conn:
            for statement in statements.split(";\n"):
                conn.execute(text(statement), {k: v for k, v in values.items() if f":{k}" in statement})
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.execute(text("VACUUM ANALYZE"))
        engine.dispose()


@contextlib.contextmanager
def easel(database: str, folder: Path, new: bool = True) -> Iterator[Peer]:
    with running_easel(folder, database) as server:
        if new:
            server.client().projects.create("lab")
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        with httpx.Client(base_url=f"{server.address}/mlflow/lab", headers=headers, timeout=600) as http:
            yield Peer("Easel", http, database)


@contextlib.contextmanager
def mlflow(python: str, database: str, folder: Path) -> Iterator[Peer]:
    end_orderly_when_told()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += [
        "--backend-store-uri",
        database.replace("postgresql:", "postgresql+psycopg2:", 1),
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http:
            deadline = time.monotonic() + 600  # its imports alone take minutes on a busy machine
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if http.get("/health").status_code == 200:
                        break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"MLflow's server did not start: {(folder / 'log').read_text()[-2000:]}"
                    )
                time.sleep(0.2)
            time.sleep(_SETTLED_S)
            yield Peer("MLflow", http, database)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turn(peers: Sequence[Peer], times: int, work: Callable[[Peer], object]) -> list[float]:
    """The median of each peer, who take turns: what slows the machine slows both."""
    for peer in peers:
        work(peer)
    found: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for _ in range(times):
        for peer in peers:
            found[peer.name].append(seconds(lambda peer=peer: work(peer)))  # type: ignore[misc]
    return [statistics.median(found[peer.name]) for peer in peers]


def batch(keys: int, points: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"key": f"k{i % keys}", "value": i / 7, "timestamp": 1000 + start + i, "step": start + i // keys}
        for i in range(points)
    ]


def crowd(peer: Peer, clients: int, batches: int) -> tuple[int, float, float]:
    """(errors, median, p99) of as many clients that log at once, each to a run of its own."""
    latencies: list[float] = []
    errors: list[str] = []
    guard = threading.Lock()

    def client(http: httpx.Client, run: str) -> None:
        for number in range(batches):
            body = {"run_id": run, "metrics": batch(5, 20, number * 4)}
            started = time.perf_counter()
            answer = http.post("/api/2.0/mlflow/runs/log-batch", json=body)
            took = time.perf_counter() - started
            with guard:
                latencies.append(took)
                if answer.status_code != 200:
                    errors.append(answer.text[:200])
            time.sleep(1.0)  # a training step: whoever trains does not log without pause

    made = [  # before the clock runs: loading certificates takes as long as many requests
        httpx.Client(base_url=peer.http.base_url, headers=peer.http.headers, timeout=120)
        for _ in range(clients)
    ]
    threads = [threading.Thread(target=client, args=(http, peer.new_run())) for http in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for http in made:
        http.close()
    latencies.sort()
    return len(errors), statistics.median(latencies), latencies[int(len(latencies) * 0.99)]


def whole_history(peer: Peer, run: str) -> int:
    count, token = 0, None
    while True:
        params: dict[str, Any] = {"run_id": run, "metric_key": "long", "max_results": 25_000}
        answer = peer.http.get(
            "/api/2.0/mlflow/metrics/get-history", params=params | ({"page_token": token} if token else {})
        )
        answer.raise_for_status()
        page = orjson.loads(answer.content)
        count += len(page.get("metrics", []))
        token = page.get("next_page_token")
        if not token:
            return count


Lines = list[tuple[str, str, str]]


def prepare(ours: Peer, theirs: Peer, runs: int, points: int, kept: Path | None) -> dict[str, str]:
    """Fill both databases, unless that was done before; returns the run of each peer that has a long history."""
    note = kept / "filled.json" if kept else None
    if note is not None and note.exists():
        filled: dict[str, str] = json.loads(note.read_text())
        return filled
    peers = (ours, theirs)
    for peer in peers:
        peer.call("experiments/create", {"name": "bench"})
    engine = create_engine(ours.database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.connect() as conn:
        project, owner = conn.execute(text("SELECT p.id, u.id FROM projects p, users u LIMIT 1")).one()
    engine.dispose()
    found = {peer.name: peer.new_run() for peer in peers}
    ours.fill(OURS, project=project, owner=owner, n=runs)
    theirs.fill(THEIRS, n=runs)
    ours.fill(OUR_POINTS, run=found["Easel"], n=points)
    theirs.fill(THEIR_POINTS, run=found["MLflow"], n=points)
    if note is not None:
        note.write_text(json.dumps(found))
    return found


def batches(ours: Peer, theirs: Peer, quick: bool) -> Lines:
    lines = []
    for keys in (10, 1000):
        runs = {peer.name: peer.new_run() for peer in (ours, theirs)}
        step = iter(range(0, 10**9, 1000))

        def log(
            peer: Peer, keys: int = keys, runs: dict[str, str] = runs, step: Iterator[int] = step
        ) -> None:
            peer.call("runs/log-batch", {"run_id": runs[peer.name], "metrics": batch(keys, 1000, next(step))})

        one, two = in_turn((ours, theirs), 5 if quick else 15, log)
        lines.append((f"log-batch, 1,000 metrics of {keys} keys", compared(one, two), "≥ 5 ×"))
    return lines


def crowds(ours: Peer, theirs: Peer | None, quick: bool) -> Lines:
    lines = []
    for peer, target in ((ours, "no error, p99 < 250 ms"), (theirs, "")):
        if peer is None:
            continue
        errors, median, p99 = crowd(peer, 50, 5 if quick else 12)
        told = f"{errors} errors, median {median * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"
        lines.append((f"50 clients log at once (20 metrics a second each), {peer.name}", told, target))
    return lines


def own_series(ours: Peer, run: str) -> int:
    """Every point of the series as the store itself reads it: what the pages of Easel rest on."""
    store = Store(ours.database)
    try:
        with store.read() as tx:
            return outline(tx, Series(run, 1, "long"), read_whole=10**9)[0]
    finally:
        store.close()


def histories(ours: Peer, theirs: Peer | None, runs: dict[str, str]) -> Lines:
    points = own_series(ours, runs["Easel"])
    assert whole_history(ours, runs["Easel"]) == points
    one = own = float("inf")
    for _ in range(3):
        own = min(own, seconds(lambda: own_series(ours, runs["Easel"])))
        one = min(one, seconds(lambda: whole_history(ours, runs["Easel"])))
    told = f"{one * 1000:.1f} ms; our own series read by the store: {own * 1000:.1f} ms, {own / one:.2f} ×"
    if theirs is not None:
        two = seconds(lambda: whole_history(theirs, runs["MLflow"]))
        told += f"; MLflow {two * 1000:.1f} ms: {two / one:.1f} ×"
    return [(f"get-history of {points:,} points, in pages", told, "≥ 1 × our own series")]


def searches(ours: Peer, theirs: Peer, quick: bool) -> Lines:
    lines = []
    for name, body in SEARCHES.items():
        asked = {"experiment_ids": [EXPERIMENT], "max_results": 100, **body}
        found = [peer.call("runs/search", asked) for peer in (ours, theirs)]
        names = [[run["info"]["run_name"] for run in each.get("runs", [])] for each in found]
        assert len(names[0]) == len(names[1]), (name, len(names[0]), len(names[1]))

        def ask(peer: Peer, asked: dict[str, Any] = asked) -> object:
            return peer.call("runs/search", asked)

        one, two = in_turn((ours, theirs), 5 if quick else 9, ask)
        lines.append((f"search, {name}: {len(names[0])} found", compared(one, two), "≥ 10 ×, < 50 ms"))
    return lines


def compared(one: float, two: float) -> str:
    return f"{one * 1000:.1f} ms, MLflow {two * 1000:.1f} ms: {two / one:.1f} ×"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mlflow", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="where the filled databases stay for the next measurement")
    parser.add_argument("--only", default="batch,crowd,history,searches")
    parser.add_argument("--alone", action="store_true", help="without MLflow's own server")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    said = subprocess.run(
        [asked.mlflow, "-c", "import mlflow; print(mlflow.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    with tempfile.TemporaryDirectory() as scratch:
        kept = asked.keep.resolve() if asked.keep else None
        with running_postgres(kept / "postgres" if kept else None) as postgres:
            lines = _run(asked, postgres, kept, kept or Path(scratch))
    head = (
        f"`python benchmarks/mlflow.py --mlflow PYTHON{' --quick' if asked.quick else ''}`, "
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"MLflow {said.stdout.strip()}, both on one PostgreSQL, one server process each, medians of requests that take "
        "turns."
    )
    table = "\n".join(f"| {what} | {figure} | {target} |" for what, figure, target in lines)
    page = f"# MLflow's API\n\n{head}\n\n| what | Easel | target |\n|---|---|---|\n{table}\n"
    print(page)
    if asked.out:
        asked.out.write_text(page)


def _run(asked: argparse.Namespace, postgres: Postgres, kept: Path | None, folder: Path) -> Lines:
    filled = kept is not None and (kept / "filled.json").exists()
    for name in ("ours", "theirs"):
        (folder / name).mkdir(exist_ok=filled)
        if not filled:
            postgres.create(name)
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(easel(postgres.url("ours"), folder / "ours", new=not filled))
        if asked.alone:
            return _alone(asked, ours, kept)
        theirs = stack.enter_context(mlflow(asked.mlflow, postgres.url("theirs"), folder / "theirs"))
        runs = prepare(ours, theirs, asked.runs, 100_000 if asked.quick else 1_000_000, kept)
        parts: dict[str, Callable[[], Lines]] = {
            "batch": lambda: batches(ours, theirs, asked.quick),
            "crowd": lambda: crowds(ours, theirs, asked.quick),
            "history": lambda: histories(ours, theirs, runs),
            "searches": lambda: searches(ours, theirs, asked.quick),
        }
        return [line for name in asked.only.split(",") for line in parts[name]()]


def _alone(asked: argparse.Namespace, ours: Peer, kept: Path | None) -> Lines:
    if kept is None or not (kept / "filled.json").exists():
        raise SystemExit("--alone needs databases that an earlier measurement kept: --keep FOLDER")
    runs = json.loads((kept / "filled.json").read_text())
    wanted = asked.only.split(",")
    lines = crowds(ours, None, asked.quick) if "crowd" in wanted else []
    return [*lines, *(histories(ours, None, runs) if "history" in wanted else [])]


if __name__ == "__main__":
    main()
