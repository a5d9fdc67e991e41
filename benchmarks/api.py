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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from sqlalchemy import create_engine, select

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.flow.first_start import create_platform_admin
from easel.serve import logs
from easel.serve.app import create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.identity import add_project
from easel.store.migrate import migrate
from easel.store.schema.identity import projects

CLIENTS = 32


def bare_app(database: str) -> FastAPI:
    """The peer: one route, one indexed select, nothing else."""
    engine = create_engine(database, pool_size=40, max_overflow=20)
    app = FastAPI()

    @app.get("/projects/{name}")
    def project(name: str) -> dict[str, Any]:
        with engine.connect() as conn:
            row = conn.execute(select(projects).where(projects.c.name == name)).one()
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


def compare(quick: bool) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp())
    database = f"sqlite:///{folder}/easel.sqlite"
    store = Store(database)
    migrate(store, backup=lambda _revision: None)
    token = create_platform_admin(store)
    with store.write() as tx:
        for i in range(1000):
            add_project(tx, f"p{i}", "")
    store.close()
    ports = {"bare": free_port(), "easel": free_port()}
    workers = [
        multiprocessing.Process(target=serve, args=(kind, database, port), daemon=True)
        for kind, port in ports.items()
    ]
    for worker in workers:
        worker.start()
    urls = {
        "bare": f"http://127.0.0.1:{ports['bare']}/projects/p500",
        "easel": f"http://127.0.0.1:{ports['easel']}/api/v1/projects/p500",
    }
    headers = {"bare": {}, "easel": {"Authorization": f"Bearer {token}"}}
    for kind, url in urls.items():
        wait_for(url, headers[kind])
    medians: dict[str, list[float]] = {"bare": [], "easel": []}
    for _ in range(2 if quick else 5):  # alternating, so that a noisy neighbour meets both
        for kind, url in urls.items():
            median = wrk(url, token if kind == "easel" else None, 1 if quick else 4)
            if median is None:
                median = statistics.median(asyncio.run(load(url, headers[kind], 640 if quick else 6400)))
            medians[kind].append(median)
    for worker in workers:
        worker.kill()
    return {kind: statistics.median(values) for kind, values in medians.items()}


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
    easel = [sys.executable, "-m", "easel.cli.main"]
    environment = {**os.environ, "PYTHONPATH": "src"}
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
            wait_for(f"http://127.0.0.1:{port}/readyz", {})
            ups.append(time.perf_counter() - began)
            time.sleep(1 if quick else 5)
            memory = resident_mb(up.pid)
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
    ratio = latency["easel"] / latency["bare"]
    lines = [
        "# The API's cost",
        "",
        f"`python benchmarks/api.py`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}.",
        "",
        "| what | measured | target |",
        "|---|---|---|",
        f"| bare FastAPI route with one indexed select, median at {CLIENTS} clients | "
        f"{latency['bare'] * 1e3:.1f} ms | – |",
        f"| authenticated `GET` of one project, median at {CLIENTS} clients | {latency['easel'] * 1e3:.1f} ms | – |",
        f"| ratio | {ratio:.2f}× | ≤ 2.5× |",
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
