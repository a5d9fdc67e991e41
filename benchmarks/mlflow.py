"""Easel against MLflow's own server: the same requests, the same data, one PostgreSQL, one machine, one run.

    python benchmarks/mlflow.py --mlflow PYTHON [--quick] [--out docs/results/mlflow.md]

`PYTHON` is an interpreter whose environment has `mlflow` and `psycopg2-binary`.
"""

from __future__ import annotations

import argparse
import contextlib
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
from sqlalchemy import create_engine, text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.testing.postgres import Postgres
from easel.testing.postgres import running as running_postgres
from easel.testing.server import running as running_easel

EXPERIMENT = "1"
SEARCHES = {
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
INSERT INTO job_series (job_id, attempt, name, closed, open, project_id, last_step, last_at, last, low, high)
SELECT 'job_' || lpad(i::text, 26, '0'), 1, 'm' || k, 0, 1, CAST(:project AS varchar), 0, 1000,
  ((i::bigint * (7919 + k * 101)) % 100000) / 100000.0, 0, 1
FROM generate_series(1, CAST(:n AS integer)) i, generate_series(0, 4) k;
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
INSERT INTO job_series (job_id, attempt, name, closed, open, project_id, last_step, last_at, last, low, high)
SELECT CAST(:run AS varchar), 1, 'long', 0, 0, project_id, CAST(:n AS bigint), 0, 0, -1, 1 FROM jobs WHERE id = CAST(:run AS varchar)
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
        found: dict[str, Any] = answer.json()
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
def easel(database: str, folder: Path) -> Iterator[Peer]:
    with running_easel(folder, database) as server:
        server.client().projects.create("lab")
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        with httpx.Client(base_url=f"{server.address}/mlflow/lab", headers=headers, timeout=600) as http:
            yield Peer("Easel", http, database)


@contextlib.contextmanager
def mlflow(python: str, database: str, folder: Path) -> Iterator[Peer]:
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
            deadline = time.monotonic() + 180
            while time.monotonic() < deadline:
                with contextlib.suppress(httpx.TransportError):
                    if http.get("/health").status_code == 200:
                        break
                if process.poll() is not None:
                    raise RuntimeError((folder / "log").read_text()[-2000:])
                time.sleep(0.2)
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

    def client(run: str) -> None:
        with httpx.Client(base_url=peer.http.base_url, headers=peer.http.headers, timeout=120) as http:
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

    threads = [threading.Thread(target=client, args=(peer.new_run(),)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies.sort()
    return len(errors), statistics.median(latencies), latencies[int(len(latencies) * 0.99)]


def whole_history(peer: Peer, run: str) -> int:
    count, token = 0, None
    while True:
        params = {"run_id": run, "metric_key": "long", "max_results": 25_000}
        answer = peer.http.get(
            "/api/2.0/mlflow/metrics/get-history", params=params | ({"page_token": token} if token else {})
        )
        answer.raise_for_status()
        page = answer.json()
        count += len(page.get("metrics", []))
        token = page.get("next_page_token")
        if not token:
            return count


def measure(ours: Peer, theirs: Peer, quick: bool) -> list[tuple[str, str, str]]:
    peers = (ours, theirs)
    lines: list[tuple[str, str, str]] = []
    for peer in peers:
        peer.call("experiments/create", {"name": "bench"})
    for keys in (10, 1000):
        runs = {peer.name: peer.new_run() for peer in peers}
        step = iter(range(0, 10**9, 1000))

        def log(
            peer: Peer, keys: int = keys, runs: dict[str, str] = runs, step: Iterator[int] = step
        ) -> None:
            peer.call("runs/log-batch", {"run_id": runs[peer.name], "metrics": batch(keys, 1000, next(step))})

        one, two = in_turn(peers, 5 if quick else 15, log)
        lines.append((f"log-batch, 1,000 metrics of {keys} keys", compared(one, two), "≥ 5 ×"))
    errors, median, p99 = crowd(ours, 50, 5 if quick else 12)
    told = f"{errors} errors, median {median * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"
    lines.append(("50 clients log at once (20 metrics a second each)", told, "no error, p99 < 250 ms"))
    errors, median, p99 = crowd(theirs, 50, 5 if quick else 12)
    told = f"{errors} errors, median {median * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"
    lines.append(("the same, MLflow's own", told, ""))
    points = 100_000 if quick else 1_000_000
    run_ids = {peer.name: peer.new_run() for peer in peers}
    ours.fill(OUR_POINTS, run=run_ids["Easel"], n=points)
    theirs.fill(THEIR_POINTS, run=run_ids["MLflow"], n=points)
    for peer in peers:
        assert whole_history(peer, run_ids[peer.name]) == points
    one = seconds(lambda: whole_history(ours, run_ids["Easel"]))
    two = seconds(lambda: whole_history(theirs, run_ids["MLflow"]))
    lines.append((f"get-history of {points:,} points, in pages", compared(one, two), ""))
    return lines


def searches(ours: Peer, theirs: Peer, runs: int, quick: bool) -> list[tuple[str, str, str]]:
    engine = create_engine(ours.database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.connect() as conn:
        project, owner = conn.execute(text("SELECT p.id, u.id FROM projects p, users u LIMIT 1")).one()
    engine.dispose()
    ours.fill(OURS, project=project, owner=owner, n=runs)
    theirs.fill(THEIRS, n=runs)
    lines = []
    for name, body in SEARCHES.items():
        asked = {"experiment_ids": [EXPERIMENT], "max_results": 100, **body}
        found = [peer.call("runs/search", asked) for peer in (ours, theirs)]
        names = [[run["info"]["run_name"] for run in each.get("runs", [])] for each in found]
        assert len(names[0]) == len(names[1]), (name, len(names[0]), len(names[1]))
        one, two = in_turn(
            (ours, theirs), 5 if quick else 9, lambda peer, asked=asked: peer.call("runs/search", asked)
        )  # type: ignore[misc]
        lines.append(
            (f"search of {runs:,} runs, {name}: {len(names[0])} found", compared(one, two), "≥ 10 ×, < 50 ms")
        )
    return lines


def compared(one: float, two: float) -> str:
    return f"{one * 1000:.1f} ms, MLflow {two * 1000:.1f} ms: {two / one:.1f} ×"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mlflow", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    said = subprocess.run(
        [asked.mlflow, "-c", "import mlflow; print(mlflow.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    with tempfile.TemporaryDirectory() as scratch, running_postgres() as postgres:
        lines = _run(asked, postgres, Path(scratch))
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


def _run(asked: argparse.Namespace, postgres: Postgres, scratch: Path) -> list[tuple[str, str, str]]:
    for name in ("ours", "theirs"):
        (scratch / name).mkdir()
    with (
        easel(postgres.create("ours"), scratch / "ours") as ours,
        mlflow(asked.mlflow, postgres.create("theirs"), scratch / "theirs") as theirs,
    ):
        return measure(ours, theirs, asked.quick) + searches(ours, theirs, asked.runs, asked.quick)


if __name__ == "__main__":
    main()
