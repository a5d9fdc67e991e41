"""Answers at speed: requests per second and milliseconds of one row or one picture a request, over HTTP.

    python -m benchmarks.answers [--quick] [--json PATH] [--profile]

Starts `easel up` on an empty folder, learns from 1,000 rows and from 120 pictures of 28 × 28, pins the first model of each, and
asks over kept connections from one further process that only writes and reads sockets: (1) as fast as it goes, by so many
clients at once; (2) at a given pace, each request at its own moment whether the one before was answered or not. With another
release on PYTHONPATH the same script measures that one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import psutil

from easel.match.raw import plain_value
from easel.sdk.client import Client
from easel.testing.server import ServerProcess, running

PROJECT = "bench"


class Asker(asyncio.Protocol):
    """One kept connection. A request at a time; the answer's length is read from its header."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._got = b""
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    def ask(self, request: bytes) -> asyncio.Future[int]:
        assert self.transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(b"\r\n\r\n")
        if head < 0 or self._answer is None:
            return
        at = self._got.lower().find(b"content-length:", 0, head)
        size = int(self._got[at + 15 : self._got.find(b"\r\n", at)])
        if len(self._got) >= head + 4 + size:
            status = int(self._got[9:12])
            self._got = self._got[head + 4 + size :]
            self._answer.set_result(status)


async def connected(port: int, count: int) -> list[Asker]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Asker, "127.0.0.1", port))[1] for _ in range(count)]


async def flat_out(port: int, request: bytes, clients: int, seconds: float) -> tuple[list[float], float]:
    """Seconds of each answer, and of all: every client asks again as soon as it was answered."""
    askers = await connected(port, clients)
    times: list[float] = []
    began = time.perf_counter()

    async def go_on(asker: Asker) -> None:
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            status = await asker.ask(request)
            assert status == 200, status
            times.append(time.perf_counter() - asked)

    await asyncio.gather(*(go_on(asker) for asker in askers))
    return times, time.perf_counter() - began


async def paced(port: int, request: bytes, pace: float, seconds: float) -> tuple[list[float], float]:
    """The same at `pace` requests a second: the time counts from the moment at which a request was due."""
    free = await connected(port, 8)
    spare = asyncio.Semaphore(len(free))
    times: list[float] = []
    began = time.perf_counter()

    async def one(due: float) -> None:
        async with spare:
            asker = free.pop()
            status = await asker.ask(request)
            free.append(asker)
        assert status == 200, status
        times.append(time.perf_counter() - due)

    tasks = []
    for number in range(int(pace * seconds)):
        due = began + number / pace
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    return times, time.perf_counter() - began


def request_of(port: int, token: str, path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask_apart(server: ServerProcess, path: str, body: bytes, **how: float) -> dict[str, float]:
    """Ask from a process of its own, and say what every process used of a core meanwhile."""
    orders = {"port": server.port, "token": server.admin_token, "path": path, "body": body.decode(), **how}
    before = used(server)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.answers", "--ask"],
        input=json.dumps(orders).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    for name, seconds in used(server).items():
        found[f"{name}, ms of a core"] = 1e3 * (seconds - before.get(name, 0.0)) / found["answers"]
    return found


def used(server: ServerProcess) -> dict[str, float]:
    """Processor seconds of the server, and of the model processes that it started."""
    found = {"server": 0.0, "models": 0.0}
    main = psutil.Process(server.pid)
    for process in (main, *main.children(recursive=True)):
        try:
            times, name = process.cpu_times(), " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        if process == main or "model_process" in name:
            found["server" if process == main else "models"] += times.user + times.system
    return found


def asked_here() -> None:
    """The asking process: orders on standard input, figures on standard output."""
    orders = json.load(sys.stdin)
    port = orders["port"]
    request = request_of(port, orders["token"], orders["path"], orders["body"].encode())
    import uvloop

    if "pace" in orders:
        work = paced(port, request, orders["pace"], orders["seconds"])
    else:
        work = flat_out(port, request, int(orders["clients"]), orders["seconds"])
    cpu = time.process_time()
    times, took = uvloop.run(work)
    cpu = time.process_time() - cpu
    ms = np.array(times) * 1e3
    json.dump(
        {
            "answers": len(times),
            "requests/s": len(times) / took,
            "median, ms": float(np.median(ms)),
            "p99, ms": float(np.quantile(ms, 0.99)),
            "asking, ms of a core": 1e3 * cpu / len(times),
        },
        sys.stdout,
    )


def wait_for_model(client: Client, name: str) -> None:
    ends = time.monotonic() + 300
    while (found := client.apps.get(name).serving) is None:
        if time.monotonic() > ends:
            raise SystemExit(f"{name} has no model after five minutes")
        time.sleep(0.1)
    client.apps.pin(name, found.model)
    client.apps.refine(name, filters=["digest:ne:x"], on=False)


def learned(client: Client) -> dict[str, Any]:
    """Two apps whose first model answers, and one object for each. Nothing learns any more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 8))
    y = np.where(x[:, 0] * x[:, 1] + x[:, 2] > 0, "yes", "no")
    fields = ", ".join(f"f{k}: number" for k in range(8))
    client.apps.declare("rows", f"input: {{{fields}}}\noutput: [no, yes]")
    rows = [{f"f{k}": float(v) for k, v in enumerate(row)} for row in x]
    client.apps.feed("rows", list(zip(rows, map(str, y), strict=True)))
    wait_for_model(client, "rows")
    photos = [
        (rng.integers(0, 100, size=(28, 28, 1)).astype(np.float32) + 100 * (k % 2), "ab"[k % 2])
        for k in range(120)
    ]
    client.apps.declare("photos", "input: image 28 x 28\noutput: [a, b]")
    client.apps.feed("photos", photos)
    wait_for_model(client, "photos")
    while any(app.running for app in client.apps.list()):
        time.sleep(0.2)
    return {"rows": {f"f{k}": 0.3 for k in range(8)}, "photos": plain_value(photos[0][0])}


def measured(server: ServerProcess, seconds: float, clients: Sequence[int], pace: float) -> dict[str, Any]:
    root = server.client()
    root.projects.create(PROJECT)
    client = root.in_project(PROJECT)
    found: dict[str, Any] = {}
    for name, one in learned(client).items():
        path = f"/api/v1/projects/{PROJECT}/apps/{name}/infer"
        body = json.dumps({"objects": [one]}).encode()
        found[f"{name}: model"] = client.apps.infer(name, [one]).candidate
        ask_apart(server, path, body, clients=2, seconds=1.0)  # warm
        for count in clients:
            found[f"{name}, {count} at once"] = ask_apart(server, path, body, clients=count, seconds=seconds)
        found[f"{name}, {pace:g}/s asked for"] = ask_apart(server, path, body, pace=pace, seconds=seconds)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--pace", type=float, default=1000.0)
    arguments.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.ask:
        asked_here()
        return
    found: dict[str, Any] = {"load before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as server:
        seconds, clients = (2.0, (4,)) if options.quick else (6.0, (1, 4, 8))
        found |= measured(server, seconds, clients, options.pace)
    for key, value in found.items():
        told = (
            ", ".join(f"{k} {v:.2f}" for k, v in value.items() if k != "answers")
            if isinstance(value, dict)
            else value
        )
        print(f"{key}: {told}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
