"""What the server costs per request, against a bare FastAPI route in the same run; and how it starts.

python benchmarks/api.py            full; --quick for a few seconds; --out docs/results/api.md
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from sqlalchemy import create_engine, select

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.declare.job import Command, JobSpec
from easel.declare.roles import Role
from easel.flow.first_start import create_platform_admin
from easel.flow.issue_token import issue_token
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.ids import TokenId
from easel.records.identity import Caller
from easel.serve import logs
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.identity import add_project, add_user, put_member
from easel.store.migrate import migrate
from easel.store.schema.identity import projects
from easel.store.schema.jobs import jobs
from easel.testing.ending import end_orderly_when_told

CLIENTS = 32


def bare_app(database: str) -> FastAPI:
    """The peer: one indexed select a route, nothing else: no log-in, no models, no log line."""
    engine = create_engine(database, pool_size=40, max_overflow=20)
    app = FastAPI()

    @app.get("/projects/{name}")
    def project(name: str) -> dict[str, Any]:
        with engine.connect() as conn:
            row = conn.execute(select(projects).where(projects.c.name == name)).one()
        return dict(row._mapping)

    @app.get("/jobs/{job}")
    def job(job: str) -> dict[str, Any]:
        with engine.connect() as conn:
            row = conn.execute(select(jobs).where(jobs.c.id == job)).one()
        return dict(row._mapping)

    return app


def serve(kind: str, database: str, port: int) -> None:
    if kind == "bare":
        app = bare_app(database)
    else:
        logs.configure("info")
        app = create_app(Settings(home=Path(tempfile.mkdtemp())), Store(database))
    uvicorn.run(app, port=port, log_config=None, access_log=False)


async def load(url: str, headers: dict[str, str], requests: int) -> list[float]:
    """Latency of each request, at 32 clients at once."""
    latencies: list[float] = []

    async def client() -> None:
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            for _ in range(requests // CLIENTS):
                began = time.perf_counter()
                answer = await http.get(url)
                latencies.append(time.perf_counter() - began)
                assert answer.status_code == 200, answer.text

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return latencies


def wrk(url: str, token: str | None, seconds: int) -> float | None:
    """Median latency in seconds by wrk, which costs far less than a Python client; None where it is absent."""
    try:
        headers = ["-H", f"Authorization: Bearer {token}"] if token else []
        done = subprocess.run(
            ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", *headers, url],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except FileNotFoundError:
        return None
    for line in done.stdout.splitlines():
        if line.strip().startswith("50%"):
            value = line.split()[1]
            unit = 1e-6 if value.endswith("us") else 1e-3 if value.endswith("ms") else 1.0
            return float(value.rstrip("ums")) * unit
    raise RuntimeError(done.stdout)


@dataclass(frozen=True)
class Objects:
    """What is fetched: one of a thousand projects, and one of a thousand jobs of a member's own."""

    token: str
    member: str
    job: str

    def requests(self, ports: dict[str, int]) -> dict[str, dict[str, tuple[str, str | None]]]:
        """By object and server: the address and the token."""
        bare, easel = (f"http://127.0.0.1:{ports[kind]}" for kind in ("bare", "easel"))
        return {
            "project": {
                "bare": (f"{bare}/projects/p500", None),
                "easel": (f"{easel}/api/v1/projects/p500", self.token),
            },
            "job": {
                "bare": (f"{bare}/jobs/{self.job}", None),
                "easel": (f"{easel}/api/v1/projects/p500/jobs/{self.job}", self.member),
            },
        }


def fill(database: str) -> Objects:
    store = Store(database)
    migrate(store, backup=lambda _revision: None)
    token = create_platform_admin(store)
    assert token is not None
    with store.write() as tx:
        made = [add_project(tx, f"p{i}", "") for i in range(1000)]
        user = add_user(tx, "ana", home=made[500].id)
        put_member(tx, made[500].id, user.id, Role.MEMBER)
        caller = Caller(user, TokenId("benchmark"), made[500], Role.MEMBER)
        secret = issue_token(tx, caller, user.id, "benchmark", None).secret
        spec = JobSpec("train", Command(("python", "train.py", "--epochs", "5")), tags={"model": "cnn"})
        submitted = submit_jobs(tx, caller, [Submission(spec)] * 1000)
    store.close()
    return Objects(token, secret, submitted[500].id)


def compare(quick: bool) -> dict[str, dict[str, float]]:
    """Median latency in seconds, by object and server."""
    folder = Path(tempfile.mkdtemp())
    database = f"sqlite:///{folder}/easel.sqlite"
    objects = fill(database)
    ports = {"bare": free_port(), "easel": free_port()}
    workers = [
        multiprocessing.Process(target=serve, args=(kind, database, port), daemon=True)
        for kind, port in ports.items()
    ]
    for worker in workers:
        worker.start()
    asked = objects.requests(ports)
    medians: dict[str, dict[str, list[float]]] = {}
    for what, servers in asked.items():
        medians[what] = {kind: [] for kind in servers}
        for url, token in servers.values():
            wait_for(url, _headers(token))
        for _ in range(2 if quick else 5):  # alternating, so that a noisy neighbour meets both
            for kind, (url, token) in servers.items():
                median = wrk(url, token, 1 if quick else 4)
                if median is None:
                    answers = load(url, _headers(token), 640 if quick else 6400)
                    median = statistics.median(asyncio.run(answers))
                medians[what][kind].append(median)
    for worker in workers:
        worker.kill()
    return {
        what: {kind: statistics.median(values) for kind, values in servers.items()}
        for what, servers in medians.items()
    }


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def wait_for(url: str, headers: dict[str, str]) -> None:
    for _ in range(600):
        try:
            if httpx.get(url, headers=headers).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"{url} does not answer")


def start_times(quick: bool) -> dict[str, float]:
    """Seconds of `easel --help`; seconds until `easel up` is ready on a warm disk; MB of the idle server."""
    end_orderly_when_told()
    easel = [sys.executable, "-m", "easel.cli.main"]
    environment = {**os.environ, "PYTHONPATH": "src"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    helps = []
    for _ in range(3 if quick else 10):
        began = time.perf_counter()
        subprocess.run([*easel, "--help"], stdout=subprocess.DEVNULL, check=True, env=environment)
        helps.append(time.perf_counter() - began)
    ups, memory = [], 0.0
    with tempfile.TemporaryDirectory() as home:
        for _ in range(2 if quick else 6):
            port = free_port()
            began = time.perf_counter()
            up = subprocess.Popen(
                [*easel, "up", "--home", home, "--port", str(port), "--token-file", f"{home}/token"],
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            try:
                wait_for(f"http://127.0.0.1:{port}/readyz", {})
                ups.append(time.perf_counter() - began)
                time.sleep(1 if quick else 5)
                memory = resident_mb(up.pid)
            finally:
                up.terminate()
                up.wait()
    return {"help": statistics.median(helps), "up": statistics.median(ups[1:]), "memory": memory}


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    latency = compare(options.quick)
    starts = start_times(options.quick)
    command = "python benchmarks/api.py" + (" --quick" if options.quick else "")
    lines = [
        "# The API's cost",
        "",
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}. "
        f"Medians at {CLIENTS} clients; the bare peer is a FastAPI route that does one indexed SQLAlchemy select.",
        "",
        "| what | measured | target |",
        "|---|---|---|",
    ]
    for what, servers in latency.items():
        bare, easel = servers["bare"], servers["easel"]
        lines += [
            f"| authenticated `GET` of one {what} | {easel * 1e3:.1f} ms, bare {bare * 1e3:.1f} ms: "
            f"{easel / bare:.2f}× | ≤ 2.5× |"
        ]
    lines += [
        f"| `easel --help` | {starts['help']:.2f} s | < 0.4 s |",
        f"| `easel up` until `/readyz`, warm disk | {starts['up']:.2f} s | < 3 s |",
        f"| idle server | {starts['memory']:.0f} MB | < 200 MB |",
    ]
    report = "\n".join(lines) + "\n"
    print(report)
    if options.out:
        options.out.write_text(report)


if __name__ == "__main__":
    main()
